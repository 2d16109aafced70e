"""Verification of a ledger: its contents are recomputed from the first entry on.

The first problem is reported in one plain sentence. Rows that were never written cannot be missed,
so the verification of a database that was restored whole from an older copy succeeds. Such a copy
is detected only by comparison with the hash of a newer entry that was noted elsewhere.

A stability test decides, with noise, whether an answer is stable; an answer with a score has up to
two tests.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from sqlalchemy.exc import SQLAlchemyError

from app.errors import LedgerCorruptError, LedgerUnavailableError, VerificationError
from app.ledger.answer_index.key_blocks import LEVELS_MAX, block_of, item_of, items_in
from app.ledger.answer_index.recorded_keys import earlier_count, every_block, newest_digests
from app.ledger.api_key_counts import read_key_counts
from app.ledger.asked_vectors import RELEASE_SECRET, asked_of
from app.ledger.database.answer_tables import each_answer
from app.ledger.database.driver import WRONG_TYPE, is_damage
from app.ledger.database.entry_rows import each_entry
from app.ledger.database.protections import protection_fault, structural_fault, type_fault
from app.ledger.database.statements import (
    KeyRow,
    every,
    read_checkpoints,
    read_keys,
    read_private,
    read_private_names,
)
from app.ledger.entries.chain import GENESIS, Head, event_body, read_event
from app.ledger.entries.checkpoint import check_mark, checkpoint_body
from app.ledger.entries.digests import is_cell_key, private_digest, public_digest
from app.ledger.entries.entry_kinds import (
    AnswersReleased,
    GenerationRetired,
    ScoresReleased,
    SlotsChanged,
    VectorsAsked,
)
from app.ledger.entries.fold import EMPTY, LedgerState, fold
from app.ledger.erasure_state import (
    LOST_PERSONS,
    PREFIXES,
    is_beside_entries,
    persons_pieces,
    read_beside,
)
from app.ledger.releases import is_covered, read_openings, stray_row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from app.ledger.database.recorded_answers import AnswerRow
    from app.ledger.entries.chain import Entry
    from app.ledger.entries.digests import Digests
    from app.ledger.ledger import Ledger

_DIGEST_BYTES = 32
_BEFORE_ALL = -(2**63)  # a checkpoint that was tampered with may be at any number
Told: TypeAlias = tuple[int | None, bool, int | None, int | None, bool | None, int | None]
"""Label, stable flag, precision, bin, shifted flag and units of one answer."""


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """The results of verifying a ledger.

    Attributes:
        head: the number and hash of the newest entry.
        answered: the number of new answers by the models' vote.
        unstable: the number of unstable answers among them (with scores, of failed stability
            tests).
        epsilon_charged: the sum of the shares of epsilon that are spent; in a release with several
            batches of rows, the largest sum for the records of one batch.
        delta_charged: the sum of the shares of delta that are spent, in the same way.
        closed: the reason why the ledger is closed; None if it is not closed.

    """

    head: Head
    answered: int
    unstable: int
    epsilon_charged: Fraction
    delta_charged: Fraction
    closed: str | None = None


def verify(ledger: Ledger, expect_head: str | None = None) -> VerificationReport:
    """Recompute a release from its first ledger entry, and compare it with every table.

    Args:
        ledger: the ledger, opened for reading.
        expect_head: the hash of an entry that the ledger must contain, noted elsewhere before, 64
            hexadecimal characters in either case; None for no such test.

    Raises:
        VerificationError: a condition does not hold; the message describes the first one.

    """
    with ledger.snapshot() as connection:
        return verify_on(
            connection, ledger.release_number, digests=ledger.digests, expect_head=expect_head
        )


def verify_on(
    connection: Connection,
    release_number: int,
    *,
    digests: Digests,
    expect_head: str | None = None,
) -> VerificationReport:
    """Verify a release on the caller's connection, which sees the database at one moment.

    Args:
        connection: a connection inside a transaction; rows that are written but not committed yet
            are included.
        release_number: the number of the release in the database.
        digests: the functions that compute the database's keyed hashes.
        expect_head: the hash of an entry that the ledger must contain; None for no such test.

    Raises:
        VerificationError: a condition does not hold; the message describes the first one.

    """
    try:
        state = _Verification(connection, release_number, digests, expect_head).run()
    except (LedgerCorruptError, LedgerUnavailableError) as error:
        raise VerificationError(str(error)) from None
    except SQLAlchemyError as error:
        raise VerificationError(
            "the file of the ledger is damaged" if is_damage(error) else "the ledger cannot be read"
        ) from None
    except (TypeError, ValueError):
        raise VerificationError(type_fault(connection) or WRONG_TYPE) from None
    epsilon = sum((Fraction(share.epsilon) for share in state.charged), Fraction(0))
    delta = sum((Fraction(share.delta) for share in state.charged), Fraction(0))
    if state.generations is not None:
        epsilon, delta = state.generations.dearest()
    return VerificationReport(
        head=state.head,
        answered=state.answered,
        unstable=state.unstable,
        epsilon_charged=epsilon,
        delta_charged=delta,
        closed=None if state.closed is None else state.closed.reason,
    )


class _Verification:
    """One pass over one snapshot."""

    def __init__(
        self,
        connection: Connection,
        release_number: int,
        digests: Digests,
        expect_head: str | None,
    ) -> None:
        self._connection = connection
        self._digests = digests
        self._release_number = release_number
        self._expect_head = None if expect_head is None else expect_head.strip().lower()
        self._head_found = self._expect_head is None
        self._answers = each_answer(connection, release_number, 0)
        self._query_by_digest: dict[bytes, int] = {}
        self._bound: dict[str, str] = {}
        self._decides_cells = False
        self._asked: dict[bytes, int] = {}
        self._answers_asked: set[int] = set()
        read = partial(read_checkpoints, connection, release_number)
        self._checkpoints = every(read, _BEFORE_ALL, lambda row: row.sequence)
        self._next_checkpoint = next(self._checkpoints, None)

    def run(self) -> LedgerState:
        """Run every check in the order of the entries."""
        fault = structural_fault(self._connection)
        _hold(fault is None, f"the database finds its own file damaged: {fault}")
        state = EMPTY
        for entry in each_entry(self._connection, self._release_number, GENESIS):
            state = self._check_entry(state, entry)
            self._check_checkpoint(state)
        _hold(self._next_checkpoint is None, "a checkpoint is at an entry that the chain lacks")
        _hold(state.is_finished, "the chain ends before a join or a retirement that is due")
        self._check_no_more_answers(state)
        self._check_keys_of_answers(state)
        self._check_each_was_asked(state)
        self._check_keys()
        self._check_key_counts(state)
        self._check_private()
        self._check_persons(state)
        self._check_releases(state)
        odd = type_fault(self._connection)
        _hold(odd is None, str(odd))
        unprotected = protection_fault(self._connection)
        _hold(unprotected is None, str(unprotected))
        _hold(self._head_found, f"no entry has the expected hash {self._expect_head}")
        return state

    def _check_entry(self, state: LedgerState, entry: Entry) -> LedgerState:
        following = fold(state, entry)
        event = read_event(entry)
        _hold(
            event_body(event) == entry.body,
            f"entry {entry.sequence} has a body that is not in canonical form",
        )
        self._decides_cells = following.decides_cells
        if isinstance(event, AnswersReleased | ScoresReleased):
            self._check_answers(entry.sequence, event)
        elif isinstance(event, VectorsAsked):
            self._check_asked(entry.sequence, event)
        self._bound |= getattr(event, "private_digests", {})
        if isinstance(event, SlotsChanged | GenerationRetired):
            for name in state.private_digests.keys() - following.private_digests.keys():
                del self._bound[name]
        self._head_found = self._head_found or entry.hash == self._expect_head
        return following

    def _check_checkpoint(self, state: LedgerState) -> None:
        row = self._next_checkpoint
        if row is None or row.sequence != state.head.sequence:
            return
        check_mark(row, self._digests)
        _hold(
            row.body == checkpoint_body(state, self._release_number),
            f"the checkpoint at entry {row.sequence} is not what the entries up to there give",
        )
        self._next_checkpoint = next(self._checkpoints, None)

    def _check_answers(self, sequence: int, event: AnswersReleased | ScoresReleased) -> None:
        told = zip(event.digests, _told(event), strict=True)
        for query_id, (digest, answer) in enumerate(told, start=event.first_query_id):
            placed = next(self._answers, None)
            _hold(
                placed is not None and placed[1].answer.query_id == query_id,
                f"answer {query_id} of entry {sequence} is missing from the answers table",
            )
            if placed is not None:
                kept_in, row = placed
                _hold(
                    kept_in == sequence,
                    f"answer {query_id} in the answers table belongs to entry {kept_in} there, "
                    f"and to entry {sequence} in the chain",
                )
                self._check_answer(sequence, row, digest=digest, told=answer)

    def _check_answer(self, sequence: int, row: AnswerRow, *, digest: str, told: Told) -> None:
        answer = row.answer
        named = f"answer {answer.query_id} in the answers table"
        _hold(
            (answer.label, answer.stable) == told[:2],
            f"{named} has label {answer.label} and stable {answer.stable}, "
            f"and entry {sequence} says {told[0]} and {told[1]}",
        )
        score = (answer.precision, answer.bin_index, answer.bin_shifted, answer.units)
        _hold(score == told[2:], f"{named} has another score than entry {sequence} says")
        _hold(
            public_digest(row.vector_digest) == digest,
            f"{named} has another digest than entry {sequence} says",
        )
        kept = "cell" if self._decides_cells else "vector"
        _hold(
            is_cell_key(row.vector) or not self._decides_cells,
            f"{named} is kept for a vector, and the release decides each cell once",
        )
        _hold(
            hmac.compare_digest(self._digest_of(row), row.vector_digest),
            f"{named} has a {kept} that does not give its digest",
        )
        earlier = self._query_by_digest.setdefault(row.vector_digest, answer.query_id)
        _hold(earlier == answer.query_id, f"{named} repeats the {kept} of answer {earlier}")

    def _digest_of(self, row: AnswerRow) -> bytes:
        if self._decides_cells:
            digest = self._digests.of_cell(row.vector)
        else:
            digest = self._digests.of_question(row.vector, row.answer.precision)
        return self._digests.of_qualified(digest, row.qualifier)

    def _check_asked(self, sequence: int, event: VectorsAsked) -> None:
        """Check that a piece has the vectors that its entry says, none of them a second time."""
        (name,) = event.private_digests
        piece = read_private(self._connection, self._release_number, name)
        _hold(piece is not None, f"the private state is missing a piece: {name}")
        vectors = [] if piece is None else asked_of(piece.body)
        digests = self._digests.of_vectors([each.vector for each in vectors])
        _hold(
            [public_digest(digest) for digest in digests] == event.digests
            and [each.query_id for each in vectors] == event.query_ids,
            f"the piece {name} has other vectors than entry {sequence} says",
        )
        for number, digest in enumerate(digests, start=event.first_number):
            earlier = self._asked.setdefault(digest, number)
            _hold(earlier == number, f"vector {number} of entry {sequence} repeats {earlier}")
        self._answers_asked |= set(event.query_ids)

    def _check_no_more_answers(self, state: LedgerState) -> None:
        placed = next(self._answers, None)
        if placed is not None:
            _fail(
                f"answer {placed[1].answer.query_id} is in the answers table, "
                f"and the chain ends with answer {state.answered}"
            )

    def _check_keys_of_answers(self, state: LedgerState) -> None:
        """Check that each answer since revision 0008 has its key in one place, and none else has.

        An answer whose key is in no place, or in a block where it is not looked for, would be
        given a second time, afresh.
        """
        earlier = earlier_count(self._connection, self._release_number, state.answered)
        items = {
            item_of(digest, number): number
            for digest, number in self._query_by_digest.items()
            if number > earlier
        }
        for digest, number in newest_digests(self._connection, self._release_number):
            _hold(
                self._query_by_digest.get(digest) == number
                and items.pop(item_of(digest, number), None) is not None,
                "the newest answers have a key that is no answer's, or that is there already",
            )
        for level, block, body in every_block(self._connection, self._release_number):
            place = f"block {block} of level {level} of the keys"
            _hold(0 < level <= LEVELS_MAX, f"{place} is of no level that there is")
            items_here = items_in(body)
            _hold(items_here == sorted(items_here), f"{place} is not in the order of its keys")
            for item in items_here:
                _hold(block_of(item, level) == block, f"{place} has a key of another block")
                _hold(
                    items.pop(item, None) is not None,
                    f"{place} has a key that is no answer's, or that is elsewhere already",
                )
        _hold(not items, f"answer {min(items.values(), default=0)} has lost its key")

    def _check_each_was_asked(self, state: LedgerState) -> None:
        """Check that every decided cell was asked by some vector."""
        for number in range(1, state.answered + 1) if self._decides_cells else ():
            _hold(
                number in self._answers_asked,
                f"answer {number} is a cell's, and no vector that was asked of it is recorded",
            )

    def _check_keys(self) -> None:
        read = partial(read_keys, self._connection, self._release_number)
        for row in every(read, b"", lambda row: row.key_digest):
            _hold(
                len(row.key_digest) == _DIGEST_BYTES and self._has_answer(row),
                "an idempotency key is kept for a vector that has no answer",
            )
            _hold(
                self._digests.marks(row, self._release_number),
                "an idempotency key was altered: its mark is not that of what it is kept for",
            )

    def _has_answer(self, row: KeyRow) -> bool:
        """Return whether a key's vector has an answer; of a decided cell's the mark says so.

        Of those only as many vectors are recorded as a classifier takes for its points.
        """
        if self._decides_cells:
            return bool(self._query_by_digest) and row.mark is not None
        return row.vector_digest in self._query_by_digest

    def _check_key_counts(self, state: LedgerState) -> None:
        """Check the marks, and that no more is counted for keys than was answered."""
        counts = read_key_counts(
            self._connection, self._release_number, None, digests=self._digests
        ).values()
        _hold(
            sum(count.answered for count in counts) <= state.answered
            and sum(count.unstable for count in counts) <= state.unstable,
            "the counts of keys come to more than the answers that were given",
        )

    def _check_private(self) -> None:
        names = read_private_names(self._connection, self._release_number)
        for prefix in PREFIXES:
            read_beside(self._connection, self._release_number, prefix)
        for name in names:
            _hold(
                name in self._bound or is_beside_entries(name),
                f"the private state has a piece that no entry binds: {name}",
            )
        for name in self._bound:
            _hold(name in names, f"the private state is missing a piece: {name}")
        if not names:
            return
        secret = read_private(self._connection, self._release_number, RELEASE_SECRET)
        _hold(secret is not None, "the private state is missing the release's secret")
        for name, bound in self._bound.items():
            piece = read_private(self._connection, self._release_number, name)
            if piece is None or secret is None:
                continue
            computed = private_digest(secret.body, name=name, body=piece.body)
            _hold(
                hmac.compare_digest(computed, bound) and piece.digest == bound,
                f"the private state has a piece that is altered or of another release: {name}",
            )

    def _check_persons(self, state: LedgerState) -> None:
        """Check that every person who has had a slot is known, or would get a second one."""
        for number, name, length in persons_pieces(state.release, state.generations):
            piece = read_private(self._connection, self._release_number, name)
            is_whole = piece is not None and len(piece.body) == length
            _hold(is_whole, LOST_PERSONS.format(number=number))

    def _check_releases(self, state: LedgerState) -> None:
        """Check what belongs to no release, and that a later release says what all promise."""
        openings = read_openings(self._connection)
        stray = stray_row(self._connection, len(openings))
        _hold(stray is None, str(stray))
        if state.release is not None:
            _hold(
                is_covered(openings[: self._release_number]),
                f"release {self._release_number} of the database was opened beside others, "
                "and states no composed budget that covers them",
            )


def _told(event: AnswersReleased | ScoresReleased) -> Iterator[Told]:
    """Yield what an entry says of each answer; nothing of a score beside a label."""
    if isinstance(event, AnswersReleased):
        for label, stable in zip(event.labels, event.stable, strict=True):
            yield label, stable, None, None, None, None
        return
    yield from zip(
        event.labels,
        event.stable,
        event.precisions,
        event.bins,
        event.shifted,
        event.units,
        strict=True,
    )


def _hold(holds: bool, problem: str) -> None:  # noqa: FBT001 -- reads as a sentence at every call
    if not holds:
        _fail(problem)


def _fail(problem: str) -> None:
    raise VerificationError(problem)
