"""Soft labels: bins worked by hand, every transition, and the exact law of small runs."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import InvariantError
from app.noise.discrete_gaussian import DiscreteGaussian
from app.noise.scripted import ScriptedNoise
from app.privacy.noisy_vote import mechanism as noisy_vote
from app.privacy.soft_labels.mechanism import (
    Outcome,
    PrivateBins,
    ScoreBin,
    State,
    bin_scores,
    histogram,
    initial_state,
    step,
)
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.stability import mechanism as stability
from tests.builders.mechanisms.prescribed import NOTHING, PrescribedLaplace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from app.noise.source import NoiseSource
    from app.privacy.soft_labels.mechanism import Parameters

WORD_BOUND = 1 << 64
HIT, STABLE = 0, WORD_BOUND - 1
PROFILE = stability.Parameters((3 << 62, 1 << 63, 1 << 62), cutoff=3)
QUERY = PrivateBins(bin_count=5, plain=(3, 0), shifted=(4, 2))
PLAIN, SHIFTED = ScoreBin(5, 3, shifted=False), ScoreBin(5, 4, shifted=True)


@pytest.mark.parametrize(
    ("bin_count", "scores", "plain", "shifted"),
    [
        (2, (0.0, 0.24, 0.25, 0.5, 0.74, 0.75, 1.0), (3, 4), (2, 3, 2)),
        (4, (0.125, 0.25, 0.375, 0.5), (1, 2, 1, 0), (0, 2, 2, 0, 0)),
        (5, (0.1, 0.3, 0.5, 0.7, 0.9), (1, 1, 1, 1, 1), (0, 1, 1, 1, 1, 1)),
        (5, (0.2, 0.4, 0.6, 0.8), (0, 1, 1, 1, 1), (0, 1, 1, 1, 1, 0)),
        (3, (float("nan"), -0.1, 1.1, float("inf")), (4, 0, 0), (4, 0, 0, 0)),
    ],
)
def test_a_score_is_in_the_bin_that_begins_at_or_below_it(
    bin_count: int, scores: Sequence[float], plain: Sequence[int], shifted: Sequence[int]
) -> None:
    """Bins are closed below and open above, 1 is in the last, and no score counts as 0."""
    given = np.array(scores)
    assert tuple(histogram(given, bin_count, shifted=False)) == plain
    assert tuple(histogram(given, bin_count, shifted=True)) == shifted


@pytest.mark.parametrize(
    ("released", "label"),
    [
        (ScoreBin(5, 1, shifted=False), 0),  # [.2, .4)
        (ScoreBin(5, 2, shifted=False), 1),  # [.4, .6), whose mid-point is 1/2
        (ScoreBin(4, 2, shifted=True), 1),  # [.375, .625)
        (ScoreBin(2, 0, shifted=True), 0),  # [0, .25)
        (ScoreBin(2, 2, shifted=True), 1),  # [.75, 1)
    ],
)
def test_a_bin_stands_for_the_second_class_from_one_half_on(released: ScoreBin, label: int) -> None:
    """Its label is that of its mid-point."""
    assert released.label == label


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("bin_count", [2, 3, 7, 10, 1000])
def test_a_histogram_counts_a_score_where_its_bin_says(bin_count: int, *, shifted: bool) -> None:
    """The double nearest each lower edge, and those beside it, count as the bin's ends say."""
    for index in range(bin_count + shifted):
        edges = ScoreBin(bin_count, index, shifted=shifted)
        edge = float(edges.lower)
        for score, expected in [(edge, index), (float(edges.midpoint), index)] + [
            (float(np.nextafter(edge, -1.0)), index - 1)
        ] * (index > 0):
            assert histogram(np.array([score]), bin_count, shifted=shifted)[expected] == 1


@pytest.mark.parametrize("bin_count", [2, 3, 10])
@pytest.mark.parametrize("shifted", [False, True])
def test_bins_lie_side_by_side(bin_count: int, *, shifted: bool) -> None:
    """The bins of a histogram cover [0, 1] without a gap, the half bins at the ends too."""
    bins = [ScoreBin(bin_count, index, shifted=shifted) for index in range(bin_count + shifted)]
    assert [bins[0].lower, bins[-1].upper] == [Fraction(0), Fraction(1)]
    assert all(a.upper == b.lower for a, b in pairwise(bins))
    widths = [each.upper - each.lower for each in bins]
    ends = Fraction(1, 2 * bin_count if shifted else bin_count)
    assert widths[0] == widths[-1] == ends
    assert set(widths[1:-1]) <= {Fraction(1, bin_count)}


@pytest.mark.parametrize(
    ("index", "shifted", "midpoint"),
    [
        (0, False, Fraction(1, 8)),
        (3, False, Fraction(7, 8)),
        (0, True, Fraction(1, 16)),
        (1, True, Fraction(1, 4)),
        (3, True, Fraction(3, 4)),
        (4, True, Fraction(15, 16)),
    ],
)
def test_a_bin_stands_for_its_mid_point(index: int, midpoint: Fraction, *, shifted: bool) -> None:
    """Four bins stand for eighths, shifted ones for quarters, half bins for sixteenths."""
    assert ScoreBin(4, index, shifted=shifted).midpoint == midpoint


def test_a_batch_is_binned_query_by_query_at_its_own_precision() -> None:
    """Every query has its own number of bins; the largest bin and its distance come out."""
    scores = np.array([[0.5] * 7 + [0.9] * 2, [0.1] * 9])
    assert bin_scores(scores, [4, 2]) == [
        PrivateBins(4, plain=(2, 2), shifted=(2, 2)),
        PrivateBins(2, plain=(0, 4), shifted=(0, 4)),
    ]


@pytest.mark.parametrize("bin_count", [-1, 0, 1, 1001])
def test_a_precision_out_of_range_is_refused(bin_count: int) -> None:
    """Fewer than two bins, or more than a thousand, raise."""
    with pytest.raises(InvariantError, match="precision"):
        histogram(np.array([0.5]), bin_count, shifted=False)


def test_scores_are_left_as_they_are() -> None:
    """An array that cannot be written will do."""
    scores = np.array([[0.5, np.nan]])
    scores.flags.writeable = False
    assert bin_scores(scores, [2])[0].plain == (0, 0)


@pytest.mark.parametrize(
    ("hit_count", "words", "following", "outcome"),
    [
        (0, (STABLE,), 0, Outcome(PLAIN, 0)),
        (0, (HIT, STABLE), 1, Outcome(SHIFTED, 1)),
        (0, (HIT, HIT), 2, Outcome(None, 2)),
        (1, (STABLE,), 1, Outcome(PLAIN, 0)),
        (1, (HIT, STABLE), 2, Outcome(SHIFTED, 1)),
        (1, (HIT, HIT), 3, Outcome(None, 2)),
        (2, (STABLE,), 2, Outcome(PLAIN, 0)),
        (2, (HIT,), 3, Outcome(None, 1)),  # the last unit ends the run within the query
    ],
)
def test_every_legal_transition(
    hit_count: int, words: Sequence[int], following: int, outcome: Outcome
) -> None:
    """From every count and for every fall of the tests: the next count and what leaves."""
    noise = ScriptedNoise(words)
    assert step(PROFILE, State(hit_count), QUERY, noise) == (State(following), outcome)
    assert noise.drawn_count == len(words)


@pytest.mark.parametrize("hit_count", [3, 4])
def test_no_query_is_answered_after_the_last_unit(hit_count: int) -> None:
    """At T units and beyond a step raises and draws nothing."""
    noise = ScriptedNoise([STABLE])
    with pytest.raises(InvariantError, match="cutoff"):
        step(PROFILE, State(hit_count), QUERY, noise)
    assert noise.drawn_count == 0


def vector_parameters(
    *,
    threshold_noise: Iterable[int] = (),
    query_noise: Iterable[int] = (),
    refreshed: bool = False,
) -> sparse_vector.Parameters:
    """Return a sparse vector of two units whose noise is prescribed."""
    return sparse_vector.Parameters(
        threshold=1,
        threshold_noise=PrescribedLaplace(threshold_noise),
        query_noise=PrescribedLaplace(query_noise),
        cutoff=2,
        refreshed=refreshed,
    )


def test_a_profile_starts_without_noise() -> None:
    """With a hit profile nothing is drawn at the start."""
    assert initial_state(PROFILE, NOTHING) == State(0, None)


def test_the_thresholds_noise_is_drawn_at_the_start_and_not_shown() -> None:
    """With a sparse vector the state holds one draw, which its representation leaves out."""
    state = initial_state(vector_parameters(threshold_noise=[-77]), NOTHING)
    assert state == State(0, -77)
    assert "77" not in repr(state)


@pytest.mark.parametrize(
    ("refreshed", "query_noise", "following", "outcome"),
    [
        (False, [9], State(0, 4), Outcome(PLAIN, 0)),
        (False, [0, 9], State(1, 4), Outcome(SHIFTED, 1)),
        (False, [0, 0], State(2, 4), Outcome(None, 2)),
        (True, [9], State(0, 4), Outcome(PLAIN, 0)),
        (True, [0, 9], State(1, 5), Outcome(SHIFTED, 1)),
        (True, [0, 0], State(2, 6), Outcome(None, 2)),
    ],
)
def test_a_refreshed_threshold_is_new_in_the_second_test(
    query_noise: list[int], following: State, outcome: Outcome, *, refreshed: bool
) -> None:
    """A hit on the plain histogram draws the noise that the shifted one is tested with."""
    given = vector_parameters(threshold_noise=[5, 6], query_noise=query_noise, refreshed=refreshed)
    assert step(given, State(0, 4), QUERY, NOTHING) == (following, outcome)


def test_a_threshold_without_its_noise_is_refused() -> None:
    """A state that lost the threshold's noise raises instead of going on without."""
    with pytest.raises(InvariantError, match="noise is kept"):
        step(vector_parameters(query_noise=[9]), State(0), QUERY, NOTHING)


def run(
    given: Parameters, queries: Sequence[PrivateBins], noise: NoiseSource
) -> tuple[Outcome, ...]:
    """Answer queries until they or the units end."""
    state, outcomes = initial_state(given, noise), []
    for query in queries:
        if state.hit_count == given.cutoff:
            break
        state, outcome = step(given, state, query, noise)
        outcomes.append(outcome)
    return tuple(outcomes)


QUERIES = (QUERY, PrivateBins(2, plain=(1, 2), shifted=(1, 0)), QUERY)
# Each threshold is a multiple of 2^62, so four words stand for all of them.
WORDS = (0, 1 << 62, 1 << 63, 3 << 62)


@pytest.mark.parametrize("cutoff", [1, 2, 3, 9])
def test_outcomes_have_the_law_that_the_tests_say(cutoff: int) -> None:
    """Over all words, a run's probability is the product of its tests', one counter for all."""
    given = stability.Parameters(PROFILE.thresholds, cutoff)
    law: dict[tuple[Outcome, ...], Fraction] = {}
    for words in product(WORDS, repeat=2 * len(QUERIES)):
        outcomes = run(given, QUERIES, ScriptedNoise(words))
        law[outcomes] = law.get(outcomes, Fraction(0)) + Fraction(1, 4 ** len(words))
    assert sum(law.values()) == 1
    for outcomes, probability in law.items():
        assert probability == expected_probability(outcomes, cutoff)


def expected_probability(outcomes: Sequence[Outcome], cutoff: int) -> Fraction:
    """Multiply the probabilities of the tests behind each outcome, counting units by hand."""
    hits, factors = 0, []
    for query, outcome in zip(QUERIES, outcomes, strict=False):
        plain, shifted = (Fraction(3 - distance, 4) for _, distance in (query.plain, query.shifted))
        released = outcome.released_bin
        if released is not None and not released.shifted:
            factors.append(1 - plain)
        elif released is not None:
            factors.append(plain * (1 - shifted))
        else:
            factors.append(plain if hits + 1 == cutoff else plain * shifted)
        hits += outcome.hit_count
    assert hits <= cutoff
    assert len(outcomes) == len(QUERIES) or hits == cutoff
    return prod(factors, start=Fraction(1))


SUPPORT = (-2, 0, 2)


@pytest.mark.parametrize("refreshed", [False, True])
def test_a_run_is_one_run_of_the_inner_test(*, refreshed: bool) -> None:
    """On every noise the hits are those of the sparse vector on the distances in turn."""
    for thresholds in product(SUPPORT, repeat=3):
        for noises in product(SUPPORT, repeat=4):
            given = vector_parameters(
                threshold_noise=thresholds, query_noise=noises, refreshed=refreshed
            )
            outcomes = run(given, QUERIES[:2], NOTHING)
            alone = vector_parameters(
                threshold_noise=thresholds, query_noise=noises, refreshed=refreshed
            )
            assert outcomes == through_the_inner_test(alone, QUERIES[:2])


def through_the_inner_test(
    given: sparse_vector.Parameters, queries: Sequence[PrivateBins]
) -> tuple[Outcome, ...]:
    """Ask the sparse vector about one histogram after the other, as an adversary would."""
    state, outcomes = sparse_vector.initial_state(given, NOTHING), []
    for query in queries:
        hits, released = 0, None
        for shifted, (index, distance) in enumerate((query.plain, query.shifted)):
            if state.hit_count == given.cutoff or hits < shifted:
                break
            state, outcome = sparse_vector.step(given, state, distance, NOTHING)
            hits += outcome.hit
            if not outcome.hit:
                released = ScoreBin(query.bin_count, index, shifted=bool(shifted))
        if hits or released:
            outcomes.append(Outcome(released, hits))
    return tuple(outcomes)


def test_a_mechanism_that_tests_nothing_has_no_scores() -> None:
    """The noisy vote answers every query, so that no bin is tested by it."""
    law = DiscreteGaussian(Fraction(1))
    votes = noisy_vote.Parameters(vote_noise=law, class_count=2, ensemble_size=7, answer_limit=5)
    with pytest.raises(InvariantError, match="tested for stability"):
        step(votes, State(), QUERY, NOTHING)
