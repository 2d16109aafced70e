"""The number of answers that a budget allows, by the fraction of models that agree.

How many of the models agree on a query depends on the records, which planning does not read.
Therefore it is an argument here: a fraction f of the k models votes for one label, and all other
models vote for one second label, which is as close to a tie as f allows. The number of answers then
follows from the noise that the release would use. There are two kinds of answering mechanisms. A
stability test gives a query its label only if the label's lead in votes, with noise, is large
enough; otherwise the answer is unstable. A noisy vote gives every query a label, which the noise
may change.

* In a stability test, every query is assumed to have the fraction f. Each answer is unstable with a
  probability p, so the T-th unstable answer is answer number T/p on average, where T is the cutoff.
  With calibration ``profile`` (independent noise for each query) the answers are independent, and
  T/p is the exact mean. With the calibration ``svt`` (sparse vector) queries between two unstable
  answers share the threshold's noise, and the mean is at least T/p, since 1/p is convex in p.
* If each public cell is answered only once, no number of unstable answers ends the voting.
* A noisy vote answers m queries whatever the votes are, and needs more noise for a larger m. The
  number of answers is the largest m for which the noise makes the label with the fraction f lose to
  another label at most once in a hundred queries.
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
    """The number of answers if the same given fraction of the models agrees on every query.

    Attributes:
        agreement: the fraction f of the votes for the first label.
        lead: the number of votes by which the first label leads the second.
        distance: the number of votes that may change before another label can win; None for a noisy
            vote.
        unstable_probability: the probability that the answer to a query with this lead is unstable;
            None for a noisy vote, which has no unstable answers.
        answers: the mean number of answers until the ensemble stops, or for a noisy vote the number
            of answers that it could give; the configured largest number of answers does not limit
            this number.
        labels: the number of these answers that are stable, so that they carry a label.

    """

    agreement: Fraction
    lead: int
    distance: int | None
    unstable_probability: float | None
    answers: int
    labels: int


def capacity_of_votes(calibration: VoteCalibration, agreement: Fraction, lead: int) -> Capacity:
    """Return the number of answers of a noisy vote if one label always leads by ``lead`` votes.

    Args:
        calibration: the noise parameters of the noisy vote.
        agreement: the fraction of the votes for this label, copied to the result.
        lead: the number of votes by which this label leads every other label.

    """
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
    """Return the number of answers of a stability test if a label leads by ``lead`` votes.

    Args:
        test: the stability test with its noise parameters.
        agreement: the fraction of the votes for this label, copied to the result.
        lead: the number of votes by which this label leads the second label on every query.

    """
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
