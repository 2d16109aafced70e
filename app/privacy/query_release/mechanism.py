"""Query release with public data: one noisy table of mean outcomes for a class of rules.

**Algorithm.** A_PAP (Bassily, Cheu, Moran, Nikolov, Ullman, Wu 2020, Algorithm 3)
with private multiplicative weights (Hardt and Rothblum 2010) over H~, one
hypothesis for every dichotomy of the public points, and over all cells of H~.

**Claim.** (epsilon, delta)-differentially private under replace-one, for
parameters that ``app.privacy.query_release.calibration`` finds and checks; the public
points are not protected.  The table answers every hypothesis of the class, without
limit and without a further charge.  Where rows are of persons, replace-one replaces all rows
of a person, and n is of persons.

**Proof.** A sparse vector over errors of counts, each of its hits followed by one
noisy count: ``app/privacy/query_release/proof.md``.

**Inputs and outputs.** ``private_cell_count``: int64 (C,), rows in every cell,
sums to n, secret; where rows are of persons float64 (C,), their weights
(``app/data/persons.py``), of which a person's add up to 1 at most, exactly.  Out: ``Table``,
public: for every query the rows, or persons, labelled 1.

**Utility.** Unless noise exceeds its deviation, every answer is within t + L rows
once the pass that tests against t is complete; if ``2 U a^2 > ln C``, all are.

**Deviations.** A query is (1+h)/2 at accuracy alpha/4: as {-1,+1} it would move by
2/n (erratum i).  One integer test a query in place of two; its noise is discrete
and exact, the U answers' too, and epsilon is composed exactly.  Queries are tested
in passes against ever smaller errors, so that the U updates go to large ones first.
An update moves the query's weight to where the noisy count proves it at least,
which gains no less than a step of fixed size.  After update U the table keeps what
was tested before, and says how far.  n is public.  What persons count for is rounded to
whole persons, query by query.

**Raises.** ``InvariantError``: parameters out of range, or counts that are not of
n rows, or persons, in C cells.
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
    from app.privacy.query_release.calibration import QueryReleaseCalibration

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
    """The public parameters of drawing one query-release table.

    Attributes:
        labels: of every query on every cell, 0 or 1, uint8, shape ``(N, C)``.
        row_count: the public n, of rows or of persons.
        thresholds: errors in rows that the passes test against, descending.
        test: of a threshold less an error, against 0; its cutoff is the number U of
            updates.
        answer_noise: the law of a failed query's noise, of scale s.
        test_deviation: L, what a test's noise stays within, in rows.
        answer_deviation: A, what an answer's noise stays within, in rows.

    """

    labels: NDArray[np.uint8]
    row_count: int
    thresholds: tuple[int, ...]
    test: sparse_vector.Parameters
    answer_noise: DiscreteLaplace
    test_deviation: int
    answer_deviation: int

    def __post_init__(self) -> None:
        """Refuse what no calibration and no domain looks like."""
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
        """Return the parameters of a draw with calibrated noise over given public cells."""
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
        row_count: the public n.
        counts: for every query, rows that it labels 1, in [0, n].
        update_count: queries answered with noise of their own.
        pass_count: complete passes; at none, the counts carry no promise.

    """

    row_count: int
    counts: tuple[int, ...]
    update_count: int
    pass_count: int

    def expectation(self, index: int) -> Fraction:
        """Return the mean of a rule's outcomes, -1 and +1, over the rows, from the table."""
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
