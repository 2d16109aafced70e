"""The entries of the mechanism ``noisy-vote`` in the table ``app/privacy/mechanisms.py``.

There are four entries: for two labels and for more labels, each also for releases that answer each
public cell once.

With two labels an answer is drawn by a table, which gives the probability of each label by its
number of votes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from app.noise.discrete_gaussian import DiscreteGaussian
from app.privacy.budget.ensemble_size import AGREEMENT_FACTOR, HIT_PROBABILITY_MAX
from app.privacy.mechanism_registration import Explained, MechanismRegistration, State, in_short
from app.privacy.noisy_vote import bit_vote, cell_vote_table, vote_table
from app.privacy.noisy_vote import calibration as accounting
from app.privacy.noisy_vote import mechanism as noisy_vote
from app.privacy.noisy_vote.calibration import BINARY, NoisyVoteCalibration
from app.privacy.noisy_vote.cell_vote_table import (
    DecisionBits,
    DecisionCounts,
    DecisionNoise,
    DecisionVotes,
    QuickDecisionVotes,
)
from app.privacy.noisy_vote.vote_table import QuickVoteTable, VoteTable

if TYPE_CHECKING:
    from fractions import Fraction

    from app.noise.source import NoiseSource
    from app.privacy.mechanism_registration import AnswersAsked
    from app.privacy.voting.votes import Tally


def _calibrate(asked: AnswersAsked, *, epsilon: Fraction, delta: Fraction) -> NoisyVoteCalibration:
    return accounting.calibrate(
        epsilon=epsilon,
        delta=delta,
        answer_limit=asked.targets.query_count,
        class_count=asked.class_count,
    )


def _is_of(calibration: NoisyVoteCalibration, asked: AnswersAsked) -> bool:
    limits = (calibration.answer_limit, calibration.class_count)
    return limits == (asked.targets.query_count, asked.class_count)


def _serve(calibration: NoisyVoteCalibration, ensemble_size: int) -> noisy_vote.Parameters:
    return noisy_vote.Parameters(
        vote_noise=DiscreteGaussian(calibration.variance),
        class_count=calibration.class_count,
        ensemble_size=ensemble_size,
        answer_limit=calibration.answer_limit,
    )


def _step(
    parameters: noisy_vote.Parameters, state: State, private_value: Tally, noise: NoiseSource
) -> tuple[State, int]:
    before = noisy_vote.State(state.answered_count)
    after, voted = noisy_vote.step(parameters, before, private_value.counts, noise)
    return State(after.answered_count, state.unstable_count), voted.label


def _explain(parameters: noisy_vote.Parameters) -> Explained:
    return Explained(
        "noisy vote",
        f"noise of variance {in_short(float(parameters.vote_noise.variance))}",
        "Noise is added to the votes and the winner is released. Every answer has a label.",
        "label = argmax of votes + discrete Gaussian noise",
    )


def _calibrate_bit(asked: AnswersAsked, *, epsilon: Fraction, delta: Fraction) -> VoteTable:
    return vote_table.calibrate(
        epsilon=epsilon,
        delta=delta,
        answer_limit=asked.targets.query_count,
        draws=asked.draws_at(epsilon),
    )


def _serve_bit(table: VoteTable, ensemble_size: int) -> bit_vote.Parameters:
    return bit_vote.Parameters(
        half=table.half(ensemble_size),
        ensemble_size=ensemble_size,
        answer_limit=table.answer_limit,
    )


def _step_bit(
    parameters: bit_vote.Parameters, state: State, private_value: Tally, noise: NoiseSource
) -> tuple[State, int]:
    before = noisy_vote.State(state.answered_count)
    after, voted = bit_vote.step(parameters, before, private_value.counts, noise)
    return State(after.answered_count, state.unstable_count), voted.label


def _explain_bit(parameters: bit_vote.Parameters) -> Explained:
    wanted, odd = HIT_PROBABILITY_MAX * bit_vote.WORD_RANGE, parameters.ensemble_size % 2
    needed = next((j for j, word in enumerate(parameters.half) if word < wanted), None)
    lead = "a table" if needed is None else f"a lead of {2 * needed + odd:,} votes"
    return Explained(
        "noisy vote",
        lead,
        "A label that is this far ahead of the other is answered 99 times in 100; the closer the "
        "vote, the nearer the answer is to a fair coin. Every answer has a label.",
        "label 1 if a random 64-bit word < P(v), v votes for it; P(k - v) = 2^64 - P(v)",
    )


NOISY_VOTE: Final = MechanismRegistration(
    mechanism="noisy-vote",
    takes=lambda class_count: class_count > BINARY,
    theorem="discrete Gaussian noise on the votes, accounted over all m answers",
    proof="app/privacy/noisy_vote/proof.md",
    parameters=noisy_vote.Parameters,
    calibrations=(NoisyVoteCalibration,),
    piece="noisy-vote-calibration",
    calibrate=_calibrate,
    check=accounting.check,
    read=NoisyVoteCalibration.from_plain,
    is_of=_is_of,
    serve=_serve,
    size_wanted=lambda served, _: AGREEMENT_FACTOR * served.lead_at(HIT_PROBABILITY_MAX),
    unstable_alike=lambda *_: 0.0,
    explain=_explain,
    step=_step,
    decides_cells=True,
    fits=lambda served, limits: (served.class_count, served.answer_limit) == limits,
)
NOISY_BIT: Final = MechanismRegistration(
    mechanism="noisy-vote",
    entry="noisy-bit",
    rule="table",
    takes=lambda class_count: class_count == BINARY,
    theorem="a table of one bit over the votes, by Renyi divergence over all m answers",
    proof="app/privacy/noisy_vote/bit_vote_proof.md",
    parameters=bit_vote.Parameters,
    calibrations=(VoteTable, QuickVoteTable),
    piece="noisy-vote-table",
    calibrate=_calibrate_bit,
    check=vote_table.check,
    read=VoteTable.from_plain,
    is_of=lambda table, asked: (
        (table.answer_limit, BINARY, table.draws)
        == (asked.targets.query_count, asked.class_count, asked.draws_at(table.epsilon))
    ),
    serve=_serve_bit,
    size_wanted=lambda served, _: AGREEMENT_FACTOR * served.lead_at(HIT_PROBABILITY_MAX),
    unstable_alike=lambda *_: 0.0,
    explain=_explain_bit,
    step=_step_bit,
    decides_cells=True,
    may_share_account=True,
    fits=lambda served, limits: (BINARY, served.answer_limit) == limits,
)


NOISY_VOTE_OF_CELLS: Final = replace(
    NOISY_VOTE,
    entry="noisy-vote-of-cells",
    rule="decisions",
    theorem="discrete Gaussian noise on the votes, accounted over the two decisions that a record "
    "moves, each public cell being decided once",
    parameters=DecisionCounts,
    calibrations=(DecisionNoise,),
    piece="noisy-vote-decisions",
    calibrate=lambda asked, *, epsilon, delta: cell_vote_table.calibrate_noise(
        epsilon=epsilon, delta=delta, class_count=asked.class_count
    ),
    check=cell_vote_table.check_noise,
    read=DecisionNoise.from_plain,
    is_of=lambda noise, asked: noise.class_count == asked.class_count,
    serve=lambda noise, ensemble_size: DecisionCounts(
        vote_noise=DiscreteGaussian(noise.variance),
        class_count=noise.class_count,
        ensemble_size=ensemble_size,
        answer_limit=None,
    ),
    fits=lambda served, limits: served.class_count == limits[0],
    counts_decisions=True,
)
NOISY_BIT_OF_CELLS: Final = replace(
    NOISY_BIT,
    entry="noisy-bit-of-cells",
    rule="table of decisions",
    theorem="a table of one bit over the votes, by Renyi divergence over the two decisions that a "
    "record moves, each public cell being decided once",
    parameters=DecisionBits,
    calibrations=(DecisionVotes, QuickDecisionVotes),
    piece="noisy-vote-decision-table",
    calibrate=lambda asked, *, epsilon, delta: cell_vote_table.calibrate_table(
        epsilon=epsilon, delta=delta, draws=asked.draws_at(epsilon)
    ),
    check=cell_vote_table.check_table,
    read=DecisionVotes.from_plain,
    is_of=lambda table, asked: (
        (BINARY, table.draws) == (asked.class_count, asked.draws_at(table.epsilon))
    ),
    serve=lambda table, ensemble_size: DecisionBits(
        half=table.half(ensemble_size), ensemble_size=ensemble_size, answer_limit=None
    ),
    fits=lambda _, limits: limits[0] == BINARY,
    counts_decisions=True,
)


def quick_bit_of_cells(
    asked: AnswersAsked, *, epsilon: Fraction, delta: Fraction
) -> QuickDecisionVotes:
    """Return approximate label probabilities of the two-label vote, with one answer per cell."""
    draws = asked.draws_at(epsilon)
    return cell_vote_table.quick_table(epsilon=epsilon, delta=delta, draws=draws)


def quick_bit(asked: AnswersAsked, *, epsilon: Fraction, delta: Fraction) -> QuickVoteTable:
    """Return approximate label probabilities of the two-label vote, for planning."""
    return vote_table.quick(
        epsilon=epsilon,
        delta=delta,
        answer_limit=asked.targets.query_count,
        draws=asked.draws_at(epsilon),
    )
