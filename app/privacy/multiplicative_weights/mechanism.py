"""The statistics table: for each hypothesis of a class, a noisy count of rows that it labels 1.

A hypothesis is a rule that labels each row 0 or 1. The counts in the table are first estimated, and
then corrected by a limited number of noisy counts (updates), in passes that test for smaller and
smaller errors.

**Algorithm.** A_PAP (Bassily, Cheu, Moran, Nikolov, Ullman, Wu 2020, Algorithm 3) with private
multiplicative weights (Hardt and Rothblum 2010). The queries are the hypotheses in H~, which has
one hypothesis for every labelling of the public points. The weights are over all cells of H~, the
sets of feature vectors on which every hypothesis in H~ is constant.

**Claim.** (epsilon, delta)-differentially private under replace-one, for parameters that
``app.privacy.multiplicative_weights.calibration`` finds and checks; the public points are not
protected. The table has an answer for every hypothesis of the class, and reading it costs nothing
further. If a column names the person of each row, replace-one replaces all rows of a person, and n
counts persons.

**Proof.** A sparse vector over errors of counts, in which each failed test is followed by one noisy
count: ``app/privacy/multiplicative_weights/proof.md``.

**Inputs and outputs.** ``private_cell_count``: int64 (C,), the number of rows in each of C cells, n
in total, secret. If a column names persons it is float64 (C,), the sum of the rows' weights
(``app/data/persons.py``), where the weights of one person's rows add up to at most 1, exactly. Out:
``Table``, public: for every query the number of rows, or persons, that it labels 1.

**Utility.** Unless noise exceeds its bound, every count is within t + L rows after the pass that
tests for errors of t rows, L being the bound on a test's noise. With enough updates all passes are
completed (``calibration.py``).

**Deviations.** A query is the number of rows that a hypothesis labels 1. The paper's query, the
mean of the values -1 and +1, moves by 2/n if one row is replaced, which the paper misses. Each
query has one integer test in place of two. The noise of tests and of noisy counts is discrete and
exact, and epsilon is composed exactly. Queries are tested in passes for smaller and smaller errors,
so that the updates are first used for large errors. An update moves the query's count in the table
to the nearest value that the noisy count proves possible, which improves the table at least as much
as a step of fixed size. After the last update the table keeps all counts tested so far, and says
how many passes are complete. n is public. If rows are weighted, each count is rounded to whole
persons.

**Raises.** ``InvariantError``: parameters out of range, or counts that do not add up to n rows, or
persons, in C cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant
from app.noise.discrete_laplace import DiscreteLaplace
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.sparse_vector.calibration import Variant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.noise.source import NoiseSource
    from app.privacy.multiplicative_weights.calibration import QueryReleaseCalibration

TABLE_DIMENSIONS = 2
LABEL_MAX = 1
# Labels widened to integers at once.
LABELS_PER_BLOCK = 1 << 22
# What is added before rounding down, to round to the nearest.
NEAREST = 0.5
# Between two doubles of logits that are finite.
SHARE_MIN = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parameters:
    """The public parameters for computing one table of noisy counts.

    Attributes:
        labels: the label, 0 or 1, that each of N queries gives to each of C cells, uint8, shape
            ``(N, C)``.
        row_count: the public number n of rows, or of persons.
        thresholds: the errors, in rows, for which the passes test, descending.
        test: the parameters of the sparse vector technique by which a count's error is compared
            with the threshold; its cutoff is the number U of updates.
        answer_noise: the distribution of the noise on the count of a query that fails its test, of
            scale s.
        test_deviation: L, a bound on a test's noise, in rows.
        answer_deviation: A, a bound on a noisy count's noise, in rows.

    """

    labels: NDArray[np.uint8]
    row_count: int
    thresholds: tuple[int, ...]
    test: sparse_vector.Parameters
    answer_noise: DiscreteLaplace
    test_deviation: int
    answer_deviation: int

    def __post_init__(self) -> None:
        """Raise an error for parameters that are out of range."""
        invariant(self.labels.ndim == TABLE_DIMENSIONS, "labels are a table of queries and cells")
        invariant(self.labels.size > 0, "there is a query and a cell")
        invariant(int(self.labels.max()) <= LABEL_MAX, "a query counts the rows labelled 1")
        invariant(self.row_count >= 1, "there is at least one row")
        invariant(len(self.thresholds) > 0, "there is a pass")
        invariant(all(a > b for a, b in pairwise(self.thresholds)), "passes test for ever less")
        deviations = (self.test_deviation, self.answer_deviation)
        invariant(min(deviations) >= 0, "a deviation is not negative")
        invariant(self.thresholds[-1] > self.test_deviation, "a failed test proves an error")
        invariant(self.test.threshold == 0, "a test is against the pass's own threshold")

    @classmethod
    def calibrated(
        cls, calibration: QueryReleaseCalibration, labels: NDArray[np.uint8]
    ) -> Parameters:
        """Return the parameters of one table, given its noise and every hypothesis's labels."""
        shape = (calibration.query_count, calibration.cell_count)
        invariant(labels.shape == shape, "the queries and cells are those calibrated for")
        test = sparse_vector.Parameters(
            threshold=0,
            threshold_noise=DiscreteLaplace(calibration.threshold_scale),
            query_noise=DiscreteLaplace(calibration.query_scale),
            cutoff=calibration.update_count,
            refreshed=calibration.variant is Variant.REFRESHED,
        )
        return cls(
            labels=labels,
            row_count=calibration.row_count,
            thresholds=calibration.thresholds,
            test=test,
            answer_noise=DiscreteLaplace(calibration.answer_scale),
            test_deviation=calibration.test_deviation,
            answer_deviation=calibration.answer_deviation,
        )


@dataclass(frozen=True, slots=True)
class Table:
    """The released table, which has a noisy answer for every rule of a class.

    Attributes:
        row_count: the public number n of rows, or of persons.
        counts: for every query, the number of rows that it labels 1, in [0, n].
        update_count: the number of noisy counts that were drawn.
        pass_count: the number of complete passes over the queries; if it is 0, the counts have no
            promised accuracy.

    """

    row_count: int
    counts: tuple[int, ...]
    update_count: int
    pass_count: int

    def expectation(self, index: int) -> Fraction:
        """Return a rule's mean outcome (-1 for label 0, +1 for label 1) over the rows."""
        return Fraction(2 * self.counts[index], self.row_count) - 1


def draw(
    parameters: Parameters,
    private_cell_count: NDArray[np.int64] | NDArray[np.float64],
    noise: NoiseSource,
) -> Table:
    """Return the released table: for each rule, a noisy count of the rows that it labels 1."""
    labels = parameters.labels
    invariant(private_cell_count.shape == labels.shape[1:], "cells are the public ones")
    invariant(bool((private_cell_count >= 0).all()), "a count is not negative")
    total, row_count = float(private_cell_count.sum()), parameters.row_count
    within = total <= row_count if _are_weights(private_cell_count) else total == row_count
    invariant(within, "rows are the public n rows, or count for n persons at most")
    private_counts = _private_counts(labels, private_cell_count)
    release = _Release(parameters)
    state = sparse_vector.initial_state(parameters.test, noise)
    for threshold in parameters.thresholds:
        for index in release.untouched():
            if state.hit_count == parameters.test.cutoff:
                return release.table(state.hit_count)
            slack = threshold - abs(private_counts[index] - release.estimated(index))
            state, outcome = sparse_vector.step(parameters.test, state, slack, noise)
            if outcome.hit:
                answer = private_counts[index] + parameters.answer_noise.draw(noise)
                release.update(index, answer, threshold)
        release.pass_count += 1
    return release.table(state.hit_count)


def _are_weights(private_cell_count: NDArray[np.int64] | NDArray[np.float64]) -> bool:
    """Whether cells hold what the rows of persons count for, and no numbers of rows."""
    return bool(np.issubdtype(private_cell_count.dtype, np.floating))


def _private_counts(
    labels: NDArray[np.uint8], private_cell_count: NDArray[np.int64] | NDArray[np.float64]
) -> list[int]:
    """Count the rows that every query labels 1, few queries at a time; persons to the nearest.

    What moves by at most 1 moves by at most 1 rounded; sums of weights are exact before that.
    """
    step = max(1, LABELS_PER_BLOCK // labels.shape[1])
    counts: list[int] = []
    for start in range(0, len(labels), step):
        found = labels[start : start + step] @ private_cell_count
        if _are_weights(found):
            found = np.floor(found + NEAREST).astype(np.int64)
        counts += found.tolist()
    return counts


class _Release:
    """What was released so far: answers, and a law on the cells that follows from them."""

    def __init__(self, parameters: Parameters) -> None:
        """Start with equal weights on all cells, whether rows are in them or not."""
        self._parameters = parameters
        self._log_weights = np.zeros(parameters.labels.shape[1])
        self._weights = _normalised(self._log_weights)
        self._answers: dict[int, int] = {}
        self._estimates: dict[int, int] = {}
        self.pass_count = 0

    def untouched(self) -> list[int]:
        """Return the queries without a noisy answer of their own, in a spread-out order."""
        query_count = len(self._parameters.labels)
        stride = _stride(query_count)
        order = (index * stride % query_count for index in range(query_count))
        return [index for index in order if index not in self._answers]

    def estimated(self, index: int) -> int:
        """Return and store the count that the weights give a query, rounded."""
        estimate = round(self._parameters.row_count * self._share(index))
        self._estimates[index] = estimate
        return estimate

    def update(self, index: int, answer: int, threshold: int) -> None:
        """Store a noisy answer to a query, and move the weights toward it."""
        self._answers[index] = answer
        row_count, share = self._parameters.row_count, self._share(index)
        excess = answer - row_count * share
        by_answer = abs(excess) - self._parameters.answer_deviation
        by_test = threshold - self._parameters.test_deviation - 0.5
        target = share + math.copysign(max(by_answer, by_test) / row_count, excess)
        edge = 1 / (4 * row_count)
        step = _logit(min(max(target, edge), 1 - edge)) - _logit(share)
        self._log_weights += step * self._parameters.labels[index]
        self._weights = _normalised(self._log_weights)

    def table(self, update_count: int) -> Table:
        """Return the table: noisy answers, last tested estimates, and estimates for the rest."""
        row_count = self._parameters.row_count
        for index in range(len(self._parameters.labels)):
            if index not in self._estimates:
                self.estimated(index)
        counts = (self._estimates | self._answers).items()
        clipped = tuple(min(max(count, 0), row_count) for _, count in sorted(counts))
        return Table(row_count, clipped, update_count, self.pass_count)

    def _share(self, index: int) -> float:
        return float(self._weights[self._parameters.labels[index] == 1].sum())


def _stride(query_count: int) -> int:
    """Return a step that visits all of so many queries, near the golden ratio of them."""
    stride = max(1, query_count * 618 // 1000)
    while math.gcd(stride, query_count) > 1:
        stride += 1
    return stride


def _logit(share: float) -> float:
    inside = min(max(share, SHARE_MIN), 1 - SHARE_MIN)
    return math.log(inside / (1 - inside))


def _normalised(log_weights: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())
