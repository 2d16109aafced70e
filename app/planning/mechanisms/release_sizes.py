"""The number of rows and models of a requested release, for any answering mechanism."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from app.privacy.budget.ensemble_size import chunk_row_min, ensemble_size_auto
from app.privacy.mechanisms import size_wanted

if TYPE_CHECKING:
    from app.planning.request import PlanRequest
    from app.planning.trial.forecast import Weighed


def resolve_ensemble_size(request: PlanRequest, calibration: Weighed) -> int:
    """Return the number k of models of a release.

    It is the configured number. If the setting is ``auto``, it follows from the noise and the
    number of rows.
    """
    if request.ensemble_size is not None:
        return request.ensemble_size
    wanted = size_wanted(table=calibration, query_count=request.query_count)
    if request.sampled_row_count is None:
        return wanted
    if request.by_cell:
        return max(1, request.sampled_row_count)
    return ensemble_size_auto(
        row_count=max(1, request.sampled_row_count),
        wanted=wanted,
        hypothesis_count=request.hypothesis_count,
    )


def fed_size(request: PlanRequest) -> int | None:
    """Return the largest number of chunks that all have enough rows to train a model.

    It is None if the number of rows is not known.
    """
    sampled = request.sampled_row_count
    if sampled is None:
        return None
    return sampled // chunk_rows_wanted(request)


def chunk_rows_wanted(request: PlanRequest) -> int:
    """Return the smallest number of rows with which a chunk can train a useful model.

    It is 1 if the models only give a label to each public cell.
    """
    return 1 if request.by_cell else chunk_row_min(request.hypothesis_count)


def rows_for(request: PlanRequest, sampled_row_count: int) -> int:
    """Return the fewest rows whose random sample, at the release's sampling rate, is large enough.

    Args:
        request: the planned release, with its sampling rate.
        sampled_row_count: the number of rows that the sample must have.

    """
    rate = 1 if request.budget is None else request.budget.sampling_rate
    return math.ceil(sampled_row_count / rate)


def starved_reasons(request: PlanRequest, size: int) -> tuple[str, ...]:
    """Return the reasons why there are too few rows for the chunks; none if there are enough."""
    sampled, row_count = request.sampled_row_count, request.row_count
    if sampled is None or size <= sampled:
        return ()
    rows = f"n = {row_count}" if sampled == row_count else f"the sample of n' = {sampled}"
    return (f"k = {size} chunks do not all get a {request.unit} of {rows}",)
