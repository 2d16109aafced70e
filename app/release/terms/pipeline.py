"""From settings to the budget of relabelling and answers; all of it is public."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from app.privacy.budget.composition import Mechanism
from app.privacy.budget.pipeline import pipeline_budget
from app.privacy.paper import paper
from app.privacy.paper.paper_pipeline import (
    PaperTargets,
    paper_budget,
    paper_calibration,
    pipeline_epsilon,
    printed,
)
from app.release.terms.public_choices import charges_by_mechanism

if TYPE_CHECKING:
    from app.privacy.budget.pipeline import PipelineBudget
    from app.privacy.sparse_vector.calibration import SvtCalibration
    from app.settings.settings import Settings


def release_budget(settings: Settings) -> PipelineBudget | None:
    """Return what relabelling and answers may cost; None where answers have no share.

    Raises:
        ConfigurationError: the calibration does not cover the shares, or Lemma L's
            least cost exceeds what relabelling may cost.

    """
    charges = charges_by_mechanism(settings)
    relabel, answers = charges.get(Mechanism.RELABEL), charges.get(Mechanism.ANSWERS)
    private_grid = settings.hypotheses.grid == "private"
    class_count = len(settings.data.classes)
    if settings.privacy.calibration == "paper":
        return paper_budget(
            paper_targets(settings),
            relabel=relabel,
            answers=answers,
            private_grid=private_grid,
            class_count=class_count,
        )
    return pipeline_budget(
        relabel=relabel,
        answers=answers,
        sampling_rate=Fraction(settings.privacy.sampling),
        private_grid=private_grid,
        class_count=class_count,
    )


def calibrate_paper(settings: Settings) -> SvtCalibration:
    """Return the sparse vector of calibration ``paper``, where answers have a share.

    Raises:
        ConfigurationError: the printed parameters do not keep what they claim.

    """
    charges = charges_by_mechanism(settings)
    return paper_calibration(
        paper_targets(settings),
        relabel=charges.get(Mechanism.RELABEL),
        answers=charges[Mechanism.ANSWERS],
    )


def printed_ensemble_size(settings: Settings) -> int:
    """Return k as NB Algorithm 5 prints it, where answers have a share."""
    charges = charges_by_mechanism(settings)
    return printed(
        paper_targets(settings),
        relabel=charges.get(Mechanism.RELABEL),
        answers=charges[Mechanism.ANSWERS],
    ).ensemble_size


def rows_needed(settings: Settings, ensemble_size: int) -> int:
    """Return the smallest n whose sample in calibration ``paper`` has a row a chunk."""
    charges = charges_by_mechanism(settings)
    epsilon = pipeline_epsilon(charges.get(Mechanism.RELABEL), charges[Mechanism.ANSWERS])
    return paper.rows_needed(epsilon=epsilon, ensemble_size=ensemble_size)


def paper_targets(settings: Settings) -> PaperTargets:
    """Return the accuracy that calibration ``paper`` is made for."""
    answers = settings.answers
    return PaperTargets(alpha=answers.alpha, beta=answers.beta, query_count=answers.queries)
