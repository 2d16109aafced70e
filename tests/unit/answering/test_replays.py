"""Recorded answers: some in memory, the others looked up, and both told as one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from app.answering.answers import Answer
from app.answering.replays import RecentReplays
from app.errors import (
    BudgetExhaustedError,
    IdempotencyConflictError,
    LedgerCorruptError,
    LedgerUnavailableError,
)
from app.ledger.ledger import Ledger, RecordedAnswer
from tests.builders.ledger.releases import tamper
from tests.builders.release.served import published, replay, run, serving
from tests.builders.release.small_release import HIT, STABLE, SmallRelease, ask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.answering.service import ConclaveService
    from app.errors import IntegrityError


@dataclass
class Kept:
    """Answers and keys that are recorded, and what was asked of them.

    Attributes:
        answers: by vector digest.
        keys: vector digest by key digest.
        asked: every list of digests that was looked up.

    """

    answers: dict[bytes, RecordedAnswer] = field(default_factory=dict)
    keys: dict[bytes, bytes] = field(default_factory=dict)
    asked: list[list[bytes]] = field(default_factory=list)

    def known_answers(self, vector_digests: Sequence[bytes]) -> list[tuple[bytes, RecordedAnswer]]:
        """Return what is recorded."""
        self.asked.append(list(vector_digests))
        return [(each, self.answers[each]) for each in vector_digests if each in self.answers]

    def known_keys(self, key_digests: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        """Return what is recorded."""
        self.asked.append(list(key_digests))
        return [(each, self.keys[each]) for each in key_digests if each in self.keys]


def given(number: int) -> RecordedAnswer:
    """Return a stable answer to the vector of that number."""
    return RecordedAnswer(number, 1, stable=True)


def test_nothing_is_looked_up_while_every_answer_is_in_memory() -> None:
    """A vector that is not in memory is a new one then."""
    replays, kept = RecentReplays(recent_max=3), Kept()
    for number in (1, 2, 3):
        replays.add(b"%d" % number, given(number))
    found = replays.among(vector_digests=[b"2", b"9"], key_digests=[], records=kept)
    assert found.find_by_vector(b"2") == given(2)
    assert found.find_by_vector(b"9") is None
    assert kept.asked == []


def test_what_had_to_go_is_looked_up_once_and_kept() -> None:
    """The fourth answer takes the first one's place; the first is found in the ledger then."""
    replays, kept = RecentReplays(recent_max=3), Kept({b"1": given(1)})
    for number in (1, 2, 3, 4):
        replays.add(b"%d" % number, given(number))
    assert replays.find_by_vector(b"1") is None
    for _ in range(2):
        found = replays.among(vector_digests=[b"1", b"4", b"1"], key_digests=[], records=kept)
        assert found.find_by_vector(b"1") == given(1)
        assert found.find_by_vector(b"4") == given(4)
    assert kept.asked == [[b"1"]]


def test_a_key_is_looked_up_though_every_answer_is_in_memory() -> None:
    """Another process may have stored it beside an old answer, and no entry tells."""
    replays, kept = RecentReplays(), Kept(keys={b"k": b"1"})
    replays.add(b"1", given(1))
    found = replays.among(vector_digests=[b"1"], key_digests=[b"k", b"new"], records=kept)
    assert found.find_by_key(b"k", b"1", b"1") == given(1)
    assert found.find_by_key(b"new", b"1", b"1") is None
    with pytest.raises(IdempotencyConflictError):
        found.find_by_key(b"k", b"2", b"2")
    assert kept.asked == [[b"k", b"new"]]


def test_a_key_in_memory_whose_answer_is_not_is_no_answer_yet() -> None:
    """A look at memory alone leaves it to the writer, and tells a conflict all the same."""
    replays = RecentReplays()
    replays.add_keys([(b"k", b"1")])
    assert replays.find_by_key(b"k", b"1", b"1") is None
    with pytest.raises(IdempotencyConflictError):
        replays.find_by_key(b"k", b"2", b"2")


def test_a_key_without_an_answer_is_damage() -> None:
    """Its vector would be answered afresh otherwise."""
    replays, kept = RecentReplays(), Kept(keys={b"k": b"1"})
    found = replays.among(vector_digests=[b"1"], key_digests=[b"k"], records=kept)
    with pytest.raises(LedgerCorruptError) as damage:
        found.find_by_key(b"k", b"1", b"1")
    assert str(damage.value) == "an idempotency key is kept for a vector that has no answer"


# -- the service, with nothing in memory ----------------------------------------


def forget(service: ConclaveService) -> None:
    """Empty the memory of a service."""
    service._answerer.replays = RecentReplays(recent_max=1)
    service._answerer.replays.leave_out_answers()


def test_in_every_phase_what_is_looked_up_is_what_was_given(small_release: SmallRelease) -> None:
    """Vectors and keys replay while the ensemble answers and once the release has halted."""

    async def test() -> None:
        async with serving(small_release, [STABLE, HIT, HIT]) as service:
            await service.answer_many([ask(9, "k"), ask(-9)])
            forget(service)
            asked = [ask(9), ask(-9, "new"), ask(9, "k"), ask(3, "k")]
            before = await service.answer_many(asked)
            await service.answer_many([ask(4)])  # the second hit: the release halts
            forget(service)
            after = await service.answer_many([*asked, ask(9, "newest"), ask(5)])
        assert before[:3] == [replay(1), replay(2, None, stable=False), replay(1)]
        assert isinstance(before[3], IdempotencyConflictError)
        assert after[:3] == before[:3]
        assert isinstance(after[3], IdempotencyConflictError)
        assert after[4] == replay(1)
        assert isinstance(after[5], BudgetExhaustedError)

    run(test())


def test_after_the_switch_a_key_that_is_not_in_memory_still_replays(
    small_release: SmallRelease,
) -> None:
    """It is asked of the ledger; a vector without a key is the classifier's."""
    release = SmallRelease(small_release.folder, {"answers__on_cutoff": "classifier"})

    async def test() -> None:
        async with serving(release, [STABLE, HIT, HIT]) as service:
            await service.answer_many([ask(9, "k"), ask(-9), ask(4)])
            await service.answer_many([ask(30)])  # waits for the classifier
            forget(service)
            given_again = await service.answer_many(
                [ask(9, "k"), ask(9), ask(30, "other"), ask(3, "k")]
            )
        assert given_again[0] == replay(1)
        assert [each.phase for each in given_again[1:3] if isinstance(each, Answer)] == [
            "classifier",
            "classifier",
        ]
        assert isinstance(given_again[3], IdempotencyConflictError)

    run(test())


def test_a_ledger_that_cannot_be_read_refuses_what_needs_it(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the switch keys get a 503 in their place, and the classifier answers the others."""
    release = SmallRelease(small_release.folder, {"answers__on_cutoff": "classifier"})

    def unavailable(ledger: Ledger, key_digests: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        del ledger, key_digests
        raise LedgerUnavailableError("gone")

    async def test() -> None:
        async with serving(release, [STABLE, HIT, HIT]) as service:
            await service.answer_many([ask(9, "k"), ask(-9), ask(4)])
            answered = await service.answer_many([ask(30)])
            forget(service)
            monkeypatch.setattr(Ledger, "known_keys", unavailable)
            given_again = await service.answer_many([ask(9, "k"), ask(30)])
        assert isinstance(given_again[0], LedgerUnavailableError)
        assert given_again[1] == answered[0]
        assert isinstance(answered[0], Answer)
        assert answered[0] == published(answered[0].label or "")

    run(test())


def test_a_damaged_answer_stops_the_release(small_release: SmallRelease) -> None:
    """What is looked up before the queue is checked as what the writer reads: 500 from then on."""
    stopped: list[IntegrityError] = []

    async def test() -> None:
        async with serving(small_release, [STABLE, HIT, HIT], stopped=stopped) as service:
            await service.answer_many([ask(9), ask(-9), ask(4)])
            forget(service)
            tamper(small_release.folder / "conclave.db", "UPDATE answer_groups SET body = 'x'")
            for _ in range(2):
                with pytest.raises(LedgerCorruptError):
                    await service.answer_many([ask(9)])

    run(test())
    assert [type(error) for error in stopped] == [LedgerCorruptError]
