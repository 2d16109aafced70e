"""Which mechanism would need the fewest votes at a release's own budget."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from app.errors import ConfigurationError
from app.planning.mechanisms.planned import PLANNED
from app.privacy.mechanisms import size_wanted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from app.planning.request import PlanRequest
    from app.privacy.answering_rows import Calibration


def calibrations(
    request: PlanRequest, epsilon: Fraction, delta: Fraction, *, known: Calibration | None
) -> dict[str, Calibration]:
    """Return what each mechanism would serve with at one budget.

    Args:
        request: gives m, T and the number of labels.
        epsilon: what the answers may cost.
        delta: their delta.
        known: a calibration for this budget that is made already, or None.

    Returns:
        By calibration (``svt`` by variant), and for ``noisy-vote``; a mechanism that
        has no parameters for this budget is left out.

    """
    asked = request.asked
    found: dict[str, Calibration] = {}
    for planned in PLANNED.values():
        most = planned.cutoff_compared_max
        if most is not None and request.cutoff > most:
            continue
        for name, calibrate in planned.variants.items():
            if (
                name == planned.row.name
                and known is not None
                and type(known) is planned.row.calibrations[0]
            ):
                found[name] = known
                continue
            with suppress(ConfigurationError):
                found[name] = calibrate(asked, epsilon=epsilon, delta=delta)
    return found


def votes_needed(request: PlanRequest, found: Mapping[str, Calibration]) -> dict[str, int]:
    """Return the k that each mechanism wants where two thirds of the votes agree."""
    return {
        name: size_wanted(table=calibration, query_count=request.query_count)
        for name, calibration in found.items()
    }


def best_mechanism(needed: dict[str, int]) -> str | None:
    """Return the name of the mechanism that needs the fewest votes."""
    if not needed:
        return None
    return min(needed, key=lambda name: needed[name]).split(" ", maxsplit=1)[0]
