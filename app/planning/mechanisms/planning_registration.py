"""The planning functions of one answering mechanism: an entry of ``planning_table.py``.

A plan gives the noise parameters, the number k of models, and whether the release can work; a
forecast gives the number of labelled answers, as found by training models on made-up records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from app.planning.capacity import Capacity
    from app.planning.plan_result import Verdict
    from app.planning.request import PlanRequest
    from app.planning.trial.forecast import Forecast, Numbers, Weighed
    from app.privacy.budget.sampled_budget import PipelineBudget
    from app.privacy.mechanism_registration import MechanismRegistration


Document: TypeAlias = "dict[str, object]"
SHOWN_PROBABILITIES: Final = ("1e-2", "1e-4")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningRegistration:
    """The planning functions of one answering mechanism.

    Attributes:
        row: the mechanism's entry in the table of answering mechanisms.
        plan: returns the planned answers for a request and its budget.
        key: the name of the mechanism's noise parameters in a plan's document.
        document: returns these noise parameters as a JSON document.
        capacity: returns the number of answers if all queries have a given fraction of agreeing
            models and a given lead in votes.
        forecast: returns the number of labelled answers with k votes and at most m answers, given
            the measured agreement of models.
        beside_leaves: returns the forecast number of labelled answers if a fraction of the queries
            reaches a leaf of the models' trees on which few models agree; None if this number
            follows from the probability of unstable answers.
        variants: functions that compute the noise of each variant of the mechanism that a plan
            compares, by name.
        quick: computes the noise approximately, for plots and searches that need the noise of many
            different settings.
        takes_cutoff: whether the operator may choose the cutoff T.
        cutoff_compared_max: the largest cutoff T for which a comparison computes the noise, because
            the computation takes too long for a larger T; None for no limit.
        is_always_compared: whether a plan for another mechanism shows this mechanism for
            comparison.
        fewer_votes: the sentence by which plans of other mechanisms say that this mechanism would
            need only k votes; empty for the usual sentence.

    """

    row: MechanismRegistration
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
        """Return whether a plan compares this mechanism with others.

        The mechanism must be able to answer the queries, and must be either the configured
        mechanism or one that every plan compares.
        """
        if not self.variants or not request.may_serve(self.row):
            return False
        return self.is_always_compared or request.row is self.row
