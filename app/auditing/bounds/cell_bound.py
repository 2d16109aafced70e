"""A lower bound on epsilon by adaptive adversaries, if each public cell gets only one answer.

An answer that the changed record does not affect has the same distribution on both data sets and
shows nothing. So the adversary asks only for the answers that the record can affect. If each public
cell is answered only once, these are two: the answer of the cell in which the record lies, and the
answer of the cell in which its replacement lies. For each of the two answers the adversary chooses
a pair of neighbouring votes, in either order, including votes around a tie. The outcome is an
unstable answer or a stable label.

For an epsilon, the largest value of ``P - e^epsilon Q``, where P and Q are the probabilities of an
event on the two data sets, is found by trying every pair after every outcome. The largest epsilon
at which this value exceeds delta is found by bisection. If there are many possible pairs, only some
of them are tried; the bound remains valid.
"""

from __future__ import annotations

import math
from itertools import repeat
from typing import TYPE_CHECKING, Final

import numpy as np

from app.auditing.event_bounds import Bound, strongest
from app.auditing.laws.step_law import hit_words
from app.noise.scripted import ScriptedNoise
from app.noise.source import WORD_BOUND

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.auditing.audited_mechanism import Audited

    Floats = NDArray[np.float64]

SEQUENCES_MAX: Final = 1_000_000
"""So many choices of pairs, with their outcomes, take some hundredths of a second."""
OUTCOMES_A_LEAD: Final = 6
"""Three outcomes, in two orders."""
EPSILON_BEYOND: Final = 4.0
"""So many times the claim are looked at."""
BISECTIONS: Final = 24
NEVER: Final = 1e-90
"""What stands for the chance of a label that cannot get out."""


def decision_bound(audited: Audited) -> Bound:
    """Return the largest lower bound on epsilon from an adaptive adversary."""
    count, delta = audited.decisions_moved, float(audited.delta)
    pairs = _pairs(audited, lead_count=int(SEQUENCES_MAX ** (1 / count)) // OUTCOMES_A_LEAD)
    low, high = 0.0, EPSILON_BEYOND * float(audited.epsilon)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        found = _gains(pairs, np.array([math.exp(middle)]), decisions=count)[0]
        low, high = (middle, high) if found > delta else (low, middle)
    return strongest([Bound(low, f"{count} decisions, each chosen by the one before")])


def _gains(pairs: Floats, ratios: Floats, *, decisions: int) -> Floats:
    """Return the most that ``P - e^epsilon Q`` comes to, in units of what led here.

    Args:
        pairs: chances of each outcome on both sides, shape (pairs, 3, 2).
        ratios: of ``e^epsilon Q`` to P of what led here, shape (states,).
        decisions: that are still to come.

    """
    if not decisions:
        return np.maximum(0.0, 1 - ratios)
    one, other = pairs[..., 0], pairs[..., 1]
    following = ratios[:, None, None] * (other / one)
    worth = _gains(pairs, following.ravel(), decisions=decisions - 1).reshape(following.shape)
    gains: Floats = (one * worth).sum(axis=2).max(axis=1)
    return gains


def _pairs(audited: Audited, *, lead_count: int) -> Floats:
    """Return chances of a hit and of each label on both sides, shape (pairs, 3, 2)."""
    moved, last = audited.votes_moved, audited.lead_max
    spread = np.linspace(0, last - moved, lead_count).astype(np.int64).tolist()
    leads = sorted({*range(-moved, 1), *spread})
    forward = np.array([[_law(audited, lead), _law(audited, lead + moved)] for lead in leads])
    pairs = np.maximum(np.swapaxes(forward, 1, 2), NEVER)
    return np.asarray(np.concatenate([pairs, pairs[:, :, ::-1]]))


def _law(audited: Audited, lead: int) -> tuple[float, float, float]:
    """Return the chances of a hit, and of either label's getting out."""
    words = hit_words(audited, lead)
    state = audited.start(audited.parameters, ScriptedNoise(repeat(0)))
    highest = ScriptedNoise(repeat(WORD_BOUND - 1))
    _, outcome = audited.step(audited.parameters, state, audited.tally_of(lead), highest)
    hit, stable = words / WORD_BOUND, (WORD_BOUND - words) / WORD_BOUND
    return (hit, 0.0, stable) if outcome.label else (hit, stable, 0.0)
