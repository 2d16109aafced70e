"""The exact lower bound of whichever mechanism answers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from app.auditing.bounds.adaptive_bound import adaptive_bound
from app.auditing.bounds.profile_bound import constant_bound, hit_table
from app.auditing.bounds.threshold_bound import threshold_bound
from app.auditing.bounds.vote_bound import vote_bound
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.stability import mechanism as stability

if TYPE_CHECKING:
    from app.auditing.audited import Audited
    from app.auditing.outcome_events import Bound


def exact_bound(audited: Audited, *, thorough: bool = True) -> Bound:
    """Return the largest lower bound on epsilon of the exact adversaries; nothing is sampled.

    Args:
        audited: what answers.
        thorough: whether the adaptive adversary, which takes a second, is asked too.

    """
    answering = audited.parameters.answering
    if isinstance(answering, stability.Parameters):
        table = hit_table(audited)
        constant = constant_bound(audited, table)
        if not thorough or not math.isfinite(constant.epsilon):
            return constant
        return max(constant, adaptive_bound(audited, table, start=constant.epsilon))
    if isinstance(answering, sparse_vector.Parameters):
        return threshold_bound(audited)
    return vote_bound(audited)
