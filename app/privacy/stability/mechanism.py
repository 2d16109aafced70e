"""The stability test: it makes an answer unstable at random, likelier if few votes could change it.

A stability table has one threshold for each distance; the distance of a query is the number of
votes that may change without changing the leading label. An answer is unstable if a random 64-bit
integer is below the threshold.

**Algorithm.** The corrected A_stab with a table of probabilities in place of threshold noise
(Theorem A of ``proof.md``; Bassily, Thakkar, Thakurta 2018, Algorithm 2, is the origin). A query at
distance d is a hit (unstable) with probability p_d, decided by a new coin. The run ends at hit T;
it has no end if each public cell is answered once.

**Claim.** With a table that passes ``app.privacy.stability.hit_table.check``, any number of
adaptive queries is (epsilon, delta)-differentially private under replace-one, provided that the
distance moves by at most 1 between neighbours and is 0 on both if a stable answer would differ
between them. Without a cutoff T the table must pass ``app.privacy.stability.cell_table.check``, and
one record may change only a limited number of queries.

**Proof.** Induction, for a moment of the likelihood ratio (Renyi), over queries and over the hits
that are left before T, or over the queries that one record may still change:
``app/privacy/stability/proof.md``.

**Inputs and outputs.** ``distance``: non-negative integer, secret. Outcome: whether the query is a
hit, public. ``thresholds``: 64-bit integers, public; a query is a hit if and only if a new uniform
64-bit integer is below ``thresholds[min(distance, last)]``, ``last`` being the last index of the
table.

**Utility.** A query at distance d is stable with probability exactly 1 - thresholds[d] / 2^64.

**Deviations.** There is no threshold noise and no limit on the number of queries; the only state is
the number of hits. The loop runs while fewer than T answers were unstable, which corrects an error
in the paper.

**Raises.** ``InvariantError``: parameters out of range, a distance below 0, or a step after hit T.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.errors import InvariantError, invariant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.noise.source import NoiseSource

WORD_BITS = 64


@dataclass(frozen=True, slots=True)
class HitProfile:
    """The public stability table, without a limit of unstable answers."""

    thresholds: tuple[int, ...]

    @property
    def cutoff(self) -> int | None:
        """The number T of unstable answers after which the models stop; None without limit."""
        return None

    def __post_init__(self) -> None:
        """Raise an error unless the thresholds are in range and do not rise with the distance."""
        invariant(len(self.thresholds) > 0, "the hit profile has an entry")
        invariant(
            all(0 < threshold < 1 << WORD_BITS for threshold in self.thresholds),
            "every hit probability lies strictly between 0 and 1",
        )
        invariant(
            all(b <= a for a, b in zip(self.thresholds, self.thresholds[1:], strict=False)),
            "hit probabilities do not grow with the distance",
        )


@dataclass(frozen=True, slots=True)
class Parameters(HitProfile):
    """The public parameters: the stability table, and the cutoff T of unstable answers."""

    cutoff: int

    def __post_init__(self) -> None:
        """Raise an error for a table or a cutoff that is out of range."""
        invariant(self.cutoff >= 1, "the cutoff is at least 1")
        HitProfile.__post_init__(self)


@dataclass(frozen=True, slots=True)
class State:
    """The number of unstable answers that were given."""

    hit_count: int = 0


def initial_state(parameters: HitProfile, noise: NoiseSource) -> State:
    """Return the state before the first query, without drawing randomness.

    The state is the number of unstable answers so far.
    """
    del parameters, noise
    return State()


def step(
    parameters: HitProfile, state: State, distance: int, noise: NoiseSource
) -> tuple[State, bool]:
    """Return the next state, and whether the answer to a query at ``distance`` is unstable.

    The distance of a query is the number of votes that may change without changing the leading
    label.
    """
    _check(parameters, state, least_distance=distance)
    thresholds = parameters.thresholds
    last = len(thresholds) - 1
    hit = noise.word() < thresholds[min(distance, last)]
    return State(state.hit_count + hit), hit  # the same work for either


def steps(
    parameters: HitProfile, state: State, distances: NDArray[np.int64], noise: NoiseSource
) -> tuple[State, NDArray[np.bool_]]:
    """Return the results of several queries at once, up to the last allowed unstable answer.

    One random word is drawn for each query, and the words after unstable answer T are discarded.

    Args:
        parameters: the public parameters of the run.
        state: the state before the first of the queries.
        distances: the distances of B queries, at least one, shape ``(B,)``.
        noise: the source of randomness.

    Returns:
        The state after the last query that was decided, and for each decided query whether it is
        unstable, shape ``(b,)`` with ``b`` at most B.

    """
    _check(parameters, state, least_distance=int(distances.min()))
    thresholds = np.array(parameters.thresholds, dtype=np.uint64)
    words = np.array(noise.words(len(distances)), dtype=np.uint64)
    hits = words < thresholds[np.minimum(distances, len(thresholds) - 1)]
    left = None if parameters.cutoff is None else parameters.cutoff - state.hit_count
    places = np.flatnonzero(hits)[:left]
    decided = hits if left is None or len(places) < left else hits[: places[-1] + 1]
    return State(state.hit_count + len(places)), decided


def _check(parameters: HitProfile, state: State, *, least_distance: int) -> None:
    if parameters.cutoff is not None and state.hit_count >= parameters.cutoff:
        message = "no step after the cutoff"
        raise InvariantError(message)
    if least_distance < 0:  # as an index it would count from the table's end
        message = "a distance is not negative"
        raise InvariantError(message)
