"""What relabelling and answers may cost on the rows that they are given.

A release charges a share of epsilon for each; both run on the same rows, and what
they cost there adds up to what is charged.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.errors import invariant

if TYPE_CHECKING:
    from app.accounting.composition import Charge

EVERY_ROW: Final = Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineBudget:
    """The budget of each part, in the rows that it is run on.

    Attributes:
        sampling_rate: share q of the rows that the parts are run on.
        relabel_epsilon: what the relabelling draw may cost there, its numerical
            error included; None where rows keep their labels.
        relabel_is_private: whether the labelling class depends on the rows.
        answers_epsilon: what the answering mechanism is calibrated for.
        answers_delta: its delta.

    """

    sampling_rate: Fraction
    relabel_epsilon: Fraction | None
    relabel_is_private: bool
    answers_epsilon: Fraction
    answers_delta: Fraction

    def __post_init__(self) -> None:
        """Refuse what is no budget."""
        invariant(0 < self.sampling_rate <= 1, "a sampling rate lies above zero and up to one")
        invariant(self.answers_epsilon > 0, "answers have a share of epsilon")
        invariant(0 < self.answers_delta < 1, "answers have a share of delta")


def pipeline_budget(*, relabel: Charge | None, answers: Charge | None) -> PipelineBudget | None:
    """Divide what is charged among the parts; None where answers have no share.

    Args:
        relabel: what relabelling is charged; None where rows keep their labels.
        answers: what the answers are charged.

    """
    if answers is None:
        return None
    return PipelineBudget(
        sampling_rate=EVERY_ROW,
        relabel_epsilon=None if relabel is None else relabel.epsilon,
        relabel_is_private=False,
        answers_epsilon=answers.epsilon,
        answers_delta=answers.delta,
    )
