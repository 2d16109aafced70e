"""Expected answers are those of runs, of every mechanism, on votes that differ."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from app.planning.mechanisms.planning_table import forecast_answers
from app.planning.trial.agreement import Agreement
from app.planning.trial.forecast import (
    Forecast,
    expected_answers,
    parts_of_best,
    unstable_rates,
)
from app.planning.trial.small_leaf_risk import find_cliff, labels_at_worst
from app.privacy.budget.ensemble_size import approximate_profile
from app.privacy.noisy_vote import calibration as noisy_vote
from app.privacy.sparse_vector import calibration as svt

EPSILON, DELTA = Fraction(9, 10), Fraction(1, 10**6)
RNG = np.random.default_rng(7)


def agreed(leads: list[float], learner_count: int = 1000) -> Agreement:
    """One hypothesis with these leads."""
    return Agreement(np.array([leads]), learner_count)


@pytest.mark.parametrize(("cutoff", "limit"), [(1, 40), (5, 40), (5, 6), (9, 4)])
@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_expected_answers_are_the_mean_of_what_may_happen(
    rate: float, cutoff: int, limit: int
) -> None:
    """The closed form is the sum over answers of the chance that each is still given."""
    given, hits = 0.0, {0: 1.0}
    for _ in range(limit):
        alive = {hit: chance for hit, chance in hits.items() if hit < cutoff}
        given += sum(alive.values())
        hits = {}
        for hit, chance in alive.items():
            hits[hit] = hits.get(hit, 0.0) + chance * (1 - rate)
            hits[hit + 1] = hits.get(hit + 1, 0.0) + chance * rate
    found = expected_answers(np.array([rate]), cutoff=cutoff, limit=limit)
    assert found[0] == pytest.approx(given)


def test_fewer_fitted_learners_give_the_same_rates() -> None:
    """Rates from 96 learners are those of all 800, where taken as they are they are not."""
    size, fitted, queries = 800, 96, 20_000
    table = approximate_profile(epsilon=EPSILON, delta=DELTA, cutoff=5)
    hits = np.array([table.hit_probability(distance) for distance in range(size // 2)])

    def rate(learners: int, votes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
        leads = np.abs(2 * votes / learners - 1)
        found = Agreement(leads[np.newaxis], learners)
        return float(unstable_rates(lambda at: hits[at.astype(int)], found, size)[0])

    share = 0.78
    true = rate(size, RNG.binomial(size, share, queries))
    corrected = rate(fitted, RNG.binomial(fitted, share, queries))
    leads = np.abs(2 * RNG.binomial(fitted, share, queries) / fitted - 1)
    uncorrected = hits[np.maximum(0, np.ceil(size * leads / 2 - 1e-6) - 1).astype(int)].mean()
    assert 0.5 < corrected / true < 2
    assert uncorrected / true > 3


@pytest.mark.parametrize(
    ("variant", "closest"), [(svt.Variant.ONE_THRESHOLD, 0.6), (svt.Variant.REFRESHED, 0.55)]
)
def test_the_sparse_vector_is_forecast_with_the_noise_that_queries_share(
    variant: svt.Variant, closest: float
) -> None:
    """Runs with one threshold's noise an epoch give about as many labels as are forecast."""
    limit, cutoff, runs = 2000, 5, 3000
    calibration = svt.calibrate_variant(variant, epsilon=EPSILON, delta=DELTA, cutoff=cutoff)
    # The closest query lies some way above the threshold, the widest at twice it.
    size, leads = 4 * calibration.threshold, [closest, 0.8, 1.0, 1.0]
    distances = np.maximum(0, np.ceil(size * np.array(leads) / 2) - 1)
    found = forecast_answers(calibration, agreed(leads, size), ensemble_size=size, limit=limit)
    first, second = float(calibration.threshold_scale), float(calibration.query_scale)
    labels = 0
    for _ in range(runs):
        rho, hits, asked = RNG.laplace(scale=first), 0, 0
        asked_at = RNG.choice(distances, limit)
        noise = RNG.laplace(scale=second, size=limit)
        while hits < cutoff and asked < limit:
            ends = asked_at[asked:] + noise[asked:] <= calibration.threshold + rho
            step = int(ends.argmax()) if ends.any() else limit - asked
            labels, asked = labels + step, asked + step + 1
            hits += bool(ends.any())
            if variant is svt.Variant.REFRESHED:
                rho = RNG.laplace(scale=first)
    # A run gives up to 2000 labels: the mean of 3000 is right within 5 * 1000 / sqrt(3000),
    # 91, but once in 1.7 million seeds; a twentieth is for the noise's few points.
    assert found.mean == pytest.approx(labels / runs, abs=91 + 0.05 * limit)
    assert 100 < found.mean < limit


def test_a_noisy_vote_answers_while_its_noise_is_small() -> None:
    """So many answers lose one label in a hundred, and a tenth more of them lose more."""
    calibration = noisy_vote.calibrate(
        epsilon=EPSILON, delta=DELTA, answer_limit=1000, class_count=2
    )
    found = forecast_answers(calibration, agreed([0.6, 1.0]), ensemble_size=1000, limit=1000)
    answers = found.labels[0]
    assert 10 < answers < 1000
    deviation = math.sqrt(float(calibration.variance) * answers / 1000)

    def lost(noise: float) -> float:
        # Noise on one count outweighs half of the lead.
        chances = [math.erfc(lead * 500 / (noise * math.sqrt(2))) / 2 for lead in (0.6, 1.0)]
        return sum(chances) / 2

    assert lost(deviation) <= 0.01
    assert lost(deviation * 1.1) > 0.01


def test_the_cliff_is_where_a_leaf_has_about_one_row() -> None:
    """Leaves with ln 2 rows a chunk divide learners; those are named, and cost most answers."""
    table = approximate_profile(epsilon=EPSILON, delta=DELTA, cutoff=20)
    settings = {"ensemble_size": 1600, "chunk_row_count": 20, "limit": 15_000}
    everything = forecast_answers(table, agreed([1.0], 1600), ensemble_size=1600, limit=15_000)
    tests = (("rare", 0.03), ("common", 0.4), ("unseen", 0.0005))
    found = find_cliff(table, everything, **settings, tests=tests)
    assert found is not None
    assert found.leaf_rows[0] < math.log(2) < found.leaf_rows[1]
    assert found.tests == ("rare",)
    # T answers of a leaf that the share ln 2 / 20 of queries fall into, all unstable.
    assert found.labels == pytest.approx(20 * 20 / math.log(2), rel=0.2)
    assert found.labels == labels_at_worst(table, **settings)
    assert found.hypotheses_at_risk == 0


def test_there_is_no_cliff_where_chunks_hold_enough_rows() -> None:
    """With few queries and many rows a chunk no leaf uses up the cutoff."""
    table = approximate_profile(epsilon=EPSILON, delta=DELTA, cutoff=20)
    settings = {"ensemble_size": 1600, "chunk_row_count": 4000, "limit": 1000}
    calm = forecast_answers(table, agreed([1.0], 1600), ensemble_size=1600, limit=1000)
    assert find_cliff(table, calm, **settings, tests=()) is None


def test_a_part_of_the_best_weighs_each_rule_alike() -> None:
    """A mechanism that gives all under one rule in four is no better than one near the best."""
    lottery = Forecast(np.array([10_000.0, 10.0, 10.0, 10.0]), None)
    steady = Forecast(np.array([1_000.0, 100.0, 100.0, 100.0]), None)
    assert lottery.mean > steady.mean
    assert parts_of_best([lottery, steady]).tolist() == pytest.approx([0.325, 0.775])


def test_parts_are_of_what_is_given_even_where_nothing_is() -> None:
    """A rule under which no mechanism gives a label counts for none of them."""
    none, one = Forecast(np.array([0.0, 1.0]), None), Forecast(np.array([0.0, 2.0]), None)
    assert parts_of_best([none, one]).tolist() == [0.25, 0.5]
