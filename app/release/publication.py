"""Draws that happen once: take a lock, charge the budget, draw, publish the result.

A share is charged in a commit of its own before a private row is read for it.  A crash
between charge and publication left no trace outside: the next try draws again under the
same charge.  Of several processes one draws, and the others find what it published.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from app.errors import LedgerUnavailableError
from app.ledger.entries.entry_kinds import ShareCharged, ShareReserved
from app.release.release import refuse_closed

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from app.ledger.entries.fold import LedgerState
    from app.ledger.ledger import Ledger, Transaction
    from app.privacy.budget.composition import Charge

    Turn: TypeAlias = AbstractContextManager[Callable[[], bool]]

DrawnT = TypeVar("DrawnT")
ShareEvent = TypeVar("ShareEvent", ShareCharged, ShareReserved)
TURN_LOST: Final = "another server's turn to draw has come; nothing was published"


def no_turn() -> Turn:
    """Return a lock that always counts as held, for draws that need no lock."""
    return nullcontext(lambda: True)


def draw_once(
    *,
    turn: Turn,
    charge: Callable[[], bool],
    draw: Callable[[], DrawnT],
    publish: Callable[[DrawnT], bool],
) -> DrawnT | None:
    """Charge the budget, draw once and publish, while holding a lock.

    Args:
        turn: what one process has at a time; it tells whether it is still held.
        charge: commits the charge unless it is committed; returns whether a publication is due.
        draw: draws under that charge.
        publish: commits what was drawn; returns False where another process was first.

    Returns:
        What was drawn and published here; None where another process published its own.

    Raises:
        LedgerUnavailableError: the turn is another process's by now; nothing was published.

    """
    with turn as is_held:
        if not charge():
            return None
        drawn = draw()
        if not is_held():  # another process draws by now: this one's is as if it had crashed
            raise LedgerUnavailableError(TURN_LOST)
        return drawn if publish(drawn) else None


def _ignore(_: object) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication(Generic[DrawnT]):
    """A result that a release draws once, with the ledger entries that charge and publish it.

    Attributes:
        ledger: of the release.
        is_published: whether a state has it.
        append: writes it and its entry into an open transaction.
        share: what is charged for it; None where nothing is, or the opening charged it.
        refuse: raises where a state, closed or not, has no place for it.
        keep: is given what was drawn before it is published.
        adopt: is given every state that is committed.

    """

    ledger: Ledger
    is_published: Callable[[LedgerState], bool]
    append: Callable[[Transaction, DrawnT], object]
    share: Charge | None = None
    refuse: Callable[[LedgerState], None] = _ignore
    keep: Callable[[DrawnT], None] = _ignore
    adopt: Callable[[LedgerState], None] = _ignore

    def draw_once(self, draw: Callable[[], DrawnT]) -> DrawnT | None:
        """Charge the budget, draw once and publish, as :func:`draw_once` does.

        Raises:
            VerificationError: as :meth:`is_due`.
            LedgerUnavailableError: a commit was not taken, or another process draws;
                nothing was published.

        """
        ledger = self.ledger
        # Without a share, a server has the turn to open, or a student reads no private row.
        turn = no_turn() if self.share is None else ledger.turn_to_draw(ledger.release_number)
        return draw_once(turn=turn, charge=self.charge, draw=draw, publish=self.publish)

    def charge(self) -> bool:
        """Commit the charge to the ledger, once; return whether a publication is due."""
        if self.share is None:
            state = self.ledger.read_state()
        else:
            with self.ledger.transaction() as transaction:
                is_charged = transaction.state.charge_of(self.share.mechanism) is not None
                if self.is_due(transaction.state) and not is_charged:
                    transaction.append(share_event(ShareCharged, self.share))
            state = transaction.state
        self.adopt(state)
        return not self.is_published(state)

    def publish(self, drawn: DrawnT) -> bool:
        """Commit the drawn result; return False if another process was first."""
        # Drawn once: that its publication fails may tell of its length, on a full disk.
        self.keep(drawn)
        with self.ledger.transaction() as transaction:
            is_first = self.is_due(transaction.state)
            if is_first:
                self.append(transaction, drawn)
        self.adopt(transaction.state)
        return is_first

    def is_due(self, state: LedgerState) -> bool:
        """Return whether the result is not published yet; refuse a state that forbids it.

        Raises:
            VerificationError: the ledger is closed, or has no place for it now.

        """
        if self.is_published(state):
            return False
        refuse_closed(state)
        self.refuse(state)
        return True


def share_event(kind: type[ShareEvent], charge: Charge) -> ShareEvent:
    """Return the ledger event that charges or reserves a share, in exact rationals."""
    return kind(
        mechanism=charge.mechanism.value, epsilon=str(charge.epsilon), delta=str(charge.delta)
    )
