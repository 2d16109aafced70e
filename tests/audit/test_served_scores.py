"""The counters of served scores: T units for both histograms, and each score in one bin.

Exact, nothing is sampled: every script of eight hits and passes is played to a batch,
as the writer makes it, for three cutoffs.  The ledger's fold is the second witness: it
accepts what an unharmed run records and refuses what a planted fault does.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec import structs

from app.answering.batch_decisions import Batch
from app.answering.replays import ReplayIndex
from app.errors import InvariantError, LedgerCorruptError
from app.ledger.entries.entry_kinds import LedgerEvent, ScoresReleased
from app.noise.scripted import ScriptedNoise
from app.privacy.soft_labels import mechanism as soft_labels
from app.privacy.soft_labels.mechanism import Outcome, PrivateBins, ScoreBin
from app.privacy.stability import mechanism as stability
from app.privacy.voting.query_decision import Parameters, Phase, Sequel, State
from app.privacy.voting.tallies import PrivateValues, private_tallies
from tests.builders.ledger.releases import opened, shares
from tests.builders.release.small_release import HIT, STABLE, VotesByMargin, ask, identified
from tests.unit.ledger.entries.test_fold import FITTED, fold_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from app.answering.queries import Fresh
    from app.noise.source import NoiseSource

    Step = Callable[..., tuple[soft_labels.State, Outcome]]

pytestmark = pytest.mark.audit

CUTOFFS = (1, 2, 3)
TEST_COUNT = 8
PROFILE = (3 << 62, 1 << 62)
REAL_STEP = soft_labels.step


def play(cutoff: int, hits: Sequence[bool]) -> tuple[int, Sequence[Fresh]]:
    """Ask until the release halts or the script ends; return its hits and the answers."""
    noise = ScriptedNoise([HIT if hit else STABLE for hit in hits] + [STABLE] * 2)
    names = [bytes([number]) for number in range(TEST_COUNT)]
    values = [PrivateBins(10, (9, 0), (10, 0))] * TEST_COUNT
    batch = Batch(
        parameters=Parameters(
            stability.Parameters(PROFILE, cutoff),
            class_count=2,
            answer_limit=100,
            after=Sequel.HALT,
            on_cutoff=Sequel.HALT,
            unstable_gets_coin=False,
            with_scores=True,
        ),
        state=State(),
        replays=ReplayIndex(),
        private_values=PrivateValues(names, values),
        noise=noise,
    )
    asked = structs.replace(ask(20), precision=10)
    for name in names:
        if noise.drawn_count >= len(hits) or batch.phase is not Phase.ENSEMBLE:
            break
        batch.decide(identified([asked], [name]))
    return sum(hits[: noise.drawn_count]), batch.fresh


def scripts() -> list[tuple[bool, ...]]:
    """Return all scripts of hits and passes."""
    return list(product((False, True), repeat=TEST_COUNT))


def hits_stay_within_the_cutoff() -> bool:
    """Ask whether every script has its hits up to T, and never one more."""
    return all(
        play(cutoff, hits)[0] == min(sum(hits), cutoff) for cutoff in CUTOFFS for hits in scripts()
    )


def ledger_accepts_every_run() -> bool:
    """Ask whether the fold takes what every script records, and counts its hits."""
    try:
        return all(
            fold_all(entries(cutoff, fresh)).unstable == hit_count
            for cutoff in CUTOFFS
            for hit_count, fresh in (play(cutoff, hits) for hits in scripts())
        )
    except LedgerCorruptError:
        return False


def entries(cutoff: int, fresh: Sequence[Fresh]) -> list[LedgerEvent]:
    """Return a release with one entry of these answers."""
    answers = [each.recorded for each in fresh]
    released = ScoresReleased(
        first_query_id=1,
        digests=[f"{answer.query_id:032x}" for answer in answers],
        labels=[answer.label for answer in answers],
        stable=[answer.stable for answer in answers],
        precisions=[answer.precision or 0 for answer in answers],
        bins=[answer.bin_index for answer in answers],
        shifted=[bool(answer.bin_shifted) for answer in answers],
        units=[each.hit_count for each in fresh],
    )
    first = opened(cutoff=cutoff, parameters={"answers.output": '"score"'})
    return [first, *shares(), FITTED, released]


# -- planted faults ----------------------------------------------------------------


def shifted_for_free(
    parameters: stability.Parameters,
    state: soft_labels.State,
    value: PrivateBins,
    noise: NoiseSource,
) -> tuple[soft_labels.State, Outcome]:
    """Test the second histogram without counting its hits."""
    following, outcome = REAL_STEP(parameters, state, value, noise)
    counted = min(following.hit_count, state.hit_count + 1)
    return soft_labels.State(counted), outcome


def two_counters() -> Step:
    """Return a step that gives each histogram T units of its own."""
    counts = {"plain": 0, "shifted": 0}

    def step(
        parameters: stability.Parameters,
        state: soft_labels.State,
        value: PrivateBins,
        noise: NoiseSource,
    ) -> tuple[soft_labels.State, Outcome]:
        if state.hit_count == 0:
            counts.update(plain=0, shifted=0)
        longer = stability.Parameters(parameters.thresholds, 4 * parameters.cutoff)
        _, outcome = REAL_STEP(longer, soft_labels.State(), value, noise)
        counts["plain"] += outcome.hit_count > 0
        counts["shifted"] += outcome.released_bin is None
        return soft_labels.State(max(counts.values())), outcome

    return step


def one_more(
    parameters: stability.Parameters,
    state: soft_labels.State,
    value: PrivateBins,
    noise: NoiseSource,
) -> tuple[soft_labels.State, Outcome]:
    """Test the second histogram after the last unit, too."""
    longer = stability.Parameters(parameters.thresholds, parameters.cutoff + 1)
    return REAL_STEP(longer, state, value, noise)


FAULTS: dict[str, Callable[[], Step]] = {
    "the second histogram tested for free": lambda: shifted_for_free,
    "two counters": two_counters,
    "a test after the last unit": lambda: one_more,
}


def test_a_run_has_t_units_and_never_more() -> None:
    """On all 256 scripts and three cutoffs a served run has as many hits as it may."""
    assert hits_stay_within_the_cutoff()


def test_the_ledger_agrees_with_every_run() -> None:
    """The fold accepts each record, and its count of units is the count of hits."""
    assert ledger_accepts_every_run()


@pytest.mark.parametrize("fault", FAULTS)
def test_more_hits_than_units_are_caught(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """Each fault lets a run have a hit that nothing paid for, which both witnesses see."""
    monkeypatch.setattr(soft_labels, "step", FAULTS[fault]())
    assert not hits_stay_within_the_cutoff()
    assert not ledger_accepts_every_run()


# -- one bin a score ---------------------------------------------------------------


def closed_histogram(
    private_scores: NDArray[np.float64], bin_count: int, *, shifted: bool
) -> NDArray[np.int64]:
    """Count in bins that are closed on both sides, as printed."""
    bins = [ScoreBin(bin_count, index, shifted=shifted) for index in range(bin_count + shifted)]
    return np.array(
        [
            ((private_scores >= float(each.lower)) & (private_scores <= float(each.upper))).sum()
            for each in bins
        ]
    )


class ScoresOnAnEdge(VotesByMargin):
    """A hundred learners that all score the query's own value."""

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the value for each learner, shape (B, 100)."""
        return np.repeat(values[:, :1], 100, axis=1)


def unanimous_scores_are_one_vote() -> bool:
    """Ask whether learners that agree to the last bit are as far as can be, on every edge."""
    for precision in (2, 3, 10, 1000):
        edges = np.arange(2 * precision + 1) / (2 * precision)
        values = np.stack([edges, np.zeros(len(edges))], axis=1)
        found: Any = private_tallies(ScoresOnAnEdge(), values, [precision] * len(edges))
        if any({bins.plain[1], bins.shifted[1]} != {49} for bins in found):
            return False
    return True


def test_a_score_on_an_edge_is_in_one_bin() -> None:
    """A hundred equal scores are at distance 49 in both histograms, wherever they lie."""
    assert unanimous_scores_are_one_vote()


def test_closed_bins_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A score that lies in two bins takes the distance of a unanimous query to 0."""
    monkeypatch.setattr(soft_labels, "histogram", closed_histogram)
    assert not unanimous_scores_are_one_vote()


def test_scores_are_not_taken_for_votes() -> None:
    """A release of labels refuses bins, and one of scores refuses votes."""
    with pytest.raises(InvariantError, match="where scores are answered"):
        Batch(
            parameters=Parameters(
                stability.Parameters(PROFILE, 1),
                class_count=2,
                answer_limit=1,
                after=Sequel.HALT,
                on_cutoff=Sequel.HALT,
                unstable_gets_coin=False,
            ),
            state=State(),
            replays=ReplayIndex(),
            private_values=PrivateValues([b"a"], [PrivateBins(10, (9, 0), (10, 0))]),
            noise=ScriptedNoise([]),
        ).decide(identified([ask(1)], [b"a"]))
