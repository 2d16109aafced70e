"""The planning functions of one answering mechanism: a row of ``planning_table.py``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from app.planning.capacity import Capacity
    from app.planning.plan_result import Verdict
    from app.planning.request import PlanRequest
    from app.planning.trial.forecast import Forecast, Numbers, Weighed
    from app.privacy.answering_rows import AnsweringRow
    from app.privacy.budget.sampled_budget import PipelineBudget


Document: TypeAlias = "dict[str, object]"
SHOWN_PROBABILITIES: Final = ("1e-2", "1e-4")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRow:
    """The planning functions of one answering mechanism.

    Attributes:
        row: the mechanism's own.
        plan: weighs the answers of a request at their budget.
        key: of its calibration in a plan's document.
        document: describes that calibration.
        capacity: what queries of one agreement and lead come to.
        forecast: labels with k votes and m answers at most, as learners were found to agree.
        beside_leaves: the same where a leaf of each lead has a share of the queries; None
            where it follows from hits.
        variants: calibrations that are compared with those of others, by name.
        quick: calibrates where many are looked at.
        takes_cutoff: whether T is the operator's to turn.
        cutoff_compared_max: T beyond which a calibration takes longer than a comparison is worth.
        is_always_compared: whether plans of other mechanisms compare it too.
        fewer_votes: says that it would do with k votes; empty for the usual sentence.

    """

    row: AnsweringRow
    plan: Callable[[PlanRequest, PipelineBudget], Verdict]
    key: str
    document: Callable[[Verdict], Document]
    capacity: Callable[..., Capacity]
    forecast: Callable[..., Forecast]
    beside_leaves: Callable[..., Numbers] | None = None
    variants: Mapping[str, Callable[..., Weighed]]
    quick: Callable[..., Weighed]
    takes_cutoff: bool = True
    cutoff_compared_max: int | None = None
    is_always_compared: bool = True
    fewer_votes: str = ""

    def is_compared_by(self, request: PlanRequest) -> bool:
        """Return whether a plan compares this mechanism with others: always, or if configured."""
        if not self.variants or not request.may_serve(self.row):
            return False
        return self.is_always_compared or request.row is self.row
