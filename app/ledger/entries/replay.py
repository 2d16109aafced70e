"""Update of a known state by later ledger entries, with a check of the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.errors import LedgerCorruptError
from app.ledger.database.statements import each_answer, each_entry, read_answer_count, read_head
from app.ledger.entries.fold import fold

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from app.ledger.entries.fold import LedgerState


def folded_on(connection: Connection, release_number: int, known: LedgerState) -> LedgerState:
    """Return the newest state: a known state after applying all later entries.

    Args:
        connection: of one moment of the database.
        release_number: of the release.
        known: the state at an entry of its, or an empty one.

    Raises:
        LedgerCorruptError: an entry does not follow from those before it.

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

    A vector whose answer is lost would be answered afresh.  Of the answers before,
    whose numbers triggers keep without gaps, only the last one is looked for.

    Args:
        connection: as above.
        release_number: of the release.
        known: the state that the entries since were folded on.
        state: what they gave.

    Raises:
        LedgerCorruptError: names the first answer that is missing, or one too many.

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
