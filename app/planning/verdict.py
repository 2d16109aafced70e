"""What planning the answers comes to, whichever the calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.accounting.paper import PaperParameters
    from app.planning.profile_plan import Stability


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answers' part of a plan; the attributes are those of ``Plan``."""

    reasons: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cutoff: int | None = None
    ensemble_size: int | None = None
    sampled_row_count: int | None = None
    chunk_row_count: int | None = None
    rows_needed: int | None = None
    stability: Stability | None = None
    paper: PaperParameters | None = None
