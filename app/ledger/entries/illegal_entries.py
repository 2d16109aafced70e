"""The error for a ledger entry that may not follow the earlier entries, and the entries' costs."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.ledger.entries.entry_kinds import ShareCharged, ShareReserved


class IllegalError(Exception):
    """An event is not allowed after the earlier events of the ledger."""


def allow(holds: bool, problem: str) -> None:  # noqa: FBT001 -- reads as a sentence at every call
    """Raise an error with the text ``problem`` about an event unless ``holds`` is true.

    Raises:
        IllegalError: ``holds`` is false.

    """
    if not holds:
        raise IllegalError(problem)


def exact(text: str) -> Fraction:
    """Return the exact nonnegative number that a text spells.

    Raises:
        IllegalError: the text is not such a number.

    """
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise IllegalError("has a cost that is no exact number") from None
    allow(value >= 0, "has a negative cost")
    return value


def cost(share: ShareCharged | ShareReserved) -> tuple[Fraction, Fraction]:
    """Return the exact epsilon and delta of one event's charge."""
    return exact(share.epsilon), exact(share.delta)
