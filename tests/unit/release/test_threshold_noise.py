"""The threshold's noise: drawn once an epoch, kept with its hit, never drawn again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.answering.answer_query import NOT_COUNTED
from app.answering.queries import Fresh
from app.errors import LedgerCorruptError, LedgerUnavailableError, UncountedDrawsError
from app.ledger.entries.entry_kinds import ReleaseHalted
from app.ledger.ledger import RecordedAnswer
from app.ledger.verification import verify
from app.privacy.voting.query_decision import Phase
from tests.builders.ledger.faulty_ledger import FaultyLedger
from tests.builders.ledger.releases import tamper
from tests.builders.release.opened_release import NoNoise, kinds, pieces, statement_of
from tests.builders.release.small_release import RowAnswerer, SmallRelease, ask
from tests.builders.release.svt_release import HIT, REFRESHED, RELEASED, SVT, changed, svt_answerer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.answering.batch_decisions import Decision


@pytest.fixture
def refreshed(small_release: SmallRelease) -> SmallRelease:
    """Return a release whose hits draw the threshold's next noise."""
    return changed(small_release, REFRESHED)


@pytest.fixture
def one_threshold(small_release: SmallRelease) -> SmallRelease:
    """Return a release whose threshold's noise is drawn once; T = 2, m = 4."""
    return changed(small_release, SVT)


def noises(release: SmallRelease) -> dict[str, int]:
    """Return every threshold noise that is kept, by the number of hits before it."""
    return {
        name.rpartition("-")[2]: int.from_bytes(body, "big", signed=True)
        for name, body in pieces(release).items()
        if name.startswith("threshold-noise-")
    }


def stable_flags(decisions: Sequence[Decision]) -> list[bool]:
    """Return whether each answer, fresh or replayed, is stable."""
    found = [each.recorded if isinstance(each, Fresh) else each for each in decisions]
    return [each.stable for each in found if isinstance(each, RecordedAnswer)]


def ask_all(answerer: RowAnswerer, *margins: int) -> list[bool]:
    """Ask one batch; return whether each answer is stable."""
    return stable_flags(answerer.answer_batch([ask(margin) for margin in margins]))


# -- what is kept ------------------------------------------------------------------


@pytest.mark.parametrize("changes", [SVT, REFRESHED])
def test_the_first_noise_is_drawn_with_the_ensemble(
    small_release: SmallRelease, changes: dict[str, str]
) -> None:
    """Its piece and the calibration's are bound by the entry that binds the learners."""
    opened = changed(small_release, changes)
    release = opened.open()
    fitted = release.state.ensemble
    assert fitted is not None
    assert set(fitted.private_digests) == {
        "hypothesis",
        "permutation",
        "ensemble",
        "svt-calibration",
        "calibration-checked",
        "threshold-noise-0",
    }
    assert noises(opened) == {"0": release.private_threshold_noise}
    assert release.answering_state.private_threshold_noise == release.private_threshold_noise
    verify(release.ledger)


@pytest.mark.parametrize("changes", [SVT, REFRESHED])
def test_a_later_start_has_the_same_noise_and_draws_none(
    small_release: SmallRelease, changes: dict[str, str]
) -> None:
    """Without a word of noise the release continues under the noise that it had."""
    opened = changed(small_release, changes)
    first = opened.open()
    again = opened.open(noise=NoNoise())
    assert again.private_threshold_noise == first.private_threshold_noise
    assert again.mechanism == first.mechanism


def test_every_value_takes_as_many_bytes(refreshed: SmallRelease) -> None:
    """What a commit writes has one length, so that a full disk tells nothing of a draw."""
    answerer = svt_answerer(refreshed, [HIT] * 3, [0, -1, 10**9])
    for margin in (1, 2, 3):
        ask_all(answerer, margin)
    lengths = {
        len(body) for name, body in pieces(refreshed).items() if name.startswith("threshold-")
    }
    assert lengths == {16}


def test_a_hit_keeps_the_next_noise_in_its_own_transaction(refreshed: SmallRelease) -> None:
    """A stable answer leaves the noise; a hit's entry is followed by the next one's."""
    answerer = svt_answerer(refreshed, [RELEASED, HIT, RELEASED], [7])
    first = answerer.release.private_threshold_noise
    assert ask_all(answerer, 1) == [True]
    assert answerer.release.private_threshold_noise == first
    assert ask_all(answerer, 2, 3) == [False, True]
    assert kinds(refreshed)[-3:] == ["AnswersReleased", "AnswersReleased", "ThresholdRefreshed"]
    assert noises(refreshed) == {"0": first, "1": 7}
    assert answerer.release.private_threshold_noise == 7
    verify(answerer.release.ledger)


def test_a_batch_with_several_hits_keeps_the_newest_noise(refreshed: SmallRelease) -> None:
    """One entry binds the noise after the last hit, by the number of hits so far."""
    answerer = svt_answerer(refreshed, [HIT, RELEASED, HIT], [7, -8])
    first = answerer.release.private_threshold_noise
    assert ask_all(answerer, 1, 2, 3) == [False, True, False]
    assert noises(refreshed) == {"0": first, "2": -8}
    assert kinds(refreshed).count("ThresholdRefreshed") == 1


def test_a_new_epoch_is_decided_by_its_own_noise(refreshed: SmallRelease) -> None:
    """Queries of the same batch, of the next one and of the next process see the new noise."""
    threshold_noise = [10**7, -(10**7)]
    answerer = svt_answerer(refreshed, [HIT, RELEASED], threshold_noise)
    # The first draws noise so large that even the next one's own does not pass it.
    assert ask_all(answerer, 1, 2) == [False, False]
    assert answerer.release.private_threshold_noise == -(10**7)
    restarted = svt_answerer(refreshed, [HIT], [])
    assert restarted.release.private_threshold_noise == -(10**7)
    assert ask_all(restarted, 3) == [True]


def test_one_threshold_keeps_its_noise(one_threshold: SmallRelease) -> None:
    """Hits draw nothing and bind nothing; the run ends at hit T as ever."""
    answerer = svt_answerer(one_threshold, [HIT, RELEASED, HIT])
    first = answerer.release.private_threshold_noise
    assert ask_all(answerer, 1, 2, 3) == [False, True, False]
    assert answerer.phase is Phase.HALTED
    assert noises(one_threshold) == {"0": first}
    assert "ThresholdRefreshed" not in kinds(one_threshold)


def test_the_noise_is_let_go_with_the_ensemble(one_threshold: SmallRelease) -> None:
    """After the last answer no process holds it, though the ledger keeps it."""
    answerer = svt_answerer(one_threshold, [RELEASED] * 4)
    ask_all(answerer, 1, 2, 3, 4)
    assert answerer.phase is Phase.CLASSIFIER
    assert answerer.release.private_threshold_noise is None
    assert one_threshold.open(noise=NoNoise()).private_threshold_noise is None


def test_the_noise_is_not_shown(refreshed: SmallRelease) -> None:
    """No text of the release, of a state or of an answer in the making has it."""
    answerer = svt_answerer(refreshed, [HIT], [123456789])
    (fresh,) = answerer.answer_batch([ask(1)])
    release = answerer.release
    assert release.private_threshold_noise == 123456789
    for shown in (release.answering_state, fresh):
        assert "123456789" not in repr(shown)
    assert "private_threshold_noise" not in repr(release)


# -- what is missing ---------------------------------------------------------------


@pytest.mark.parametrize("damage", ["altered", "missing"])
@pytest.mark.parametrize("name", ["threshold-noise-0", "svt-calibration"])
@pytest.mark.parametrize("changes", [SVT, REFRESHED])
def test_a_noise_that_is_not_what_was_drawn_refuses_to_start(
    small_release: SmallRelease, changes: dict[str, str], name: str, damage: str
) -> None:
    """Nothing is drawn again for it, and nothing is served."""
    opened = changed(small_release, changes)
    opened.open().ledger.close()
    tamper(opened.folder / "conclave.db", statement_of(damage, name))
    with pytest.raises(LedgerCorruptError, match=rf"private state .*: {name}"):
        opened.open(noise=NoNoise())


@pytest.mark.parametrize("damage", ["altered", "missing"])
def test_the_noise_of_the_newest_epoch_is_what_must_be_there(
    refreshed: SmallRelease, damage: str
) -> None:
    """After a hit the release does not go back to the noise before it."""
    answerer = svt_answerer(refreshed, [HIT], [3])
    ask_all(answerer, 1)
    answerer.release.ledger.close()
    tamper(refreshed.folder / "conclave.db", statement_of(damage, "threshold-noise-1"))
    with pytest.raises(LedgerCorruptError, match=r"private state .*: threshold-noise-1"):
        refreshed.open(noise=NoNoise())


# -- commits that fail -------------------------------------------------------------


def test_a_refused_commit_keeps_what_its_hits_drew(refreshed: SmallRelease) -> None:
    """The draws are recorded with their noise before anything new is drawn."""
    ledger = FaultyLedger(refreshed)
    answerer = svt_answerer(refreshed, [HIT, RELEASED, HIT, RELEASED], [5, 6], ledger=ledger)
    ledger.faults = ["refused"]
    with pytest.raises(LedgerUnavailableError):
        ask_all(answerer, 1, 2, 3)
    assert list(noises(refreshed)) == ["0"]
    assert ask_all(answerer, 4, 1) == [True, False]
    assert (noises(refreshed)["2"], answerer.release.private_threshold_noise) == (6, 6)
    assert answerer.release.state.answered == 4
    verify(ledger)


def test_a_lost_commit_is_read_again(refreshed: SmallRelease) -> None:
    """Where the commit did happen its noise is the release's, and no other is drawn."""
    ledger = FaultyLedger(refreshed)
    answerer = svt_answerer(refreshed, [HIT, RELEASED], [5], ledger=ledger)
    ledger.faults = ["lost"]
    with pytest.raises(LedgerUnavailableError):
        ask_all(answerer, 1)
    assert ask_all(answerer, 1, 2) == [False, True]
    assert answerer.release.private_threshold_noise == noises(refreshed)["1"] == 5
    assert kinds(refreshed).count("ThresholdRefreshed") == 1
    verify(ledger)


def test_a_hit_is_not_recorded_in_another_epoch(refreshed: SmallRelease) -> None:
    """Where another process ended its epoch, the release halts for good, for every process."""
    ledger = FaultyLedger(refreshed)
    answerer = svt_answerer(refreshed, [HIT], [5], ledger=ledger)
    ledger.faults = ["refused"]
    with pytest.raises(LedgerUnavailableError):
        ask_all(answerer, 1)
    ask_all(svt_answerer(refreshed, [HIT], [9]), 2)
    with pytest.raises(UncountedDrawsError):
        ask_all(answerer, 3)
    assert ledger.read_state().halted == ReleaseHalted(reason=NOT_COUNTED)
    verify(ledger)


def test_a_stable_draw_of_an_epoch_that_has_ended_is_left(refreshed: SmallRelease) -> None:
    """It came before the other process's hit and cost nothing: it is drawn anew if asked again."""
    ledger = FaultyLedger(refreshed)
    answerer = svt_answerer(refreshed, [RELEASED, HIT], [7], ledger=ledger)
    ledger.faults = ["refused"]
    with pytest.raises(LedgerUnavailableError):
        ask_all(answerer, 1)
    ask_all(svt_answerer(refreshed, [HIT], [5]), 2)
    assert (ask_all(answerer, 1), noises(refreshed)["2"]) == ([False], 7)


def test_a_hit_that_another_process_made_stable_ends_no_epoch(refreshed: SmallRelease) -> None:
    """What was drawn after it belongs to an epoch that never was: the release stops."""
    ledger = FaultyLedger(refreshed)
    answerer = svt_answerer(refreshed, [HIT, RELEASED], [5], ledger=ledger)
    ledger.faults = ["refused"]
    with pytest.raises(LedgerUnavailableError):
        ask_all(answerer, 1, 2)
    assert ask_all(svt_answerer(refreshed, [RELEASED]), 1) == [True]
    with pytest.raises(UncountedDrawsError):
        ask_all(answerer)


LOST = ([RELEASED, RELEASED], [RELEASED, HIT], [HIT, RELEASED], [HIT, HIT])


@pytest.mark.parametrize("lost", LOST)
def test_draws_that_were_cut_off_are_forgotten_once_their_epoch_has_ended(
    refreshed: SmallRelease, lost: list[int]
) -> None:
    """Whatever they were, nothing of them is kept, and their queries are drawn in the new epoch."""
    ledger = FaultyLedger(refreshed)
    hits = lost.count(HIT)
    answerer = svt_answerer(refreshed, [*lost, HIT, RELEASED], [5] * hits + [7], ledger=ledger)
    ledger.faults = ["cut off"]
    with pytest.raises(LedgerUnavailableError):
        ask_all(answerer, 1, 2)
    ask_all(svt_answerer(refreshed, [HIT], [9]), 3)
    before = ledger.read_state()
    assert ask_all(answerer) == []
    assert ledger.read_state() == before
    assert ask_all(answerer, 1, 2) == [False, True]
    assert {name: noises(refreshed)[name] for name in ("1", "2")} == {"1": 9, "2": 7}
    verify(ledger)


@pytest.mark.parametrize("lost", LOST)
def test_draws_that_were_cut_off_are_forgotten_once_one_of_them_is_answered(
    refreshed: SmallRelease, lost: list[int]
) -> None:
    """The rest could be of an epoch that never was; what is kept does not depend on whether."""
    ledger = FaultyLedger(refreshed)
    hits = lost.count(HIT)
    answerer = svt_answerer(refreshed, [*lost, RELEASED], [5] * hits, ledger=ledger)
    ledger.faults = ["cut off"]
    with pytest.raises(LedgerUnavailableError):
        ask_all(answerer, 1, 2)
    ask_all(svt_answerer(refreshed, [RELEASED]), 1)
    assert ask_all(answerer) == []
    assert ledger.read_state().answered == 1
    assert ask_all(answerer, 1, 2) == [True, True]
    verify(ledger)


@pytest.mark.parametrize("lost", LOST)
def test_draws_that_were_cut_off_are_recorded_where_nobody_came_between(
    refreshed: SmallRelease, lost: list[int]
) -> None:
    """As nothing overtook them they are what they were, and none is drawn again."""
    ledger = FaultyLedger(refreshed)
    answerer = svt_answerer(refreshed, lost, [5] * lost.count(HIT), ledger=ledger)
    ledger.faults = ["cut off", "cut off"]
    for _ in range(2):
        with pytest.raises(LedgerUnavailableError):
            ask_all(answerer, 1, 2)
    assert ask_all(answerer, 1, 2) == [noise == RELEASED for noise in lost]
    verify(ledger)


def test_draws_that_were_refused_once_are_never_forgotten(refreshed: SmallRelease) -> None:
    """A refusal may have told of them, whatever came after: the release stops."""
    ledger = FaultyLedger(refreshed)
    answerer = svt_answerer(refreshed, [HIT], [5], ledger=ledger)
    ledger.faults = ["refused", "cut off"]
    for _ in range(2):
        with pytest.raises(LedgerUnavailableError):
            ask_all(answerer, 1)
    ask_all(svt_answerer(refreshed, [HIT], [9]), 2)
    with pytest.raises(UncountedDrawsError):
        ask_all(answerer)


def test_draws_are_recorded_beside_stable_answers_of_another_process(
    refreshed: SmallRelease,
) -> None:
    """As long as the epoch is the same, what was drawn in it is recorded after all."""
    ledger = FaultyLedger(refreshed)
    answerer = svt_answerer(refreshed, [RELEASED, HIT], [5], ledger=ledger)
    ledger.faults = ["refused"]
    with pytest.raises(LedgerUnavailableError):
        ask_all(answerer, 1, 2)
    ask_all(svt_answerer(refreshed, [RELEASED]), 3)
    assert ask_all(answerer, 2, 1, 3) == [False, True, True]
    assert noises(refreshed)["1"] == 5
    verify(ledger)


def test_draws_that_another_process_has_replaced_are_left(refreshed: SmallRelease) -> None:
    """Where all are answered by now there is nothing to record, whatever epoch it is."""
    ledger = FaultyLedger(refreshed)
    answerer = svt_answerer(refreshed, [RELEASED, RELEASED], ledger=ledger)
    ledger.faults = ["refused"]
    with pytest.raises(LedgerUnavailableError):
        ask_all(answerer, 1)
    ask_all(svt_answerer(refreshed, [HIT], [5]), 1)
    assert ask_all(answerer, 1, 2) == [False, True]
    assert answerer.release.private_threshold_noise == 5


def test_with_one_threshold_hits_of_another_process_change_no_epoch(
    one_threshold: SmallRelease,
) -> None:
    """The noise is the same for the whole run, so a draw is recorded after them."""
    ledger = FaultyLedger(one_threshold)
    answerer = svt_answerer(one_threshold, [RELEASED], ledger=ledger)
    ledger.faults = ["refused"]
    with pytest.raises(LedgerUnavailableError):
        ask_all(answerer, 1)
    ask_all(svt_answerer(one_threshold, [HIT]), 2)
    assert ask_all(answerer, 1, 2) == [True, False]
    verify(ledger)


def test_processes_take_over_each_others_noise(refreshed: SmallRelease) -> None:
    """A process that finds hits of another goes on under the noise that they left."""
    first = svt_answerer(refreshed, [RELEASED, HIT], [9])
    second = svt_answerer(refreshed, [HIT, RELEASED], [5])
    ask_all(first, 1)
    ask_all(second, 2)
    assert ask_all(first, 3) == [False]
    assert second.release.private_threshold_noise == 5
    assert ask_all(second, 4) == [True]
    assert second.release.private_threshold_noise == 9
    assert [noises(refreshed)[hits] for hits in ("1", "2")] == [5, 9]


def test_the_last_hit_draws_like_any_other(small_release: SmallRelease) -> None:
    """The run halts with it; its noise is kept, and a start in the halt checks it."""
    few = changed(small_release, {**REFRESHED, "answers__queries": "200"})
    answerer = svt_answerer(few, [HIT] * 120, range(120))
    ask_all(answerer, *range(-49, 50), *range(-149, -128))
    assert answerer.release.state.unstable == 120
    assert answerer.phase is Phase.HALTED
    assert noises(few)["120"] == 119
    assert few.open(noise=NoNoise()).phase is Phase.HALTED
