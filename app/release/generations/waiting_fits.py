"""Trained models of batches of rows that do not vote yet, and the lock for training them.

A process takes the lock before it draws the labels of the first of these batches, and holds it
until the tick (scheduled update) that stores the labels and models, so that only one of several
servers draws. If the process with the lock ends, another process may take the lock and start again,
as after a crash.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from app.ledger.ledger import Ledger
    from app.release.generations.fitting import Fitted


@dataclass(slots=True)
class WaitingFits:
    """The trained models of batches that do not vote yet; secret, lost with the process.

    Attributes:
        private_fitted: the result of training each generation, by the generation's number.
        begun: the number of the period between ticks in which this process began to train each
            generation, by the generation's number.
        checked_at: the number of the newest tick when the models were last checked against the
            stored rows.

    """

    private_fitted: dict[int, Fitted] = field(default_factory=dict, repr=False)
    begun: dict[int, int] = field(default_factory=dict)
    checked_at: int = 0
    _held: ExitStack = field(default_factory=ExitStack, repr=False)
    _is_held: Callable[[], bool] | None = field(default=None, repr=False)

    def take_turn(self, ledger: Ledger) -> None:
        """Take the lock for training models, unless this process has it already.

        Raises:
            LedgerUnavailableError: another process has the lock.

        """
        if self._is_held is not None and not self._is_held():
            self.end_turn()
        if self._is_held is None:
            turn = ledger.turn_to_draw(ledger.release_number)
            self._is_held = self._held.enter_context(turn)

    def are_held(self) -> bool:
        """Return whether this process still holds the lock, so that its models are valid."""
        return self._is_held is not None and self._is_held()

    def end_turn(self) -> None:
        """Release the lock, and drop all trained models that are not in the ledger."""
        self.private_fitted.clear()
        self.begun.clear()
        self._is_held = None
        self._held.close()

    def forget_from(self, number: int) -> None:
        """Drop the models of one batch of rows and of all later ones."""
        for each in [each for each in self.private_fitted if each >= number]:
            del self.private_fitted[each]

    def leave_out(self, numbers: Iterable[int]) -> None:
        """Drop models that the ledger has now; release the lock if none is left."""
        for number in numbers:
            self.private_fitted.pop(number, None)
            self.begun.pop(number, None)
        if not self.begun:
            self.end_turn()
