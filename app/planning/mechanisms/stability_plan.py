"""Planning of a stability test: whether enough of the models agree for stable answers.

A stability test gives a query its label only if the label's lead in votes, with noise, is large
enough; otherwise the answer is unstable. The stability table has the probability of an unstable
answer for each distance of a query.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from app.errors import invariant
from app.planning.capacity import capacity_of_test
from app.planning.mechanisms.planning_registration import (
    SHOWN_PROBABILITIES,
    Document,
    PlanningRegistration,
)
from app.planning.mechanisms.release_sizes import (
    chunk_rows_wanted,
    fed_size,
    resolve_ensemble_size,
    rows_for,
    starved_reasons,
)
from app.planning.plan_result import Stability, Verdict
from app.planning.trial.forecast import (
    forecast_of_table,
    forecast_of_threshold,
    tested_beside_leaves,
)
from app.privacy.budget.ensemble_size import (
    approximate_decisions,
    approximate_profile,
    distance_at_unanimity,
    largest_hit_probability,
    size_at_unanimity,
    tested,
    wanted_hit_probability,
)
from app.privacy.mechanism_registration import own
from app.privacy.mechanisms import size_wanted
from app.privacy.sparse_vector import calibration as svt
from app.privacy.sparse_vector.answering_registration import SPARSE_VECTOR
from app.privacy.stability.answering_registration import PROFILE, PROFILE_OF_CELLS
from app.privacy.stability.cell_table import DecisionTable
from app.privacy.stability.certified import certified_table
from app.privacy.stability.certified.certified_registration import CERTIFIED, shared_with
from app.privacy.stability.hit_table import ProfileTable
from app.privacy.stability.table_inequality import WORD_BITS

if TYPE_CHECKING:
    from app.planning.request import PlanRequest
    from app.privacy.budget.ensemble_size import ApproximateProfile, HitTest
    from app.privacy.budget.sampled_budget import PipelineBudget
    from app.privacy.mechanism_registration import AnswersAsked, Calibration

EPSILON_ADVISED_MAX: Final = 20
# Beyond this a table of Theorem A takes longer than a comparison is worth.
TABLE_CUTOFF_MAX: Final = 10_000


def plan_stability(request: PlanRequest, budget: PipelineBudget) -> Verdict:
    """Return the number of models, the test, and whether unanimous votes pass it.

    A release is infeasible if it has more chunks than rows, or if even queries with unanimous votes
    would reach the cutoff (number of unstable answers) before the number m of answers.

    Raises:
        ConfigurationError: no test fits the budget.

    """
    calibration = request.row.calibrate(
        request.asked, epsilon=budget.answers_epsilon, delta=budget.answers_delta
    )
    size = resolve_ensemble_size(request, calibration)
    stability = weigh(request, calibration, size)
    reasons = starved_reasons(request, size) + unstable_reasons(request, stability, size)
    sampled = request.sampled_row_count
    return Verdict(
        calibration=calibration,
        reasons=reasons,
        advice=_advice(request, stability, budget) if reasons else (),
        notes=_notes(request, stability, size),
        cutoff=calibration.cutoff,
        ensemble_size=size,
        chunk_row_count=None if sampled is None else sampled // size,
        rows_needed=_rows_needed(request, stability),
        stability=stability,
    )


def weigh(request: PlanRequest, calibration: Calibration, size: int) -> Stability:
    """Return the agreement that a stability test needs, and how it treats unanimous votes.

    Args:
        request: the planned release.
        calibration: the noise parameters of the stability test.
        size: the number k of models.

    """
    test = tested(calibration)
    limits = request.query_count, test.cutoff
    wanted_probability = wanted_hit_probability(*limits)
    wanted_distance = test.distance_at(wanted_probability)
    unanimous_distance = distance_at_unanimity(size)
    return Stability(
        calibration=test,
        wanted_probability=wanted_probability,
        wanted_distance=wanted_distance,
        wanted_agreement=(size + size_at_unanimity(wanted_distance)) / (2 * size),
        largest_probability=largest_hit_probability(*limits),
        unanimous_distance=unanimous_distance,
        unanimous_probability=test.hit_probability(unanimous_distance),
    )


def unstable_reasons(request: PlanRequest, stability: Stability, size: int) -> tuple[str, ...]:
    """Return the reasons why even unanimous votes give too few answers; none if they suffice."""
    if stability.unanimous_probability <= stability.largest_probability:
        return ()
    reason = (
        f"even if all k = {size} votes agree, a query is unstable with probability"
        f" {stability.unanimous_probability:.3g}; at most"
        f" {stability.largest_probability:.3g} "
    )
    cutoff = stability.calibration.cutoff
    if cutoff is None:
        return (f"{reason}is worth asking",)
    return (f"{reason}lets m = {request.query_count} queries through a cutoff of T = {cutoff}",)


def _size_needed(request: PlanRequest, calibration: HitTest) -> int:
    """Smallest k whose unanimous votes get through."""
    largest = largest_hit_probability(request.query_count, calibration.cutoff)
    return size_at_unanimity(calibration.distance_at(largest))


def _rows_needed(request: PlanRequest, stability: Stability) -> int:
    """Smallest n at which the smallest workable k leaves chunks enough rows."""
    if request.ensemble_size is not None:
        return rows_for(request, request.ensemble_size)
    size = _size_needed(request, stability.calibration)
    return rows_for(request, size * chunk_rows_wanted(request))


def _advice(request: PlanRequest, stability: Stability, budget: PipelineBudget) -> tuple[str, ...]:
    size = _size_needed(request, stability.calibration)
    fed = fed_size(request)
    if fed is None:
        return (f"set answers.ensemble to {size} or more, or leave it to auto",)
    if fed >= size:
        return (f"set answers.ensemble to {size} up to {fed}, or leave it to auto",)
    needed = rows_for(request, size * chunk_rows_wanted(request))
    cutoff_advice = "or lower answers.cutoff, with which the votes needed fall"
    return (
        f"have n = {needed} {request.unit}s or more: at this budget k = {size} votes are the least",
        *_epsilon_advice(request, stability, budget, fed=fed),
        *((cutoff_advice,) if stability.calibration.cutoff is not None else ()),
    )


def _epsilon_advice(
    request: PlanRequest, stability: Stability, budget: PipelineBudget, *, fed: int
) -> tuple[str, ...]:
    """Name an epsilon that would do, where every row is in the ensemble."""
    if budget.sampling_rate < 1:
        more = f"gives the ensemble more {request.unit}s and less to spend"
        return (f"or raise privacy.sampling, which {more}",)
    epsilon = _epsilon_needed(request, stability.calibration, budget, fed=fed)
    whose = "the answers'" if budget.account is None else "the account's"
    raised = (
        f"or raise {whose} epsilon from {float(budget.answers_epsilon):g} to {float(epsilon):g}"
    )
    return (raised,) if epsilon <= EPSILON_ADVISED_MAX else ()


def _epsilon_needed(
    request: PlanRequest,
    calibration: HitTest,
    budget: PipelineBudget,
    *,
    fed: int,
) -> Fraction:
    """Find an epsilon, in tenths, at which as many votes as the rows feed suffice.

    Votes needed go about as ``1/epsilon``, so a few steps get there, or past what is
    worth advising, for which there may be no table.
    """
    epsilon, size = budget.answers_epsilon, _size_needed(request, calibration)
    while size > fed and epsilon <= EPSILON_ADVISED_MAX:
        grown = 1 + math.floor(10 * epsilon * Fraction(size, max(1, fed)))
        epsilon = Fraction(grown, 10)
        if epsilon > EPSILON_ADVISED_MAX:
            break
        raised = request.row.calibrate(request.asked, epsilon=epsilon, delta=budget.answers_delta)
        size = _size_needed(request, tested(raised))
    return epsilon


def _notes(request: PlanRequest, stability: Stability, size: int) -> tuple[str, ...]:
    notes = []
    sampled = request.sampled_row_count
    if sampled is None:
        needed = _rows_needed(request, stability)
        notes.append(f"n is not known; it takes {needed} {request.unit}s or more")
    elif sampled // size < chunk_rows_wanted(request):
        notes.append(
            f"chunks of {sampled // size} {request.unit}s are small for"
            f" {request.hypothesis_count} hypotheses: learners will often disagree"
        )
    wanted = size_wanted(table=stability.calibration, query_count=request.query_count)
    if size < wanted and stability.wanted_agreement <= 1:
        notes.append(
            f"queries on which {stability.wanted_agreement:.0%} of the votes agree are safe;"
            f" k = {wanted} would do for two thirds"
        )
    return tuple(notes)


def _approximate(asked: AnswersAsked, *, epsilon: Fraction, delta: Fraction) -> ApproximateProfile:
    draws = asked.draws_at(epsilon)
    return approximate_profile(epsilon=epsilon, delta=delta, cutoff=asked.cutoff, draws=draws)


def _approximate_certified(
    asked: AnswersAsked, *, epsilon: Fraction, delta: Fraction
) -> certified_table.ApproximateCertified:
    shared = shared_with(asked, epsilon)
    return certified_table.approximate(
        epsilon=epsilon, delta=delta, cutoff=asked.cutoff, shared=shared
    )


def _variant(
    variant: svt.Variant, asked: AnswersAsked, *, epsilon: Fraction, delta: Fraction
) -> svt.SvtCalibration:
    return svt.calibrate_variant(variant, epsilon=epsilon, delta=delta, cutoff=asked.cutoff)


def exact_number(value: Fraction) -> msgspec.Raw:
    """Return a binary fraction as a JSON number with all of its decimal digits.

    A reader that parses it as a floating-point or decimal number gets exactly the value that the
    server uses.
    """
    bits = value.denominator.bit_length() - 1
    invariant(value > 0 and value.denominator == 1 << bits, "a positive binary fraction")
    digits = str(value.numerator * 5**bits).rjust(bits + 1, "0")
    whole, decimals = digits[: len(digits) - bits], digits[len(digits) - bits :]
    return msgspec.Raw(f"{whole}.{decimals or '0'}".encode())


def profile_document(table: ProfileTable | DecisionTable) -> Document:
    """Return a JSON document of the table of probabilities of unstable answers."""
    distances = range(len(table.thresholds))
    return {
        "alpha": exact_number(table.alpha),
        "lnR": exact_number(table.ln_ratio),
        "word_bits": WORD_BITS,
        "threshold": [str(threshold) for threshold in table.thresholds],
        "hit_probability": [table.hit_probability(distance) for distance in distances],
    }


def table_document(verdict: Verdict) -> Document:
    """Return the chances of unstable answers as JSON, with the votes needed to keep them rare."""
    table = own(verdict.calibration, ProfileTable)
    return {**profile_document(table), "distance_at": _distances(table)}


def decisions_document(verdict: Verdict) -> Document:
    """Return the stability table as JSON, for a release that answers each public cell only once."""
    table = own(verdict.calibration, DecisionTable)
    return {**profile_document(table), "distance_at": _distances(table)}


def certified_document(verdict: Verdict) -> Document:
    """Return as JSON the stability table that a numeric certificate proves private."""
    table = own(verdict.calibration, certified_table.CertifiedTable)
    distances = range(len(table.thresholds))
    return {
        "word_bits": WORD_BITS,
        "nodes": len(table.certificate.nodes),
        "vertices": len(table.vertices),
        "threshold": [str(threshold) for threshold in table.thresholds],
        "hit_probability": [table.hit_probability(distance) for distance in distances],
        "distance_at": _distances(table),
    }


def svt_document(verdict: Verdict) -> Document:
    """Return a JSON document of the sparse vector technique's parameters."""
    calibration = own(verdict.calibration, svt.SvtCalibration)
    return {
        "variant": calibration.variant.value,
        "b1": float(calibration.threshold_scale),
        "b2": float(calibration.query_scale),
        "w": calibration.threshold,
        "delta_svt": float(calibration.delta_svt),
        "delta_release": float(calibration.delta_release),
        "distance_at": _distances(calibration),
    }


def _distances(calibration: HitTest) -> Document:
    return {
        probability: calibration.distance_at(float(probability))
        for probability in SHOWN_PROBABILITIES
    }


PLANNED_PROFILE: Final = PlanningRegistration(
    row=PROFILE,
    plan=plan_stability,
    key="table",
    document=table_document,
    capacity=capacity_of_test,
    forecast=forecast_of_table,
    variants={PROFILE.name: PROFILE.calibrate},
    quick=_approximate,
    cutoff_compared_max=TABLE_CUTOFF_MAX,
)
PLANNED_PROFILE_OF_CELLS: Final = replace(
    PLANNED_PROFILE,
    row=PROFILE_OF_CELLS,
    document=decisions_document,
    beside_leaves=tested_beside_leaves,
    variants={PROFILE_OF_CELLS.shown: PROFILE_OF_CELLS.calibrate},
    quick=lambda asked, *, epsilon, delta: approximate_decisions(
        epsilon=epsilon, delta=delta, draws=asked.draws_at(epsilon)
    ),
    takes_cutoff=False,
    cutoff_compared_max=None,
)
PLANNED_CERTIFIED: Final = replace(
    PLANNED_PROFILE,
    row=CERTIFIED,
    document=certified_document,
    variants={CERTIFIED.name: CERTIFIED.calibrate},
    quick=_approximate_certified,
    cutoff_compared_max=certified_table.CERTIFIED_CUTOFF_MAX,
    is_always_compared=False,
)
PLANNED_SVT: Final = replace(
    PLANNED_PROFILE,
    row=SPARSE_VECTOR,
    key="svt",
    document=svt_document,
    forecast=forecast_of_threshold,
    variants={
        f"{SPARSE_VECTOR.name} {variant}": partial(_variant, variant)
        for variant in (svt.Variant.ONE_THRESHOLD, svt.Variant.REFRESHED)
    },
    quick=SPARSE_VECTOR.calibrate,
    cutoff_compared_max=None,
)
