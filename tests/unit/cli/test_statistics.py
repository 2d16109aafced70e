"""``conclave statistics``: one document on stdout, or one line that says why not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from app.cli import logs, run
from app.ledger.ledger import open_ledger
from tests.unit.cli.test_learn import CONFIGURATION, POINTS, ROWS

if TYPE_CHECKING:
    from pathlib import Path

    from app.ledger.entries.fold import LedgerState

SHARES = """
[privacy.shares]
relabel = 0
answers = 0.5
classifier = 0.1
statistics = 0.4
"""
MARKER = "31337"


def stump(cut: float) -> dict[str, object]:
    """Return a tree that says yes from an age on."""
    branches = {"true": {"label": "yes"}, "false": {"label": "no"}}
    return {"tree": {"feature": 0, "at_least": cut, **branches}}


@pytest.fixture(autouse=True)
def _logs_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs are configured once for a whole process, which here runs other tests too."""
    monkeypatch.setattr(logs, "configure_logs", lambda: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a configuration, rows, public points and a question."""
    (tmp_path / "conclave.toml").write_text(CONFIGURATION + SHARES, encoding="utf-8")
    (tmp_path / "rows.csv").write_text(ROWS, encoding="utf-8")
    (tmp_path / "public.csv").write_text(POINTS, encoding="utf-8")
    write(tmp_path, {"hypotheses": [stump(50), stump(25)]})
    return tmp_path


def write(folder: Path, document: object) -> None:
    """Write what is asked."""
    (folder / "asked.json").write_text(json.dumps(document), encoding="utf-8")


def statistics(folder: Path, *options: str | Path) -> int:
    """Run the command on the folder's configuration and question."""
    asked = [str(folder / "asked.json"), "--config", str(folder / "conclave.toml")]
    return run(["statistics", "--even-if-hopeless", *asked, *map(str, options)])


def opened(folder: Path, *, public: bool = True) -> int:
    """Run it with the folder's public points."""
    return statistics(folder, *(("--public", folder / "public.csv") if public else ()))


def state(folder: Path) -> LedgerState:
    """Return what the folder's ledger says."""
    ledger = open_ledger(f"sqlite:///{folder / 'conclave.db'}", create=False)
    try:
        return ledger.read_state()
    finally:
        ledger.close()


def test_the_values_are_all_of_stdout(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the table is worth goes to stderr; asked again it says the same and charges nothing."""
    assert opened(folder) == 0
    printed = capsys.readouterr()
    answer = json.loads(printed.out)
    assert list(answer) == ["values", "fractions", "alpha", "beta"]
    assert answer["values"] == pytest.approx([0.0, 0.5], abs=0.5)
    (line,) = printed.err.splitlines()
    assert line.startswith("conclave: drawing a table of 6 hypotheses on 3 cells that 3 public")
    head = state(folder).head
    assert opened(folder, public=False) == 0
    assert json.loads(capsys.readouterr().out) == answer
    assert opened(folder) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == answer
    assert printed.err == (
        "conclave: the statistics table is open already; the public points are not used\n"
    )
    assert state(folder).head == head


@pytest.mark.parametrize(
    "document",
    [stump(50), [stump(50)], {"hypotheses": [stump(50)]}],
    ids=["one", "a list", "as posted"],
)
def test_a_file_holds_one_or_many(
    folder: Path, document: object, capsys: pytest.CaptureFixture[str]
) -> None:
    """A document as exported, a list of them, or the body of POST /statistics."""
    write(folder, document)
    assert opened(folder) == 0
    assert len(json.loads(capsys.readouterr().out)["values"]) == 1


@pytest.mark.parametrize(
    ("document", "line"),
    [
        (7, "HYPOTHESES.json: must be "),
        ([], "HYPOTHESES.json: must be "),
        ({"hypotheses": []}, "HYPOTHESES.json: must be "),
        ({"hypotheses": [stump(50), {}]}, "HYPOTHESES.json: hypotheses[1] must be a tree"),
        ([{"tree": {"label": "maybe"}}], "HYPOTHESES.json: hypotheses[0] has a label"),
    ],
)
def test_a_bad_question_charges_nothing(
    folder: Path, document: object, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on stderr and exit code 2, before a ledger is there."""
    write(folder, document)
    assert opened(folder) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (told,) = printed.err.splitlines()
    assert told.startswith(f"conclave: {line}")
    assert not (folder / "conclave.db").exists()


@pytest.mark.parametrize("text", ["{", "", "\\ud800"])
def test_what_is_no_json_is_one_line(
    folder: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line names the file."""
    (folder / "asked.json").write_text(text, encoding="utf-8")
    assert opened(folder) == 2
    assert capsys.readouterr().err.endswith("asked.json is not JSON\n")


def test_a_missing_file_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line says what the system says."""
    (folder / "asked.json").unlink()
    assert opened(folder) == 2
    assert capsys.readouterr().err.startswith("conclave: HYPOTHESES.json: cannot read ")


def test_without_points_nothing_opens(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A release that has not answered has no other public points."""
    assert opened(folder, public=False) == 2
    assert capsys.readouterr().err == (
        "conclave: --public: the statistics table is not open: give public points, which open it\n"
    )
    assert not (folder / "conclave.db").exists()


@pytest.mark.parametrize(
    ("section", "line"),
    [
        ('class = "halfspaces"', 'statistics.class: cannot be "halfspaces"'),
        ("updates = 3\naccuracy = 0.5", "statistics.accuracy: give updates or an accuracy, not"),
        ("accuracy = 0.001", "statistics.accuracy: 0.001 is out of reach: this share and these"),
        ("tests = { height = [3] }", "statistics.tests.height: names no feature"),
        ("tests = { age = [] }", "statistics.tests: leaves no test at all"),
        ("updates = 0", "statistics.updates: "),
    ],
)
def test_a_section_that_gives_no_table_is_one_line(
    folder: Path, section: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line names the key; nothing is charged."""
    text = CONFIGURATION + SHARES + f"[statistics]\n{section}\n"
    if "halfspaces" in section:
        text = CONFIGURATION.replace('"stumps"', '"halfspaces"') + SHARES
    (folder / "conclave.toml").write_text(text, encoding="utf-8")
    assert opened(folder) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith(f"conclave: {line}")
    database = folder / "conclave.db"
    assert not database.exists()


def test_no_line_holds_a_private_value(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever goes wrong with the rows, no cell of them is told."""
    (folder / "rows.csv").write_text(f"age,answer\n{MARKER}x,yes\n", encoding="utf-8")
    assert opened(folder) == 2
    printed = capsys.readouterr()
    assert MARKER not in printed.out + printed.err
