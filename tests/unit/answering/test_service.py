"""The service of one release: what callers get, in every phase."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from app.answering.answers import Answer
from app.answering.writer import CLOSING
from app.errors import (
    BudgetExhaustedError,
    ContainedError,
    IdempotencyConflictError,
    IntegrityError,
    NotPublishedError,
    UnavailableError,
)
from app.ledger.entries.entry_kinds import ClassifierPublished
from app.release.classifier.classifier_document import read_document
from app.release.classifier.onnx.onnx_model import to_onnx
from app.release.classifier.switch import classifier_of
from tests.builders.ledger.releases import DOCUMENT
from tests.builders.release.served import PATIENCE_SECONDS, fresh, published, replay, run, serving
from tests.builders.release.small_release import HIT, STABLE, SmallRelease, VotesByMargin, ask

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.release.classifier.classifier_document import ClassifierDocument


class FailingVotes(VotesByMargin):
    """Fails on every query."""

    def vote_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Fail."""
        raise ValueError(values)


def test_answers_come_in_order_with_refusals_in_place(small_release: SmallRelease) -> None:
    """Stable, unstable, replayed and refused stand where their queries stood."""

    async def test() -> None:
        async with serving(small_release, [STABLE, HIT, STABLE]) as service:
            given = await service.answer_many(
                [ask(9, "k"), ask(-9), ask(9), ask(3, "k"), ask(-3), ask(-9)]
            )
        assert isinstance(given[3], IdempotencyConflictError)
        assert given[:3] + given[4:] == [
            fresh(1),
            fresh(2, None, stable=False),
            replay(1),
            fresh(3, "no"),
            replay(2, None, stable=False),
        ]

    run(test())


def test_a_coin_has_a_label_and_is_unstable(small_release: SmallRelease) -> None:
    """With coins an unstable answer carries a label, which replays as it was."""
    release = SmallRelease(small_release.folder, {"answers__unstable": "coin"})

    async def test() -> None:
        async with serving(release, [HIT, 1 << 63]) as service:
            assert await service.answer_many([ask(-40)]) == [fresh(1, "yes", stable=False)]
            assert await service.answer_many([ask(-40)]) == [replay(1, "yes", stable=False)]

    run(test())


def test_what_is_committed_replays_without_the_writer(small_release: SmallRelease) -> None:
    """Vectors and keys on record are answered though the writer is gone; new keys are not."""

    async def test() -> None:
        async with serving(small_release, [STABLE, STABLE]) as service:
            await service.answer_many([ask(1, "k"), ask(2)])
            service.drain()
            given = await service.answer_many([ask(1), ask(1, "k"), ask(2, "k"), ask(2, "new")])
            assert given[:2] == [replay(1), replay(1)]
            assert isinstance(given[2], IdempotencyConflictError)
            assert isinstance(given[3], UnavailableError)
            assert given[3].detail == CLOSING

    run(test())


def test_a_halted_release_replays_and_refuses(small_release: SmallRelease) -> None:
    """After hit T new vectors get 410, recorded ones and new keys on them their answers."""

    async def test() -> None:
        async with serving(small_release, [HIT, HIT]) as service:
            await service.answer_many([ask(1), ask(2)])
            refused, *given = await service.answer_many([ask(3), ask(2), ask(1, "late")])
            assert isinstance(refused, BudgetExhaustedError)
            assert given == [replay(2, None, stable=False), replay(1, None, stable=False)]
            with pytest.raises(NotPublishedError):
                await service.classifier()
            assert service.budget().model_dump()["phase"] == "halted"
        async with serving(small_release, []) as service:
            (conflict,) = await service.answer_many([ask(2, "late")])
            assert isinstance(conflict, IdempotencyConflictError)

    run(test())


def test_a_classifier_that_another_process_published_is_given_at_once(
    small_release: SmallRelease,
) -> None:
    """Without a new query, and in a release that has halted, whatever publishes it is seen."""

    async def test() -> None:
        async with serving(small_release, [HIT, HIT]) as service:
            await service.answer_many([ask(1), ask(2)])
            ledger = small_release.ledger()
            assert classifier_of(small_release.configuration(), ledger).charge()
            with pytest.raises(NotPublishedError):
                await service.classifier()
            with ledger.transaction() as transaction:
                transaction.append(ClassifierPublished(classifier=DOCUMENT))
            assert (await service.classifier()).decode() == DOCUMENT
            assert service.budget().model_dump()["phase"] == "halted"

    run(test())


def test_the_classifier_follows_the_last_answer(small_release: SmallRelease) -> None:
    """After answer m_o every vector is the classifier's, recorded ones included, by key not."""

    async def test() -> None:
        async with serving(small_release, [STABLE] * 4) as service:
            margins = [(40, "k"), (30, None), (-30, None), (-40, None)]
            first = await service.answer_many([ask(*each) for each in margins])
            assert [answer.query_id for answer in first if isinstance(answer, Answer)] == [
                1,
                2,
                3,
                4,
            ]
            given = await service.answer_many([ask(45), ask(-45), ask(40), ask(40, "new")])
            assert given == [published("yes"), published("no"), published("yes"), published("yes")]
            assert await service.answer_many([ask(40, "k")]) == [replay(1)]
            (conflict,) = await service.answer_many([ask(45, "k")])
            assert isinstance(conflict, IdempotencyConflictError)
            head = await service.ledger_head()
            await service.answer_many([ask(45, "not stored")])
            assert await service.ledger_head() == head
            assert b'"conclave-classifier"' in await service.classifier()

    run(test())


def test_the_model_of_the_classifier_is_built_once(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is that of the published document, off the event loop, and kept."""
    built: list[int] = []

    def count(document: ClassifierDocument) -> bytes:
        built.append(threading.get_ident())
        return to_onnx(document)

    async def test() -> None:
        async with serving(small_release, [STABLE] * 4) as service:
            with pytest.raises(NotPublishedError):
                await service.classifier_onnx()
            await service.answer_many([ask(margin) for margin in (40, 30, -30, -40)])
            await service.answer_many([ask(45)])
            document = read_document(await service.classifier())
            models = await asyncio.gather(*(service.classifier_onnx() for _ in range(3)))
            assert [*models, await service.classifier_onnx()] == [to_onnx(document)] * 4

    monkeypatch.setattr("app.release.classifier.onnx.onnx_model.to_onnx", count)
    run(test())
    assert len(built) == 1
    assert built != [threading.get_ident()]


def test_answers_do_not_wait_for_the_switch_that_follows_them(small_release: SmallRelease) -> None:
    """The ensemble's last answers are there before the classifier is drawn; the others after."""

    async def test() -> None:
        seen = threading.Event()
        margins = (10, -10, 20, -20, 45, -45)
        words = [STABLE] * 4
        async with serving(small_release, words, before_switch=seen.wait) as service:
            parts = service.answer_in_turn([ask(margin) for margin in margins])
            first = await anext(parts)
            assert not seen.is_set()
            seen.set()
            rest = [answer async for part in parts for answer in part]
        assert first == [fresh(1), fresh(2, "no"), fresh(3), fresh(4, "no")]
        assert rest == [published("yes"), published("no")]

    run(test())


def test_answers_without_a_share_start_with_the_classifier(small_release: SmallRelease) -> None:
    """Where answers have no share the classifier is drawn at the start and answers all."""
    changes = {"privacy__shares__answers": "0", "privacy__shares__classifier": "0.9"}
    release = SmallRelease(small_release.folder, changes)

    async def test() -> None:
        async with serving(release, []) as service:
            given = await service.answer_many([ask(45), ask(-45)])
            assert given == [published("yes"), published("no")]
            charged = service.budget().model_dump()["charged"]
            assert isinstance(charged, list)
            assert [share["mechanism"] for share in charged] == ["classifier"]

    run(test())


def test_a_failure_after_voting_stops_the_release(small_release: SmallRelease) -> None:
    """Every caller gets the fixed text, the stop is passed on, and nobody is answered after."""

    async def test() -> None:
        stopped: list[IntegrityError] = []
        async with serving(small_release, [], stopped=stopped, votes=FailingVotes()) as service:
            for _ in range(2):
                with pytest.raises(ContainedError):
                    await service.answer_many([ask(1)])
        assert len(stopped) == 1

    run(test())


# -- the public side ---------------------------------------------------------------


def test_the_ledger_is_shown_page_by_page(small_release: SmallRelease) -> None:
    """Entries follow the number given, as many as asked for, and end at the head."""

    async def test() -> None:
        async with serving(small_release, [STABLE]) as service:
            await service.answer_many([ask(1)])
            entries = await service.ledger_entries(after=0, limit=100)
            head = await service.ledger_head()
            assert [entry["sequence"] for entry in entries] == list(range(1, 7))
            assert entries[-1]["hash"] == head["hash"]
            assert head["sequence"] == 6
            assert await service.ledger_entries(after=2, limit=3) == entries[2:5]
            assert await service.ledger_entries(after=6, limit=3) == []

    run(test())


def test_the_public_names_are_those_of_the_configuration(small_release: SmallRelease) -> None:
    """The schema and the release's name are what the operator wrote."""

    async def test() -> None:
        async with serving(small_release, []) as service:
            assert service.release_name == "small"
            assert service.schema.feature_names == ("margin", "group")

    run(test())


def test_changes_are_told_once_however_many(small_release: SmallRelease) -> None:
    """A subscriber that was busy learns of several commits as of one."""

    async def test() -> None:
        async with (
            serving(small_release, [STABLE] * 4) as service,
            service.subscribe() as changes,
        ):
            await service.answer_many([ask(1)])
            await service.answer_many([ask(2)])
            await anext(changes)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(changes), 0.05)

    run(test())


def test_a_subscription_ends_with_the_service(small_release: SmallRelease) -> None:
    """Closing wakes every subscriber, and its iteration ends."""

    async def test() -> None:
        seen = 0
        async with serving(small_release, []) as service:
            async with service.subscribe() as changes:
                await service.close()
                async for _ in changes:
                    seen += 1
            assert not service._changes._listeners
        assert seen <= 1

    run(test())


def test_a_stop_wakes_subscribers(small_release: SmallRelease) -> None:
    """An event stream learns that the release has stopped, without waiting for a change."""

    async def test() -> None:
        async with (
            serving(small_release, [], votes=FailingVotes()) as service,
            service.subscribe() as changes,
        ):
            with pytest.raises(ContainedError):
                await service.answer_many([ask(1)])
            await asyncio.wait_for(anext(changes), PATIENCE_SECONDS)

    run(test())
