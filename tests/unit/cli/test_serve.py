"""``conclave serve``: what it refuses before it serves, in a process of its own."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.builders.server.nursery import run_forked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

CONFIGURATION = """\
[release]
name = "small"
[data]
source = "rows.csv"
label = "answer"
classes = ["no", "yes"]
[[data.features]]
name = "age"
kind = "numeric"
bounds = [0, 100]
[hypotheses]
class = "stumps"
[privacy]
epsilon = 20
delta = 1e-2
[answers]
ensemble = 4
"""
ROWS = "age,answer\n" + "".join(
    f"{age},{'yes' if age > 50 else 'no'}\n" for age in range(0, 100, 5)
)
MARKER = "31337"
EVEN_IF_HOPELESS = ("--even-if-hopeless",)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a configuration and rows that would serve."""
    (tmp_path / "conclave.toml").write_text(CONFIGURATION, encoding="utf-8")
    (tmp_path / "rows.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path


@pytest.fixture
def taken_port() -> Iterator[int]:
    """Return a port that somebody listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


@dataclass(frozen=True)
class Ended:
    """A start that has ended: its exit code and what it said."""

    returncode: int
    stdout: str
    stderr: str


def serve(
    folder: Path,
    environ: Mapping[str, str] | None = None,
    options: Sequence[str] = EVEN_IF_HOPELESS,
) -> Ended:
    """Run the command until it ends, which it must do by itself; four votes are hopeless."""
    settings = {"CONCLAVE_SERVER__PORT": "0", **(environ or {})}
    command = ("-m", "app", "serve", "--config", str(folder / "conclave.toml"), *options)
    ended = run_forked(command, settings)
    return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


def refusal(run: Ended) -> str:
    """Return the one line of a start that was refused; progress lines may come before it."""
    assert run.returncode == 2, run.stderr
    assert "Traceback" not in run.stderr
    return run.stderr.splitlines()[-1]


def is_untouched(folder: Path) -> bool:
    """Say whether no release was opened: no ledger, or one that promises nothing."""
    from app.ledger.ledger import open_ledger

    path = folder / "conclave.db"
    if not path.exists():
        return True
    ledger = open_ledger(f"sqlite:///{path}", create=False)
    try:
        return ledger.read_state().release is None
    finally:
        ledger.close()


def test_answers_that_take_too_long_are_refused(folder: Path) -> None:
    """The start ends with 2 and one line that names the key, and nothing is charged."""
    padded = {"CONCLAVE_ANSWERS__REPLY_PADDING_MILLISECONDS": "9000"}
    run = serve(folder, padded)
    line = refusal(run)
    assert line.startswith("conclave: answers.query_seconds_max: is 2 s, and the 4 votes on a ")
    assert "padded 9 s: raise it, or choose a smaller answers.ensemble" in line
    assert is_untouched(folder)


@pytest.mark.parametrize("setting", ["port", "grpc_port"])
def test_a_taken_port_is_refused(folder: Path, taken_port: int, setting: str) -> None:
    """A port that somebody else has is named, before anything is opened."""
    run = serve(folder, {f"CONCLAVE_SERVER__{setting.upper()}": str(taken_port)})
    assert refusal(run) == (
        f"conclave: server.{setting}: cannot listen on 127.0.0.1:{taken_port}: "
        "address already in use; choose another"
    )
    assert run.stderr.count("\n") == 1
    assert is_untouched(folder)


def test_one_port_for_http_and_grpc_is_refused(folder: Path) -> None:
    """The two protocols need two ports."""
    ports = {"CONCLAVE_SERVER__PORT": "48123", "CONCLAVE_SERVER__GRPC_PORT": "48123"}
    assert refusal(serve(folder, ports)) == (
        "conclave: server.grpc_port: is the port of HTTP too; choose another"
    )
    assert is_untouched(folder)


def test_a_head_that_was_noted_must_be_in_the_ledger(folder: Path) -> None:
    """A release that is yet to be opened has no entry of any hash, and what is none is told."""
    run = serve(folder, options=("--expect-head", "ab" * 32))
    assert refusal(run).startswith("conclave: --expect-head: no entry has this hash")
    assert is_untouched(folder)
    run = serve(folder, options=("--expect-head", "ab"))
    assert refusal(run) == "conclave: --expect-head: a hash has 64 hexadecimal digits"
    assert is_untouched(folder)


def test_a_head_file_of_another_ledger_is_refused(folder: Path) -> None:
    """No database is made where the file notes one, and a folder that is missing is named."""
    head = {"release_id": "0f" * 16, "name": "lost", "sequence": 9, "hash": "ab" * 32}
    document = {
        "format": "conclave-head-file",
        "version": 1,
        "releases": [head | {"answered": 1234}],
    }
    (folder / "conclave.db.head").write_text(json.dumps(document), encoding="utf-8")
    assert "notes 1234 answers of 'lost'" in refusal(serve(folder))
    assert not (folder / "conclave.db").exists()
    elsewhere = {"CONCLAVE_LEDGER__HEAD_FILE": str(folder / "not mounted" / "head")}
    line = refusal(serve(folder, elsewhere))
    assert line == (
        f"conclave: ledger.head_file: there is no folder {folder / 'not mounted'}; mount or "
        "create it"
    )


def test_an_address_that_is_not_ours_is_refused(folder: Path) -> None:
    """A host name that nobody knows is no traceback."""
    run = serve(
        folder,
        {"CONCLAVE_SERVER__HOST": "no.such.host.invalid", "CONCLAVE_SERVER__KEYS_FILE": "keys"},
    )
    assert refusal(run).startswith("conclave: server.")
    assert is_untouched(folder)


def test_private_data_without_keys_stay_on_this_machine(folder: Path) -> None:
    """Listening where other machines can connect takes a file of keys; the line says what to do."""
    run = serve(folder, {"CONCLAVE_SERVER__HOST": "0.0.0.0"})  # noqa: S104 -- refused
    assert refusal(run) == (
        "conclave: server.keys_file: not set, and server.host '0.0.0.0' can be reached from other "
        "machines; mount a keys file (`conclave keys add --role query --name NAME` writes one) "
        "and set CONCLAVE_SERVER__KEYS_FILE to its path, or listen on 127.0.0.1"
    )
    assert run.stderr.count("\n") == 1
    assert is_untouched(folder)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "epsilon = 20",
            "epsilon = 20\nepsilom = 1",
            "privacy.epsilom: is not a known key; did you mean epsilon?",
        ),
        (
            '"stumps"',
            '"rectangles"',
            "hypotheses.class: rectangles needs tests of two numbers",
        ),
    ],
)
def test_a_bad_configuration_is_one_line(folder: Path, old: str, new: str, line: str) -> None:
    """The line names the key, and nothing is opened."""
    path = folder / "conclave.toml"
    path.write_text(CONFIGURATION.replace(old, new), encoding="utf-8")
    run = serve(folder)
    assert refusal(run) == f"conclave: {line}"
    assert is_untouched(folder)


def test_an_absent_configuration_is_one_line(tmp_path: Path) -> None:
    """A file that is not there is named."""
    run = serve(tmp_path)
    assert run.stderr == f"conclave: {tmp_path / 'conclave.toml'}: no such file\n"
    assert run.returncode == 2


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("15,no", f"{MARKER}x,no", 'data.source: column "age", row 4: is not a number'),
        ("age,answer", "years,answer", 'data.source: column "age" is missing in the header'),
    ],
)
def test_bad_rows_are_one_line_without_their_value(
    folder: Path, old: str, new: str, line: str
) -> None:
    """Column and row number are named, the value is not, and nothing is charged."""
    (folder / "rows.csv").write_text(ROWS.replace(old, new), encoding="utf-8")
    run = serve(folder)
    assert refusal(run) == f"conclave: {line}"
    assert MARKER not in run.stdout + run.stderr
    assert is_untouched(folder)


def test_a_refused_start_names_every_column_and_leaves_no_file(folder: Path) -> None:
    """The first complaint is the first line, other columns follow, and nothing is made."""
    text = (folder / "conclave.toml").read_text(encoding="utf-8")
    more = '[[data.features]]\nname = "srv rate %"\nkind = "numeric"\nbounds = [0, 1]\n[hypotheses]'
    (folder / "conclave.toml").write_text(text.replace("[hypotheses]", more), encoding="utf-8")
    rows = "age,srv rate %,answer\n1,0.5,no\nx,0.1,yes\n2,y,no\n3,z,maybe\n"
    (folder / "rows.csv").write_text(rows, encoding="utf-8")
    run = serve(folder)
    assert run.returncode == 2
    assert run.stderr.splitlines() == [
        'conclave: data.source: column "age", row 2: is not a number',
        'conclave: column "srv rate %", row 3: is not a number',
        'conclave: column "answer", row 4: is not one of data.classes',
    ]
    assert sorted(path.name for path in folder.iterdir()) == ["conclave.toml", "rows.csv"]
    assert run.stdout.startswith("conclave: opening small on http://")
    assert "serving" not in run.stdout


def test_a_hopeless_release_is_refused_before_the_charge(folder: Path) -> None:
    """Without the flag the start ends with 2 and what to change, and the ledger holds no entry."""
    line = refusal(serve(folder, options=()))
    assert line.startswith("conclave: answers.ensemble: this release is hopeless, and nothing is ")
    assert "have n = " in line
    assert "--even-if-hopeless" in line
    assert is_untouched(folder)


def test_more_learners_than_rows_are_refused_before_the_charge(folder: Path) -> None:
    """What cannot be fitted is told while the ledger is as it was."""
    run = serve(folder, {"CONCLAVE_ANSWERS__ENSEMBLE": "21"}, options=())
    assert refusal(run).startswith(
        "conclave: answers.ensemble: this release is hopeless, and nothing is charged: 21 learners "
        "need at least as many rows; there are 20; "
    )
    assert is_untouched(folder)
