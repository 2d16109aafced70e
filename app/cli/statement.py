"""``conclave statement``: print what a release promises, for a public registry or as one page.

The registries meant are public lists of deployments of differential privacy.
"""

from __future__ import annotations

import os
import textwrap
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.errors import ConfigurationError, NoLedgerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from app.ledger.ledger import Ledger
    from app.release.views.statement import Line
    from app.settings.settings import Settings

EXIT_REFUTED: Final = 1
STATING: Final = "working out the statement"
HEADING_COLUMNS: Final = 12
PAGE_COLUMNS: Final = 96


def register(application: typer.Typer) -> None:
    """Add the command ``conclave statement`` to the application."""
    application.command("statement")(statement)


def statement(
    config: Annotated[
        Path | None,
        typer.Option("--config", help="conclave.toml. Default: the embedded demo."),
    ] = None,
    audit: Annotated[
        Path | None,
        typer.Option("--audit", help="Output of `conclave audit --json` on this configuration."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Print the privacy promise of a release, from its configuration and ledger.

    The exit code is 0, or 1 if the given audit refutes the promise.
    """
    from importlib import metadata

    import msgspec

    from app.cli.opening_progress import at_work
    from app.release.terms.configuration import configure
    from app.release.views import statement as views
    from app.release.views.stated_release import read_stated
    from app.settings.settings import load_settings

    settings = load_settings(config, os.environ)
    report = None if audit is None else _report(audit)
    with at_work(STATING), _ledger(settings) as ledger:
        stated = read_stated(
            configure(settings), ledger, audit=report, version=metadata.version("conclave")
        )
    lines = views.statement(stated)
    if as_json:
        document = msgspec.json.encode(views.statement_document(lines))
        typer.echo(msgspec.json.format(document, indent=2).decode())
    else:
        typer.echo(page_of(lines))
    if stated.audit is not None and not stated.audit.holds:
        raise typer.Exit(EXIT_REFUTED)


def page_of(lines: Sequence[Line]) -> str:
    """Return the statement as one page: each heading once, followed by its sentences."""
    page = []
    for heading, told in groupby((line for line in lines if line.words), lambda line: line.heading):
        first = heading.ljust(HEADING_COLUMNS)
        for line in told:
            page += textwrap.wrap(
                line.words,
                PAGE_COLUMNS,
                initial_indent=first,
                subsequent_indent=" " * HEADING_COLUMNS,
                break_long_words=False,
                break_on_hyphens=False,
            )
            first = " " * HEADING_COLUMNS
    return "\n".join(page)


def _report(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError("--audit", f"cannot read {path}: {error.strerror}") from None


@contextmanager
def _ledger(settings: Settings) -> Iterator[Ledger | None]:
    """Yield the release's ledger, opened for reading; None where there is none yet.

    Raises:
        ConfigurationError: it cannot be opened, is no ledger, or is older than its head file.

    """
    from app.ledger.database.open_database import open_database
    from app.ledger.head.head_file import head_file_of
    from app.ledger.head.rollback import check_head_file, check_no_ledger
    from app.ledger.ledger import Ledger
    from app.noise.system import SystemNoise

    head_file = head_file_of(settings.ledger_url, settings.ledger.head_file)
    try:
        database = open_database(settings.ledger_url, create=False, noise=SystemNoise())
    except NoLedgerError:
        if head_file is not None:
            check_no_ledger(settings.ledger_url, head_file)
        yield None
        return
    ledger = Ledger(database, settings.release.name)
    try:
        if head_file is not None:
            check_head_file(ledger, head_file)
        yield ledger
    finally:
        ledger.close()
