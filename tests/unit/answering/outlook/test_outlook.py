"""The outlook of a small release: history, band, forecast, alarm and checked entries."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from app.answering.outlook import outlook as outlook_module
from app.answering.outlook.outlook import Outlook
from app.errors import IntegrityError, LedgerCorruptError, LedgerUnavailableError
from app.ledger.ledger import Ledger
from app.privacy.voting.query_decision import Phase
from tests.builders.ledger.releases import tamper
from tests.builders.release.served import run, serving
from tests.builders.release.small_release import HIT, STABLE, SmallRelease, ask
from tests.builders.release.svt_release import NOISY_VOTE, changed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.answering.answer_query import QueryAnswerer

MANY = {"answers__queries": "1000", "answers__cutoff": "20"}
OPENED_AT = 1_767_225_600


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        """Start at zero."""
        self.seconds = 0.0

    def __call__(self) -> float:
        """Return the seconds since any moment."""
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    """Return a clock."""
    return Clock()


def watched(answerer: QueryAnswerer, clock: Clock) -> Outlook:
    """Return the outlook of a release that was opened on New Year's Day."""
    return Outlook(answerer.release, clock=clock, wall_clock=lambda: OPENED_AT + 0.7)


def told(outlook: Outlook) -> Any:
    """Return the document as it comes out of JSON."""
    return json.loads(json.dumps(asyncio.run(outlook.document())))


def margins(start: int, count: int) -> Iterator[int]:
    """Yield margins that were not asked for."""
    return iter(range(start, start + count))


def test_a_fresh_release_has_nothing_behind_it(small_release: SmallRelease, clock: Clock) -> None:
    """No answer: no rate, no hit, a forecast without a time, and every entry checked."""
    answerer = small_release.answerer()
    head = answerer.release.state.head
    document = told(watched(answerer, clock))
    assert document["over_time"] == {"times": [OPENED_AT], "answered": [0], "unstable": [0]}
    assert document["over_answers"] == {"answers": [], "unstable": []}
    assert document["unstable_rate"] is None
    assert document["forecast"]["limit"] == {"answers": 4}
    assert document["forecast"]["cutoff"]["latest"] is None
    assert document["chain"] == {
        "checked_from": 1,
        "checked_to": head.sequence,
        "hash": head.hash,
        "checked_at": OPENED_AT,
        "complete": True,
    }


def test_it_tells_what_was_answered_when(
    small_release: SmallRelease, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """History by time and by answers, the rate with its band, and where both lead."""
    monkeypatch.setattr(outlook_module, "FORECAST_ANSWERS_MIN", 4)
    answerer = changed(small_release, MANY).answerer([STABLE, HIT, STABLE, STABLE])
    outlook = watched(answerer, clock)
    clock.seconds = 2.9
    answerer.answer_batch([ask(1), ask(2)])
    outlook.note()
    clock.seconds = 10
    answerer.answer_batch([ask(3), ask(4)])
    document = told(outlook)
    assert document["time"] == OPENED_AT + 10
    assert document["over_time"] == {
        "times": [OPENED_AT, OPENED_AT + 2, OPENED_AT + 10],
        "answered": [0, 2, 4],
        "unstable": [0, 1, 1],
    }
    assert document["over_answers"] == {"answers": [2], "unstable": [1]}
    assert document["pace"][1] == {"window_seconds": 300, "answers_per_second": 0.4}
    # Clopper and Pearson's printed bounds of one in four.
    assert document["unstable_rate"]["lower"] == pytest.approx(0.0063, abs=5e-5)
    assert document["unstable_rate"]["upper"] == pytest.approx(0.8059, abs=5e-5)
    forecast = document["forecast"]
    assert forecast["limit"] == {"answers": 996, "seconds": pytest.approx(2490)}
    assert forecast["cutoff"]["expected"]["answers"] == pytest.approx(76)
    assert forecast["cutoff"]["expected"]["seconds"] == pytest.approx(190)


def test_few_answers_make_no_forecast(small_release: SmallRelease, clock: Clock) -> None:
    """A forecast has a time from the tenth answer of five minutes on, and none before."""
    answerer = changed(small_release, MANY).answerer([STABLE] * 10)
    outlook = watched(answerer, clock)
    answerer.answer_batch([ask(margin) for margin in margins(1, 9)])
    clock.seconds = 5
    few = told(outlook)["forecast"]
    assert (few["answers_per_second"], few["limit"]) == (0, {"answers": 991})
    answerer.answer_batch([ask(10)])
    enough = told(outlook)["forecast"]
    assert enough["limit"] == {"answers": 990, "seconds": pytest.approx(495)}
    clock.seconds = 306
    assert told(outlook)["forecast"]["limit"] == {"answers": 990}


def test_a_restart_keeps_what_the_ledger_knows(small_release: SmallRelease, clock: Clock) -> None:
    """The history by answers, the band and the alarm are read from the entries anew."""
    release = changed(small_release, MANY)
    answerer = release.answerer([STABLE, HIT, HIT, STABLE])
    answerer.answer_batch([ask(margin) for margin in margins(1, 4)])
    before = told(watched(answerer, clock))
    after = told(watched(release.answerer(), clock))
    for name in ("over_answers", "unstable_rate", "alarm", "chain"):
        assert after[name] == before[name]
    assert after["over_time"]["answered"] == [4]


def test_the_alarm_is_told_of_every_hit(small_release: SmallRelease, clock: Clock) -> None:
    """Hits in a row raise it, whether they are told of together or one by one."""
    answerer = changed(small_release, MANY).answerer([HIT] * 5)
    outlook = watched(answerer, clock)
    raised = []
    for margin in margins(1, 5):
        answerer.answer_batch([ask(margin)])
        raised.append(told(outlook)["alarm"]["raised"])
    assert raised[0] is False
    assert raised[-1] is True
    together = told(watched(answerer, clock))["alarm"]
    assert together == told(outlook)["alarm"]
    assert together["raised_at_answer"] == raised.index(True) + 1
    assert together["pace_allowed"] == 0.02


def test_nothing_is_forecast_after_the_end(small_release: SmallRelease, clock: Clock) -> None:
    """A halted release has a history and no future."""
    answerer = small_release.answerer([HIT, HIT])
    answerer.answer_batch([ask(1), ask(2)])
    assert answerer.release.phase is Phase.HALTED
    document = told(watched(answerer, clock))
    assert document["forecast"] is None
    assert document["over_answers"] == {"answers": [1, 2], "unstable": [1, 2]}


def test_the_noisy_vote_has_no_alarm(small_release: SmallRelease, clock: Clock) -> None:
    """Where no answer is unstable there is none to run out of."""
    document = told(watched(changed(small_release, NOISY_VOTE).answerer(), clock))
    assert document["alarm"] is None
    assert document["forecast"]["cutoff"] == {"earliest": None, "expected": None, "latest": None}


def test_scores_count_units(small_release: SmallRelease, clock: Clock) -> None:
    """A release with scores shows the units of its answers."""
    answerer = changed(small_release, {"answers__output": "score", **MANY}).answerer([HIT, HIT])
    answerer.answer_batch([ask(1)])
    document = told(watched(answerer, clock))
    assert document["over_answers"] == {"answers": [1], "unstable": [2]}
    assert document["unstable_rate"]["mean"] == 2


def test_a_long_history_is_thinned(
    small_release: SmallRelease, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more hits than are shown the last is there, and the others evenly."""
    monkeypatch.setattr(outlook_module, "HITS_SHOWN_MAX", 3)
    answerer = changed(small_release, MANY).answerer([HIT] * 7)
    answerer.answer_batch([ask(margin) for margin in margins(1, 7)])
    shown = told(watched(answerer, clock))["over_answers"]
    assert shown == {"answers": [1, 4, 7], "unstable": [1, 4, 7]}


def test_a_ledger_that_cannot_be_read_is_read_later(
    small_release: SmallRelease, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What needs the entries is null until they are read; nothing fails."""
    outlook = watched(small_release.answerer(), clock)

    def refuse(self: Ledger) -> None:
        del self
        raise LedgerUnavailableError("locked")

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "snapshot", refuse)
        document = told(outlook)
    assert document["chain"]["complete"] is False
    assert document["alarm"] is document["over_answers"] is document["forecast"] is None
    clock.seconds = 1
    assert told(outlook)["chain"]["complete"] is True


def test_a_long_ledger_is_read_at_several_looks(
    small_release: SmallRelease, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look reads for a while only, and says how far it has come."""
    monkeypatch.setattr("app.ledger.entries.full_check.PAGE_ENTRIES", 2)
    monkeypatch.setattr(outlook_module, "READ_SECONDS", -1.0)
    outlook = watched(small_release.answerer(), clock)
    chain = told(outlook)["chain"]
    assert (chain["checked_to"], chain["complete"]) == (2, False)
    for clock.seconds in range(1, 10):
        chain = told(outlook)["chain"]
    assert chain["complete"] is True


def test_an_altered_entry_stops_the_release(small_release: SmallRelease) -> None:
    """A chain that does not hold is no figure on a page: nothing more is answered."""

    async def test() -> None:
        stopped: list[IntegrityError] = []
        async with serving(small_release, [STABLE] * 2, stopped=stopped) as service:
            await service.answer_many([ask(1)])
            assert (await service.outlook())["alarm"] is not None
            path = small_release.folder / "conclave.db"
            tamper(path, "UPDATE entries SET body = replace(body, 'relabel', 'nothing')")
            service._outlook = Outlook(service._release)
            with pytest.raises(LedgerCorruptError):
                await service.outlook()
            assert len(stopped) == 1
            with pytest.raises(IntegrityError):
                await service.answer_many([ask(2)])

    run(test())


def test_counts_are_noted_while_nobody_looks(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server notes its answers by itself, so that a page that opens later has a history."""
    monkeypatch.setattr(outlook_module, "SAMPLE_SECONDS", 0.001)

    async def test() -> None:
        async with serving(small_release, [STABLE] * 3) as service:
            await service.answer_many([ask(1), ask(2)])
            async with asyncio.timeout(5):
                while service._outlook._pace.newest.answered < 2:  # noqa: ASYNC110 -- nothing tells of a sample
                    await asyncio.sleep(0.001)

    run(test())


def test_many_who_look_share_one_document(small_release: SmallRelease, clock: Clock) -> None:
    """Within a second, and without an answer, the entries are read once for all."""
    answerer = changed(small_release, MANY).answerer([STABLE])
    outlook = watched(answerer, clock)

    async def test() -> None:
        first = await asyncio.gather(*(outlook.document() for _ in range(5)))
        assert all(document is first[0] for document in first)
        answerer.answer_batch([ask(1)])
        assert await outlook.document() is not first[0]

    run(test())
