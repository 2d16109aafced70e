"""Planning the answers of calibration ``profile``: does a vote carry far enough."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.accounting.profile import calibrate
from app.accounting.profile_parameters import EPSILON_MAX
from app.planning.ensemble_size import (
    chunk_row_min,
    distance_at_unanimity,
    ensemble_size_auto,
    largest_hit_probability,
    size_at_unanimity,
    size_wanted,
    wanted_hit_probability,
)
from app.planning.verdict import Verdict

if TYPE_CHECKING:
    from app.accounting.composition import Charge
    from app.accounting.profile import ProfileTable
    from app.planning.request import PlanRequest

EPSILON_ADVISED_MAX: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """A table and what it means for k votes on m queries.

    Attributes:
        table: Theorem A's table of the answers' share.
        wanted_probability: hit probability of a query worth answering.
        wanted_distance: distance at which the table gives that.
        wanted_agreement: share of two labels' votes that lies at that distance;
            above 1 where not even all of them do.
        largest_probability: hit probability at which m queries reach the cutoff.
        unanimous_distance: distance of k unanimous votes.
        unanimous_probability: hit probability there.

    """

    table: ProfileTable
    wanted_probability: float
    wanted_distance: int
    wanted_agreement: float
    largest_probability: float
    unanimous_distance: int
    unanimous_probability: float


def plan_profile(request: PlanRequest, answers: Charge) -> Verdict:
    """Return k, the table and whether unanimous votes get through.

    A release is infeasible where it has more chunks than rows, or where even
    queries on which all votes agree would reach the cutoff before m.

    Raises:
        ConfigurationError: where there is no table for the budget.

    """
    table = calibrate(epsilon=answers.epsilon, delta=answers.delta, cutoff=request.cutoff)
    size = resolve_ensemble_size(request, table)
    stability = _stability(request, table, size)
    reasons = _reasons(request, stability, size)
    return Verdict(
        reasons=reasons,
        advice=_advice(request, stability, answers) if reasons else (),
        notes=_notes(request, stability, size),
        cutoff=request.cutoff,
        ensemble_size=size,
        sampled_row_count=request.row_count,
        chunk_row_count=None if request.row_count is None else request.row_count // size,
        rows_needed=_rows_needed(request, stability),
        stability=stability,
    )


def resolve_ensemble_size(request: PlanRequest, table: ProfileTable) -> int:
    """Return k as configured, or by the public rule; without n, the votes wanted."""
    if request.ensemble_size is not None:
        return request.ensemble_size
    if request.row_count is None:
        return size_wanted(table=table, query_count=request.query_count)
    return ensemble_size_auto(
        row_count=request.row_count,
        table=table,
        query_count=request.query_count,
        hypothesis_count=request.hypothesis_count,
    )


def _stability(request: PlanRequest, table: ProfileTable, size: int) -> Stability:
    limits = {"query_count": request.query_count, "cutoff": request.cutoff}
    wanted_probability = wanted_hit_probability(**limits)
    wanted_distance = table.distance_at(wanted_probability)
    unanimous_distance = distance_at_unanimity(size)
    return Stability(
        table=table,
        wanted_probability=wanted_probability,
        wanted_distance=wanted_distance,
        wanted_agreement=(size + size_at_unanimity(wanted_distance)) / (2 * size),
        largest_probability=largest_hit_probability(**limits),
        unanimous_distance=unanimous_distance,
        unanimous_probability=table.hit_probability(unanimous_distance),
    )


def _size_needed(request: PlanRequest, table: ProfileTable) -> int:
    """Smallest k whose unanimous votes get through."""
    largest = largest_hit_probability(query_count=request.query_count, cutoff=request.cutoff)
    return size_at_unanimity(table.distance_at(largest))


def _rows_needed(request: PlanRequest, stability: Stability) -> int:
    """Smallest n at which the smallest workable k leaves chunks enough rows."""
    if request.ensemble_size is not None:
        return request.ensemble_size
    return _size_needed(request, stability.table) * chunk_row_min(request.hypothesis_count)


def _reasons(request: PlanRequest, stability: Stability, size: int) -> tuple[str, ...]:
    reasons = []
    if request.row_count is not None and size > request.row_count:
        reasons.append(f"k = {size} chunks do not all get a row of n = {request.row_count}")
    if stability.unanimous_probability > stability.largest_probability:
        reasons.append(
            f"even if all k = {size} votes agree, a query is unstable with probability"
            f" {stability.unanimous_probability:.3g}; at most"
            f" {stability.largest_probability:.3g} lets m = {request.query_count} queries"
            f" through a cutoff of T = {request.cutoff}"
        )
    return tuple(reasons)


def _advice(request: PlanRequest, stability: Stability, answers: Charge) -> tuple[str, ...]:
    size, rows = _size_needed(request, stability.table), request.row_count
    if rows is None:
        return (f"set answers.ensemble to {size} or more, or leave it to auto",)
    fed = rows // chunk_row_min(request.hypothesis_count)
    if fed >= size:
        return (f"set answers.ensemble to {size} up to {fed}, or leave it to auto",)
    needed = size * chunk_row_min(request.hypothesis_count)
    epsilon = _epsilon_needed(request, stability.table, answers, fed=fed)
    raised = f"or raise the answers' epsilon from {float(answers.epsilon):g} to {float(epsilon):g}"
    return (
        f"have n = {needed} rows or more: at this budget k = {size} votes are the least",
        *((raised,) if epsilon <= EPSILON_ADVISED_MAX else ()),
        "or lower answers.cutoff, with which the votes needed fall",
    )


def _epsilon_needed(
    request: PlanRequest, table: ProfileTable, answers: Charge, *, fed: int
) -> Fraction:
    """Find an epsilon, in tenths, at which as many votes as the rows feed suffice.

    Votes needed go about as ``1/epsilon``, so a few steps get there, or past what is
    worth advising.
    """
    epsilon, size = answers.epsilon, _size_needed(request, table)
    while size > fed and epsilon <= EPSILON_ADVISED_MAX:
        grown = 1 + math.floor(10 * epsilon * Fraction(size, max(1, fed)))
        epsilon = min(Fraction(grown, 10), Fraction(EPSILON_MAX))
        raised = calibrate(epsilon=epsilon, delta=answers.delta, cutoff=request.cutoff)
        size = _size_needed(request, raised)
    return epsilon


def _notes(request: PlanRequest, stability: Stability, size: int) -> tuple[str, ...]:
    notes = []
    if request.row_count is None:
        notes.append(f"n is not known; it takes {_rows_needed(request, stability)} rows or more")
    elif request.row_count // size < chunk_row_min(request.hypothesis_count):
        notes.append(
            f"chunks of {request.row_count // size} rows are small for"
            f" {request.hypothesis_count} hypotheses: learners will often disagree"
        )
    wanted = size_wanted(table=stability.table, query_count=request.query_count)
    if size < wanted and stability.wanted_agreement <= 1:
        notes.append(
            f"queries on which {stability.wanted_agreement:.0%} of the votes agree are safe;"
            f" k = {wanted} would do for two thirds"
        )
    return tuple(notes)
