"""Faults that the campaign of kills must find, planted in a server before it starts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from app.service.answer_query import QueryAnswerer
from app.service.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.ledger.store import Transaction
    from app.service.batch import Batch

EARLY_REPLIES = "early replies"
# Long enough that the reply is on its way before the commit begins.
REPLY_SECONDS = 0.1


def plant(fault: str) -> None:
    """Plant a fault by its name; none for an empty one."""
    if fault == EARLY_REPLIES:
        _reply_before_commit()


def _reply_before_commit() -> None:
    """Give every fresh answer to its caller before the transaction has committed."""
    callers: dict[int, Any] = {}
    take_in, append = Writer._take_in, QueryAnswerer._append

    def take_in_and_remember(self: Writer, waiting: Sequence[Any]) -> None:
        callers.update({id(each.query): each for each in waiting})
        take_in(self, waiting)

    def reply_and_append(self: QueryAnswerer, transaction: Transaction, batch: Batch) -> None:
        append(self, transaction, batch)
        for fresh in batch.fresh:
            each = callers[id(fresh.ticket.query)]
            each.future.get_loop().call_soon_threadsafe(each.settle, fresh)
        time.sleep(REPLY_SECONDS)

    Writer._take_in = take_in_and_remember  # type: ignore[method-assign]  # the fault
    QueryAnswerer._append = reply_and_append  # type: ignore[method-assign]  # as above
