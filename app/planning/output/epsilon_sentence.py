"""An explanation of an epsilon's protection, in one sentence.

Consider a reader of the answers who at first finds two values of a record equally likely.
Afterwards, one value is at most ``e^epsilon`` times as likely as the other for this reader, except
with probability about delta. So a chance of one half becomes at most
``e^epsilon / (1 + e^epsilon)``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from app.planning.request import PlanRequest

# From above: the largest epsilon that is called so.
STRENGTHS: Final = (
    (0.5, "protects strongly"),
    (1.0, "protects well, and is a good start"),
    (2.0, "protects moderately"),
    (4.0, "protects weakly in the worst case"),
)
BEYOND: Final = "promises next to nothing in the worst case; 1 is a good start"
# An even chance that grows beyond this is written as certainty.
CERTAIN: Final = 0.9999
# Of one record in so many: what is advised where delta allows to give one away.
DELTA_SHARE: Final = 0.01
WHOLE_PERCENT_MAX: Final = 0.99


def epsilon_words(request: PlanRequest) -> str:
    """Return a sentence on how strongly a release's epsilon protects a row or a person."""
    epsilon, delta = float(request.epsilon), float(request.delta)
    strength = next((words for most, words in STRENGTHS if epsilon <= most), BEYOND)
    unit = "record" if request.unit == "row" else request.unit
    return (
        f"Epsilon {epsilon:g} {strength}: a reader who can only guess which of two values a {unit} "
        f"has, and is right half of the time, is right {even_chance_after(epsilon)} after all "
        f"that is released, up to delta = {delta:g}.{delta_words(delta, request.row_count, unit)}"
    )


def delta_words(delta: float, rows: int | None, unit: str) -> str:
    """Return a warning if delta is so large that it could reveal records; else empty.

    Args:
        delta: the delta of the whole release.
        rows: the public number of rows or persons; None if it is not known.
        unit: the word for what epsilon protects: row or person.

    """
    if rows is None or delta * rows < 1:
        return ""
    return (
        f" That delta is too large: one {unit} in {1 / delta:,.0f} could be published"
        f" whole. Set delta = {DELTA_SHARE / rows:.0e} or less."
    )


def even_chance_after(epsilon: float) -> str:
    """Return in words how often a guess may be right that was right half of the time before."""
    chance = 1 / (1 + math.exp(-epsilon))
    if chance >= CERTAIN:
        return "nearly always"
    shown = f"{chance:.0%}" if chance < WHOLE_PERCENT_MAX else f"{chance:.2%}"
    return f"at most about {shown} of the time"
