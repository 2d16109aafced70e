"""The planned noise, number of learners and feasibility of a release's answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.privacy.answering_rows import Calibration
    from app.privacy.budget.ensemble_size import HitTest
    from app.privacy.noisy_vote.calibration import VoteCalibration
    from app.privacy.paper.paper import PaperParameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """A stability test as planned, with its effect on k votes and m queries.

    Attributes:
        calibration: Theorem A's table, or the sparse vector's scales and threshold.
        wanted_probability: hit probability of a query worth answering.
        wanted_distance: distance at which the test gives that.
        wanted_agreement: share of two labels' votes that lies at that distance;
            above 1 where not even all of them do.
        largest_probability: hit probability at which m queries reach the cutoff.
        unanimous_distance: distance of k unanimous votes.
        unanimous_probability: hit probability there.

    """

    calibration: HitTest
    wanted_probability: float
    wanted_distance: int
    wanted_agreement: float
    largest_probability: float
    unanimous_distance: int
    unanimous_probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyLead:
    """A planned noisy vote: its noise, and the lead in votes with which a label wins reliably.

    Attributes:
        calibration: the noise.
        wanted_probability: chance at which a query worth answering gets another label.
        wanted_lead: lead in votes at which that is so.
        wanted_agreement: share of two labels' votes that has this lead; above 1 where
            not even all of them do.

    """

    calibration: VoteCalibration
    wanted_probability: float
    wanted_lead: int
    wanted_agreement: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The part of a plan that concerns answers: number of learners, noise, and feasibility.

    Attributes:
        calibration: what the answers are calibrated with; None where they have no share.

    """

    calibration: Calibration | None = None
    reasons: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cutoff: int | None = None
    ensemble_size: int | None = None
    chunk_row_count: int | None = None
    rows_needed: int | None = None
    stability: Stability | None = None
    noisy_lead: NoisyLead | None = None
    paper: PaperParameters | None = None
