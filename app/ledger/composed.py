"""What the releases of one database promise together about a person who is in the rows of all.

Budgets add, exactly.  What counts is every release in the database: rows that differ may be
about the same people, and which rows are alike is private.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from app.errors import LedgerCorruptError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.ledger.entries.entry_kinds import ReleaseOpened

EPSILON_KEY: Final = "privacy.composed.epsilon"
DELTA_KEY: Final = "privacy.composed.delta"


class Promise(NamedTuple):
    """An epsilon and a delta, exact."""

    epsilon: Fraction
    delta: Fraction


def promised(opened: ReleaseOpened) -> Promise:
    """Return what one release promises by itself.

    Raises:
        LedgerCorruptError: a budget that is no exact number.

    """
    return Promise(_exact(opened.epsilon), _exact(opened.delta))


def stated(opened: ReleaseOpened) -> Promise | None:
    """Return what a release's opening states of all releases together, or None.

    Raises:
        LedgerCorruptError: a statement that is no exact number.

    """
    epsilon, delta = opened.parameters.get(EPSILON_KEY), opened.parameters.get(DELTA_KEY)
    if epsilon is None or delta is None:
        return None
    return Promise(_exact(epsilon), _exact(delta))


def total(openings: Sequence[ReleaseOpened]) -> Promise:
    """Return the sum of what releases promise one by one."""
    each = [promised(opened) for opened in openings]
    return Promise(
        sum((promise.epsilon for promise in each), Fraction(0)),
        sum((promise.delta for promise in each), Fraction(0)),
    )


def composed(openings: Sequence[ReleaseOpened]) -> Promise | None:
    """Return what all releases of a database promise together; None for one that is alone.

    It is the largest statement on record, which is never below the sum; one
    release that states a larger budget than its own is taken at its word.

    Args:
        openings: first entries of every release in the database, in order.

    """
    statements = [statement for opened in openings if (statement := stated(opened)) is not None]
    if len(openings) <= 1 and not statements:
        return None
    known = [total(openings), *statements]
    return Promise(
        max(promise.epsilon for promise in known), max(promise.delta for promise in known)
    )


def is_covered(openings: Sequence[ReleaseOpened]) -> bool:
    """Return whether the newest of ``openings`` states at least the sum of all of them.

    The first release of a database needs no statement.
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
