"""The command line: one file per command, named after it; larger commands are folders.

``__init__.py`` runs a command. Every error ends there, in one line on stderr and an exit code: 0
for success, 1 if a tested condition does not hold, 2 for bad usage or configuration. A command
module is quick to import, because it imports other code only when the command runs.

The commands are ``rows/`` (rows are added, corrected or erased), ``generations.py`` (a list of the
batches of rows and their budgets), ``audit/``, ``check.py``, ``demo/``, ``export.py`` (the
published classifier, to a file), ``init/``, ``keys.py`` (API keys of clients), ``learn.py``,
``ledger.py`` (copies of a ledger), ``plan/``, ``query/``, ``serve.py``, ``simulate.py``,
``statement.py``, ``statistics.py`` (a release's noisy statistics table: drawn once, then printed)
and ``verify.py``.
The other files are used by the commands:

* ``web_server.py`` runs uvicorn: its socket, its signals and its end.
* ``background_server.py`` runs the demo's server on a thread of the command's process.
* ``loopback_client.py`` is a fast HTTP client for a server on this machine, for the audit.
* ``logs.py`` configures the structured logs and their list of allowed fields.
* ``numeric_options.py`` parses numbers that are given as options.
* ``opening_progress.py`` shows the progress bar while a release opens.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer
from typer.main import get_command

from app.cli import (
    check,
    export,
    generations,
    keys,
    learn,
    ledger,
    serve,
    simulate,
    statement,
    statistics,
    verify,
)
from app.cli.audit import command as audit
from app.cli.demo import command as demo
from app.cli.init import command as init
from app.cli.plan import command as plan
from app.cli.query import command as query
from app.cli.rows import append, correct, erase
from app.errors import ConclaveError, ConfigurationError, MachineError

# One thread a product: the products here are small, and a second thread that
# waits for a busy core makes them a hundred times slower.  Set before numpy is
# imported; the operator's own value wins.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

COMMANDS = (
    init,
    serve,
    demo,
    plan,
    simulate,
    check,
    learn,
    append,
    correct,
    erase,
    generations,
    audit,
    statement,
    statistics,
    verify,
    query,
    export,
    ledger,
    keys,
)
EXIT_DONE = 0
EXIT_DOES_NOT_HOLD = 1
EXIT_BAD_USAGE = 2
OPTIONS_SHOWN_MAX = 8
SOURCE_ROOT = Path(__file__).parents[2]


def main() -> None:
    """Run the ``conclave`` command on the process's arguments, and end the process."""
    exit_code = run(sys.argv[1:])
    gc.freeze()  # else the end goes twice through all that was imported, for nothing
    sys.exit(exit_code)


def run(arguments: list[str]) -> int:
    """Return the exit code of one command after running it.

    Args:
        arguments: the words after ``conclave`` on the command line.

    Returns:
        The exit code; if it is not 0, one line on stderr states the error.

    """
    try:
        returned = get_command(application())(
            args=arguments, prog_name="conclave", standalone_mode=False
        )
        if sys.stdout is not None:  # whoever starts a command with a closed output wants none
            sys.stdout.flush()
    except BrokenPipeError:
        return _reader_left()
    except Exception as error:  # noqa: BLE001 -- the process's edge
        problem, exit_code = _account(error)
        for each in (problem, *getattr(error, "others", ())):
            typer.echo(_line(each), err=True)
        return exit_code
    return returned if isinstance(returned, int) else EXIT_DONE


def application() -> typer.Typer:
    """Return the command-line application with every command registered."""
    commands = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
    )
    commands.callback(invoke_without_command=True)(_conclave)
    for command in COMMANDS:
        command.register(commands)
    return commands


def _conclave(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Answer classification queries on private records, with differential privacy."""
    if version:
        typer.echo(f"conclave {metadata.version('conclave')}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(EXIT_BAD_USAGE)


def _account(error: Exception) -> tuple[str, int]:
    """Return the line for an error, and the exit code for it."""
    match error:
        case typer.TyperException():
            return f"{error.format_message()}{_offered(error)}", error.exit_code
        case ConfigurationError():
            return str(error), EXIT_BAD_USAGE
        case ConclaveError():
            return str(error), EXIT_DOES_NOT_HOLD
        case OSError():
            return _system_refusal(error), EXIT_BAD_USAGE
        case _ if _is_of_machine(error):
            return str(MachineError()), EXIT_DOES_NOT_HOLD
        case _:
            return _internal_error(error), EXIT_DOES_NOT_HOLD


def _offered(error: typer.TyperException) -> str:
    """Return the options of a command for one that is like none of them; else nothing."""
    context: typer.Context | None = getattr(error, "ctx", None)
    if context is None or getattr(error, "possibilities", None) != []:
        return ""
    options = sorted(
        max(each.opts, key=len) for each in context.command.params if each.opts[0].startswith("-")
    )
    if len(options) > OPTIONS_SHOWN_MAX:
        return f" (`{context.command_path} --help` shows the options)"
    return f" (Possible options: {', '.join([*options, '--help'])})"


def _is_of_machine(error: Exception) -> bool:
    """Return whether the machine refused memory or a thread."""
    from app.learning.chunks import made_by_machine

    return made_by_machine(error)


def _line(problem: str) -> str:
    """Fold a problem into one line; the help that stands for a missing command stays whole."""
    return problem if problem.startswith("Usage: ") else f"conclave: {' '.join(problem.split())}"


def _reader_left() -> int:
    """End quietly when the reader of a pipe has gone, as ``| head`` does."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return EXIT_DOES_NOT_HOLD


def _system_refusal(error: OSError) -> str:
    """Say what the system refused: its reason and the path, if there is one."""
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or type(error).__name__}"


def _internal_error(error: Exception) -> str:
    """Say where an unexpected error came up, without its text.

    The text of a foreign exception may quote a private value, and so may the
    locals of a traceback; a class name and line numbers cannot.
    """
    frames = traceback.extract_tb(error.__traceback__)
    places = [
        f"{Path(frame.filename).relative_to(SOURCE_ROOT)}:{frame.lineno}"
        for frame in frames
        if Path(frame.filename).is_relative_to(SOURCE_ROOT / "app")
    ]
    return f"internal error, please report it: {type(error).__name__} at {' > '.join(places)}"
