"""The stability test: a random coin makes an answer unstable, likelier if few votes decide it.

**Algorithm.** The corrected A_stab with a hit profile in place of threshold
noise (Theorem A of the privacy design; Bassily, Thakkar, Thakurta 2018,
Algorithm 2, is the ancestor).  A query at distance d from instability is a hit
with probability p_d, decided by a fresh coin; the run halts at the T-th hit, or at
none where decisions are counted.

**Claim.** With a table that passes ``app.privacy.stability.hit_table.check``, any
number of adaptive queries is (epsilon, delta)-differentially private under
replace-one, provided that the distance moves by at most 1 between neighbours
and is 0 on both sides wherever the answer differs.  Without a T the table is one that passes
``app.privacy.stability.decision_table.check``, and the queries that differ are counted.

**Proof.** Renyi induction over queries and hits left, or over decisions left:
``app/privacy/stability/proof.md``.

**Inputs and outputs.** ``distance``: non-negative integer, secret.  Outcome:
whether the query is a hit, public.  ``thresholds``: 64-bit integers, public; a
hit iff a fresh uniform word is below ``thresholds[min(distance, last)]``.

**Utility.** A query at distance d is stable with probability exactly
1 - thresholds[d] / 2^64.

**Deviations.** No threshold noise and no limit on the number of queries; the
only state is the hit counter.  The loop runs while ``c < T`` (erratum b).

**Raises.** ``InvariantError``: parameters out of range, a distance below 0, or
a step after the T-th hit.
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
        """The limit T of unstable answers; None if they are not limited."""
        return None

    def __post_init__(self) -> None:
        """Refuse what no table looks like."""
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
    """The public parameters: the stability table, and the limit T of unstable answers."""

    cutoff: int

    def __post_init__(self) -> None:
        """Refuse what no table of Theorem A looks like."""
        invariant(self.cutoff >= 1, "the cutoff is at least 1")
        HitProfile.__post_init__(self)


@dataclass(frozen=True, slots=True)
class State:
    """The number of unstable answers that were given."""

    hit_count: int = 0


def initial_state(parameters: HitProfile, noise: NoiseSource) -> State:
    """Return the state before the first query, without drawing randomness."""
    del parameters, noise
    return State()


def step(
    parameters: HitProfile, state: State, distance: int, noise: NoiseSource
) -> tuple[State, bool]:
    """Return the next state, and whether the answer to a query at ``distance`` is unstable."""
    _check(parameters, state, least_distance=distance)
    thresholds = parameters.thresholds
    last = len(thresholds) - 1
    hit = noise.word() < thresholds[min(distance, last)]
    return State(state.hit_count + hit), hit  # the same work for either


def steps(
    parameters: HitProfile, state: State, distances: NDArray[np.int64], noise: NoiseSource
) -> tuple[State, NDArray[np.bool_]]:
    """Return the results of several queries at once, up to the last allowed unstable answer.

    A word is drawn for each query, and those beyond the T-th hit are forgotten.

    Args:
        parameters: of the run.
        state: before the first of them.
        distances: of one query or more, shape ``(B,)``.
        noise: whence a fresh word comes for each.

    Returns:
        The state after the last query that was decided, and which are hits, shape
        ``(b,)`` with ``b`` at most B.

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
