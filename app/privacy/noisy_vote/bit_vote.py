"""The noisy vote for two labels: a table gives each label's probability by its vote count.

**Algorithm.** Sub-sample and aggregate (Bassily, Thakkar, Thakurta 2018, Algorithm 4), with a table
in place of the stability test. If v models vote for label 1, label 1 is answered with probability
``P(v) / 2^64``, otherwise label 0; ``P(v)`` is the table's integer.

**Claim.** With a table that passes ``app.privacy.noisy_vote.vote_table.check``, the answers to m
adaptive queries are (epsilon, delta)-differentially private under replacement of one record,
provided that replacing a record changes v by at most 1.

**Proof.** Induction over answers for a moment of the likelihood ratio (Renyi):
``app/privacy/noisy_vote/bit_vote_proof.md``.

**Inputs and outputs.** ``private_vote_count``: the votes for both labels, k in total, secret.
Outcome: the index of a label, public. ``half``: half of the table, 64-bit integers, public; entry j
is for a label that is j votes short of half the votes, rounded down, and counts the 64-bit random
words that give this label.

**Utility.** Label 1 with v votes is answered with probability exactly ``P(v) / 2^64``, and label 0
with the remaining probability.

**Deviations.** The label is drawn by the table, without noise on the counts, so no noisy count is
paid for. Every query is answered and no answer is unstable; the run ends after m answers. A tie of
an even number k of votes is decided by a fair coin.

**Raises.** ``InvariantError``: parameters out of range, counts that do not add up to k votes, or a
step after answer m; the state does not change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.errors import InvariantError, invariant
from app.privacy.noisy_vote.mechanism import BINARY, Outcome, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.noise.source import NoiseSource

WORD_RANGE = 1 << 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The public parameters of the two-label noisy vote.

    The table gives the probability of each label by its number of votes.

    Attributes:
        half: half of the table of label probabilities, for k votes, from a tie outwards.
        ensemble_size: the number k of votes.
        answer_limit: m, the number of answers after which the models stop; None if each public cell
            is answered once.

    """

    half: tuple[int, ...]
    ensemble_size: int
    answer_limit: int | None

    def __post_init__(self) -> None:
        """Raise an error for parameters that are out of range."""
        invariant(len(self.half) > 0, "the half table has an entry")
        invariant(all(0 < word < WORD_RANGE for word in self.half), "words lie inside their range")
        falls = all(b <= a for a, b in zip(self.half, self.half[1:], strict=False))
        invariant(falls and 2 * self.half[0] <= WORD_RANGE, "words fall from the half outwards")
        invariant(self.ensemble_size >= 1, "there is a vote")
        invariant(self.answer_limit is None or self.answer_limit >= 1, "there is an answer")

    @property
    def cutoff(self) -> None:
        """None, since the noisy vote has no unstable answers to limit."""
        return

    def words_of_one(self, vote_count: int) -> int:
        """Return how many 64-bit random words give label 1 if v votes are for it, ``P(v)``.

        The table of the vote gives the probability of label 1 as a number of 64-bit random words.
        """
        middle, last = self.ensemble_size // 2, len(self.half) - 1
        if vote_count <= middle:
            return self.half[min(middle - vote_count, last)]
        short = middle - (self.ensemble_size - vote_count)
        return WORD_RANGE - self.half[min(short, last)]


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
    """Return the next state and the label of a query whose labels have these vote counts."""
    limit = parameters.answer_limit
    if limit is not None and state.answered_count >= limit:
        message = "no step after the last answer"
        raise InvariantError(message)
    invariant(len(private_vote_count) == BINARY, "there is a count for each class")
    invariant(min(private_vote_count) >= 0, "a vote count is not negative")
    invariant(sum(private_vote_count) == parameters.ensemble_size, "every model casts one vote")
    label = int(noise.word() < parameters.words_of_one(private_vote_count[1]))
    return State(state.answered_count + 1), Outcome(label)
