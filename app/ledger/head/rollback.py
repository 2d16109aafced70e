"""Refusal of a ledger that is older than a note of its newest entry kept elsewhere.

The database is compared with the head file, which is outside the database, or with one hash that
the operator noted, before anything is charged or served. So an older copy of the database that was
restored is recognised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import bindparam, select

from app.errors import ConfigurationError, HeadFileError
from app.ledger.database.answer_tables import read_answer_count
from app.ledger.database.database import is_shared
from app.ledger.database.driver import database_errors
from app.ledger.database.sqlite import database_path
from app.ledger.database.statements import of_release, read_entry_hash, read_head
from app.ledger.database.tables import entries
from app.ledger.entries.chain import FIRST_RELEASE
from app.ledger.head.head_file import HeadKeeper
from app.ledger.releases import CLOSING, read_openings

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from app.ledger.head.head_file import HeadFile, NotedHead
    from app.ledger.ledger import Ledger

EXPECT_HEAD = "--expect-head"
NEVER_SERVE = "never serve an older copy: restore the newest database"
UNNOTED = (
    "there is no note of this release in {path}: the ledger was moved without it, its path was "
    "changed, or this is the first start that keeps one; if you noted a head elsewhere, start "
    "with --expect-head, since an older copy of the ledger cannot be told now"
)
_HASH_DIGITS = 64
_NEWEST_KIND = (
    select(entries.c.kind).where(of_release(entries)).order_by(entries.c.sequence.desc()).limit(1)
)
_SEQUENCE_OF = select(entries.c.sequence).where(
    of_release(entries), entries.c.hash == bindparam("hash")
)


class Compared(NamedTuple):
    """A ledger that was compared with its note outside the database, and is not older.

    Attributes:
        behind: a line of text for each closed release that lacks noted entries; in this case the
            head file belongs to another ledger, in which the release continues.
        unnoted: a line of text if the head file has no note of this release; otherwise empty.

    """

    behind: list[str]
    unnoted: list[str]


def check_no_ledger(url: str, head_file: HeadFile) -> None:
    """Raise an error if a note outside a missing database shows that a ledger existed before.

    Raises:
        HeadFileError: the file has a note of a release, or cannot be read.

    """
    if is_shared(url):
        return  # nobody creates that database here; what it lacks is found once it is open
    path = database_path(url)
    is_there = path.exists() and path.stat().st_size > 0
    if is_there or not path.parent.is_dir():
        return  # what is wrong with the folder is said when the database is opened
    for head in head_file.read().values():
        raise HeadFileError(_lost(head_file, head))


def keep_newest(ledger: Ledger, head_file: HeadFile) -> list[str]:
    """Compare a ledger with its note outside the database, and keep the note up to date.

    Returns:
        Facts that the operator should know about an accepted ledger, one per line.

    Raises:
        HeadFileError: noted entries are missing or different, or the file belongs to other
            releases, or cannot be read.
        LedgerUnavailableError: the database cannot be read.

    """
    compared = check_head_file(ledger, head_file)
    # One that goes on beside a closed one is the newest, and answers: it is noted.
    if not compared.behind or ledger.read_state().closed is None:
        ledger.keep_head(HeadKeeper(head_file))
    return [*compared.behind, *compared.unnoted]


def check_head_file(ledger: Ledger, head_file: HeadFile) -> Compared:
    """Raise an error for a ledger that is older than its note outside the database (the head file).

    A closed release gives no new answers, so it does no harm if it is older than its note: the
    result says so, and the file is not changed.

    Raises:
        HeadFileError: noted entries are missing or different, or the file belongs to other
            releases, or cannot be read.
        LedgerUnavailableError: the database cannot be read.

    """
    noted = head_file.read()
    behind = []
    with ledger.snapshot() as connection, database_errors():
        numbers = _numbers_by_id(connection)
        for head in noted.values():
            number = numbers.get(head.release_id)
            problem = _problem(connection, head_file, head, number)
            if problem is not None and (number is None or not _is_closed(connection, number)):
                raise HeadFileError(problem)
            behind += [] if problem is None else [f"{problem}; it is closed, and is served so"]
    own = next((each for each, number in numbers.items() if number == ledger.release_number), None)
    unnoted = [] if own is None or own in noted else [UNNOTED.format(path=head_file.path)]
    return Compared(behind, unnoted)


def check_expected_head(ledger: Ledger, expected: str) -> None:
    """Raise an error unless the expected hash is that of one of the ledger's entries.

    Args:
        ledger: an open ledger.
        expected: the hash, 64 hexadecimal digits, in either case.

    Raises:
        ConfigurationError: the text is not a hash, or no entry has this hash.
        LedgerUnavailableError: the database cannot be read.

    """
    text = expected.strip().lower()
    if len(text) != _HASH_DIGITS or not set(text) <= set("0123456789abcdef"):
        raise ConfigurationError(EXPECT_HEAD, f"a hash has {_HASH_DIGITS} hexadecimal digits")
    with ledger.snapshot() as connection, database_errors():
        at = {"release": ledger.release_number, "hash": text}
        sequence = connection.execute(_SEQUENCE_OF, at).scalar()
        head = read_head(connection, ledger.release_number)
    if sequence is None:
        raise ConfigurationError(
            EXPECT_HEAD,
            f"no entry has this hash, and the ledger ends at entry {head.sequence}: it is older "
            f"than that head, or another one; {NEVER_SERVE}",
        )


def _problem(
    connection: Connection, head_file: HeadFile, noted: NotedHead, number: int | None
) -> str | None:
    """Return in what a ledger differs from what is noted of one release, or None."""
    if number is None:
        return _lost(head_file, noted)
    head = read_head(connection, number)
    where = f"{head_file.path} notes entry {noted.sequence} of {noted.name!r}"
    if head.sequence < noted.sequence:
        _, answered = read_answer_count(connection, number, noted.answered)
        missing = max(0, noted.answered - answered)
        return (
            f"{where}, and the ledger ends at entry {head.sequence}: "
            f"{_counted(noted.sequence - head.sequence, 'entry', 'entries')} with "
            f"{_counted(missing, 'answer', 'answers')} are missing, and what they charged with "
            f"them; {NEVER_SERVE}"
        )
    if read_entry_hash(connection, number, noted.sequence) != noted.hash:
        return (
            f"{where}, and the ledger has another entry of that number: it went on from an older "
            f"copy and has another history, so that answers are missing; {NEVER_SERVE}"
        )
    return None


def _numbers_by_id(connection: Connection) -> dict[str, int]:
    """Return the number of every release in the database, by its random id."""
    openings = enumerate(read_openings(connection), start=FIRST_RELEASE)
    return {opened.release_id: number for number, opened in openings}


def _is_closed(connection: Connection, number: int) -> bool:
    """Return whether a release ends with the entry that closes a copy, or retires a ledger."""
    return connection.execute(_NEWEST_KIND, {"release": number}).scalar() in CLOSING


def _lost(head_file: HeadFile, noted: NotedHead) -> str:
    return (
        f"{head_file.path} notes {_counted(noted.answered, 'answer', 'answers')} of {noted.name!r} "
        f"(release {noted.release_id}), which the ledger does not hold: restore that database; "
        "only for a release that is over for good, name another path: a new one on the same "
        "people adds to it"
    )


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
