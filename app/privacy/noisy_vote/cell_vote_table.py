"""The noisy vote if each public cell is answered once, so a record can change only two answers.

The table gives the probability of each label by its number of votes.

The lead of a label is its number of votes minus that of the next label. If each public cell is
answered once, the noise does not depend on the number of answers.

Claim: of any number of adaptive answers, let at most ``DECISIONS_MOVED`` have different votes on
neighbouring data sets. Take a table, or a noise variance, that passes its module's check for
``DECISIONS_MOVED`` answers. Then all answers together are (epsilon, delta)-differentially private.
Proof: ``app/privacy/noisy_vote/bit_vote_proof.md`` and ``proof.md``, *Counted decisions*.

A decision is the answer given for one cell. The claim requires that each cell is decided once and
its answer reused. If a cell were decided twice, it would count as two decisions.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeVar

from app.errors import invariant
from app.privacy.noisy_vote import bit_vote, vote_table
from app.privacy.noisy_vote import calibration as accounting
from app.privacy.noisy_vote import mechanism as noisy_vote
from app.privacy.noisy_vote.calibration import ANSWERS_MAX, WANTED_LOSS, NoisyVoteCalibration
from app.privacy.noisy_vote.vote_table import QuickVoteTable, VoteTable
from app.privacy.stability.cell_table import DECISIONS_MOVED

if TYPE_CHECKING:
    from fractions import Fraction

    from app.privacy.budget.account import Draw
    from app.privacy.noisy_vote.vote_curve import Floats

KindT = TypeVar("KindT", bound=QuickVoteTable | NoisyVoteCalibration)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickDecisionVotes(QuickVoteTable):
    """Approximate label probabilities for two labels, if each public cell is answered once."""

    def lost(self, leads: Floats, /, *, answers: int) -> Floats:
        """Return, for each lead, the chance that noise changes the label; ``answers`` is unused."""
        del answers
        return self.curve.lost(leads)

    def answers_within(self, lead: int, /) -> int:
        """Return ``ANSWERS_MAX`` if noise changes at most 1% of labels with this lead, else 0."""
        return ANSWERS_MAX if lead >= self.lead_at(WANTED_LOSS) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionVotes(VoteTable):
    """The two-label vote's table of label probabilities, if each public cell is answered once."""

    def lost(self, leads: Floats, /, *, answers: int) -> Floats:
        """Return, for each lead, the chance that noise changes the label; ``answers`` is unused."""
        del answers
        return self.curve.lost(leads)

    def answers_within(self, lead: int, /) -> int:
        """Return ``ANSWERS_MAX`` if noise changes at most 1% of labels with this lead, else 0."""
        return ANSWERS_MAX if lead >= self.lead_at(WANTED_LOSS) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionNoise(NoisyVoteCalibration):
    """The noise of a vote among three or more labels, if each public cell is answered once."""

    def lost(self, leads: Floats, /, *, answers: int) -> Floats:
        """Return, for each lead, the chance that noise changes the label; ``answers`` is unused."""
        del answers
        return NoisyVoteCalibration.lost(self, leads, answers=self.answer_limit)

    def answers_within(self, lead: int, /) -> int:
        """Return ``ANSWERS_MAX`` if noise changes at most 1% of labels with this lead, else 0."""
        return ANSWERS_MAX if lead >= self.lead_at(WANTED_LOSS) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionBits(bit_vote.Parameters):
    """The public parameters of a two-label vote that answers each public cell once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionCounts(noisy_vote.Parameters):
    """The public parameters of a vote among three or more labels that answers each cell once."""


def quick_table(
    *, epsilon: Fraction, delta: Fraction, draws: tuple[Draw, ...] = ()
) -> QuickDecisionVotes:
    """Return approximate label probabilities of a two-label vote with one answer per cell."""
    found = vote_table.quick(
        epsilon=epsilon, delta=delta, answer_limit=DECISIONS_MOVED, draws=draws
    )
    return _as(QuickDecisionVotes, found)


def calibrate_table(
    *, epsilon: Fraction, delta: Fraction, draws: tuple[Draw, ...] = ()
) -> DecisionVotes:
    """Return the two-label table for a budget, if each public cell is answered once.

    Args:
        epsilon: the answers' share of epsilon, from 1e-6 to 1000; if there are draws, the epsilon
            of answers and draws together.
        delta: the answers' share of delta, from 1e-200 to 0.5.
        draws: the draws of a relabelling rule and of a classifier whose cost is computed jointly
            with that of the answers.

    Raises:
        ConfigurationError: the budget is out of range, or its table would be too long.

    """
    found = vote_table.calibrate(
        epsilon=epsilon, delta=delta, answer_limit=DECISIONS_MOVED, draws=draws
    )
    return _as(DecisionVotes, found)


def calibrate_noise(*, epsilon: Fraction, delta: Fraction, class_count: int) -> DecisionNoise:
    """Return the noise of a vote on three or more labels, if each public cell is answered once."""
    found = accounting.calibrate(
        epsilon=epsilon, delta=delta, answer_limit=DECISIONS_MOVED, class_count=class_count
    )
    return _as(DecisionNoise, found)


def check_table(table: DecisionVotes) -> None:
    """Raise an error unless a two-label table keeps the privacy claim, before it is used.

    Raises:
        InvariantError: a condition of the privacy claim does not hold.

    """
    invariant(table.answer_limit == DECISIONS_MOVED, "the table is for the decisions that differ")
    vote_table.check(table)


def check_noise(noise: DecisionNoise) -> None:
    """Raise an error unless the noise for three or more labels keeps the privacy claim."""
    invariant(noise.answer_limit == DECISIONS_MOVED, "the noise is for the decisions that differ")
    accounting.check(noise)


def _as(kind: type[KindT], found: QuickVoteTable | NoisyVoteCalibration) -> KindT:
    """Return a calibration for so many answers as one for so many decisions."""
    return kind(**{each.name: getattr(found, each.name) for each in fields(found)})
