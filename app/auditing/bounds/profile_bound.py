"""Calibration ``profile`` against an adversary who asks one query until the run ends.

The adversary asks n queries with the same votes, of which one moves.  The event is that
fewer than T of them are hits, or that T are.  Both probabilities are those of independent
trials, and that of a hit is what the step itself says of all ``2**64`` words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from app.auditing.laws.step_law import hit_words, hits_allowed
from app.auditing.outcome_events import Bound, at_least_hits, epsilon_shown, fewer_hits, strongest
from app.noise.source import WORD_BOUND

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.auditing.audited import Audited

QUERIES_MAX: Final = 1e12
QUERY_COUNTS: Final = 160


def hit_table(audited: Audited) -> NDArray[np.float64]:
    """Return the probabilities of a hit and of none, for each lead from 0 on.

    Returns:
        Shape (leads, 2).

    """
    words = [hit_words(audited, lead) for lead in range(audited.lead_max + 1)]
    return np.array([[float(hit), float(WORD_BOUND - hit)] for hit in words]) / WORD_BOUND


def repeated_bound(audited: Audited) -> Bound:
    """Return the most that asking one query again and again shows, by the law of the step."""
    return constant_bound(audited, hit_table(audited))


def constant_bound(audited: Audited, table: NDArray[np.float64]) -> Bound:
    """Return the most that asking one query again and again shows.

    Args:
        audited: what answers.
        table: as :func:`hit_table` returns it.

    """
    hits = hits_allowed(audited)
    limit = min(QUERIES_MAX, float(audited.parameters.answer_limit))
    if limit < hits:
        return strongest([])
    counts = np.unique(np.round(np.geomspace(hits, limit, QUERY_COUNTS)))
    return strongest([_of_count(audited, table, trials=trials, hits=hits) for trials in counts])


def _of_count(audited: Audited, table: NDArray[np.float64], *, trials: float, hits: int) -> Bound:
    """Return the most that one number of queries shows, over all votes and both orders."""
    hit, stable = table.T
    moved, delta, found = audited.votes_moved, float(audited.delta), []
    for name, law in (("fewer than", fewer_hits), ("at least", at_least_hits)):
        chance = law(hit, stable, trials=trials, hits=hits)
        for nearer, further in (
            (chance[:-moved], chance[moved:]),
            (chance[moved:], chance[:-moved]),
        ):
            shown = epsilon_shown(nearer, further, delta)
            lead = int(np.argmax(shown))
            text = f"{trials:.0f} queries that lead by {2 * lead} votes or {moved} moved: "
            found.append(Bound(float(shown[lead]), f"{text}{name} {hits} hits"))
    return max(found)
