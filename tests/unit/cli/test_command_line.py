"""The process's edge: exit codes, one line per refusal, cheap start."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import typer

from app import cli
from app.errors import (
    ConfigurationError,
    InvariantError,
    LedgerUnavailableError,
    VerificationError,
)

if TYPE_CHECKING:
    from pathlib import Path

COMMAND_NAMES = [
    command.__name__.removesuffix(".command").rpartition(".")[2] for command in cli.COMMANDS
]
SLOW_LIBRARIES = (
    "alembic",
    "fastapi",
    "joblib",
    "onnx",
    "scipy",
    "sklearn",
    "sqlalchemy",
    "starlette",
    "uvicorn",
)
LATE_LIBRARIES = ("alembic", "httpx", "joblib", "onnx", "pandas", "pyarrow", "scipy", "sklearn")


def _application_that_raises(error: BaseException) -> typer.Typer:
    """Return an application whose one command ends in an error."""
    commands = typer.Typer(add_completion=False)

    @commands.callback()
    def conclave() -> None:
        """Take commands."""

    @commands.command()
    def fail() -> None:
        """Fail as told."""
        raise error

    return commands


@pytest.mark.parametrize(
    ("error", "exit_code", "line"),
    [
        (ConfigurationError("privacy.shares", "add up to 1.1"), 2, "privacy.shares: add up to 1.1"),
        (VerificationError("entry 7 does not\nfollow 6"), 1, "entry 7 does not follow 6"),
        (LedgerUnavailableError("the ledger is locked"), 1, "the ledger is locked"),
        (InvariantError("spent at most once"), 1, "spent at most once"),
        (OSError(errno.EACCES, "Permission denied", "a.json"), 2, "a.json: Permission denied"),
        (typer.BadParameter("not a number"), 2, "Invalid value: not a number"),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(
    error: Exception,
    exit_code: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each family of errors ends in its exit code and one line on stderr."""
    monkeypatch.setattr(cli, "application", lambda: _application_that_raises(error))
    assert cli.run(["fail"]) == exit_code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"conclave: {line}\n"


def test_an_unexpected_error_shows_no_text_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text of a foreign exception, which may quote a private value, is not printed."""
    error = ValueError("could not convert string to float: 'marker'")
    monkeypatch.setattr(cli, "application", lambda: _application_that_raises(error))
    assert cli.run(["fail"]) == 1
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert "ValueError at app/cli/__init__.py:" in printed
    assert "marker" not in printed


def test_an_interrupt_is_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C ends a command with 130 and nothing on the screen."""
    monkeypatch.setattr(cli, "application", lambda: _application_that_raises(KeyboardInterrupt()))
    assert cli.run(["fail"]) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("arguments", [["--nonsense"], ["nonsense"], ["plan", "--nonsense"]])
def test_bad_usage_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown option or command exits 2 with one line that names it."""
    assert cli.run(arguments) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("conclave: No such ")
    assert "nonsense" in printed
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "offered"),
    [
        (["audit", "--runs", "5"], "Possible options: --config, --http, --json, --quick, --help"),
        (["audit", "--confi"], "Possible options: --config, --json"),
        (["plan", "--nonsense"], "`conclave plan --help` shows the options"),
        (["--nonsense"], "Possible options: --version, --help"),
    ],
)
def test_an_unknown_option_is_offered_others(
    arguments: list[str], offered: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Near ones where there are some, else all, or where to read them."""
    assert cli.run(arguments) == 2
    assert capsys.readouterr().err.endswith(f" ({offered})\n")


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command the help is shown and the exit code says bad usage."""
    assert cli.run([]) == 2
    assert "Usage: conclave" in capsys.readouterr().out


def test_a_missing_subcommand_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    """A command of commands, called alone, shows its help on stderr and exits 2."""
    assert cli.run(["keys"]) == 2
    assert capsys.readouterr().err.startswith("Usage: conclave keys [OPTIONS] COMMAND [ARGS]...\n")


def test_the_version_is_the_projects(capsys: pytest.CaptureFixture[str]) -> None:
    """``--version`` prints the installed version."""
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("conclave ")


@pytest.mark.parametrize("command", COMMAND_NAMES)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command explains itself and its options."""
    assert cli.run([command, "--help"]) == 0
    assert f"Usage: conclave {command}" in capsys.readouterr().out


def test_the_help_is_cheap(repository: Path) -> None:
    """Registering every command imports no learner, database or web server."""
    program = (
        "import json, sys; from app import cli; cli.application();"
        "print(json.dumps(list(sys.modules)))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=repository, capture_output=True, text=True, check=True
    )
    assert not set(SLOW_LIBRARIES) & set(json.loads(loaded.stdout))


def test_a_server_starts_without_what_few_requests_need(repository: Path) -> None:
    """Serving imports no learner's library, and none that an answer never asks."""
    program = (
        "import json, sys; import app.main, app.cli.web_server; print(json.dumps([*sys.modules]))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=repository, capture_output=True, text=True, check=True
    )
    assert not set(LATE_LIBRARIES) & set(json.loads(loaded.stdout))


@pytest.mark.parametrize(("given", "kept"), [(None, "1"), ("2", "2")])
def test_a_product_takes_one_thread(repository: Path, given: str | None, kept: str) -> None:
    """Draws share their work among threads themselves; the operator's own value wins."""
    program = (
        "import os, sys; from app import cli; cli.application();"
        "print('numpy' in sys.modules, os.environ['OPENBLAS_NUM_THREADS'])"
    )
    others = {name: text for name, text in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=repository,
        env=others | ({} if given is None else {"OPENBLAS_NUM_THREADS": given}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.split() == ["False", kept]


def test_a_command_may_be_started_with_a_closed_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python has no such stream then; what is printed goes nowhere, and is no failure."""
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stdout", None)
        assert cli.run(["--version"]) == cli.EXIT_DONE
    assert capsys.readouterr().err == ""


def test_a_reader_that_leaves_ends_the_command_quietly(repository: Path) -> None:
    """A closed pipe, as ``| head`` leaves behind, is no error message."""
    piped = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m app --help | true"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
    )
    assert piped.stderr == ""
