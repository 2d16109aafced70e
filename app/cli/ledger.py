"""``conclave ledger``: back up, restore, move or retire the record of charges and answers."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.errors import ConfigurationError, HeadFileError, VerificationError

if TYPE_CHECKING:
    from app.ledger.head.head_file import HeadFile
    from app.ledger.ledger import Ledger
    from app.settings.settings import Settings

Config = Annotated[
    Path | None,
    typer.Option("--config", help="conclave.toml. Default: the embedded demo."),
]
STAYS_CLOSED: Final = (
    "closed: recorded answers are given again, and new queries are refused; only a code of "
    "`conclave ledger retire --move`, or --expect-head, lets a copy go on"
)
GOES_ON: Final = "open: it goes on where the copy ended"


def register(application: typer.Typer) -> None:
    """Add the commands ``conclave ledger ...`` to the application."""
    ledger = typer.Typer(
        help="Prepare, back up, restore, move and retire a ledger.", no_args_is_help=True
    )
    ledger.command("prepare")(prepare)
    ledger.command("backup")(backup)
    ledger.command("restore")(restore)
    ledger.command("copy")(copy)
    ledger.command("retire")(retire)
    application.add_typer(ledger, name="ledger")


def prepare(
    config: Config = None,
    grant: Annotated[
        str | None,
        typer.Option(
            "--grant", metavar="ROLE", help="Role of PostgreSQL that may serve the ledger."
        ),
    ] = None,
) -> None:
    """Create the tables of the ledger, or upgrade them to this version, and serve nothing.

    Needed if the database is owned by another role than the one that serves it:
    ``docs/postgresql.md``.
    """
    from app.ledger.database.database import grant_serving, ledger_database
    from app.ledger.ledger import open_ledger

    url = _settings(config).ledger_url
    open_ledger(url, create=True).close()
    if grant is not None:
        grant_serving(url, grant)
    typer.echo(f"prepared: {ledger_database(url).place}")


def backup(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="COPY", help="A new file.")],
    config: Config = None,
) -> None:
    """Copy the ledger as of one moment, even while it is served.

    The copy is verified, readable by its owner only, and closed: a server on the copy repeats
    recorded answers and gives no new ones.
    """
    from app.cli.opening_progress import at_work
    from app.ledger.copies import copies
    from app.ledger.disk_and_backups import note_backup

    url = _settings(config).ledger_url
    with at_work("copying the ledger"):
        copied = copies.back_up(url, output)
    typer.echo(f"copied: sequence {copied.head.sequence}, head {copied.head.hash}")
    try:
        note_backup(url, copied.sequences)
    except OSError as error:
        problem = error.strerror or "the system refuses"
        typer.echo(f"conclave: warning: the dashboard cannot tell of it: {problem}", err=True)


def restore(
    backup_file: Annotated[
        Path, typer.Argument(metavar="COPY", help="A copy that `backup` wrote.")
    ],
    config: Config = None,
    code: Annotated[
        str | None,
        typer.Option("--code", help="The code printed by `conclave ledger retire --move`."),
    ] = None,
    expect_head: Annotated[
        str | None,
        typer.Option(
            "--expect-head",
            metavar="HASH",
            help="The newest noted head of the lost ledger; it must be the copy's.",
        ),
    ] = None,
) -> None:
    """Restore a backup to the configured address of the ledger, which must be empty.

    The restored ledger stays closed (it gives no new answers), unless one of the options shows that
    it contains every charge. No server may run on this ledger: stop any server whose ledger was
    lost first.
    """
    from app.cli.opening_progress import at_work
    from app.ledger.copies import copies
    from app.ledger.database.database import SqliteDatabase, ledger_database
    from app.ledger.server_lock import take_server_lock

    if code is not None and expect_head is not None:
        raise ConfigurationError("--code", "and --expect-head exclude each other")
    url = _settings(config).ledger_url
    database = ledger_database(url)
    with at_work("restoring the ledger"), ExitStack() as held:
        # What is wrong with the folder is said below.
        if isinstance(database, SqliteDatabase) and database.path.parent.is_dir():
            held.callback(take_server_lock(url).release)
        copied = copies.restore(backup_file, url, expect_head=expect_head, code=code)
    head = copied.head
    typer.echo(
        f"restored: sequence {head.sequence}, head {head.hash}, "
        f"{GOES_ON if copied.reopened else STAYS_CLOSED}"
    )


def copy(
    source: Annotated[str, typer.Option("--from", metavar="URL", help="The ledger's address.")],
    target: Annotated[
        str, typer.Option("--to", metavar="URL", help="Address of a database without a ledger.")
    ],
    head_file: Annotated[
        Path | None,
        typer.Option("--head-file", help="The ledger's head file, if it is not next to it."),
    ] = None,
) -> None:
    """Move a whole ledger to another database, SQLite or PostgreSQL, and retire the old one.

    Both ledgers are verified first, and at no moment can both give new answers. If the command is
    interrupted, run it again. A server on a ledger in SQLite must be stopped; servers on a ledger
    in PostgreSQL wait during the move, and then give no new answers.
    """
    from app.cli.opening_progress import at_work
    from app.ledger.move_database import move
    from app.noise.system import SystemNoise

    _check_heads(source, target, head_file)
    with at_work("moving the ledger"):
        moved = move(source, target, noise=SystemNoise())
    typer.echo(f"copied: sequence {moved.head.sequence}, head {moved.head.hash}, {GOES_ON}")
    typer.echo(f"retired: sequence {moved.retired.sequence}, head {moved.retired.hash}")
    typer.echo(f"serve from now on: {moved.place}")
    for problem in _note_heads(source, target, head_file):
        typer.echo(f"conclave: warning: {problem}", err=True)


def retire(
    config: Config = None,
    move: Annotated[
        bool, typer.Option("--move", help="Print a code by which a copy may continue elsewhere.")
    ] = False,
) -> None:
    """Retire a release for good: its ledger gives no further answers and draws nothing.

    Recorded answers and published documents are still served. Retirement cannot be undone. The
    server must be stopped.
    """
    from app.ledger.copies import copies
    from app.ledger.ledger import open_ledger
    from app.ledger.server_lock import take_server_lock
    from app.noise.system import SystemNoise

    settings = _settings(config)
    url, name = settings.ledger_url, settings.release.name
    open_ledger(url, create=False, name=name).close()  # one that is not there is not made
    _confirm(name)
    with ExitStack() as held:
        held.callback(take_server_lock(url).release)
        ledger = open_ledger(url, create=True, name=name)
        held.callback(ledger.close)
        head_file = _head_file_of(settings, ledger)
        retired = copies.retire(ledger, moves=move, noise=SystemNoise())
        if head_file is not None:
            _note_head(head_file, ledger)
    typer.echo(f"retired: sequence {retired.head.sequence}, head {retired.head.hash}")
    if retired.code is not None:
        typer.echo(f"code: {retired.code}")


def _head_file_of(settings: Settings, ledger: Ledger) -> HeadFile | None:
    """Return where the ledger's head is noted; one that is behind may end, and notes nothing."""
    from app.ledger.head.head_file import head_file_of
    from app.ledger.head.rollback import check_head_file

    head_file = head_file_of(settings.ledger_url, settings.ledger.head_file)
    try:
        behind = [] if head_file is None else check_head_file(ledger, head_file).behind
    except HeadFileError as error:
        behind = [str(error)]
    for line in behind:
        typer.echo(f"conclave: warning: {line}", err=True)
    return None if behind else head_file


def _note_head(head_file: HeadFile, ledger: Ledger) -> None:
    """Note that the ledger has ended; a disk that refuses it does not undo that."""
    from app.ledger.head.head_file import noted_head

    head = noted_head(ledger.read_state())
    try:
        if head is not None:
            head_file.note(head)
    except (OSError, HeadFileError) as error:
        problem = error.strerror if isinstance(error, OSError) else str(error)
        typer.echo(f"conclave: warning: {head_file.path} is not written: {problem}", err=True)


def _confirm(name: str) -> None:
    """Ask whoever sits at a terminal; a script knows what it does."""
    try:
        agreed = not sys.stdin.isatty() or typer.confirm(f"Retire {name} for good?", err=True)
    except typer.Abort:
        agreed = False
    if not agreed:
        raise VerificationError("nothing was retired")


def _settings(config: Path | None) -> Settings:
    from app.settings.settings import load_settings

    return load_settings(config, os.environ)


def _check_heads(source: str, target: str, head_file: Path | None) -> None:
    """Refuse to move a ledger that is older than was noted of it, here or at its new place.

    Args:
        source: the ledger's address.
        target: the one that it is to have.
        head_file: where its head is noted; None for the file beside it, if it is one.

    Raises:
        HeadFileError: entries that were noted are missing.
        ConfigurationError: there is no ledger to move.

    """
    from app.ledger.head.head_file import head_file_of
    from app.ledger.head.rollback import check_head_file
    from app.ledger.ledger import open_ledger
    from app.ledger.move_database import FROM, TO, told_as

    with told_as(FROM):
        noted_here = head_file_of(source, head_file)
    with told_as(TO):
        noted_there = head_file_of(target, None)
    with told_as(FROM), closing(open_ledger(source, create=False)) as ledger:
        for noted in (noted_here, noted_there):
            if noted is not None:
                check_head_file(ledger, noted)


def _note_heads(source: str, target: str, head_file: Path | None) -> list[str]:
    """Note where both ledgers end; return what could not be noted, which undoes nothing."""
    from app.ledger.head.head_file import head_file_of

    return [
        *_note_each(source, head_file_of(source, head_file)),
        *_note_each(target, head_file_of(target, None)),
    ]


def _note_each(url: str, head_file: HeadFile | None) -> list[str]:
    """Note the head of every release of a ledger."""
    from app.ledger.head.head_file import noted_head
    from app.ledger.ledger import open_ledger

    if head_file is None:
        return []
    try:
        with closing(open_ledger(url, create=False)) as first, first.snapshot():
            names = [opened.name for opened in first.openings]
        for name in names:
            with closing(open_ledger(url, create=False, name=name)) as ledger:
                head = noted_head(ledger.read_state())
            if head is not None:
                head_file.note(head)
    except (OSError, HeadFileError) as error:
        problem = error.strerror if isinstance(error, OSError) else str(error)
        return [f"{head_file.path} is not written: {problem}"]
    return []
