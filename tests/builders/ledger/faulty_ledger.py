"""A ledger whose next commit is refused, is cut off, or happens without its caller learning it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from app.errors import LedgerUnavailableError
from app.ledger.ledger import Ledger, Transaction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.builders.release.small_release import SmallRelease

Fault = Literal["refused", "cut off", "lost"]


class FaultyLedger(Ledger):
    """A real ledger with a fault for each of the next transactions.

    Attributes:
        faults: taken from the front, one a transaction; None lets it be.

    """

    def __init__(self, release: SmallRelease) -> None:
        """Open the ledger of a release."""
        super().__init__(release.ledger()._database, release.settings().release.name)
        self.faults: list[Fault | None] = []

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Open a transaction that ends as the next fault says."""
        fault = self.faults.pop(0) if self.faults else None
        known, begun = self._known, None
        try:
            with super().transaction() as transaction:
                yield (begun := transaction)
                if fault in ("refused", "cut off"):
                    raise LedgerUnavailableError("the commit was refused")
        finally:
            if begun is not None and fault == "cut off":
                begun.was_cut_off = True
        if fault == "lost":
            self._known = known
            raise LedgerUnavailableError("the commit's outcome is unknown")
