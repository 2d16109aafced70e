"""The forecast number of answers of each mechanism, from how well models agree on made-up data.

**From few models to k votes.** The *first* label of a query is the one with the most votes. A
query's relative lead is the fraction of votes by which this label leads the next. A query's lead
among the k votes is estimated as k times its relative lead among the models of the trial. A trial
trains fewer models than k, so the estimated leads vary more than those of k models would. Without a
correction, the mean probability of an unstable answer would be too large; :func:`unstable_rates`
corrects it.

**One number for many rules.** The forecast gives a number of answers for each of many made-up
labelling rules, which stand for the unknown rule that will relabel the rows. Under some rules few
answers may be unstable, and under others so many that the ensemble soon stops; a mean or median may
then lie where no rule lies. So the printed number is the one that is most likely to be right within
a factor of two, with the fraction of rules for which it is right, and with the median number of the
other rules.

A leaf of a tree is contested if the models disagree on its label.

All leaves with the same number of rows per chunk are one kind of leaf. On such leaves the first
label has the same relative lead, which follows from this number of rows.

A stability test gives a query its label only if the label's lead in votes, with noise, is large
enough; otherwise the answer is unstable. A noisy vote gives every query a label, which the noise
may change.
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
    from app.privacy.budget.ensemble_size import ApproximateProfile, HitTest
    from app.privacy.mechanism_registration import Calibration
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
        number: the typical value, with as many of the numbers as possible within a factor of two.
        share: the fraction of the numbers within a factor of two of it.
        otherwise: the median of all other numbers; None if there are none.

    """

    number: float
    share: float
    otherwise: float | None


def likely(numbers: NDArray[np.float64]) -> Likely:
    """Return a typical value of numbers, and the fraction within a factor of two of it.

    Of all intervals from one of the numbers to four times that number, the one with the most
    numbers is chosen, and the highest one of several with equally many. The typical value is the
    median of this interval's numbers, moved just far enough that all of them lie within a factor of
    two of it.
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
    """The forecast number of labelled answers under a mechanism, for each made-up labelling rule.

    Attributes:
        labels: for each of H rules, the expected number of labelled answers among m answers, shape
            ``(H,)``; for a noisy vote, the largest number of answers of which the noise changes at
            most one in a hundred.
        unlimited: for each rule, the expected number of labelled answers before unstable answer T
            (the cutoff) without the limit of m answers, shape ``(H,)``; None if only m ends the
            answers.

    """

    labels: Numbers
    unlimited: Numbers | None

    @property
    def likely(self) -> Likely:
        """A typical number of labelled answers, and the fraction of made-up rules close to it."""
        return likely(self.labels)

    @property
    def mean(self) -> float:
        """The mean number of labelled answers over made-up labelling rules."""
        return float(self.labels.mean())

    @property
    def low(self) -> float:
        """The number of labelled answers that is exceeded under nine in ten made-up rules."""
        return float(np.quantile(self.labels, TAIL))

    @property
    def high(self) -> float:
        """The number of labelled answers that is exceeded under one in ten made-up rules."""
        return float(np.quantile(self.labels, 1 - TAIL))

    @property
    def median_unlimited(self) -> float | None:
        """The median number of labelled answers over made-up rules, without the limit of m answers.

        It is None if only the limit of m answers ends the voting.
        """
        return None if self.unlimited is None else float(np.median(self.unlimited))


def parts_of_best(forecasts: Sequence[Forecast]) -> Numbers:
    """Return how many labelled answers each mechanism gives, relative to the best mechanism.

    For each made-up rule, the mechanism's number is divided by the best mechanism's number under
    this rule; the result is the mean of these ratios over the rules, so that every rule has the
    same weight. A mean of the numbers could prefer a mechanism that gives very many answers under
    some rules and almost none under others, and nobody knows beforehand which rule will relabel.

    Args:
        forecasts: the forecasts of one or more mechanisms on the same made-up rules.

    Returns:
        The mean ratios, in [0, 1], shape ``(len(forecasts),)``.

    """
    labels = np.stack([each.labels for each in forecasts])
    parts: Numbers = (labels / np.maximum(labels.max(axis=0), HITS_MIN)).mean(axis=1)
    return parts


def forecast_of_votes(
    calibration: VoteCalibration, agreement: Agreement, ensemble_size: int, limit: int
) -> Forecast:
    """Return the forecast for a noisy vote.

    Args:
        calibration: the noise parameters of the noisy vote.
        agreement: the measured agreement of models.
        ensemble_size: the number k of models.
        limit: the largest number m of answers.

    """
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
    """Return a noisy vote's expected answers if some queries reach contested leaves.

    Args:
        calibration: the noise parameters of the noisy vote.
        leads: the relative lead of the first label in each kind of leaf, and 1 as the last entry.
        shares: the fraction of queries that reach each kind of leaf.
        ensemble_size: the number k of models.
        limit: the largest number m of answers.

    Returns:
        For each kind of leaf, the expected number of labelled answers if some queries reach leaves
        of this kind and all other queries are unanimous; and as the last entry, the number if all
        queries are unanimous.

    """
    weights = np.append(shares, 1.0)
    votes = ensemble_size * np.stack([leads, np.ones_like(leads)], axis=1)
    both = np.stack([weights, 1 - weights], axis=1)
    return outlasting_noise(calibration, votes, both, limit=limit)


def forecast_of_table(
    test: HitTest, agreement: Agreement, ensemble_size: int, limit: int
) -> Forecast:
    """Return the forecast for a stability test that adds independent noise to each answer.

    Args:
        test: the stability test with its noise parameters.
        agreement: the measured agreement of models.
        ensemble_size: the number k of models.
        limit: the largest number m of answers.

    """
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
    """Return a stability test's expected stable answers if some queries reach contested leaves.

    Args:
        test: the stability test with its noise parameters.
        leads: the relative lead of the first label in each kind of leaf, and 1 as the last entry.
        shares: the fraction of queries that reach each kind of leaf.
        ensemble_size: the number k of models.
        limit: the largest number m of answers.

    Returns:
        For each kind of leaf, the expected number of labelled answers if some queries reach leaves
        of this kind and all other queries are unanimous; and as the last entry, the number if all
        queries are unanimous.

    """
    distances = np.clip(np.ceil(ensemble_size * leads / 2 - 1e-6) - 1, 0, None)
    hits = [test.hit_probability(int(distance)) for distance in distances]
    alone = limit * (1 - np.array(hits))
    both: Numbers = np.append(shares * alone[:-1] + (1 - shares) * alone[-1], alone[-1:])
    return both


def expected_answers(rates: Numbers, *, cutoff: int, limit: int) -> Numbers:
    """Return the mean number of answers until unstable answer T or answer m ends them.

    Args:
        rates: the probability u of an unstable answer, for each made-up rule.
        cutoff: the cutoff T.
        limit: the largest number m of answers.

    """
    if cutoff > limit:
        return np.full_like(rates, float(limit))
    # Let N and N' be the numbers of unstable answers T and T + 1, among all answers:
    # E min(m, N) = m P(N > m) + (T/u) P(N' <= m + 1).
    ended = binomial_tail(cutoff, limit, rates)
    one_more = binomial_tail(cutoff + 1, limit + 1, rates)
    answers: Numbers = limit * (1 - ended) + cutoff / rates * one_more
    return np.minimum(answers, limit)


def unstable_rates(hits: Hits, agreement: Agreement, ensemble_size: int) -> Numbers:
    """Return the mean probability of an unstable answer under each made-up labelling rule.

    Args:
        hits: a function from distances (votes that may change before another label wins) to
            probabilities of an unstable answer.
        agreement: the measured agreement of models.
        ensemble_size: the number k of models.

    """
    # A trial with fewer models than k adds the variance s^2 to a distance. The probability of an
    # unstable answer falls about as e^(-a distance), so its mean is too large by e^(a^2 s^2 / 2).
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
    """Return the forecast for a test whose queries share the noise of one threshold.

    Args:
        calibration: the noise parameters of the sparse vector technique.
        agreement: the measured agreement of models.
        ensemble_size: the number k of models.
        limit: the largest number m of answers.

    """
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

    A noisy vote gives a label to every query, so a client cannot see which labels the noise has
    changed.

    Args:
        calibration: the noise parameters for the budget of the answers.
        leads: the first label's lead in votes, for each rule (first axis) and query (second axis).
        weights: the weights of the queries, which add up to 1 for each rule, in the same shape.
        limit: the largest number m of answers.

    """
    found = np.zeros(len(leads))
    for answers in np.unique(np.geomspace(1, limit, NOISY_LIMITS).astype(np.int64)):
        lost = (weights * calibration.lost(leads, answers=int(answers))).sum(axis=1)
        found = np.where(lost <= HIT_PROBABILITY_MAX, float(answers), found)
    return found
