"""``conclave keys``: keys are shown once and kept as hashes."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.cli import run
from app.http.access import keys as keys_file
from app.http.access.keys import Role, hash_of, read_key_ring, read_keys
from app.ledger.head import replaced_file

if TYPE_CHECKING:
    from collections.abc import Iterator

CHANGES = [
    ["add", "--role", "read", "--name", "page"],
    ["limit", "--name", "web", "--limit", "7"],
    ["disable", "--name", "web"],
    ["enable", "--name", "web"],
    ["remove", "--name", "web"],
    ["rotate", "--name", "web"],
    ["retire-old", "--name", "web"],
]

KILLED = """\
import os
from pathlib import Path
from app.cli.keys import write_keys
Path.replace = lambda path, target: os.kill(os.getpid(), 9)
write_keys(Path({path!r}), [])
"""


def test_the_next_command_removes_the_temporary_file_of_a_killed_one(tmp_path: Path) -> None:
    """It would hold the hashes of keys for good."""
    path = tmp_path / "keys.toml"
    program = KILLED.format(path=str(path))
    killed = subprocess.run([sys.executable, "-c", program], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    assert run(["keys", "add", "--role", "read", "--name", "ops", "--keys-file", str(path)]) == 0
    assert [each.name for each in tmp_path.iterdir()] == ["keys.toml"]


def test_adds_keys_that_the_server_then_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The printed key opens what its role opens; the file holds its hash only."""
    path = tmp_path / "keys.toml"
    for name, role in (("web", "query"), ("ops", "admin")):
        arguments = ["--role", role, "--name", name, "--keys-file", str(path)]
        assert run(["keys", "add", *arguments]) == 0
        captured = capsys.readouterr()
        secret = captured.out.strip()
        assert f"added {name} ({role}) to {path}" in captured.err
        found = read_key_ring(path).find(secret)
        assert found is not None
        assert (found.key.name, found.key.role) == (name, Role(role))
        assert secret not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert run(["keys", "list", "--keys-file", str(path)]) == 0
    assert capsys.readouterr().out == "web\tquery\t-\t-\tactive\nops\tadmin\t-\t-\tactive\n"


def test_finds_the_file_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an option the variable decides, and without it the working directory."""
    monkeypatch.chdir(tmp_path)
    assert run(["keys", "add", "--role", "read", "--name", "here"]) == 0
    monkeypatch.setenv("CONCLAVE_SERVER__KEYS_FILE", str(tmp_path / "named.toml"))
    assert run(["keys", "add", "--role", "read", "--name", "named"]) == 0
    assert read_key_ring(tmp_path / "keys.toml").keys[0].name == "here"
    assert read_key_ring(tmp_path / "named.toml").keys[0].name == "named"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--role", "boss", "--name", "a"], "--role: 'boss' is none of query, read, admin"),
        (
            ["--role", "read", "--name", "a b"],
            "--name: 1 to 64 of the characters a-z A-Z 0-9 . _ -",
        ),
        (
            ["--role", "read", "--name", "web"],
            "--name: keys.toml has a key named web; choose another",
        ),
        (
            ["--role", "read", "--name", "b", "--limit", "1"],
            "--limit: a key of role read asks nothing; leave it out",
        ),
        (
            ["--role", "admin", "--name", "b", "--unstable-limit", "1" + "0" * 16],
            "--unstable-limit: is at most 1000000000000000",
        ),
    ],
)
def test_refuses_what_the_server_would_refuse(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    line: str,
) -> None:
    """A bad role or name is one line, and the file stays as it was."""
    monkeypatch.chdir(tmp_path)
    run(["keys", "add", "--role", "query", "--name", "web"])
    before = (tmp_path / "keys.toml").read_bytes()
    capsys.readouterr()
    assert run(["keys", "add", *arguments]) == 2
    assert capsys.readouterr().err == f"conclave: {line}\n"
    assert (tmp_path / "keys.toml").read_bytes() == before


def test_does_not_append_to_what_is_no_file_of_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that the server would refuse is left alone."""
    path = tmp_path / "conclave.toml"
    path.write_text("[release]\n")
    assert run(["keys", "add", "--role", "read", "--name", "a", "--keys-file", str(path)]) == 2
    expected = f"conclave: server.keys_file: {path} may hold [[keys]] tables only\n"
    assert capsys.readouterr().err == expected
    assert path.read_text() == "[release]\n"


def test_finds_the_file_that_a_configuration_names(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--config`` means the file that the server of this configuration reads."""
    example = (repository / "examples/own-data.toml").read_text("utf-8")
    config = tmp_path / "conclave.toml"
    config.write_text(example)
    arguments = ["keys", "add", "--role", "read", "--name", "page", "--config", str(config)]
    assert run(arguments) == 2
    expected = f"server.keys_file: {config} does not set it; set it, or give --keys-file"
    assert capsys.readouterr().err == f"conclave: {expected}\n"
    config.write_text(example.replace("# keys_file", "keys_file"))
    assert run(arguments) == 0
    assert read_key_ring(tmp_path / "keys.toml").keys[0].name == "page"


@pytest.fixture
def file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return a file with the keys web, of role query, and ops, of role admin."""
    path = tmp_path / "keys.toml"
    for name, role in (("web", "query"), ("ops", "admin")):
        call(path, "add", "--role", role, "--name", name)
    capsys.readouterr()
    return path


def call(path: Path, *arguments: str) -> None:
    """Run a subcommand on a file of keys."""
    assert run(["keys", *arguments, "--keys-file", str(path)]) == 0


def test_limits_are_set_listed_and_taken_away(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A limit stands in the file, and one that is left out is gone."""
    call(file, "limit", "--name", "web", "--limit", "1000", "--unstable-limit", "5")
    call(file, "list")
    listed = capsys.readouterr().out.splitlines()
    assert listed[0] == "limits of web: 1000, unstable 5"
    assert listed[1:] == ["web\tquery\t1000\t5\tactive", "ops\tadmin\t-\t-\tactive"]
    call(file, "limit", "--name", "web", "--limit", "0")
    assert [(key.limit, key.unstable_limit) for key in read_keys(file)] == [(0, None), (None, None)]


def test_a_key_is_made_with_limits(tmp_path: Path) -> None:
    """``conclave keys add`` takes both."""
    path = tmp_path / "keys.toml"
    limits = ("--limit", "10", "--unstable-limit", "2")
    call(path, "add", "--role", "query", "--name", "web", *limits)
    (key,) = read_keys(path)
    assert (key.limit, key.unstable_limit) == (10, 2)


def test_a_disabled_key_opens_nothing_until_it_is_enabled(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It stays in the file, with its hash."""
    call(file, "rotate", "--name", "web", "--at-once")
    secret = capsys.readouterr().out.strip()
    call(file, "disable", "--name", "web")
    assert read_key_ring(file).find(secret) is None
    call(file, "list")
    assert "web\tquery\t-\t-\tdisabled" in capsys.readouterr().out
    call(file, "enable", "--name", "web")
    assert read_key_ring(file).find(secret) is not None


def test_a_rotation_keeps_the_old_key_until_it_is_retired(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both keys open the same under one name, then the new one alone; name and limits stay."""
    call(file, "limit", "--name", "web", "--limit", "7")
    capsys.readouterr()
    call(file, "rotate", "--name", "web", "--at-once")
    old = capsys.readouterr().out.strip()
    call(file, "rotate", "--name", "web")
    new = capsys.readouterr().out.strip()
    ring = read_key_ring(file)
    for secret in (old, new):
        found = ring.find(secret)
        assert found is not None
        assert (found.asker.name, found.asker.answer_limit) == ("web", 7)
    call(file, "list")
    assert "web\tquery\t7\t-\trotating" in capsys.readouterr().out
    call(file, "retire-old", "--name", "web")
    assert read_key_ring(file).find(old) is None
    assert read_key_ring(file).find(new) is not None
    assert read_keys(file)[0].hash == hash_of(new)


def test_a_key_is_removed_and_the_last_one_leaves_a_file_for_nobody(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is left is a sound file; a start with it is refused."""
    call(file, "remove", "--name", "web")
    assert [key.name for key in read_keys(file)] == ["ops"]
    call(file, "remove", "--name", "ops")
    assert read_keys(file) == []
    capsys.readouterr()
    call(file, "add", "--role", "query", "--name", "web")
    assert [key.name for key in read_keys(file)] == ["web"]


def test_a_comment_stays_when_a_key_is_added(file: Path) -> None:
    """``add`` appends to what is there."""
    file.write_text("# for the desk\n" + file.read_text().rstrip("\n"))
    call(file, "add", "--role", "read", "--name", "page")
    assert file.read_text().startswith("# for the desk\n")
    assert [key.name for key in read_keys(file)] == ["web", "ops", "page"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "command", ["limit", "disable", "enable", "remove", "rotate", "retire-old"]
)
def test_a_name_that_is_not_there_is_refused(
    file: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """One line, and the file stays as it was."""
    before = file.read_bytes()
    assert run(["keys", command, "--name", "nobody", "--keys-file", str(file)]) == 2
    assert capsys.readouterr().err == f"conclave: --name: {file} has no key named nobody\n"
    assert file.read_bytes() == before


def test_a_folder_that_takes_no_file_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the system refuses is told with the setting."""
    path = tmp_path / "absent" / "keys.toml"
    assert run(["keys", "add", "--role", "read", "--name", "a", "--keys-file", str(path)]) == 2
    assert capsys.readouterr().err == (
        f"conclave: server.keys_file: {path} cannot be written: No such file or directory\n"
    )


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, as another command does; an error where it is held already."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("arguments", CHANGES)
def test_a_command_reads_the_file_under_its_lock(
    file: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    """No other command can change the file between the reading and the writing."""
    looks = []

    def read_text(path: Path) -> bytes:
        with pytest.raises(BlockingIOError), held(path.parent):
            pass
        looks.append(path)
        return path.read_bytes()

    monkeypatch.setattr(keys_file, "read_text", read_text)
    call(file, *arguments)
    assert looks == [file]


def test_commands_at_one_time_keep_the_changes_of_each_other(file: Path) -> None:
    """Each key that was added is there."""
    names = [f"desk-{number}" for number in range(12)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: call(file, "add", "--role", "read", "--name", name), names))
    assert sorted(key.name for key in read_keys(file)) == sorted([*names, "web", "ops"])


@pytest.mark.parametrize("arguments", CHANGES)
def test_a_lock_that_is_held_for_long_is_one_line(
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    """The command says that another is at work; a reader, as the server is one, needs no lock."""
    monkeypatch.setattr(replaced_file, "LOCK_TRIES_MAX", 2)
    before = file.read_bytes()
    with held(file.parent):
        assert run(["keys", *arguments, "--keys-file", str(file)]) == 2
        assert read_key_ring(file).keys
    assert capsys.readouterr() == (
        "",
        f"conclave: server.keys_file: another command is changing {file}; try again\n",
    )
    assert file.read_bytes() == before


NOT_SHOWN = "the new key was not shown, so the file of keys stays as it was"


@pytest.mark.parametrize("arguments", [CHANGES[0], [*CHANGES[5], "--at-once"]])
@pytest.mark.parametrize(
    ("output", "problem"),
    [
        pytest.param("/dev/full", "cannot be written: No space left on device", id="full"),
        pytest.param(None, "is closed", id="closed"),
    ],
)
def test_a_key_that_cannot_be_shown_is_not_kept(
    file: Path, arguments: list[str], output: str | None, problem: str
) -> None:
    """The file stays as it was, without a temporary file next to it."""
    before = file.read_bytes()
    line = [sys.executable, "-m", "app", "keys", *arguments, "--keys-file", str(file)]
    with Path(output or os.devnull).open("w", encoding="utf-8") as out:
        ended = subprocess.run(
            line if output else ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *line],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.stderr == f"conclave: standard output: {problem}; {NOT_SHOWN}\n"
    assert ended.returncode == 2
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]
