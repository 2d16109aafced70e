"""The audit functions of every answering mechanism, looked up by the mechanism's name.

An adversary is a sequence of queries on which two neighbouring data sets have different votes. A
condition is a property of the mechanism that the proof of its privacy requires. In the sampled part
of the audit the mechanism runs many times with real random numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from app.auditing.bounds.bit_bound import adaptive_bit_bound, bit_bound
from app.auditing.bounds.cell_bound import decision_bound
from app.auditing.bounds.profile_bound import adaptive_bound_beyond, repeated_bound
from app.auditing.bounds.threshold_bound import threshold_bound
from app.auditing.bounds.vote_bound import vote_bound
from app.auditing.laws.proof_conditions import (
    of_bits,
    of_certified_words,
    of_decisions,
    of_threshold,
    of_votes,
    of_words,
)
from app.auditing.sampling import ask_bits, ask_decisions, ask_threshold, ask_votes, ask_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.auditing.audited_mechanism import Audited
    from app.auditing.event_bounds import Bound
    from app.auditing.laws.proof_conditions import Checks
    from app.auditing.sampling import Adversary

NOISE_DEVIATIONS: Final = 8
LEAD_BEYOND_THRESHOLD: Final = 8
DEVIATIONS_OF_A_TAIL: Final = 1.5
HALF: Final = 0.5
FAILURE: Final = 0.02
TAIL: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRegistration:
    """The audit functions of one answering mechanism.

    Attributes:
        called: returns the mechanism's name in a report.
        bound: returns the largest lower bound on epsilon from exact probabilities.
        slow_bound: returns the lower bound of an adaptive adversary, given the result of ``bound``;
            it takes about a second; None if there is no such adversary.
        conditions: returns each condition of the privacy proof with whether it holds.
        adversaries: returns the adversaries that the sampled part of the audit runs.
        lead_needed: returns a lead (votes above half) so large that one more vote hardly changes
            the probabilities of an answer.
        votes_near: returns a number of votes k for which the answer to a query with k equal votes
            is unstable with a probability near one half; for a mechanism without unstable answers,
            a number at which one vote makes a large difference.
        votes_answered: returns a number of votes k for which a query with k equal votes nearly
            always gets its label.

    """

    called: Callable[..., str]
    bound: Callable[[Audited], Bound]
    slow_bound: Callable[[Audited, Bound], Bound] | None = None
    conditions: Callable[[Audited], Checks]
    adversaries: Callable[[Audited], Sequence[Adversary]]
    lead_needed: Callable[..., int]
    votes_near: Callable[..., int] = lambda test: 2 * (test.distance_at(HALF) + 1)
    votes_answered: Callable[..., int] = lambda test: 2 * (test.distance_at(FAILURE) + 1)


THRESHOLD: Final = AuditRegistration(
    called=lambda answering: (
        "sparse vector, its threshold drawn anew at each hit"
        if answering.refreshed
        else "sparse vector of one threshold"
    ),
    bound=threshold_bound,
    conditions=of_threshold,
    adversaries=ask_threshold,
    lead_needed=lambda served: served.threshold + LEAD_BEYOND_THRESHOLD,
)
PROFILE: Final = AuditRegistration(
    called=lambda _: "stability test of calibration profile",
    bound=repeated_bound,
    slow_bound=adaptive_bound_beyond,
    conditions=of_words,
    adversaries=ask_words,
    lead_needed=lambda table: len(table.thresholds),
)
BITS: Final = AuditRegistration(
    called=lambda _: "noisy vote of two labels",
    bound=bit_bound,
    slow_bound=adaptive_bit_bound,
    conditions=of_bits,
    adversaries=ask_bits,
    lead_needed=lambda table: len(table.even),
    votes_near=lambda table: 2 * max(1, table.lead_at(TAIL) // 2),
    votes_answered=lambda served: served.lead_at(FAILURE),
)
VOTES: Final = AuditRegistration(
    called=lambda _: "noisy vote",
    bound=vote_bound,
    conditions=of_votes,
    adversaries=ask_votes,
    lead_needed=lambda served: math.ceil(NOISE_DEVIATIONS * math.sqrt(served.variance)),
    votes_near=lambda served: 2 * max(1, round(DEVIATIONS_OF_A_TAIL * math.sqrt(served.variance))),
    votes_answered=lambda served: served.lead_at(FAILURE),
)
AUDITED: dict[str, AuditRegistration] = {
    "profile": PROFILE,
    "certified": replace(
        PROFILE,
        called=lambda _: "stability test of calibration certified",
        conditions=of_certified_words,
    ),
    "svt": THRESHOLD,
    "paper": THRESHOLD,
    "noisy-vote": VOTES,
    "noisy-bit": BITS,
    "profile-of-cells": replace(
        PROFILE,
        called=lambda _: "stability test of calibration profile, each cell decided once",
        bound=decision_bound,
        slow_bound=None,
        conditions=of_decisions,
        adversaries=ask_decisions,
    ),
    "noisy-vote-of-cells": replace(VOTES, called=lambda _: "noisy vote, each cell decided once"),
    "noisy-bit-of-cells": replace(
        BITS, called=lambda _: "noisy vote of two labels, each cell decided once"
    ),
}


def exact_bound(audited: Audited, *, thorough: bool = True) -> Bound:
    """Return the largest lower bound on epsilon by exact probabilities, without sampling.

    Args:
        audited: the mechanism under audit.
        thorough: whether the slower bound of an adaptive adversary is computed if the mechanism has
            one, which takes about a second.

    """
    row = AUDITED[audited.row.name]
    found = row.bound(audited)
    if not thorough or row.slow_bound is None or not math.isfinite(found.epsilon):
        return found
    return max(found, row.slow_bound(audited, found))


def broken_conditions(audited: Audited) -> list[str]:
    """Return the conditions of the privacy proof that do not hold, as text; none if all hold."""
    checks = AUDITED[audited.row.name].conditions(audited)
    return [name for name, holds in checks.items() if not holds]


def adversaries(audited: Audited) -> Sequence[Adversary]:
    """Return the adversaries to run against a mechanism, chosen by its public parameters."""
    return AUDITED[audited.row.name].adversaries(audited)
