"""``conclave erase``: erase records or persons at the next scheduled update of the release."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from app.release.generations.waiting_requests import Receipt

EXIT_UNKNOWN: Final = 1
STANDARD_INPUT: Final = "-"
MARK: Final = "\ufeff"
LINE_END: Final = re.compile(r"\r\n|\r|\n")
ERASED: Final = "forgotten"
CORRECTED: Final = "corrected"
UNITS: Final = {"row": "record", "person": "person"}


def register(application: typer.Typer) -> None:
    """Add the command ``conclave erase`` to the application."""
    application.command("erase")(erase)


def erase(
    *,
    config: Annotated[Path, typer.Option("--config", help="conclave.toml.")],
    identifier: Annotated[
        str | None, typer.Option("--id", help="Identifier of a record, as in data.id.")
    ] = None,
    person: Annotated[
        str | None, typer.Option("--person", help="Identifier of a person, as in data.person.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", help="File of identifiers, one a line; - for standard input."),
    ] = None,
    now: Annotated[
        bool, typer.Option("--now", help="Apply the change now, not at the next tick.")
    ] = False,
) -> None:
    """Erase records or persons: their rows are removed, and the affected models trained anew.

    No output of the server shows that a record was erased.  The exit code is 1 if a record is not
    known; the command still erases the others.  All rows of an erased person are removed.  The
    option --from accepts identifiers of records or persons, and keeps them out of the shell's
    history.
    """
    from app.main import change_from_settings
    from app.noise.system import SystemNoise
    from app.settings.settings import load_settings

    settings = load_settings(config, os.environ)
    asked = [each for each in (identifier, person, source) if each is not None]
    if len(asked) != 1:
        raise ConfigurationError("erase", "takes one of --id ID, --person ID and --from FILE")
    identifiers = _read(source) if source is not None else asked
    _check_column("data.person", settings.data.person, person)
    _check_column("data.id", settings.data.id, identifier)
    receipt = change_from_settings(
        settings, identifiers=identifiers, now=now, noise=SystemNoise(), warn=tell
    )
    show(receipt, done=ERASED, unit=settings.data.unit)


def _check_column(key: str, column: str | None, given: str | None) -> None:
    """Refuse an identifier of a column that is not named."""
    if given is not None and column is None:
        raise ConfigurationError(key, "names no column, so that nobody is known by it")


def _read(source: str) -> list[str]:
    """Return the identifiers of a file or of standard input, one a line."""
    try:
        if source == STANDARD_INPUT:
            text = sys.stdin.read()
        else:
            text = Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError("--from", f"cannot read {source}") from None
    # Only these end a line of a CSV too; a mark before the first identifier is none of it.
    return [line for line in LINE_END.split(text.removeprefix(MARK)) if line]


def show(receipt: Receipt, *, done: str, unit: str) -> None:
    """Print the confirmation of a change of records; exit with code 1 if a record is not known.

    Args:
        receipt: the confirmation of the change.
        done: the change as a word, such as "erased".
        unit: the unit of privacy, row or person.

    """
    count, before, after = receipt.taken.count, receipt.before, receipt.after
    one = UNITS[unit]
    records = f"1 {one}" if count == 1 else f"{count} {one}s"
    if after is not None:
        typer.echo(
            f"{records} {done}; the ledger's head before: {before.sequence} {before.hash}, after: "
            f"{after.sequence} {after.hash}"
        )
    elif count:
        typer.echo(
            f"{records} to be {done} at the next tick; the ledger's head now: {before.sequence} "
            f"{before.hash}"
        )
    for place in receipt.taken.unknown:
        tell(f"no {one} is known by the identifier in place {place}")
    if receipt.taken.unknown:
        raise typer.Exit(EXIT_UNKNOWN)


def tell(line: str) -> None:
    """Print one line on the operator's terminal."""
    typer.echo(f"conclave: {line}", err=True)
