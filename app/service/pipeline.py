"""From settings to the budget of relabelling and answers; all of it is public."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.accounting.composition import Mechanism
from app.accounting.pipeline import pipeline_budget
from app.service.public_choices import charges_by_mechanism

if TYPE_CHECKING:
    from app.accounting.pipeline import PipelineBudget
    from app.settings import Settings


def release_budget(settings: Settings) -> PipelineBudget | None:
    """Return what relabelling and answers may cost; None where answers have no share."""
    charges = charges_by_mechanism(settings)
    return pipeline_budget(
        relabel=charges.get(Mechanism.RELABEL), answers=charges.get(Mechanism.ANSWERS)
    )
