"""Which of a route's media types a client takes, and likes best (RFC 9110, 12.5.1)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

WEIGHT: Final = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")


def accepted(header_lines: Sequence[str], offered: Sequence[str]) -> list[str]:
    """Return the offered media types that a client takes, the liked best first.

    Of the ranges that match a type the most exact one says its weight.  Equal
    weights leave the order of ``offered``; no header at all takes everything.

    Args:
        header_lines: every ``Accept`` header of the request.
        offered: media types in lower case, the route's own first choice first.

    """
    weights: dict[str, float] = {}
    for part in ",".join(header_lines or ["*/*"]).split(","):
        media_range, *parameters = (each.strip().lower() for each in part.split(";"))
        weights[media_range] = _weight(parameters)
    liking = {media_type: _liking(media_type, weights) for media_type in offered}
    return sorted((each for each in offered if liking[each] > 0), key=lambda each: -liking[each])


def _weight(parameters: Sequence[str]) -> float:
    """Return the weight of a media range: 1 where none is said, 0 where it is no number."""
    for parameter in parameters:
        name, _, value = (each.strip() for each in parameter.partition("="))
        if name == "q":
            return float(value) if WEIGHT.fullmatch(value) else 0.0
    return 1.0


def _liking(media_type: str, weights: dict[str, float]) -> float:
    """Return the weight of the most exact range that matches."""
    family = media_type.partition("/")[0]
    for media_range in (media_type, f"{family}/*", "*/*"):
        if media_range in weights:
            return weights[media_range]
    return 0.0
