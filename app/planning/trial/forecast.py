"""The forecast number of answers of each mechanism, from how well made-up learners agree.

A query's lead among k votes is taken for k times its lead among those that were fitted.
Fewer of them are fitted than vote, so that leads scatter more than they would; hits
fall about exponentially with the distance, and the mean over so much more scatter of
``s^2`` exceeds the hits by ``e^(a^2 s^2 / 2)``, a being their local slope.  By that they
are divided.

One number for many: the one within a factor of two of which most of them lie.

On a cliff made-up rules part into some that run to the end and some that fall off, and a
mean or a median lies where none of them does.  What is printed is then the number that is
most likely to be right within a factor of two, with how likely that is, and what the rest
gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.privacy.budget.confidence_bounds import binomial_tail
from app.privacy.budget.ensemble_size import HIT_PROBABILITY_MAX
from app.privacy.sparse_vector.calibration import SvtCalibration, Variant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from app.planning.trial.agreement import Agreement
    from app.privacy.answering_rows import Calibration
    from app.privacy.budget.ensemble_size import ApproximateProfile, HitTest
    from app.privacy.noisy_vote.calibration import VoteCalibration
    from app.privacy.noisy_vote.vote_table import QuickVoteTable

    Numbers = NDArray[np.float64]
    Hits = Callable[[Numbers], Numbers]
    Weighed = Calibration | ApproximateProfile | QuickVoteTable

FACTOR: Final = 2.0
# Fewer labels than half of one are none, whatever the factor.
LEAST: Final = 0.5
# What rounds to the ends is within them.
SLACK: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Likely:
    """A typical value of many numbers, with the fraction of them that lie near it.

    Attributes:
        number: within a factor of two of which most of them lie.
        share: how many do, as a share of all.
        otherwise: the middle one of all others; None where there is none.

    """

    number: float
    share: float
    otherwise: float | None


def likely(numbers: NDArray[np.float64]) -> Likely:
    """Return a typical value of numbers, and the fraction within a factor of two of it.

    Of windows from a number to four times it the fullest is taken, the highest of equal
    ones, and in it the median, moved so far that the whole window is within the factor.
    """
    rising = np.sort(np.maximum(numbers, LEAST))
    ends = np.searchsorted(rising, rising * FACTOR**2 * (1 + SLACK), side="right")
    held = ends - np.arange(len(rising))
    first = int(np.flatnonzero(held == held.max())[-1])
    window = rising[first : ends[first]]
    lowest, highest = float(window[-1]) / FACTOR, float(window[0]) * FACTOR
    number = float(np.clip(np.median(window), lowest, highest))
    inside = (rising >= number / FACTOR * (1 - SLACK)) & (rising <= number * FACTOR * (1 + SLACK))
    others = rising[~inside]
    return Likely(number, float(inside.mean()), float(np.median(others)) if len(others) else None)


# The least and the most that one hypothesis in ten gives.
TAIL: Final = 0.1
# More of ``a^2 s^2`` than that is not divided out: hits are no exponential so far.
SCATTER_MAX: Final = 4.0
HITS_MIN: Final = 1e-300
HITS_MAX: Final = 1 - 1e-9
# Numbers of answers at which a noisy vote is looked at, evenly in their logarithm.
NOISY_LIMITS: Final = 65
# Points at which the threshold's noise is taken, each as likely as any other.
NOISE_POINTS: Final = 33


@dataclass(frozen=True, slots=True)
class Forecast:
    """The forecast number of labels under a mechanism, for each made-up labelling rule.

    Attributes:
        labels: expected labels among m answers, shape ``(H,)``; of a noisy vote, the most
            answers of which it loses one in a hundred.
        unlimited: labels before unstable answer T if m did not end them, shape ``(H,)``;
            None where m alone ends them.

    """

    labels: Numbers
    unlimited: Numbers | None

    @property
    def likely(self) -> Likely:
        """The typical number of labels, to which most made-up rules come within a factor of two."""
        return likely(self.labels)

    @property
    def mean(self) -> float:
        """The mean number of labels over made-up labelling rules."""
        return float(self.labels.mean())

    @property
    def low(self) -> float:
        """The number of labels that nine in ten made-up labelling rules exceed."""
        return float(np.quantile(self.labels, TAIL))

    @property
    def high(self) -> float:
        """The number of labels that one in ten made-up labelling rules exceeds."""
        return float(np.quantile(self.labels, 1 - TAIL))

    @property
    def median_unlimited(self) -> float | None:
        """The median number of labels if only unstable answers were limited; else None."""
        return None if self.unlimited is None else float(np.median(self.unlimited))


def parts_of_best(forecasts: Sequence[Forecast]) -> Numbers:
    """Return the mean ratio of each mechanism's labels to the best one's, over made-up rules.

    On a cliff a mean of labels goes by the rules under which a mechanism gives most, though it
    gives next to nothing under the others: which of them relabels nobody knows beforehand.  So
    each rule weighs alike, whatever number of labels its best mechanism gives.

    Args:
        forecasts: of mechanisms on the same made-up rules, one or more.

    Returns:
        Numbers in [0, 1], shape ``(len(forecasts),)``.

    """
    labels = np.stack([each.labels for each in forecasts])
    parts: Numbers = (labels / np.maximum(labels.max(axis=0), HITS_MIN)).mean(axis=1)
    return parts


def forecast_of_votes(
    calibration: VoteCalibration, agreement: Agreement, ensemble_size: int, limit: int
) -> Forecast:
    """Return the forecast for a noisy vote with k votes and at most m answers."""
    weights = np.ones_like(agreement.leads) / agreement.leads.shape[1]
    leads = ensemble_size * agreement.leads
    return Forecast(outlasting_noise(calibration, leads, weights, limit=limit), None)


def labels_beside_leaves(
    calibration: VoteCalibration,
    leads: Numbers,
    shares: Numbers,
    ensemble_size: int,
    limit: int,
) -> Numbers:
    """Return the expected labels of a noisy vote if some queries fall into contested leaves."""
    weights = np.append(shares, 1.0)
    votes = ensemble_size * np.stack([leads, np.ones_like(leads)], axis=1)
    both = np.stack([weights, 1 - weights], axis=1)
    return outlasting_noise(calibration, votes, both, limit=limit)


def forecast_of_table(
    test: HitTest, agreement: Agreement, ensemble_size: int, limit: int
) -> Forecast:
    """Return the forecast for a stability test that adds independent noise to each answer."""
    table = _table(test, ensemble_size)
    rates = unstable_rates(
        lambda distances: table[distances.astype(np.int64)], agreement, ensemble_size
    )
    if test.cutoff is None:
        return Forecast(limit * (1 - rates), None)
    labels = expected_answers(rates, cutoff=test.cutoff, limit=limit) * (1 - rates)
    return Forecast(labels, test.cutoff * (1 - rates) / rates)


def tested_beside_leaves(
    test: HitTest, leads: Numbers, shares: Numbers, ensemble_size: int, limit: int
) -> Numbers:
    """Return the expected labels of a stability test if some queries reach contested leaves."""
    distances = np.clip(np.ceil(ensemble_size * leads / 2 - 1e-6) - 1, 0, None)
    hits = [test.hit_probability(int(distance)) for distance in distances]
    alone = limit * (1 - np.array(hits))
    both: Numbers = np.append(shares * alone[:-1] + (1 - shares) * alone[-1], alone[-1:])
    return both


def expected_answers(rates: Numbers, *, cutoff: int, limit: int) -> Numbers:
    """Return the mean number of answers before the unstable answers or all answers run out.

    ``E min(m, N) = m P(N > m) + (T/u) P(N' <= m + 1)``: N is when hit T comes, N' when
    hit T + 1 would, at u hits an answer.
    """
    if cutoff > limit:
        return np.full_like(rates, float(limit))
    ended = binomial_tail(cutoff, limit, rates)
    one_more = binomial_tail(cutoff + 1, limit + 1, rates)
    answers: Numbers = limit * (1 - ended) + cutoff / rates * one_more
    return np.minimum(answers, limit)


def unstable_rates(hits: Hits, agreement: Agreement, ensemble_size: int) -> Numbers:
    """Return the mean chance of an unstable answer under each made-up labelling rule."""
    leads, fitted = agreement.leads, agreement.learner_count
    farthest = max(0, (ensemble_size + 1) // 2 - 1)
    # A hair below, as doubles may put a whole number of votes just above it.
    distances = np.clip(np.ceil(ensemble_size * leads / 2 - 1e-6) - 1, 0, farthest)
    found = np.clip(hits(distances), HITS_MIN, HITS_MAX)
    if fitted < ensemble_size:
        scatter = (1 / fitted - 1 / ensemble_size) * ensemble_size**2 / 4
        variance = scatter * agreement.vote_variance
        near, far = np.maximum(distances - 1, 0), np.minimum(distances + 1, farthest)
        fall = np.log(np.clip(hits(near), HITS_MIN, 1)) - np.log(np.clip(hits(far), HITS_MIN, 1))
        slope = fall / np.maximum(far - near, 1)
        found = found * np.exp(-np.minimum(slope**2 * variance, SCATTER_MAX) / 2)
    rates: Numbers = np.clip(found.mean(axis=1), HITS_MIN, HITS_MAX)
    return rates


def _table(test: HitTest, ensemble_size: int) -> Numbers:
    """Return the hits at every distance that k votes have."""
    count = max(1, (ensemble_size + 1) // 2)
    return np.array([test.hit_probability(distance) for distance in range(count)])


def forecast_of_threshold(
    calibration: SvtCalibration, agreement: Agreement, ensemble_size: int, limit: int
) -> Forecast:
    """Return the forecast for a test whose queries share the noise of one threshold."""
    cutoff, first = calibration.cutoff, float(calibration.threshold_scale)
    points = (np.arange(NOISE_POINTS) + 0.5) / NOISE_POINTS
    noises = first * np.sign(0.5 - points) * np.log(1 - 2 * np.abs(points - 0.5))
    rates = np.stack(
        [
            unstable_rates(_hits_above(calibration, float(noise)), agreement, ensemble_size)
            for noise in noises
        ]
    )
    if calibration.variant is Variant.ONE_THRESHOLD:
        labels = expected_answers(rates, cutoff=cutoff, limit=limit) * (1 - rates)
        return Forecast(labels.mean(axis=0), np.median(cutoff * (1 - rates) / rates, axis=0))
    epochs = expected_answers(rates, cutoff=1, limit=limit) * (1 - rates)
    labels = np.minimum(cutoff * epochs.mean(axis=0), limit)
    return Forecast(labels, cutoff * ((1 - rates) / rates).mean(axis=0))


def _hits_above(calibration: SvtCalibration, threshold_noise: float) -> Hits:
    """Return hits at one draw of the threshold's noise, by the continuous law."""
    scale = float(calibration.query_scale)

    def hits(distances: Numbers) -> Numbers:
        # Noise on an integer is at most the bound where it is below it and a half.
        excess = (distances - calibration.threshold - threshold_noise - 0.5) / scale
        tail = np.exp(-np.abs(excess)) / 2
        found: Numbers = np.where(excess > 0, tail, 1 - tail)
        return found

    return hits


def outlasting_noise(
    calibration: VoteCalibration, leads: Numbers, weights: Numbers, *, limit: int
) -> Numbers:
    """Return the most answers for which the noise changes at most one label in a hundred.

    A noisy vote gives every answer, and nobody can tell which labels are the noise's.

    Args:
        calibration: of the answers' budget.
        leads: in votes, hypothesis by query.
        weights: of those queries, adding up to 1 for each hypothesis.
        limit: m, answers at most.

    """
    found = np.zeros(len(leads))
    for answers in np.unique(np.geomspace(1, limit, NOISY_LIMITS).astype(np.int64)):
        lost = (weights * calibration.lost(leads, answers=int(answers))).sum(axis=1)
        found = np.where(lost <= HIT_PROBABILITY_MAX, float(answers), found)
    return found
