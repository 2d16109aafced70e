"""Random draws that happen once: take a lock, charge the budget, draw, publish the result.

The share of epsilon for a draw is charged in its own commit, before a private row is read for this
draw. After a crash between charge and publication nothing about the rows is public, and the next
try draws again under the same charge. Of several processes one draws, and the others find its
publication in the ledger. If the ledger refuses the publication, the process keeps the lock as long
as it keeps the result, so that no other process draws another one.

A closed ledger is a backup, or one that its operator retired or moved; nothing is drawn for it.
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
        turn: the lock, which only one process can hold at a time: a context manager, whose value
            in a ``with`` statement is a function that returns whether the lock is still held.
        charge: a function that commits the charge, unless it is committed already, and returns
            whether the result must still be drawn and published.
        draw: a function that draws the result under this charge.
        publish: a function that commits the result; it returns False if another process was first.

    Returns:
        The result that was drawn and published here; None if another process published its own.

    Raises:
        LedgerUnavailableError: another process has the lock by now; nothing was published.

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
        ledger: the ledger of the release.
        is_published: a function that returns whether a ledger state has the result.
        append: a function that writes the result and its entry into an open transaction.
        share: the share of epsilon and delta that is charged for the result; None if nothing is
            charged, or the opening charged it.
        refuse: a function that raises an error if the result may not be published in a ledger
            state, for reasons other than a closed ledger.
        keep: a function that is given the drawn result before it is published, and keeps it for
            another try; None if a result whose publication fails is lost.
        adopt: a function that is given every committed ledger state.

    """

    ledger: Ledger
    is_published: Callable[[LedgerState], bool]
    append: Callable[[Transaction, DrawnT], object]
    share: Charge | None = None
    refuse: Callable[[LedgerState], None] = _ignore
    keep: Callable[[DrawnT], None] | None = None
    adopt: Callable[[LedgerState], None] = _ignore

    def draw_once(self, draw: Callable[[], DrawnT]) -> DrawnT | None:
        """Charge the budget, draw once and publish the result, while holding the lock.

        Raises:
            VerificationError: the ledger is closed, or its present state does not permit the
                publication.
            LedgerUnavailableError: the ledger refused a commit, or another process is drawing;
                nothing was published.

        """
        ledger = self.ledger
        # Without a share, a server has the turn to open, or a student reads no private row.
        turn = no_turn() if self.share is None else ledger.drawing.hold()
        return draw_once(turn=turn, charge=self.charge, draw=draw, publish=self.publish)

    def charge(self) -> bool:
        """Commit the charge once; return whether the result is still to be drawn and published."""
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
        if self.keep is not None:
            self.keep(drawn)
            self.ledger.drawing.keep()
        with self.ledger.transaction() as transaction:
            is_first = self.is_due(transaction.state)
            if is_first:
                self.append(transaction, drawn)
        self.adopt(transaction.state)
        return is_first

    def is_due(self, state: LedgerState) -> bool:
        """Return whether the result is still to be published; raise an error if it may not be.

        Raises:
            VerificationError: the ledger is closed, or its present state does not permit the
                publication.

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
