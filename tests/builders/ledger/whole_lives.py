"""Ledgers in the middle of their lives that have every kind of entry between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ledger.api_key_counts import KeyCount
from app.ledger.entries.digests import cell_key
from app.ledger.entries.entry_kinds import (
    GenerationAppended,
    GenerationRetired,
    GenerationsJoined,
    LabellingDrawn,
    ReleaseClosed,
    ReleaseHalted,
    ReleaseMoved,
    ReleaseReopened,
    ShareCharged,
    SlotsChanged,
    StatisticsReleased,
    StudentPublished,
    labelling_name,
    slots_name,
    threshold_noise_name,
)
from app.ledger.entries.fold import CELL, REPLAYED_BY
from app.ledger.ledger import RELEASE_SECRET, AnswerRow, AskedVector, RecordedAnswer
from tests.builders.ledger.releases import (
    SECRET,
    answer,
    create,
    open_release,
    opened,
    publish,
    record,
    refresh,
    scored,
)

if TYPE_CHECKING:
    from pathlib import Path

    from app.ledger.entries.entry_kinds import LedgerEvent
    from app.ledger.ledger import Ledger, Transaction

DOCUMENT = '{"cells":[1,2],"alpha":0.1}'


def life_with_labels(path: Path) -> Ledger:
    """Write a life that refreshed its threshold, published, halted, was closed and reopened."""
    ledger = create(path)
    open_release(ledger, cutoff=9, further={threshold_noise_name(0): b"noise 0"})
    _release_statistics(ledger)
    record(ledger, [answer(ledger, number) for number in (1, 2, 3)])
    refresh(ledger, [answer(ledger, 4, label=None, stable=False)])
    with ledger.transaction() as transaction:
        row = answer(ledger, 5, label=1)
        transaction.record_answers([row])
        transaction.record_key(ledger.digests.of_key("first"), row.vector_digest)
        transaction.keep_key_counts({"web": KeyCount(2, 1), "desk": KeyCount(1)})
    publish(ledger)
    with ledger.transaction() as transaction:
        transaction.record_key(ledger.digests.of_key("second"), row.vector_digest)
    append(ledger, ReleaseHalted(reason="stopped"))
    append(ledger, ReleaseClosed(reason="backup"))
    append(ledger, ReleaseReopened(reason="newest"))
    return ledger


def life_with_scores(path: Path) -> Ledger:
    """Write a life with scores of both histograms up to its cutoff, a student, and a move."""
    ledger = create(path)
    open_release(ledger, cutoff=4, parameters={"answers.output": '"score"'})
    with ledger.transaction() as transaction:
        rows = [scored(ledger, 1), scored(ledger, 2, shifted=True, units=1)]
        transaction.record_answers(rows)
        transaction.record_key(ledger.digests.of_key("first"), rows[1].vector_digest)
        transaction.keep_key_counts({"web": KeyCount(2, 1)})
    record(ledger, [scored(ledger, 3, released=None, units=2, precision=1000)])
    record(ledger, [scored(ledger, 4), scored(ledger, 5, released=None, units=1)])
    with ledger.transaction() as transaction:
        digest = transaction.put_private("student", b"estimator")
        transaction.append(
            StudentPublished(classifier=DOCUMENT, private_digests={"student": digest})
        )
    append(ledger, ReleaseMoved(place="elsewhere", transfer="cd" * 32))
    append(ledger, ReleaseReopened(reason="moved"))
    return ledger


def life_with_cells(path: Path) -> Ledger:
    """Write a life that decides each cell once, with two vectors of one and a key of the second."""
    ledger = create(path)
    open_release(ledger, parameters={REPLAYED_BY: CELL})
    decided = ((3, 1, (b"one", b"two")), (0, 2, (b"three",)), (7, 3, (b"four",)))
    for cell, query_id, vectors in decided:
        with ledger.transaction() as transaction:
            key = cell_key(cell)
            recorded = RecordedAnswer(query_id, query_id - 1, stable=True)
            transaction.record_answers([AnswerRow(ledger.digests.of_cell(key), key, recorded)])
            transaction.record_asked([AskedVector(query_id, vector) for vector in vectors])
            posted = ledger.digests.of_vector(vectors[-1])
            transaction.record_key(ledger.digests.of_key(f"key {cell}"), posted)
            transaction.keep_key_counts({"web": KeyCount(query_id)})
    return ledger


def life_with_generations(path: Path) -> Ledger:
    """Write a life of two generations, of which the first has retired."""
    ledger = create(path)
    rules = {
        "generations.quorum": "1",
        "generations.active_max": "null",
        "generations.labelling": '"own"',
        "generations.table": "9/10 1/2000000 1",
    }
    with ledger.transaction() as transaction:
        digests = {RELEASE_SECRET: transaction.put_private(RELEASE_SECRET, SECRET)}
        first = opened(queries=None, cutoff=None, parameters=rules, private_digests=digests)
        transaction.append(first)
        _append_generation(transaction, 1, joins_at=1)
        _tick(transaction, 1, numbers=[1], joins=1)
    record(ledger, [answer(ledger, 1), answer(ledger, 2)])
    with ledger.transaction() as transaction:
        transaction.keep_key_counts({"web": KeyCount(2)})
        _append_generation(transaction, 2, joins_at=2)
        _tick(transaction, 2, numbers=[1, 2], joins=2)
    with ledger.transaction() as transaction:
        transaction.record_answers([answer(ledger, 3, label=None, stable=False)])
        transaction.append(GenerationRetired(number=1, reason="cutoff", active=5))
        transaction.append(GenerationRetired(number=2, reason="cutoff", active=6))
    with ledger.transaction() as transaction:
        _append_generation(transaction, 3, joins_at=9, tick=2)
    return ledger


LIVES = {
    "labels": life_with_labels,
    "scores": life_with_scores,
    "cells": life_with_cells,
    "generations": life_with_generations,
}


def _append_generation(
    transaction: Transaction, number: int, *, joins_at: int, tick: int | None = None
) -> None:
    name = slots_name(number, number - 1 if tick is None else tick)
    transaction.append(
        GenerationAppended(
            number=number,
            slots=30,
            chunks=3,
            epsilon="1",
            delta="1/1000000",
            shares={"answers": ["9/10", "1/2000000"], "relabel": ["1/10", "0"]},
            cutoff=1,
            joins_at=joins_at,
            fingerprint="ab" * 32,
            private_digests={name: transaction.put_private(name, b"rows")},
        )
    )


def _tick(transaction: Transaction, tick: int, *, numbers: list[int], joins: int) -> None:
    """Label the generation that joins, and make the tick at which it does."""
    name = labelling_name(joins)
    digests = {name: transaction.put_private(name, b"labels")}
    transaction.append(LabellingDrawn(number=joins, of=joins, private_digests=digests))
    names = [slots_name(number, tick) for number in numbers]
    digests = {each: transaction.put_private(each, b"rows and learners") for each in names}
    transaction.append(SlotsChanged(tick=tick, period=tick, private_digests=digests))
    transaction.append(GenerationsJoined(numbers=[joins], active=2 * tick))


def append(ledger: Ledger, event: LedgerEvent) -> None:
    """Commit one entry."""
    with ledger.transaction() as transaction:
        transaction.append(event)


def _release_statistics(ledger: Ledger) -> None:
    append(ledger, ShareCharged(mechanism="statistics", epsilon="0", delta="0"))
    with ledger.transaction() as transaction:
        digest = transaction.put_private("statistics-points", b"points")
        transaction.append(
            StatisticsReleased(statistics=DOCUMENT, private_digests={"statistics-points": digest})
        )
