"""The exact lower bound of whichever mechanism answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.auditing.profile_bound import constant_bound, hit_table
from app.auditing.threshold_bound import threshold_bound
from app.auditing.vote_bound import vote_bound
from app.mechanisms import sparse_vector, stability

if TYPE_CHECKING:
    from app.auditing.audited import Audited
    from app.auditing.events import Bound


def exact_bound(audited: Audited) -> Bound:
    """Return the largest lower bound on epsilon of the exact adversaries; nothing is sampled."""
    answering = audited.parameters.answering
    if isinstance(answering, stability.Parameters):
        return constant_bound(audited, hit_table(audited))
    if isinstance(answering, sparse_vector.Parameters):
        return threshold_bound(audited)
    return vote_bound(audited)
