"""The releases in a database: their first ledger entries, in the order of opening.

The module also computes the joint privacy promise of all releases of one database for a person
whose rows are in all of them. The budgets are added up exactly. Every release in the database
counts, because different rows may belong to the same people, and whether two releases have the same
rows is private.

A release that is opened in a database with other releases must state, in its settings, a budget
that is at least the sum of all.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from sqlalchemy import bindparam, not_, select

from app.errors import LedgerCorruptError
from app.ledger.database.driver import fetch_all
from app.ledger.database.entry_rows import read_entries
from app.ledger.database.tables import (
    answer_groups,
    answers,
    checkpoints,
    entries,
    hour_counts,
    idempotency_keys,
    key_blocks,
    key_counts,
    newest_answers,
    private_state,
)
from app.ledger.entries.chain import FIRST_RELEASE, GENESIS
from app.ledger.entries.entry_kinds import ReleaseClosed, ReleaseMoved
from app.ledger.entries.fold import BACKUP, DELTA_KEY, EMPTY, EPSILON_KEY, fold, retirement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement, Connection, Table

    from app.ledger.entries.entry_kinds import ReleaseOpened

RELEASES_MAX: Final = 1000
"""Most releases of one database; all their first entries are read when one opens."""

CLOSING: Final[dict[str, type[ReleaseClosed | ReleaseMoved]]] = {
    ReleaseClosed.KIND: ReleaseClosed,
    ReleaseMoved.KIND: ReleaseMoved,
}
"""The kinds of entry after which a ledger answers nothing afresh."""

_NEWEST: Final = "SELECT MAX(release_number) FROM entries"
_NEWEST_ENTRY = (
    select(entries.c.kind, entries.c.body)
    .where(entries.c.release_number == bindparam("number"))
    .order_by(entries.c.sequence.desc())
    .limit(1)
)


def _stray(table: Table) -> ColumnElement[bool]:
    return not_(table.c.release_number.between(bindparam("first"), bindparam("newest")))


_STRAY_PIECE = (
    select(private_state.c.release_number, private_state.c.name)
    .where(_stray(private_state))
    .limit(1)
)
_STRAY_ROWS = {
    table.name: select(table.c.release_number).where(_stray(table)).limit(1)
    for table in (
        entries,
        answers,
        answer_groups,
        idempotency_keys,
        checkpoints,
        key_counts,
        hour_counts,
        newest_answers,
        key_blocks,
    )
}


def read_release_count(connection: Connection) -> int:
    """Return the number of releases in the database."""
    ((newest,),) = fetch_all(connection, _NEWEST)
    return newest if isinstance(newest, int) else 0


def read_openings(connection: Connection) -> tuple[ReleaseOpened, ...]:
    """Return the first ledger entry of every release, by its number.

    Raises:
        LedgerCorruptError: the first entry of a release is missing or altered.

    """
    count = read_release_count(connection)
    if count > RELEASES_MAX:
        raise LedgerCorruptError(f"the database counts {count} releases, more than it can hold")
    numbers = range(FIRST_RELEASE, count + 1)
    return tuple(_read_opening(connection, number, is_alone=count == 1) for number in numbers)


def holds_backup(connection: Connection) -> bool:
    """Return whether a release's newest entry allows another database to continue it.

    This is true for a copy, and for a ledger that was retired so that a copy may continue. Releases
    that are opened in the other database are not known here.

    Raises:
        LedgerCorruptError: the newest entry of a release is damaged.

    """
    for number in range(FIRST_RELEASE, read_release_count(connection) + 1):
        closed = read_closing(connection, number)
        if closed is not None and (closed.reason == BACKUP or closed.transfer is not None):
            return True
    return False


def read_closing(connection: Connection, number: int) -> ReleaseClosed | None:
    """Return a release's newest ledger entry if it closes the release, otherwise None.

    Raises:
        LedgerCorruptError: the newest entry of the release is damaged.

    """
    event = _read_end(connection, number)
    return retirement(event) if isinstance(event, ReleaseMoved) else event


def read_move(connection: Connection, number: int) -> ReleaseMoved | None:
    """Return a release's newest ledger entry if it names a successor database, otherwise None.

    Raises:
        LedgerCorruptError: the newest entry of the release is damaged.

    """
    event = _read_end(connection, number)
    return event if isinstance(event, ReleaseMoved) else None


def _read_end(connection: Connection, number: int) -> ReleaseClosed | ReleaseMoved | None:
    newest = connection.execute(_NEWEST_ENTRY, {"number": number}).first()
    if newest is None or newest.kind not in CLOSING:
        return None
    try:
        return msgspec.json.decode(newest.body, type=CLOSING[newest.kind])
    except msgspec.DecodeError:
        raise LedgerCorruptError(f"release {number} ends with no sound entry") from None


def stray_row(connection: Connection, release_count: int) -> str | None:
    """Return a description of a row whose release does not exist, or None."""
    known = {"first": FIRST_RELEASE, "newest": release_count}
    piece = connection.execute(_STRAY_PIECE, known).first()
    if piece is not None:
        number, name = piece
        return f"the private state has a piece of release {number}, which is not there: {name}"
    for table, query in _STRAY_ROWS.items():
        number = connection.execute(query, known).scalar()
        if number is not None:
            return f"the table {table} has a row of release {number}, which is not there"
    return None


def number_of(openings: Sequence[ReleaseOpened], name: str) -> int | None:
    """Return the number of the release with the given name, or None."""
    for number, opened in enumerate(openings, start=FIRST_RELEASE):
        if opened.name == name:
            return number
    return None


def _read_opening(connection: Connection, number: int, *, is_alone: bool) -> ReleaseOpened:
    named = "" if is_alone else f"release {number} of the database: "
    first = read_entries(connection, number, GENESIS, 1)
    if not first:
        raise LedgerCorruptError(f"{named}its entries are missing")
    try:
        opened = fold(EMPTY, first[0]).release
    except LedgerCorruptError as broken:
        raise LedgerCorruptError(f"{named}{broken}") from None
    if opened is None:
        raise LedgerCorruptError(f"{named}its first entry opens nothing")
    return opened


class Promise(NamedTuple):
    """A privacy promise: exact epsilon and delta."""

    epsilon: Fraction
    delta: Fraction


def promised(opened: ReleaseOpened) -> Promise:
    """Return the epsilon and delta that one release promises by itself.

    Raises:
        LedgerCorruptError: the recorded budget is not an exact number.

    """
    return Promise(_exact(opened.epsilon), _exact(opened.delta))


def stated(opened: ReleaseOpened) -> Promise | None:
    """Return the sum of budgets that one release states for all releases, or None.

    Raises:
        LedgerCorruptError: the recorded sum is not an exact number.

    """
    epsilon, delta = opened.parameters.get(EPSILON_KEY), opened.parameters.get(DELTA_KEY)
    if epsilon is None or delta is None:
        return None
    return Promise(_exact(epsilon), _exact(delta))


def total(openings: Sequence[ReleaseOpened]) -> Promise:
    """Return the sum of the releases' own epsilons and deltas."""
    each = [promised(opened) for opened in openings]
    return Promise(
        sum((promise.epsilon for promise in each), Fraction(0)),
        sum((promise.delta for promise in each), Fraction(0)),
    )


def composed(openings: Sequence[ReleaseOpened]) -> Promise | None:
    """Return the joint privacy promise of all releases of a database.

    It is the largest sum of budgets that any release states, or the actual sum if that is larger.
    None stands for a database with one release that states no such sum.

    Args:
        openings: the first entries of every release in the database, in order.

    """
    statements = [statement for opened in openings if (statement := stated(opened)) is not None]
    if len(openings) <= 1 and not statements:
        return None
    known = [total(openings), *statements]
    return Promise(
        max(promise.epsilon for promise in known), max(promise.delta for promise in known)
    )


def is_covered(openings: Sequence[ReleaseOpened]) -> bool:
    """Return whether the newest release states at least the sum of all budgets.

    The first release of a database need not state a sum.
    """
    if len(openings) <= 1:
        return True
    statement, needed = stated(openings[-1]), total(openings)
    return statement is not None and (
        statement.epsilon >= needed.epsilon and statement.delta >= needed.delta
    )


def _exact(text: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise LedgerCorruptError("a release has a budget that is no exact number") from None
