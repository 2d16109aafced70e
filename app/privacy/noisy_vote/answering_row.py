"""The row of mechanism ``noisy-vote``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.noise.discrete_gaussian import DiscreteGaussian
from app.privacy.answering_rows import AnsweringRow, Explained, State, in_short
from app.privacy.budget.ensemble_size import AGREEMENT_FACTOR, HIT_PROBABILITY_MAX
from app.privacy.noisy_vote import calibration as accounting
from app.privacy.noisy_vote import mechanism as noisy_vote
from app.privacy.noisy_vote.calibration import NoisyVoteCalibration

if TYPE_CHECKING:
    from fractions import Fraction

    from app.noise.source import NoiseSource
    from app.privacy.answering_rows import AnswersAsked
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


NOISY_VOTE: Final = AnsweringRow(
    mechanism="noisy-vote",
    theorem="discrete Gaussian noise on the votes, by Renyi divergence over all m answers",
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
