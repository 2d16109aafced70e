"""A linear classifier over public feature tests, with integer weights; averaged gradient descent.

A score is a weighted sum of a row's inputs, the outcomes of conjunctions of tests. The descent,
which chooses the weights, gets noisy mean gradients over the rows' vectors; a public map computes a
row's vector from its inputs. Nothing in this module uses a private row: all other values are
public.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant
from app.learning.linear.integer_vectors import score_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.linear.conjunctions import Terms

# Sums of weights stay far below 64 bits, and below what a double tells apart.
SCORE_BOUND: Final = 1 << 52
# Scores whose magnitude is small are still told apart this finely.
FINENESS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class LinearScores:
    """A classifier with integer scores: an intercept plus the weights of all true conjunctions.

    With two classes there is one score, and the second class is predicted if the score is above
    zero. With more classes there is one score per class, and the class with the largest score is
    predicted, of equal ones the first.

    Attributes:
        terms: the public conjunctions of feature tests.
        weights: integers: for each conjunction, one weight per score.
        intercepts: integers, one per score.
        unit: the integer that stands for a score of 1.0.
        class_count: the number of labels.

    """

    terms: Terms
    weights: tuple[tuple[int, ...], ...]
    intercepts: tuple[int, ...]
    unit: int
    class_count: int

    def __post_init__(self) -> None:
        """Refuse a wrong number of weights, and weights whose sums would not be exact."""
        width = score_count(self.class_count)
        invariant(len(self.weights) == len(self.terms), "every term has weights")
        rows = (self.intercepts, *self.weights)
        invariant(all(len(row) == width for row in rows), "there is a weight for each score")
        largest = max(sum(map(abs, column)) for column in zip(*rows, strict=True))
        invariant(largest < SCORE_BOUND, "scores are exact")

    @classmethod
    def rounded(
        cls,
        terms: Terms,
        weights: NDArray[np.float64],
        intercepts: NDArray[np.float64],
        *,
        class_count: int,
    ) -> LinearScores:
        """Return the classifier with weights rounded to integers whose sums are exact.

        Args:
            terms: the public conjunctions of feature tests.
            weights: real weights, shape ``(terms, scores)``.
            intercepts: real numbers, shape ``(scores,)``.
            class_count: the number of labels.

        """
        largest = float((np.abs(weights).sum(axis=0) + np.abs(intercepts)).max())
        unit = FINENESS
        while unit > 1 and largest * unit >= SCORE_BOUND / 2:
            unit //= 2
        limit = SCORE_BOUND / 2 / (len(terms) + 1)
        scaled = np.clip(np.rint(np.vstack([weights, intercepts[None]]) * unit), -limit, limit)
        rows = [tuple(int(each) for each in row) for row in scaled]
        return cls(terms, tuple(rows[:-1]), rows[-1], unit, class_count)

    def scores(self, encoded: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the integer scores of rows, shape ``(rows, scores)``.

        Args:
            encoded: for each row which conjunctions are true, 0 or 1, shape ``(rows, terms)``.

        """
        weights = np.array(self.weights, dtype=np.int64).reshape(len(self.terms), -1)
        return encoded.astype(np.int64) @ weights + np.array(self.intercepts, dtype=np.int64)

    def predict(self, encoded: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the class index of every row, shape ``(rows,)``.

        Args:
            encoded: for each row which conjunctions are true, 0 or 1, shape ``(rows, terms)``.

        """
        scores = self.scores(encoded)
        if scores.shape[1] == 1:
            return (scores[:, 0] > 0).astype(np.int64)
        return np.asarray(scores.argmax(axis=1), dtype=np.int64)


class AveragedDescent:
    """Gradient descent whose result is the mean of the weights after the later half of its steps.

    Every step adds noise. The mean of many steps contains less of this noise than the last step.
    """

    def __init__(
        self, start: NDArray[np.float64], *, rate: float, step_count: int, length_max: float
    ) -> None:
        """Start at public weights.

        Args:
            start: the weights before the first step, shape ``(coordinates, scores)``.
            rate: the step size, by which the mean gradient is multiplied.
            step_count: the number of steps, at least 1.
            length_max: the maximum length of the weights, to which longer ones are scaled down.

        """
        invariant(step_count >= 1, "there is a step")
        self._rate = rate
        self._averaged = step_count - step_count // 2
        self._first = step_count - self._averaged
        self._step = 0
        self._length_max = length_max
        self._total = np.zeros(start.shape)
        self.weights = self._shortened(start)

    def update(self, gradient: NDArray[np.float64]) -> None:
        """Make one step of the descent, given a noisy mean gradient.

        Args:
            gradient: the gradient by the weights of each score, shape ``(coordinates, scores)``;
                there is one weight for each coordinate of a row's vector.

        """
        self.weights = self._shortened(self.weights - self._rate * gradient)
        if self._step >= self._first:
            self._total += self.weights
        self._step += 1

    def _shortened(self, iterate: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return an iterate that is no longer than any may be."""
        found = float(np.sqrt((iterate**2).sum()))
        return iterate * min(1.0, self._length_max / max(found, 1.0))

    def mean(self) -> NDArray[np.float64]:
        """Return the mean weights over the later half of the steps; all steps must be finished.

        Returns:
            One weight for each coordinate of a row's vector and each score, shape
            ``(coordinates, scores)``.

        """
        return self._total / self._averaged
