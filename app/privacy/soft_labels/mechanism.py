"""Answers with scores: the interval (bin) on which enough models' scores agree, or none.

**Algorithm.** A_SL-Quer, A_PrvLearn and H_Priv (Bassily, Thakkar, Thakurta 2018, Algorithms 6 to
8), corrected. The k models' scores of a query are counted in a histogram of equal bins. If a
stability test passes, the bin with the most scores is released. If it fails, the scores are counted
in a second histogram, whose edges are shifted by half a bin and which is tested in the same way.
The run ends at failed test T, T being the cutoff. A stability test passes or fails at random, and
passes more likely at a larger distance, the number of scores that may change without changing the
fullest bin.

**Claim.** As private as the stability test that it uses (the inner mechanism) is for T unstable
answers and any number of queries: ``app.privacy.stability.mechanism`` with its table of
probabilities, or ``app.privacy.sparse_vector.mechanism``, with the same noise as for labels.

**Proof.** Both histograms satisfy Lemma S (one changed score moves the distance by at most 1, and
if the fullest bin changes, the distance is 0), and both tests of a query are queries of one run of
the inner mechanism: ``app/privacy/soft_labels/proof.md``.

**Inputs and outputs.** Scores float64 (B, k) in [0, 1] of k models for B queries, secret; a value
that is not in [0, 1] counts as 0. ``bin_counts``: for each query the number of bins (its
precision), 2 to 1000, public. Outcome, public: the released bin, an index in one of the two
histograms, or none; and the number of the query's failed tests.

**Utility.** If two thirds of k scores lie within r <= 1/(4 bins) of a number, one of the tests has
a distance of ceil(k/6) - 1 or more, and the released mid-point is within half a bin plus r of this
number (Theorem 5.14 of the paper).

**Deviations.** Bins are half-open, so that a score is in one bin. The two half bins at the ends of
the shifted histogram are kept, so that every model has one vote in that histogram too. One counter
counts the failed tests of both histograms, and failed test T ends the run. Distances are those of
Lemma S and the noise is that of the inner mechanism. The counter, the distances and the noise each
correct an error in the paper. Two statements of Theorem 5.14 are corrected too.

**Raises.** ``InvariantError``: a precision out of range, or a step after failed test T; the state
does not change.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from app.errors import InvariantError, invariant
from app.privacy.mechanism_registration import Answering, HitState
from app.privacy.mechanisms import row_of
from app.privacy.voting.votes import aggregate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from app.noise.source import NoiseSource

BIN_COUNT_MIN: Final = 2
BIN_COUNT_MAX: Final = 1000

Parameters: TypeAlias = Answering
"""Those of the inner test; its cutoff is the number T of units."""

State: TypeAlias = HitState
"""The units used (public), and the sparse vector's threshold noise (secret), if any."""


@dataclass(frozen=True, slots=True)
class ScoreBin:
    """An interval of scores, closed below and open above, except at 1.

    Attributes:
        bin_count: the number of bins of the histogram that is not shifted.
        index: the bin's index from 0, below ``bin_count`` in the histogram that is not shifted and
            at most ``bin_count`` in the shifted one.
        shifted: whether the bin belongs to the histogram whose edges are shifted by half a bin.

    """

    bin_count: int
    index: int
    shifted: bool

    @property
    def lower(self) -> Fraction:
        """The smallest score in the interval."""
        return max(Fraction(0), self._half_edge(2 * self.index))

    @property
    def upper(self) -> Fraction:
        """The end of the interval: the start of the next one, or 1."""
        return min(Fraction(1), self._half_edge(2 * self.index + 2))

    @property
    def midpoint(self) -> Fraction:
        """The mid-point of the interval, which is released as the score."""
        return (self.lower + self.upper) / 2

    @property
    def label(self) -> int:
        """The class index of the interval's mid-point: the second class if it is at least 1/2."""
        return int(2 * self.midpoint >= 1)

    def _half_edge(self, number: int) -> Fraction:
        return Fraction(number - self.shifted, 2 * self.bin_count)


@dataclass(frozen=True, slots=True)
class PrivateBins:
    """The models' scores for one query, as inputs of the two stability tests.

    Attributes:
        bin_count: the number of bins of the histogram that is not shifted; public.
        plain: in the histogram that is not shifted, the index of the bin with the most scores, and
            the distance, secret.
        shifted: the same two numbers in the shifted histogram, secret.

    """

    bin_count: int
    plain: tuple[int, int]
    shifted: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The released outcome of a query: an interval of scores, or none.

    Attributes:
        released_bin: the bin on which the models agree; None if the query is unstable.
        hit_count: the number of the query's failed stability tests, 0 to 2.

    """

    released_bin: ScoreBin | None
    hit_count: int


def histogram(
    private_scores: NDArray[np.float64], bin_count: int, *, shifted: bool
) -> NDArray[np.int64]:
    """Return how many of a query's scores lie in each bin of a histogram; secret.

    Args:
        private_scores: one score from each of k models, shape ``(k,)``; a value that is not in [0,
            1] counts as 0.
        bin_count: the public number of bins of the histogram that is not shifted.
        shifted: whether the histogram's edges are shifted by half a bin.

    Returns:
        Shape ``(bin_count,)``, or ``(bin_count + 1,)`` if shifted; the counts add up to k.

    """
    invariant(BIN_COUNT_MIN <= bin_count <= BIN_COUNT_MAX, "a precision is 2 to 1000 bins")
    inside = (private_scores >= 0.0) & (private_scores <= 1.0)
    scores = np.where(inside, private_scores, 0.0)
    # By half bins, whose edges are the doubles nearest to them; a score on one belongs
    # above it.  A search would take a time that tells where the scores lie.
    last, half_count = 2 * bin_count - 1, 2 * bin_count
    halves = np.minimum((scores * half_count).astype(np.int64), last)
    halves += (halves < last) & (scores >= (halves + 1) / half_count)
    halves -= scores < halves / half_count
    indices = (halves + shifted) // 2
    return np.bincount(indices, minlength=bin_count + shifted).astype(np.int64)


def bin_scores(private_scores: NDArray[np.float64], bin_counts: Sequence[int]) -> list[PrivateBins]:
    """Return, for each query, the fullest bin of its histogram of scores and of the shifted one.

    Args:
        private_scores: the scores of k models for B queries, shape ``(B, k)``, secret.
        bin_counts: for each of the B queries the public number of bins.

    """
    return [
        PrivateBins(
            bin_count,
            plain=_largest(histogram(scores, bin_count, shifted=False)),
            shifted=_largest(histogram(scores, bin_count, shifted=True)),
        )
        for scores, bin_count in zip(private_scores, bin_counts, strict=True)
    ]


def initial_state(parameters: Parameters, noise: NoiseSource) -> State:
    """Return the state before the first query; only the sparse vector technique draws noise."""
    return row_of(parameters).start(parameters, noise)


def step(
    parameters: Parameters, state: State, private_value: PrivateBins, noise: NoiseSource
) -> tuple[State, Outcome]:
    """Return the next state and the outcome of up to two stability tests on a query's scores."""
    test, bin_count = _inner(parameters), private_value.bin_count
    index, distance = private_value.plain
    state, hit = test(parameters, state, distance, noise)
    if not hit:
        return state, Outcome(ScoreBin(bin_count, index, shifted=False), hit_count=0)
    if state.hit_count >= (parameters.cutoff or 0):
        return state, Outcome(None, hit_count=1)
    index, distance = private_value.shifted
    state, hit = test(parameters, state, distance, noise)
    if hit:
        return state, Outcome(None, hit_count=2)
    return state, Outcome(ScoreBin(bin_count, index, shifted=True), hit_count=1)


def _inner(parameters: Parameters) -> Callable[..., tuple[State, bool]]:
    """Return the inner mechanism's test, which has the one counter."""
    test = row_of(parameters).test
    if test is None:
        raise InvariantError("scores are tested for stability")
    return test


def _largest(private_count: NDArray[np.int64]) -> tuple[int, int]:
    """Return the largest bin's index, the first of equals, and its distance (Lemma S)."""
    index, distance = aggregate(private_count[None])
    return int(index[0]), int(distance[0])
