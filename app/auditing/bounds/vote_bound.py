"""A lower bound on epsilon for the noisy vote, from repeated queries with the same votes.

With two labels, the mechanism's own step (the function that answers one query) determines the
smallest noise that gives the second label. With more labels, the probability of the first label is
a sum over the noise of every vote count. The event of the bound is that a label is answered at
least, or at most, a certain number of times.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from app.auditing.event_bounds import Bound, counting_bound, strongest
from app.auditing.laws.step_law import answers_moved, label_noise, vote_without_noise
from app.privacy.mechanism_registration import own
from app.privacy.noisy_vote import mechanism as noisy_vote

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.auditing.audited_mechanism import Audited

    Floats = NDArray[np.float64]

DEVIATIONS_SUMMED: Final = 12
DEVIATIONS_ASKED: Final = 5
LEADS_ASKED: Final = 120
BINARY: Final = 2


def vote_bound(audited: Audited) -> Bound:
    """Return the largest lower bound on epsilon from repeated queries with the same votes."""
    answering = own(audited.answering, noisy_vote.Parameters)
    law = _law(float(answering.vote_noise.variance))
    moved, found, answers = audited.votes_moved, [], answers_moved(audited, vote_without_noise)
    for lead in _leads(audited, answering):
        one, other = (_second_label(audited, law, at) for at in (lead, lead + moved))
        shown = counting_bound(one, other, trials=answers, delta=float(audited.delta))
        text = f"{answers} queries that lead by {2 * lead} votes or {moved} moved"
        found.append(Bound(shown, f"{text}: how often a label comes"))
    return strongest(found)


def _leads(audited: Audited, answering: noisy_vote.Parameters) -> list[int]:
    """Return leads from none to a few deviations of the noise."""
    reach = math.ceil(DEVIATIONS_ASKED * math.sqrt(answering.vote_noise.variance))
    last = min(reach, audited.lead_max)
    return sorted({round(lead) for lead in np.linspace(0, last, LEADS_ASKED).tolist()})


def _law(variance: float) -> tuple[NDArray[np.int64], Floats]:
    """Return the discrete Gaussian law as far as it can be seen: values and probabilities."""
    reach = math.ceil(DEVIATIONS_SUMMED * math.sqrt(variance)) + 2
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-(values.astype(np.float64) ** 2) / (2 * variance))
    return values, weights / weights.sum()


def _second_label(audited: Audited, law: tuple[NDArray[np.int64], Floats], lead: int) -> float:
    """Return the probability of a label other than the one that leads."""
    values, weights = law
    if audited.parameters.class_count == BINARY:
        first = label_noise(audited, lead)
        return float(weights[values >= first].sum())
    counts = audited.tally_of(lead).counts
    reached = values + counts[0]
    kept = weights.copy()
    below = np.cumsum(weights)
    for count in counts[1:]:
        # The first label wins a tie: its count is at least the other's.
        index = np.clip(reached - count - values[0], -1, len(values) - 1)
        kept *= np.where(index < 0, 0.0, below[index])
    return float(max(0.0, 1.0 - kept.sum()))
