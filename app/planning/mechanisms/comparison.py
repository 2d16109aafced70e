"""Which mechanism would need the fewest votes at a release's own budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError
from app.privacy.budget.ensemble_size import size_wanted
from app.privacy.noisy_vote import calibration as noisy_vote
from app.privacy.sparse_vector import calibration as svt
from app.privacy.stability import hit_table as profile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction

    from app.planning.request import PlanRequest
    from app.privacy.budget.calibration import Calibration

NOISY_VOTE: Final = "noisy-vote"
# Beyond this a table of Theorem A takes longer than a comparison is worth.
TABLE_CUTOFF_MAX: Final = 10_000


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
    budget = {"epsilon": epsilon, "delta": delta}
    candidates: dict[str, Callable[[], Calibration]] = {
        "profile": lambda: (
            known
            if isinstance(known, profile.ProfileTable)
            else profile.calibrate(**budget, cutoff=request.cutoff)
        ),
        "svt one-threshold": lambda: svt.calibrate_variant(
            svt.Variant.ONE_THRESHOLD, **budget, cutoff=request.cutoff
        ),
        "svt refreshed": lambda: svt.calibrate_variant(
            svt.Variant.REFRESHED, **budget, cutoff=request.cutoff
        ),
        NOISY_VOTE: lambda: noisy_vote.calibrate(
            **budget, answer_limit=request.query_count, class_count=request.class_count
        ),
    }
    if request.cutoff > TABLE_CUTOFF_MAX:
        del candidates["profile"]
    found = {name: _calibrated(calibrate) for name, calibrate in candidates.items()}
    return {name: made for name, made in found.items() if made is not None}


def votes_needed(request: PlanRequest, found: Mapping[str, Calibration]) -> dict[str, int]:
    """Return the k that each mechanism wants where two thirds of the votes agree."""
    return {
        name: size_wanted(table=calibration, query_count=request.query_count)
        for name, calibration in found.items()
    }


def best_mechanism(needed: dict[str, int]) -> str | None:
    """Return ``profile``, ``svt`` or ``noisy-vote``, whichever needs the fewest votes."""
    if not needed:
        return None
    return min(needed, key=lambda name: needed[name]).split(" ", maxsplit=1)[0]


def serving_name(request: PlanRequest) -> str:
    """Return ``profile``, ``svt``, ``paper`` or ``noisy-vote``, whichever is configured."""
    return NOISY_VOTE if request.mechanism == NOISY_VOTE else request.calibration


def _calibrated(calibrate: Callable[[], Calibration]) -> Calibration | None:
    try:
        return calibrate()
    except ConfigurationError:
        return None
