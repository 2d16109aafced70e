"""Why an event does not follow from those before it, and exact costs."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.ledger.entries.entry_kinds import ShareCharged, ShareReserved


class IllegalError(Exception):
    """Why an event does not follow from the state."""


def allow(holds: bool, problem: str) -> None:  # noqa: FBT001 -- reads as a sentence at every call
    """Refuse an event with the end of a sentence that begins with it.

    Raises:
        IllegalError: ``holds`` is false.

    """
    if not holds:
        raise IllegalError(problem)


def exact(text: str) -> Fraction:
    """Read an exact number that is not negative.

    Raises:
        IllegalError: it is none.

    """
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise IllegalError("has a cost that is no exact number") from None
    allow(value >= 0, "has a negative cost")
    return value


def cost(share: ShareCharged | ShareReserved) -> tuple[Fraction, Fraction]:
    """Return the epsilon and delta of a share."""
    return exact(share.epsilon), exact(share.delta)
