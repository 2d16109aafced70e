"""Theorem 5.14 on a learner whose expected score and stability are known.

The learner's score is the share of ones among n' = 8,000 independent draws of a
query's probability p: its expectation is p and, as replacing a draw moves it by at most
1/n', it is alpha-on-average stable with alpha = sqrt(2 p (1-p)) / n'.  Two thirds of the
scores are then within r = 4 alpha sqrt(2 n') = 8 sqrt(p (1-p) / n') of p, and bins
of width 4 r + nu are wide enough.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import ceil, sqrt

import numpy as np
import pytest

from app.noise.discrete_laplace import DiscreteLaplace
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.soft_labels.mechanism import Outcome, bin_scores, initial_state, step
from app.privacy.sparse_vector import calibration as svt
from app.privacy.sparse_vector.mechanism import Parameters

CHUNK_ROW_COUNT = 8_000
CUTOFF = 6
BIN_COUNT = 5
# Of weak quality: nearer to 0 or 1 than nu.
QUALITY = 0.021
CONFIDENT = [0.005, 0.01, 0.02, 0.98, 0.99, 0.995] * 30
# Four of them lie on an edge of the plain histogram, where its two bins share the scores.
DOUBTFUL = [0.2, 0.4, 0.6, 0.8, 0.5]
RADIUS = 8 * sqrt(0.25 / CHUNK_ROW_COUNT)
HALF_A_BIN = 1 / (2 * BIN_COUNT)


@cache
def calibrated(variant: svt.Variant) -> svt.SvtCalibration:
    """Return noise for six units at epsilon 2."""
    return svt.calibrate_variant(
        variant, epsilon=Fraction(2), delta=Fraction(1, 10**6), cutoff=CUTOFF
    )


def ensemble_size(variant: svt.Variant) -> int:
    """Return so many learners that a test at ceil(k/6) - 1 fails once in 1e9 times."""
    return 6 * (calibrated(variant).distance_at(1e-9) + 2)


def answers(variant: svt.Variant, probabilities: list[float]) -> list[Outcome]:
    """Answer one query for each expected score."""
    served = calibrated(variant)
    given = Parameters(
        threshold=served.threshold,
        threshold_noise=DiscreteLaplace(served.threshold_scale),
        query_noise=DiscreteLaplace(served.query_scale),
        cutoff=CUTOFF,
        refreshed=variant is svt.Variant.REFRESHED,
    )
    generator, noise = np.random.default_rng(14), ScriptedNoise(seeded_words(14))
    size = (len(probabilities), ensemble_size(variant))
    chances = np.array(probabilities)[:, None]
    scores = generator.binomial(CHUNK_ROW_COUNT, chances, size) / CHUNK_ROW_COUNT
    state, outcomes = initial_state(given, noise), []
    for value in bin_scores(scores, [BIN_COUNT] * len(probabilities)):
        state, outcome = step(given, state, value, noise)
        outcomes.append(outcome)
    return outcomes


def error(outcome: Outcome, probability: float) -> float:
    """Return how far the mid-point released is from the expected score."""
    assert outcome.released_bin is not None
    return abs(float(outcome.released_bin.midpoint) - probability)


def test_the_bins_are_as_wide_as_the_theorem_asks() -> None:
    """A bin is 16 alpha sqrt(2 n') + nu wide for the least stable p, with little to spare."""
    alpha = sqrt(0.5) / CHUNK_ROW_COUNT
    assert abs(RADIUS - 4 * alpha * sqrt(2 * CHUNK_ROW_COUNT)) < 1e-12
    assert 0.99 / BIN_COUNT < 4 * RADIUS + QUALITY <= 1 / BIN_COUNT


@pytest.mark.parametrize("variant", list(svt.Variant))
def test_every_query_gets_a_score_near_the_expected_one(variant: svt.Variant) -> None:
    """With fewer than T doubtful queries all are answered, within half a bin and r."""
    probabilities = CONFIDENT + DOUBTFUL
    outcomes = answers(variant, probabilities)
    assert all(outcome.released_bin is not None for outcome in outcomes)
    for outcome, probability in zip(outcomes, probabilities, strict=True):
        assert error(outcome, probability) <= HALF_A_BIN + RADIUS
    for outcome, probability in zip(outcomes, CONFIDENT, strict=False):
        assert error(outcome, probability) <= HALF_A_BIN
        assert outcome.hit_count == 0


@pytest.mark.parametrize("variant", list(svt.Variant))
def test_scores_on_an_edge_are_answered_by_the_shifted_histogram(variant: svt.Variant) -> None:
    """Where a plain edge divides the scores, the shifted bin around it is released for a unit."""
    outcomes = answers(variant, [0.2, 0.4, 0.6, 0.8])
    for edge, outcome in enumerate(outcomes, start=1):
        assert outcome.hit_count == 1
        assert outcome.released_bin is not None
        assert outcome.released_bin.shifted
        assert outcome.released_bin.midpoint == Fraction(edge, BIN_COUNT)


def test_as_many_doubtful_queries_as_units_are_too_many() -> None:
    """The T-th unit ends the run within its query: the theorem needs fewer than T."""
    outcomes = answers(svt.Variant.ONE_THRESHOLD, [0.4] * CUTOFF)
    assert [outcome.released_bin is None for outcome in outcomes] == [False] * 5 + [True]


def test_half_a_bin_alone_is_not_the_accuracy() -> None:
    """Scores just above an edge and a value just below it are further apart than printed."""
    size = ensemble_size(svt.Variant.ONE_THRESHOLD)
    value, scores = 0.4 - 1e-9, np.full((1, size), 0.4)
    private_value = bin_scores(scores, [BIN_COUNT])[0]
    assert private_value.plain == (2, ceil(size / 2) - 1)
    assert HALF_A_BIN < abs(0.5 - value) < HALF_A_BIN + RADIUS
