"""A release's newest state, computed from an earlier state and the later ledger entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.errors import LedgerCorruptError
from app.ledger.database.answer_tables import each_answer, read_answer_count
from app.ledger.database.entry_rows import each_entry
from app.ledger.database.statements import read_head
from app.ledger.entries.fold import fold

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from app.ledger.entries.fold import LedgerState


def folded_on(connection: Connection, release_number: int, known: LedgerState) -> LedgerState:
    """Return a release's newest state, computed from a known state and all later entries.

    Args:
        connection: a connection that sees the database at one moment.
        release_number: the number of the release in the database.
        known: the state at an earlier entry, or an empty state.

    Raises:
        LedgerCorruptError: an entry may not follow the earlier ones.

    """
    head = read_head(connection, release_number)
    if head.sequence < known.head.sequence:
        raise LedgerCorruptError(
            f"the ledger ends at entry {head.sequence} and had entry {known.head.sequence} before"
        )
    if head == known.head:
        return known
    state = known
    for entry in each_entry(connection, release_number, known.head):
        state = fold(state, entry)
    if state.head != head:
        raise LedgerCorruptError(f"entry {head.sequence} was exchanged for another")
    return state


def check_answers(
    connection: Connection, release_number: int, known: LedgerState, state: LedgerState
) -> None:
    """Check that the answers table has exactly the answers of the entries.

    A vector whose recorded answer is lost would get a new answer. Of the answers up to the known
    state only the last one is checked, since triggers of the database refuse gaps in the numbers.

    Args:
        connection: a connection that sees the database at one moment.
        release_number: the number of the release in the database.
        known: the earlier state, from which the newest state was computed.
        state: the newest state.

    Raises:
        LedgerCorruptError: an answer is missing, or there is one too many; the message names the
            first.

    """
    count, last = read_answer_count(connection, release_number, known.answered)
    if (count, last) == (state.answered - known.answered, state.answered):
        return
    wanted = min(known.answered, last) + 1
    for _, row in each_answer(connection, release_number, wanted - 1):
        if row.answer.query_id != wanted or wanted > state.answered:
            break
        wanted += 1
    if wanted <= state.answered:
        raise LedgerCorruptError(f"answer {wanted} is missing from the answers table")
    raise LedgerCorruptError(
        f"answer {wanted} is in the answers table, and the chain ends with answer {state.answered}"
    )
