"""What votes come to under a mechanism: passes over the test vectors, E, and accuracy.

A pass asks every distinct vector once in a random order until the T-th unstable answer.
*Answered* counts its stable answers; the unstable ones, the T-th included, are none.
*E* is T (1 - u) / u, u the mean probability over distinct vectors that one is unstable:
the stable answers before the T-th unstable one if vectors never ran out.  *Accuracy* is
over all test rows whose vector got a stable answer, each with its own label.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant
from app.noise.scripted import ScriptedNoise
from app.privacy.noisy_vote import vote_table
from app.privacy.sparse_vector import calibration as svt
from app.privacy.stability import hit_table as profile
from app.privacy.stability import mechanism as stability

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from app.privacy.budget.composition import Charge
    from app.privacy.sparse_vector.calibration import SvtCalibration
    from app.privacy.stability.hit_table import ProfileTable
    from benchmarks.utility.online_data import QuerySet
    from benchmarks.utility.online_votes import Votes

ORDERS = 20
WORD_MAX = (1 << 64) - 1
# What is kept in place of more: a probability of the sparse vector may be zero in doubles.
EXPECTED_MAX = 1e18
SHARE_LEAST = 1e-300


@dataclass(frozen=True, slots=True)
class Cell:
    """Figures of one setting under one mechanism.

    Attributes:
        cutoff: T; m for a noisy vote.
        answered: mean over passes.
        answered_deviation: standard deviation over passes.
        expected: E, from u over all releases.
        unstable_share: u.
        accuracy: mean over passes.
        accuracy_deviation: standard deviation over passes.

    """

    cutoff: int
    answered: float
    answered_deviation: float
    expected: float
    unstable_share: float
    accuracy: float
    accuracy_deviation: float


def profile_cell(releases: Sequence[Votes], tests: QuerySet, *, cutoff: int) -> Cell:
    """Return what calibration ``profile`` gives, from the app's own integer table."""
    table = _table(releases[0].answers, cutoff)
    thresholds = np.array(table.thresholds, dtype=np.uint64)
    generator = np.random.default_rng(cutoff)
    passes, shares = [], []
    for votes in releases:
        hit_below = thresholds[np.minimum(votes.distance, len(thresholds) - 1)]
        shares.append(float(hit_below.astype(np.float64).mean()) / 2**64)
        for _ in range(ORDERS):
            order = generator.permutation(len(hit_below))
            words = generator.integers(0, WORD_MAX, len(order), dtype=np.uint64, endpoint=True)
            stable = stable_answers(words < hit_below[order], cutoff)
            passes.append(_scored(order[stable], votes, tests))
    return _cell(passes, fmean(shares), cutoff)


def stable_answers(hits: NDArray[np.bool_], cutoff: int) -> NDArray[np.intp]:
    """Return the places in the order of asking that got a stable answer."""
    halted = np.flatnonzero(np.cumsum(hits) >= cutoff)
    asked = halted[0] if len(halted) else len(hits)
    return np.flatnonzero(~hits[:asked])


def check_served(votes: Votes, *, cutoff: int, seed: int) -> None:
    """Assert that the app's own step decides a pass as the arrays do, word by word."""
    table = _table(votes.answers, cutoff)
    thresholds = np.array(table.thresholds, dtype=np.uint64)
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(votes.distance))
    words = generator.integers(0, WORD_MAX, len(order), dtype=np.uint64, endpoint=True)
    hit_below = thresholds[np.minimum(votes.distance[order], len(thresholds) - 1)]
    expected = stable_answers(words < hit_below, cutoff).tolist()
    parameters = stability.Parameters(thresholds=table.thresholds, cutoff=cutoff)
    noise, served = ScriptedNoise(words.tolist()), []
    state = stability.initial_state(parameters, noise)
    for place, distance in enumerate(votes.distance[order].tolist()):
        state, hit = stability.step(parameters, state, distance, noise)
        if not hit:
            served.append(place)
        if state.hit_count == cutoff:
            break
    invariant(served == expected, "arrays decide as the served mechanism does")


def svt_cell(releases: Sequence[Votes], tests: QuerySet, *, cutoff: int) -> Cell:
    """Return what the papers' sparse vector gives with honest constants."""
    charge = releases[0].answers
    calibration = svt.calibrate(epsilon=charge.epsilon, delta=charge.delta, cutoff=cutoff)
    generator = np.random.default_rng(cutoff)
    passes, shares = [], []
    for votes in releases:
        distances, places = np.unique(votes.distance, return_inverse=True)
        hits = np.array([calibration.hit_probability(int(each)) for each in distances])
        shares.append(float(hits[places].mean()))
        for _ in range(ORDERS):
            order = generator.permutation(len(votes.distance))
            stable = sparse_pass(calibration, votes.distance[order], generator)
            passes.append(_scored(order[stable], votes, tests))
    return _cell(passes, fmean(shares), cutoff)


def sparse_pass(
    calibration: SvtCalibration, distances: NDArray[np.int64], generator: np.random.Generator
) -> NDArray[np.intp]:
    """Return the places with a stable answer; each hit draws the threshold's noise anew or not."""
    refreshed = calibration.variant is svt.Variant.REFRESHED
    levels = _laplace(calibration.threshold_scale, calibration.cutoff, generator)
    values = distances + _laplace(calibration.query_scale, len(distances), generator)
    start, hit_places = 0, []
    for level in levels.tolist() if refreshed else [int(levels[0])] * calibration.cutoff:
        hits = np.flatnonzero(values[start:] <= calibration.threshold + level)
        if not len(hits):
            break
        start += int(hits[0]) + 1
        hit_places.append(start - 1)
    asked = start if len(hit_places) == calibration.cutoff else len(distances)
    stable: NDArray[np.intp] = np.setdiff1d(np.arange(asked), hit_places)
    return stable


def _laplace(scale: Fraction, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return discrete Laplace noise: the difference of two geometric numbers."""
    success = -math.expm1(-1 / float(scale))
    drawn: NDArray[np.int64] = generator.geometric(success, (2, count))
    noise: NDArray[np.int64] = drawn[0] - drawn[1]
    return noise


def noisy_vote_cell(releases: Sequence[Votes], tests: QuerySet, m: int) -> Cell:
    """Return what a noisy vote gives for m answers, all of them labels.

    Its accuracy is the expected one over all rows; the lead beyond a half is taken as
    the distance and a half, which is right but for a quarter of a vote.
    """
    charge = releases[0].answers
    table = vote_table.quick(epsilon=charge.epsilon, delta=charge.delta, answer_limit=m)
    rows = tests.label_counts
    accuracies = []
    for votes in releases:
        lead = np.where(votes.plurality == 1, 1, -1) * (votes.distance + 0.5)
        lost = table.lost(2 * np.abs(lead), answers=m)
        ones = np.where(lead > 0, 1 - lost, lost)
        right = rows[:, 0] * (1 - ones) + rows[:, 1] * ones
        accuracies.append(float(right.sum() / rows.sum()))
    spread = stdev(accuracies) if len(accuracies) > 1 else 0.0
    return Cell(m, m, 0.0, m, 0.0, fmean(accuracies), spread)


def _table(charge: Charge, cutoff: int) -> ProfileTable:
    return profile.calibrate(epsilon=charge.epsilon, delta=charge.delta, cutoff=cutoff)


def _scored(asked: NDArray[np.intp], votes: Votes, tests: QuerySet) -> tuple[int, float]:
    """Return how many vectors got a stable answer, and the share of their rows labelled right."""
    rows = tests.label_counts[asked]
    right = rows[np.arange(len(asked)), votes.plurality[asked]].sum()
    return len(asked), float(right / max(1, rows.sum()))


def _cell(passes: Sequence[tuple[int, float]], share: float, cutoff: int) -> Cell:
    answered, accuracy = [count for count, _ in passes], [each for _, each in passes]
    return Cell(
        cutoff=cutoff,
        answered=fmean(answered),
        answered_deviation=stdev(answered),
        expected=min(EXPECTED_MAX, cutoff * (1 - share) / max(share, SHARE_LEAST)),
        unstable_share=share,
        accuracy=fmean(accuracy),
        accuracy_deviation=stdev(accuracy),
    )
