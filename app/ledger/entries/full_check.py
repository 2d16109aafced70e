"""A repeated computation of a release's state from its first entry, to check the server's state.

A server starts from the newest checkpoint, and trusts that the earlier entries are those that were
checked when they were written. This computation begins at the first entry, checks the numbers,
hashes and counters of every entry again, and records which answers used units of the cutoff. Unlike
``conclave verify`` it does not check the other tables.

A stability test decides, with noise, whether an answer is stable. With labels each answer has one
test, and with scores up to two. The models stop after a number of failed tests, the cutoff; each
failed test uses one unit of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from app.errors import LedgerCorruptError
from app.ledger.database.driver import database_errors
from app.ledger.database.entry_rows import read_entries
from app.ledger.entries.chain import read_event
from app.ledger.entries.entry_kinds import AnswersReleased, ScoresReleased
from app.ledger.entries.fold import EMPTY, LedgerState, fold

if TYPE_CHECKING:
    from app.ledger.entries.chain import Entry
    from app.ledger.ledger import Ledger

PAGE_ENTRIES = 256


class Hit(NamedTuple):
    """An answer that used units of the cutoff: its number, and the number of these units.

    It is an unstable answer or, with scores, an answer of which at least one stability test failed.
    """

    query_id: int
    units: int


@dataclass(slots=True)
class Refold:
    """The progress of the repeated computation of the state, up to the entry read last.

    Attributes:
        state: the state that the entries read so far determine; at the beginning an empty state.
        hits: the answers so far that used units of the cutoff, in order.

    """

    state: LedgerState = EMPTY
    hits: list[Hit] = field(default_factory=list)

    def read_page(self, ledger: Ledger) -> bool:
        """Read and check the next ledger entries, a limited number; return whether more may follow.

        Raises:
            LedgerCorruptError: an entry may not follow the earlier ones.
            LedgerUnavailableError: the database cannot be read.

        """
        with ledger.snapshot() as connection, database_errors():
            page = read_entries(connection, ledger.release_number, self.state.head, PAGE_ENTRIES)
        for entry in page:
            self.state = fold(self.state, entry)
            self.hits += _hits(entry)
        return len(page) == PAGE_ENTRIES

    def compare(self, served: LedgerState) -> None:
        """Compare the server's state with the repeated computation, if both are at the same entry.

        Raises:
            LedgerCorruptError: the two states differ.

        """
        known = self.state
        if known.head.sequence != served.head.sequence:
            return
        if _counted(known) != _counted(served):
            raise LedgerCorruptError("the entries from the first do not give the state that serves")


def _counted(state: LedgerState) -> tuple[object, ...]:
    """Return the head and the counters of a state."""
    return state.head.hash, state.answered, state.unstable, state.generations


def _hits(entry: Entry) -> list[Hit]:
    event = read_event(entry)
    if isinstance(event, ScoresReleased):
        units = event.units
    elif isinstance(event, AnswersReleased):
        units = [int(not stable) for stable in event.stable]
    else:
        return []
    return [Hit(event.first_query_id + place, used) for place, used in enumerate(units) if used]
