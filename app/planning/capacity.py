"""The number of answers that a budget allows, by the fraction of learners that agree.

How widely they agree on a query is a property of the records, which planning does not
read.  It is therefore an argument here: a share f of k votes for one label, all others
for one second label, which is the closest that f can come to a tie.  Every figure then
follows from the calibration that serves:

* A stability test is asked queries that all have that agreement.  Each is unstable with
  the calibration's own probability p at that distance, so the T-th unstable answer is
  answer number T/p on average.  In calibration ``profile`` the coins are independent and
  this is the mean itself.  In ``svt`` the queries of an epoch share the threshold's noise,
  and the mean over that noise is T/p or more, since 1/p is convex in p.
* Where each public cell is decided once, no number of unstable answers ends the ensemble.
* A noisy vote answers m queries whatever the votes.  What is counted is the largest m
  whose noise lets such a label lose to another at most once in a hundred.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from app.privacy.budget.ensemble_size import HitTest
    from app.privacy.noisy_vote.calibration import VoteCalibration

AGREEMENTS: Final = (
    Fraction(1),
    Fraction(19, 20),
    Fraction(9, 10),
    Fraction(4, 5),
    Fraction(2, 3),
)
USUAL_AGREEMENT: Final = Fraction(9, 10)
"""At which one figure stands for all; of learners that agree well, without being alike."""

ANSWERS_MAX: Final = 10**18
"""What stands for more than that; in ``svt`` a probability may be too small for a double."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The number of answers if the same given fraction of the learners agrees on every query.

    Attributes:
        agreement: share f of the votes that the first label has.
        lead: by how many votes it leads.
        distance: to instability, in votes; None in a noisy vote.
        unstable_probability: of such a query; None in a noisy vote, which has no hits.
        answers: number of the answer at which the ensemble ends, on average, or in a
            noisy vote how many it could give; limited by neither m nor the queries asked.
        labels: how many of those carry a label, that is, are stable.

    """

    agreement: Fraction
    lead: int
    distance: int | None
    unstable_probability: float | None
    answers: int
    labels: int


def capacity_of_votes(calibration: VoteCalibration, agreement: Fraction, lead: int) -> Capacity:
    """Return the number of answers of a noisy vote if one label always leads by ``lead`` votes."""
    answers = calibration.answers_within(lead)
    return Capacity(
        agreement=agreement,
        lead=lead,
        distance=None,
        unstable_probability=None,
        answers=answers,
        labels=answers,
    )


def capacity_of_test(test: HitTest, agreement: Fraction, lead: int) -> Capacity:
    """Return the number of answers of a stability test if a label leads by ``lead`` votes."""
    distance = max(0, (lead + 1) // 2 - 1)
    probability = test.hit_probability(distance)
    answers, unstable = ANSWERS_MAX, test.cutoff or 0
    if test.cutoff is None:
        unstable = math.ceil(probability * ANSWERS_MAX)
    elif test.cutoff < probability * ANSWERS_MAX:
        answers = math.floor(test.cutoff / probability)
    return Capacity(
        agreement=agreement,
        lead=lead,
        distance=distance,
        unstable_probability=probability,
        answers=answers,
        labels=max(0, answers - unstable),
    )
