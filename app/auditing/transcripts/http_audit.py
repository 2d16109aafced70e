"""The audit of whole releases over HTTP: their replies compared with their promises.

Many releases are run on each of two neighbouring data sets (a *pair*), for several pairs, and all
their replies are recorded. Some of the runs serve to choose an event, a set of values in one part
of the replies (channel), that seems likelier on one data set, and another event that seems likelier
on the other. The other runs test the two events, which gives a lower bound on epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from app.auditing.event_bounds import ROUNDING
from app.auditing.transcripts.reply_checks import broken_promises
from app.auditing.transcripts.transcripts import Suspicion, Trials, suspect, told_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from app.auditing.event_bounds import Bound
    from app.auditing.transcripts.reply_checks import Life
    from app.auditing.transcripts.transcripts import Transcript


FALSE_ALARM: Final = 1e-6
"""Probability that any bound of an audit over HTTP is above the truth."""
CHOOSING_PART: Final = 4
"""One run in so many chooses: what is grossly wrong shows in few, and bounds need the rest."""
RUNS_MIN: Final = 2
"""On each side of a pair: one chooses what to look at, and one is looked at."""


@dataclass(frozen=True, slots=True)
class Heard:
    """Everything that all server processes of one release sent, one after another.

    Attributes:
        transcript: all values that were sent, by channel (part of the replies).
        lives: the answers, counters and ledger entries that each process sent.

    """

    transcript: Transcript
    lives: tuple[Life, ...]

    def broken(self, promised: Promised) -> frozenset[str]:
        """Return the promises that a run broke, as far as a client can check."""
        return broken_promises(self.lives, cutoff=promised.cutoff, abstains=promised.abstains)


@dataclass(frozen=True, slots=True)
class Promised:
    """The promises with which each run of a release is compared.

    Attributes:
        claim: the claimed epsilon and delta of everything that the release may send out.
        cutoff: the cutoff T, the largest number of unstable answers; None without a cutoff.
        abstains: whether an unstable answer has no label.

    """

    claim: Claim
    cutoff: int | None
    abstains: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """The numbers of audit runs: some to choose which events to test, the others to test them.

    Attributes:
        choosing: the number of runs that choose the events to test, on each data set of each pair.
        trials: the number of runs that test the events, with the privacy claim and the probability
            that their bound is wrong.

    """

    choosing: int
    trials: Trials

    @property
    def runs(self) -> int:
        """The number of all audit runs on one data set."""
        return self.choosing + self.trials.runs


def plan_runs(claim: Claim, *, runs: int, pair_count: int) -> Plan:
    """Return how many runs choose events, and how many test them, on each data set.

    Args:
        claim: the claimed epsilon and delta.
        runs: the number of runs on all data sets together; if it is too small, a minimum on each
            data set is used.
        pair_count: the number of pairs of neighbouring data sets; the false-alarm probability is
            for all pairs together.

    """
    each = max(RUNS_MIN, runs // (2 * pair_count))
    choosing = max(1, each // CHOOSING_PART)
    trials = Trials(
        epsilon=float(claim.epsilon),
        delta=float(claim.delta),
        runs=each - choosing,
        false_alarm=FALSE_ALARM / pair_count,
    )
    return Plan(choosing, trials)


@dataclass(frozen=True, slots=True)
class Seen:
    """The outcome of one run: which chosen events occurred, and which promises it broke.

    Attributes:
        events: whether each of the two chosen events occurred; empty for a run that served to
            choose events.
        broken: the promises that the run broke.

    """

    events: tuple[bool, ...]
    broken: frozenset[str]


@dataclass(frozen=True, slots=True)
class ServedReport:
    """The results of an audit over HTTP.

    Attributes:
        epsilon: the claimed epsilon of everything that a release may send out.
        delta: the claimed delta of everything that a release may send out.
        told: the lower bound on epsilon from each pair of neighbouring data sets, by the pair's
            name, with the channel that proves it.
        broken: the number of runs that broke each promise that an outsider can check.
        plan: the numbers of runs on each data set of each pair.

    """

    epsilon: float
    delta: float
    told: Mapping[str, Bound]
    broken: Mapping[str, int]
    plan: Plan

    @property
    def runs(self) -> int:
        """The number of whole releases that were run."""
        return 2 * len(self.told) * self.plan.runs

    @property
    def holds(self) -> bool:
        """Whether no lower bound exceeds the claim, and every run kept its promises."""
        within = all(bound.epsilon <= self.epsilon + ROUNDING for bound in self.told.values())
        return within and not self.broken


def suspicion_of(chosen: tuple[Sequence[Heard], Sequence[Heard]], plan: Plan) -> Suspicion:
    """Return events to test in later runs, chosen from some runs on both data sets."""
    one, other = ([run.transcript for run in side] for side in chosen)
    return suspect((one, other), plan.trials)


def told_of(suspicion: Suspicion, seen: tuple[Sequence[Seen], Sequence[Seen]], plan: Plan) -> Bound:
    """Return a lower bound on epsilon from the runs that did not choose the events.

    Args:
        suspicion: the events to test, chosen from other runs.
        seen: the outcomes of the test runs on each of the two data sets.
        plan: the number of test runs on each data set, with the claim.

    """
    one, other = ([run.events for run in side] for side in seen)
    return told_by(suspicion, (one, other), plan.trials)


def served_document(report: ServedReport) -> dict[str, object]:
    """Return a report as JSON values, in the form of ``conclave audit --json``.

    The limit of detection is the smallest epsilon above the claim that the audit would detect. It
    is null in the document if no epsilon would be detected.
    """
    trials = report.plan.trials
    limit = trials.detection_limit
    return {
        "holds": report.holds,
        "claim": {"epsilon": report.epsilon, "delta": report.delta},
        "runs": report.runs,
        "tested_on_each_side": trials.runs,
        "detection_limit": limit if math.isfinite(limit) else None,
        "largest_shown": trials.largest_shown,
        "false_alarm_probability": FALSE_ALARM,
        "broken_promises": dict(report.broken),
        "pairs": [
            {
                "neighbours": name,
                "epsilon": bound.epsilon,
                "share_of_claim": bound.epsilon / report.epsilon,
                "adversary": bound.adversary,
            }
            for name, bound in report.told.items()
        ],
    }


@dataclass(frozen=True, slots=True)
class Claim:
    """The exact privacy claim of the releases in an audit over HTTP."""

    epsilon: Fraction
    delta: Fraction
