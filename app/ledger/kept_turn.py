"""The lock to draw what a release publishes once, kept while a drawn result is not recorded yet.

If the ledger refuses to record a drawn result, for example because its disk is full, the refusal
may tell of the result's length. So no other process may draw another result, until the process that
drew this one has recorded it, or has ended.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from app.errors import LedgerUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager


class KeptTurn:
    """The lock of one release, which this process may keep beyond a ``with`` block."""

    def __init__(self, take: Callable[[], AbstractContextManager[Callable[[], bool]]]) -> None:
        """Hold no lock yet; ``take`` returns a context manager that holds it."""
        self._take = take
        self._held = ExitStack()
        self._is_held: Callable[[], bool] | None = None
        self._must_be_kept = False

    @contextmanager
    def hold(self) -> Iterator[Callable[[], bool]]:
        """Hold the lock for a ``with`` block, unless this process has kept it from an earlier one.

        Yields:
            A function that returns whether this process still has the lock.

        Raises:
            LedgerUnavailableError: another process has the lock.

        """
        if self._is_held is not None and not self._is_held():
            self.end()
        if self._is_held is None:
            self._is_held = self._held.enter_context(self._take())
        is_refused = False
        try:
            yield self._is_held
        except LedgerUnavailableError:
            is_refused = True
            raise
        finally:
            if not (is_refused and self._must_be_kept):
                self.end()

    def keep(self) -> None:
        """Keep the lock beyond the present block, if the ledger then refuses a commit."""
        self._must_be_kept = self._is_held is not None

    def end(self) -> None:
        """Release the lock; without a lock, do nothing."""
        self._must_be_kept, self._is_held = False, None
        self._held.close()
