"""A lower bound on epsilon for the sparse vector: stable answers first, then unstable ones.

The *audited label* is one fixed label; one other label gets all other votes. The event of the bound
is a number of stable answers, followed by a number of unstable answers. Many stable answers in a
row show that the threshold's noise is small. On one data set the first queries have more votes for
the audited label than on the other data set, and the later queries have fewer, so that the event is
likelier on the first data set. The probability of the event is a sum over the threshold's noise.
The mechanism's own step (the function that answers one query) determines which noise of a query
makes its answer unstable.

If a new threshold is drawn after every unstable answer, the event concerns the time between two
unstable answers (an epoch), and the adversary counts the epochs in which the event occurs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from app.auditing.event_bounds import Bound, counting_bounds, epsilon_shown, strongest
from app.auditing.laws.step_law import hit_noise, hits_allowed
from app.privacy.mechanism_registration import own
from app.privacy.sparse_vector import mechanism as sparse_vector

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from app.auditing.audited_mechanism import Audited

    Floats = NDArray[np.float64]

# Values of the threshold's noise that are rarer than this together are left out: events
# only become rarer by it, on both sides alike.
LEFT_OUT: Final = 1e-14
RELEASE_COUNTS: Final = 60
RELEASES_MAX: Final = 1e9


@dataclass(frozen=True, slots=True)
class HitLaw:
    """The probabilities of both kinds of answers at each value of the threshold's noise.

    Attributes:
        weights: the probability of each value of the threshold's noise.
        hit: the probability of an unstable answer at each value.
        stable: the probability of a stable answer at each value.

    """

    weights: Floats
    hit: Floats
    stable: Floats


def threshold_bound(audited: Audited) -> Bound:
    """Return the largest lower bound on epsilon from stable answers followed by unstable ones."""
    answering = own(audited.answering, sparse_vector.Parameters)
    leads = _leads(audited, answering)
    moved = audited.votes_moved
    laws = {
        lead: hit_law(audited, answering, lead)
        for lead in {x + y for x in leads for y in (0, moved)}
    }
    hits = hits_allowed(audited)
    bounds = [
        _pair_bound(audited, laws, released=first, hit=second, hits=hits)
        for first, second in product(leads, leads)
    ]
    return strongest(bounds)


def _leads(audited: Audited, answering: sparse_vector.Parameters) -> list[int]:
    """Return leads from well below the threshold to a little above it."""
    parts = (0.25, 0.5, 0.7, 0.85, 0.95)
    wanted = {1, *(int(answering.threshold * part) for part in parts), answering.threshold + 3}
    return sorted(min(max(1, lead), audited.lead_max) for lead in wanted)


def hit_law(
    audited: Audited, answering: sparse_vector.Parameters, lead: int, *, left_out: float = LEFT_OUT
) -> HitLaw:
    """Return the chance of an unstable answer at a lead in votes, for each threshold noise.

    Args:
        audited: the mechanism under audit.
        answering: the public parameters of its sparse vector technique.
        lead: the query's votes above half for the audited label.
        left_out: the probability of the largest positive and negative values of the threshold's
            noise that are left out of the sum.

    """
    noise, weights = _threshold_noise(answering.threshold_noise.scale, left_out)
    top = hit_noise(audited, lead, noise)
    hit, stable = _tails(top, float(answering.query_noise.scale))
    return HitLaw(weights, hit, stable)


def _threshold_noise(scale: Fraction, left_out: float) -> tuple[NDArray[np.int64], Floats]:
    """Return the values that are summed over, and their probabilities."""
    reach = math.ceil(-math.log(left_out) * scale)
    values = np.arange(-reach, reach + 1)
    base = math.exp(-1 / scale)
    return values, (1 - base) / (1 + base) * np.exp(-np.abs(values) / float(scale))


def _tails(top: NDArray[np.int64], scale: float) -> tuple[Floats, Floats]:
    """Return the probability that discrete Laplace noise is at most ``top``, and above it."""
    base = math.exp(-1 / scale)
    lower = np.exp(np.minimum(top, 0) / scale) / (1 + base)
    upper = np.exp(-(np.maximum(top, -1) + 1) / scale) / (1 + base)
    return np.where(top < 0, lower, 1 - upper), np.where(top < 0, 1 - lower, upper)


def _pair_bound(
    audited: Audited, laws: dict[int, HitLaw], *, released: int, hit: int, hits: int
) -> Bound:
    """Return the most that one choice of leads shows, over the number of releases."""
    moved, limit = audited.votes_moved, audited.parameters.answer_limit - hits
    counts = np.unique(np.round(np.geomspace(1, min(RELEASES_MAX, max(1, limit)), RELEASE_COUNTS)))
    if limit < 1:
        return strongest([])
    refreshed = audited.parameters.is_refreshed
    event_hits = 1 if refreshed else hits
    one = event_probability(laws[released + moved], laws[hit], counts, event_hits)
    other = event_probability(laws[released], laws[hit + moved], counts, event_hits)
    delta, found = float(audited.delta), []
    for likely, unlikely in ((one, other), (other, one)):
        if refreshed:
            shown = counting_bounds(likely, unlikely, trials=hits, delta=delta)
        else:
            shown = epsilon_shown(likely, unlikely, delta)
        best = int(np.argmax(shown))
        text = (
            f"{counts[best]:.0f} released that lead by {2 * released} votes or {moved} moved, "
            f"then {hits} hits that lead by {2 * hit}"
        )
        found.append(Bound(float(shown[best]), text))
    return max(found)


def event_probability(released: HitLaw, hit: HitLaw, counts: Floats, hits: int) -> Floats:
    """Return the probability of a number of stable answers followed by unstable ones.

    Args:
        released: the probabilities of answers to the first queries, which are stable in the event.
        hit: the probabilities of answers to the later queries, which are unstable in the event.
        counts: the numbers of stable answers.
        hits: the number of unstable answers.

    Returns:
        The probability of the event for each number in ``counts``.

    """
    ends = hit.weights * hit.hit**hits
    with np.errstate(divide="ignore"):
        log_stable = np.where(
            released.hit < 0.5,  # noqa: PLR2004 -- where the other one has the digits
            np.log1p(-np.minimum(released.hit, 0.5)),
            np.log(released.stable),
        )
    return np.asarray(np.exp(np.outer(counts, log_stable)) @ ends)
