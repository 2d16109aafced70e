"""The noisy vote: after Gaussian noise on every vote count, the label with the largest count.

**Algorithm.** Gaussian noise is added to the vote count of every label, and the label with the
largest noisy count is answered, on the votes of sub-sample and aggregate (in place of Bassily,
Thakkar, Thakurta 2018, Algorithm 4, steps 5 and 6). New releases with two labels use a table
instead (``app.privacy.noisy_vote.bit_vote``). Two-label releases that earlier versions opened add
noise to the count of the second label only, since both counts add up to k.

**Claim.** If one vote is replaced, the answers to any m adaptive queries are (epsilon,
delta)-differentially private for the variance that ``app.privacy.noisy_vote.calibration`` finds and
checks.

**Proof.** Renyi divergences of the discrete Gaussian add up, or the noise is accounted as normal
noise: ``app/privacy/noisy_vote/proof.md``.

**Inputs and outputs.** ``private_vote_count``: one integer for each label, k in total, secret.
Outcome: the index of a label, public.

**Utility.** With two labels and noise of variance s^2, a label that leads by 2 x votes loses with
probability at most e^(-x^2 / (2 s^2)).

**Deviations.** Every query is answered and no answer is unstable; the run ends after m answers. The
noise is the exact discrete Gaussian. It does not satisfy Gaussian differential privacy (GDP) with
parameter mu at s = sqrt(m)/mu, as normal noise does; it is accounted as normal noise of variance
s^2 - 16.

**Raises.** ``InvariantError``: parameters out of range, counts that do not add up to k votes, or a
step after answer m; the state does not change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.errors import InvariantError, invariant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.noise.discrete_gaussian import DiscreteGaussian
    from app.noise.source import NoiseSource

BINARY = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The public parameters of the noisy vote on counts.

    Attributes:
        vote_noise: the distribution of the noise on one count, of variance s^2.
        class_count: the number L of labels.
        ensemble_size: the number k of votes.
        answer_limit: m, the number of answers after which the models stop; None if each public cell
            is answered once.

    """

    vote_noise: DiscreteGaussian
    class_count: int
    ensemble_size: int
    answer_limit: int | None

    def __post_init__(self) -> None:
        """Raise an error for parameters that are out of range."""
        invariant(self.class_count >= BINARY, "there are two or more classes")
        invariant(self.ensemble_size >= 1, "there is a vote")
        invariant(self.answer_limit is None or self.answer_limit >= 1, "there is an answer")

    @property
    def cutoff(self) -> None:
        """None, since the noisy vote has no unstable answers to limit."""
        return


@dataclass(frozen=True, slots=True)
class State:
    """The number of answers that the noisy vote has given."""

    answered_count: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The released outcome of a noisy vote: the class index of the largest noisy count."""

    label: int


def initial_state(parameters: Parameters, noise: NoiseSource) -> State:
    """Return the state before the first query; no randomness is drawn."""
    del parameters, noise
    return State()


def step(
    parameters: Parameters,
    state: State,
    private_vote_count: Sequence[int],
    noise: NoiseSource,
) -> tuple[State, Outcome]:
    """Return the next state, and the label with the largest noisy count of votes."""
    limit = parameters.answer_limit
    if limit is not None and state.answered_count >= limit:
        message = "no step after the last answer"
        raise InvariantError(message)
    invariant(len(private_vote_count) == parameters.class_count, "there is a count for each class")
    invariant(sum(private_vote_count) == parameters.ensemble_size, "every model casts one vote")
    noisy_vote_count = _with_noise(parameters, private_vote_count, noise)
    label = max(range(parameters.class_count), key=noisy_vote_count.__getitem__)
    return State(state.answered_count + 1), Outcome(label)


def _with_noise(
    parameters: Parameters, private_vote_count: Sequence[int], noise: NoiseSource
) -> list[int]:
    """Add noise; of two counts the first is what the second one leaves of k."""
    if parameters.class_count == BINARY:
        second = private_vote_count[1] + parameters.vote_noise.draw(noise)
        return [parameters.ensemble_size - second, second]
    return [count + parameters.vote_noise.draw(noise) for count in private_vote_count]
