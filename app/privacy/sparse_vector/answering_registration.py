"""The sparse vector technique's entry in the table of answering mechanisms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.errors import InvariantError
from app.noise.discrete_laplace import DiscreteLaplace
from app.privacy.budget.ensemble_size import hits_alike, size_of_test
from app.privacy.mechanism_registration import (
    Explained,
    HitState,
    MechanismRegistration,
    in_short,
    step_of,
)
from app.privacy.sparse_vector import calibration as svt
from app.privacy.sparse_vector import mechanism as sparse_vector

if TYPE_CHECKING:
    from fractions import Fraction

    from app.noise.source import NoiseSource
    from app.privacy.mechanism_registration import AnswersAsked


def _calibrate(asked: AnswersAsked, *, epsilon: Fraction, delta: Fraction) -> svt.SvtCalibration:
    return svt.calibrate(epsilon=epsilon, delta=delta, cutoff=asked.cutoff)


def _serve(calibration: svt.SvtCalibration, _: int) -> sparse_vector.Parameters:
    return sparse_vector.Parameters(
        threshold=calibration.threshold,
        threshold_noise=DiscreteLaplace(calibration.threshold_scale),
        query_noise=DiscreteLaplace(calibration.query_scale),
        cutoff=calibration.cutoff,
        refreshed=calibration.variant is svt.Variant.REFRESHED,
    )


def _start(parameters: sparse_vector.Parameters, noise: NoiseSource) -> HitState:
    opened = sparse_vector.initial_state(parameters, noise)
    return HitState(opened.hit_count, opened.private_threshold_noise)


def _test(
    parameters: sparse_vector.Parameters, state: HitState, distance: int, noise: NoiseSource
) -> tuple[HitState, bool]:
    if state.private_threshold_noise is None:
        raise InvariantError("the threshold's noise is kept while it answers")
    before = sparse_vector.State(state.hit_count, state.private_threshold_noise)
    after, outcome = sparse_vector.step(parameters, before, distance, noise)
    return HitState(after.hit_count, after.private_threshold_noise), outcome.hit


def _explain(test: sparse_vector.Parameters) -> Explained:
    return Explained(
        "stability test",
        f"threshold {test.threshold}",
        "A query gets its label when the leading label stays ahead of the noise added to its "
        "lead. Few and split votes fail this, and count as unstable.",
        f"label if d + Lap({in_short(float(test.query_noise.scale))}) > {test.threshold} "
        f"+ Lap({in_short(float(test.threshold_noise.scale))})",
    )


SPARSE_VECTOR: Final = MechanismRegistration(
    mechanism="stability",
    calibration="svt",
    theorem="the sparse vector with exact scales, one threshold for all hits or one for each",
    proof="app/privacy/sparse_vector/proof.md",
    parameters=sparse_vector.Parameters,
    calibrations=(svt.SvtCalibration,),
    piece="svt-calibration",
    calibrate=_calibrate,
    check=svt.check,
    read=svt.SvtCalibration.from_plain,
    serve=_serve,
    size_wanted=size_of_test,
    unstable_alike=hits_alike,
    explain=_explain,
    step=step_of(_test),
    start=_start,
    test=_test,
    keeps_threshold=True,
    is_refreshed=lambda parameters: parameters.refreshed,
)
