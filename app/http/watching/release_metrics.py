"""The metrics of the release: the public quantities of ``GET /budget``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from app.answering.types import Budget
from app.http.watching.metric import COUNTER, GAUGE, Facts, Metric, Samples, Value

PHASES: Final = ("ensemble", "classifier", "halted")


def _number(read: Callable[[Budget], Value]) -> Callable[[Facts], Samples]:
    """Return a reader of one number of the budget."""
    return lambda facts: [((), read(facts.budget))] if facts.budget else []


def _each(read: Callable[[Budget], Iterable[tuple[str, Value]]]) -> Callable[[Facts], Samples]:
    """Return a reader of numbers, one for each value of a label."""
    return lambda facts: (
        [((label,), value) for label, value in read(facts.budget)] if facts.budget else []
    )


RELEASE_METRICS: Final = (
    Metric(
        "conclave_release_info",
        GAUGE,
        "Always 1, with the name of the release",
        _each(lambda budget: [(budget.release.name, 1)]),
        ("name",),
    ),
    Metric(
        "conclave_phase",
        GAUGE,
        "Whether the release is in the phase, 1 or 0",
        _each(lambda budget: [(phase, phase == budget.phase) for phase in PHASES]),
        ("phase",),
    ),
    Metric(
        "conclave_switching",
        GAUGE,
        "Whether the published classifier is being made, 1 or 0",
        _number(lambda budget: budget.switching),
    ),
    Metric(
        "conclave_student",
        GAUGE,
        "Whether a student answers, or will once it is trained, 1 or 0",
        _number(lambda budget: budget.student),
    ),
    Metric(
        "conclave_epsilon_promised",
        GAUGE,
        "Epsilon of the whole release",
        _number(lambda budget: budget.epsilon),
    ),
    Metric(
        "conclave_delta_promised",
        GAUGE,
        "Delta of the whole release",
        _number(lambda budget: budget.delta),
    ),
    Metric(
        "conclave_composed_epsilon",
        GAUGE,
        "Epsilon that all releases of the database promise together",
        _number(lambda budget: budget.composed.epsilon if budget.composed else None),
    ),
    Metric(
        "conclave_composed_delta",
        GAUGE,
        "Delta that all releases of the database promise together",
        _number(lambda budget: budget.composed.delta if budget.composed else None),
    ),
    Metric(
        "conclave_composed_releases",
        GAUGE,
        "Releases of the database",
        _number(lambda budget: budget.composed.releases if budget.composed else None),
    ),
    Metric(
        "conclave_epsilon_charged",
        GAUGE,
        "Epsilon that is spent, by mechanism",
        _each(lambda budget: [(share.mechanism, share.epsilon) for share in budget.charged]),
        ("mechanism",),
    ),
    Metric(
        "conclave_delta_charged",
        GAUGE,
        "Delta that is spent, by mechanism",
        _each(lambda budget: [(share.mechanism, share.delta) for share in budget.charged]),
        ("mechanism",),
    ),
    Metric(
        "conclave_epsilon_reserved",
        GAUGE,
        "Epsilon that is set aside, by mechanism",
        _each(lambda budget: [(share.mechanism, share.epsilon) for share in budget.reserved]),
        ("mechanism",),
    ),
    Metric(
        "conclave_delta_reserved",
        GAUGE,
        "Delta that is set aside, by mechanism",
        _each(lambda budget: [(share.mechanism, share.delta) for share in budget.reserved]),
        ("mechanism",),
    ),
    Metric(
        "conclave_answers_total",
        COUNTER,
        "Fresh answers of the ensemble, stable and unstable, since the release opened",
        _number(lambda budget: budget.queries.answered),
    ),
    Metric(
        "conclave_answers_limit",
        GAUGE,
        "Fresh answers that the ensemble may give",
        _number(lambda budget: budget.queries.limit),
    ),
    Metric(
        "conclave_unstable_total",
        COUNTER,
        "Unstable answers since the release opened; with scores, units of the cutoff",
        _number(lambda budget: budget.unstable.count),
    ),
    Metric(
        "conclave_unstable_cutoff",
        GAUGE,
        "Unstable answers, or units, at which the ensemble ends",
        _number(lambda budget: budget.unstable.cutoff),
    ),
    Metric(
        "conclave_ensemble_size",
        GAUGE,
        "Learners of the ensemble",
        _number(lambda budget: budget.ensemble.size),
    ),
    Metric(
        "conclave_ledger_sequence",
        GAUGE,
        "Number of the newest entry of the ledger",
        _number(lambda budget: budget.ledger.sequence),
    ),
    Metric(
        "conclave_ledger_head_info",
        GAUGE,
        "Always 1, with the hash of the newest entry of the ledger",
        _each(lambda budget: [(budget.ledger.head, 1)]),
        ("hash",),
    ),
    Metric(
        "conclave_ledger_head_file_sequence",
        GAUGE,
        "Number of the entry that the head file notes, when this process wrote it last",
        lambda facts: [((), facts.noted_sequence)],
    ),
)
