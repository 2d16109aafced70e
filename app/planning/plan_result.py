"""The planned noise, number of models and feasibility of a release's answers.

A stability test gives a query its label only if the label's lead in votes, with noise, is large
enough; otherwise the answer is unstable. A noisy vote gives every query a label, which the noise
may change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.privacy.budget.ensemble_size import HitTest
    from app.privacy.mechanism_registration import Calibration
    from app.privacy.noisy_vote.calibration import VoteCalibration
    from app.privacy.paper.paper import PaperParameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """A planned stability test, with its effect on the votes of k models and on m queries.

    A query's distance is the number of votes that may change before another label wins.

    Attributes:
        calibration: the noise parameters: a table of probabilities of unstable answers, or the
            scales and threshold of the sparse vector technique.
        wanted_probability: the largest probability of an unstable answer at which a query is worth
            answering.
        wanted_distance: the distance at which an answer is unstable with probability
            ``wanted_probability``.
        wanted_agreement: if all votes are for two labels, the fraction of votes that the first
            label needs for ``wanted_distance``; above 1 if not even all votes suffice.
        largest_probability: the largest probability of an unstable answer, at most 1/100, at which
            m queries have at most T unstable answers on average, where T is the cutoff.
        unanimous_distance: the distance of k unanimous votes.
        unanimous_probability: the probability of an unstable answer for k unanimous votes.

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
        calibration: the noise parameters.
        wanted_probability: the largest probability that the noise changes the label at which a
            query is worth answering.
        wanted_lead: the lead in votes at which the noise changes the label with this probability.
        wanted_agreement: if all votes are for two labels, the fraction of votes that the first
            label needs for this lead; above 1 if not even all votes suffice.

    """

    calibration: VoteCalibration
    wanted_probability: float
    wanted_lead: int
    wanted_agreement: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The part of a plan that concerns answers: number of models, noise, and feasibility.

    Attributes:
        calibration: the noise parameters of the answers; None if the release gives no answers by
            vote.

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
