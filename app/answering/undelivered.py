"""Answers that are drawn and not known to be committed, and whether that can tell of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.answering.fresh import Fresh
    from app.ledger.ledger import Transaction


class Undelivered(NamedTuple):
    """The draws of a batch whose commit failed, or is under way.

    Attributes:
        fresh: as they were drawn; none where every draw is known to be committed.
        transaction: the last that should have recorded them.
        was_refused: whether one before it was refused for what it would have written.

    """

    fresh: Sequence[Fresh] = ()
    transaction: Transaction | None = None
    was_refused: bool = False

    def followed_by(self, fresh: Sequence[Fresh], transaction: Transaction) -> Undelivered:
        """Return what is undelivered if ``transaction`` fails, which takes these up."""
        was_refused = bool(self.fresh) and not self.left_no_trace
        return Undelivered(fresh, transaction, was_refused)

    @property
    def may_be_recorded(self) -> bool:
        """Whether the last transaction may have been committed, unknown to this process."""
        return self.transaction is not None and self.transaction.may_be_committed

    @property
    def left_no_trace(self) -> bool:
        """Whether nothing that was seen can depend on what was drawn.

        A server that was paused, a network or a database that went away: they end a
        connection whatever is under way on it, as a crash of this process would, after
        which a draw that nobody saw is made again under the same charge.  A database
        that refuses a statement and goes on, for want of space say, may do so by the
        size of what was drawn; its callers have seen that.
        """
        if self.was_refused:
            return False
        return self.transaction is None or self.transaction.was_cut_off
