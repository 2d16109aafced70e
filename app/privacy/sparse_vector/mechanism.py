"""The sparse vector technique: which integers of a stream, with noise, exceed a noisy threshold.

**Algorithm.** A_sparseVec (Bassily, Thakkar, Thakurta 2018, Algorithm 1), corrected. A query of
value q is released if q + nu > w + rho, w being the threshold, nu a new noise for every query and
rho the noise of the threshold. A query that is not released is a hit. rho is drawn once, or again
after each hit, and the run ends at hit number T. If the value of a query is its distance (the
number of votes that may change without changing the leading label), and the label of every released
query is given out, this is A_OQR (Algorithm 3), and for a single query A_stab (Algorithm 2).

**Claim.** Let nu have scale b2 and rho scale b1, and let a query's value move by at most 1 between
neighbours. If rho is drawn once, the hits of any number of adaptive queries are together (1/b1 +
2T/b2)-private. If rho is drawn after each hit, they are as private as T mechanisms of 1/b1 + 2/b2
together. Suppose that a query's value is 0 on both neighbours if its label, when released, would
differ between them. Then labels may be released too, at an additional delta of T P(nu - rho > w);
``app.privacy.sparse_vector.calibration`` chooses the parameters.

**Proof.** Couple rho with rho - 1 and pay for each hit's nu:
``app/privacy/sparse_vector/proof.md``.

**Inputs and outputs.** ``private_value``: an integer in the query's own unit, here votes, secret.
Outcome: whether the query is a hit, public. rho is secret, is kept over restarts, and is never
drawn at any other time.

**Utility.** A query of value d > w is a hit with probability P(nu - rho >= d - w);
``app.privacy.sparse_vector.calibration.SvtCalibration.hit_probability`` computes it.

**Deviations.** The loop runs while there were fewer than T hits, which corrects an error in the
paper. The noise is discrete Laplace, drawn exactly, in place of a real number that floating point
would round. The scales are those of the claim, not ``sqrt(32 T ln(1/delta))/epsilon``, and w
accounts for the noise of the threshold, which corrects the paper.

**Raises.** ``InvariantError``: parameters out of range, or a step after hit T; the state does not
change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.errors import InvariantError, invariant

if TYPE_CHECKING:
    from app.noise.discrete_laplace import DiscreteLaplace
    from app.noise.source import NoiseSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The public parameters of the sparse vector technique.

    Attributes:
        threshold: w, the threshold, in the unit of the queries' values.
        threshold_noise: the distribution of the threshold's noise rho, of scale b1.
        query_noise: the distribution of a query's noise nu, of scale b2.
        cutoff: T, the number of hits (unstable answers) after which the run ends.
        refreshed: whether rho is drawn again after each hit.

    """

    threshold: int
    threshold_noise: DiscreteLaplace
    query_noise: DiscreteLaplace
    cutoff: int
    refreshed: bool

    def __post_init__(self) -> None:
        """Raise an error for parameters that are out of range."""
        invariant(self.cutoff >= 1, "the cutoff is at least 1")


@dataclass(frozen=True, slots=True)
class State:
    """The number of unstable answers so far (public), and the threshold's noise (secret)."""

    hit_count: int
    private_threshold_noise: int = field(repr=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The released outcome of a query: whether its noisy value was below the noisy threshold."""

    hit: bool


def initial_state(parameters: Parameters, noise: NoiseSource) -> State:
    """Return the state before the first query, with newly drawn threshold noise."""
    return State(0, parameters.threshold_noise.draw(noise))


def step(
    parameters: Parameters, state: State, private_value: int, noise: NoiseSource
) -> tuple[State, Outcome]:
    """Return the next state, and whether a query's noisy value was below the noisy threshold.

    Nothing that depends on the outcome may leave the server before the next state is stored
    durably.
    """
    if state.hit_count >= parameters.cutoff:
        message = "no step after the cutoff"
        raise InvariantError(message)
    query_noise = parameters.query_noise.draw(noise)
    if private_value + query_noise > parameters.threshold + state.private_threshold_noise:
        return state, Outcome(hit=False)
    following = state.private_threshold_noise
    if parameters.refreshed:
        following = parameters.threshold_noise.draw(noise)
    return State(state.hit_count + 1, following), Outcome(hit=True)
