"""The sparse vector technique, with printed constants, in the table of answering mechanisms.

The constants are printed in Nandi and Bassily 2020, and in Bassily, Thakkar, Thakurta 2018. The
table is ``app/privacy/mechanisms.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError
from app.privacy.paper import paper
from app.privacy.paper.paper_pipeline import (
    paper_budget,
    paper_calibration,
    pipeline_epsilon,
    printed,
)
from app.privacy.sparse_vector.answering_registration import SPARSE_VECTOR

if TYPE_CHECKING:
    from fractions import Fraction

    from app.privacy.budget.sampled_budget import PipelineBudget
    from app.privacy.mechanism_registration import AnswersAsked
    from app.privacy.sparse_vector.calibration import SvtCalibration


def _budget(asked: AnswersAsked) -> PipelineBudget | None:
    return paper_budget(
        asked.targets,
        relabel=asked.relabel,
        answers=asked.answers,
        private_grid=asked.private_grid,
        class_count=asked.class_count,
    )


def _calibrate(asked: AnswersAsked, *, epsilon: Fraction, delta: Fraction) -> SvtCalibration:
    """Take the shares as they are charged: the papers divide them themselves."""
    del epsilon, delta
    return paper_calibration(asked.targets, relabel=asked.relabel, answers=asked.answers_charge)


def _own_size(asked: AnswersAsked) -> int:
    """Return k as NB Algorithm 5 prints it."""
    found = printed(asked.targets, relabel=asked.relabel, answers=asked.answers_charge)
    return found.ensemble_size


def _refuse_size(asked: AnswersAsked, sizes: tuple[int, int, int]) -> None:
    """Refuse a sample of fewer rows, or persons, than chunks, and say how many it takes."""
    size, row_count, sampled = sizes
    if size <= sampled:
        return
    epsilon = pipeline_epsilon(asked.relabel, asked.answers_charge)
    needed = paper.rows_needed(epsilon=epsilon, ensemble_size=size)
    problem = (
        f'"paper" cuts k = {size} chunks, and its sample of n = {row_count} has'
        f" {sampled}: it needs n = {needed} at least, a smaller"
        ' answers.ensemble, or "profile", which makes the same promise'
    )
    raise ConfigurationError("privacy.calibration", problem)


PAPER: Final = replace(
    SPARSE_VECTOR,
    calibration="paper",
    theorem="the sparse vector on resampled rows, with the constants as printed after errata",
    proof="app/privacy/exponential/relabel_proof.md",
    budget=_budget,
    calibrate=_calibrate,
    is_of=lambda *_: True,  # T is its own
    is_printed=True,
    own_size=_own_size,
    refuse_size=_refuse_size,
)
