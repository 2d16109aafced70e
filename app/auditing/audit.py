"""The audit of the mechanism that a configuration would serve; no private row is read.

The audit opens the mechanism and answers queries with the functions that the server uses. Only the
votes are made up: they are the neighbouring votes that are easiest to distinguish, as far as the
auditor knows. The audit also covers each hypothesis (rule) that the release would draw at random:
to relabel its rows, or as its published classifier. The exact part of the audit computes
probabilities; the sampled part runs the mechanism many times with real random numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.auditing.audited_mechanism import Audited
from app.auditing.bounds_by_mechanism import AUDITED, adversaries, broken_conditions, exact_bound
from app.auditing.event_bounds import ROUNDING, Bound
from app.auditing.hypothesis_draws import audit_draws
from app.auditing.sampling import sample
from app.auditing.transcripts.http_audit import served_document
from app.errors import ConfigurationError
from app.release.terms.answer_terms import (
    answering_parameters,
    answering_registration,
    calibrate_answers,
    release_budget,
)
from app.release.terms.configuration import refuse_unknown

if TYPE_CHECKING:
    from app.auditing.event_bounds import Bound
    from app.auditing.hypothesis_draws import DrawReport
    from app.auditing.sampling import Sampled
    from app.auditing.transcripts.http_audit import ServedReport
    from app.noise.source import NoiseSource
    from app.settings.settings import Settings


STEPS_QUICK: Final = 1_500_000
STEPS_LONG: Final = 60_000_000
NO_ANSWERS: Final = "no answers of models"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The results of an audit, with the privacy claim.

    In a release without answers only draws are audited, and ``exact`` and ``sampled`` are None.

    Attributes:
        mechanism: the name of the answering mechanism.
        epsilon: the claimed epsilon of the answers, with respect to the rows on which the ensemble
            is trained.
        delta: the claimed delta of the answers.
        exact: the largest lower bound on epsilon that was computed from exact probabilities.
        sampled: the lower bound on epsilon that many runs of the mechanism show.
        broken: the conditions of the privacy proofs that do not hold, as text.
        draws: the lower bound on epsilon for each random draw of a hypothesis.
        served: the results of whole releases over HTTP; None if none was run.

    """

    mechanism: str
    epsilon: float
    delta: float
    exact: Bound | None
    sampled: Sampled | None
    broken: tuple[str, ...]
    draws: tuple[DrawReport, ...] = ()
    served: ServedReport | None = None

    @property
    def holds(self) -> bool:
        """Whether no lower bound exceeds the claimed epsilon, and every proof condition holds."""
        shown = [] if self.exact is None else [self.exact]
        shown += [] if self.sampled is None else [self.sampled.bound]
        largest = max((bound.epsilon for bound in shown), default=0.0)
        within = largest <= self.epsilon + ROUNDING and all(draw.holds for draw in self.draws)
        heard = self.served is None or self.served.holds
        return within and heard and not self.broken


def audit(
    settings: Settings, *, steps: int, noise: NoiseSource, with_draws: bool = True
) -> AuditReport:
    """Return lower bounds on the epsilon of the answers, and of each randomly drawn hypothesis.

    Args:
        settings: the configuration; the private rows that it names are not read.
        with_draws: whether the random draws of hypotheses are audited in addition to the answers.
        steps: the number of answers to draw in the sampled part of the audit.
        noise: the source of randomness.

    Raises:
        ConfigurationError: no parameters fit the budget, or the release gives no labels by vote.

    """
    draws = audit_draws(settings) if with_draws else ()
    if draws and not has_answers(settings):
        return AuditReport(NO_ANSWERS, 0.0, 0.0, exact=None, sampled=None, broken=(), draws=draws)
    report = report_on(audited_answers(settings), steps=steps, noise=noise)
    return replace(report, draws=draws)


def has_answers(settings: Settings) -> bool:
    """Return whether models answer queries; without, only the published classifier does."""
    return settings.privacy.shares.answers > 0


def report_on(audited: Audited, *, steps: int, noise: NoiseSource) -> AuditReport:
    """Return the audit of one mechanism; tests call it with faulty functions of the mechanism.

    Args:
        audited: the mechanism under audit.
        steps: the number of answers to draw in the sampled part of the audit.
        noise: the source of randomness.

    """
    return AuditReport(
        mechanism=AUDITED[audited.row.name].called(audited.answering),
        epsilon=float(audited.epsilon),
        delta=float(audited.delta),
        exact=exact_bound(audited),
        sampled=sample(audited, adversaries(audited), steps=steps, noise=noise),
        broken=tuple(broken_conditions(audited)),
    )


def audit_document(report: AuditReport) -> dict[str, object]:
    """Return a report as JSON values, in the form of ``conclave audit --json``.

    The limit of detection is the smallest epsilon above the claim that the sampled part of the
    audit would detect. It is null in the document if no epsilon would be detected.
    """
    return {
        "holds": report.holds,
        "broken_conditions": list(report.broken),
        "mechanism": report.mechanism,
        "claim": {"epsilon": report.epsilon, "delta": report.delta},
        "exact": None if report.exact is None else _bound(report, report.exact),
        "draws": [_draw(draw) for draw in report.draws],
        "sampled": None if report.sampled is None else _sampled(report, report.sampled),
        "http": None if report.served is None else served_document(report.served),
    }


def _sampled(report: AuditReport, sampled: Sampled) -> dict[str, object]:
    return {
        **_bound(report, sampled.bound),
        "runs": sampled.runs,
        "detection_limit": _finite(sampled.detection_limit),
        "largest_shown": sampled.largest_shown,
        "false_alarm_probability": sampled.false_alarm,
        "adversaries": [_bound(report, bound) for bound in sampled.bounds],
    }


def _draw(draw: DrawReport) -> dict[str, object]:
    return {
        "mechanism": draw.mechanism,
        "claim": {"epsilon": draw.epsilon, "delta": draw.delta},
        "exact": _bound(draw, draw.exact),
    }


def _bound(report: AuditReport | DrawReport, bound: Bound) -> dict[str, object]:
    return {
        "epsilon": _finite(bound.epsilon),
        "share_of_claim": _finite(bound.epsilon / report.epsilon),
        "adversary": bound.adversary,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def audited_answers(settings: Settings) -> Audited:
    """Return the mechanism to be served, with so few models that its noise matters.

    Raises:
        ConfigurationError: no parameters fit the budget, or the release gives no labels by vote.

    """
    refuse_unknown(settings)
    if settings.answers.output != "label":
        problem = '"score" is not audited; set it to "label"'
        raise ConfigurationError("answers.output", problem)
    budget = release_budget(settings)
    calibration = calibrate_answers(settings, budget)
    if budget is None or calibration is None:
        raise ConfigurationError("privacy.shares.answers", "is 0: nothing would be audited")
    votes = 2 * (AUDITED[answering_registration(settings).name].lead_needed(calibration) + 2)
    is_joint = budget.account is not None and budget.relabel_epsilon is not None
    return Audited(
        parameters=answering_parameters(settings, budget, calibration, ensemble_size=votes),
        epsilon=budget.answers_epsilon,
        delta=budget.answers_delta,
        ensemble_size=votes,
        draws=() if budget.account is None else budget.account.draws,
        relabel_epsilon=(budget.relabel_epsilon or Fraction(0)) if is_joint else Fraction(0),
    )
