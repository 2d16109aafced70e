"""A toy: the label of most votes, or by a fair chance of a word the other of two.

One record turns a plurality round at most, so an answer costs ``ln(p / (1 - p))`` and m
adaptive ones m times that: pure differential privacy, by basic composition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from app.errors import InvariantError, invariant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.noise.source import NoiseSource
    from app.privacy.mechanism_registration import AnswersAsked

WORDS = 1 << 64
ROUNDING = 1e-9


@dataclass(frozen=True)
class Calibration:
    """How many words keep the label, with the budget that they were made for."""

    epsilon: Fraction
    delta: Fraction
    answer_limit: int
    kept_words: int
    cutoff: None = None

    def to_plain(self) -> dict[str, str]:
        """Write the numbers as strings."""
        names = ("epsilon", "delta", "answer_limit", "kept_words")
        return {name: str(getattr(self, name)) for name in names}


def read(plain: Mapping[str, str]) -> Calibration:
    """Read what a calibration wrote."""
    return Calibration(
        Fraction(plain["epsilon"]),
        Fraction(plain["delta"]),
        int(plain["answer_limit"]),
        int(plain["kept_words"]),
    )


def calibrate(asked: AnswersAsked, *, epsilon: Fraction, delta: Fraction) -> Calibration:
    """Keep as many labels as the epsilon of one answer allows, a little less."""
    answers = asked.targets.query_count
    flipped = math.ceil(WORDS / (1 + math.exp(epsilon / answers)) * (1 + ROUNDING))
    return Calibration(epsilon, delta, answers, WORDS - flipped)


def check(calibration: Calibration) -> None:
    """Assert that m answers cost no more than epsilon."""
    odds = math.log(calibration.kept_words / (WORDS - calibration.kept_words))
    invariant(calibration.answer_limit * odds <= calibration.epsilon, "every answer is paid for")


@dataclass(frozen=True)
class Parameters:
    """Public parameters: words that keep the label, and m."""

    kept_words: int
    answer_limit: int
    cutoff: None = None


def step(parameters: Parameters, answered: int, plurality: int, noise: NoiseSource) -> int:
    """Answer one query of two labels."""
    if answered >= parameters.answer_limit:
        raise InvariantError("no step after the last answer")
    return plurality if noise.word() < parameters.kept_words else 1 - plurality
