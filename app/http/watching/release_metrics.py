"""The metrics of the release: the public quantities of ``GET /budget``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from app.http.watching.metric import COUNTER, GAUGE, Facts, Metric, Samples

PHASES: Final = ("ensemble", "classifier", "halted")


def _plain(*path: str) -> Callable[[Facts], Samples]:
    """Return what reads one number of the budget."""

    def read(facts: Facts) -> Samples:
        found: Any = facts.budget
        if found is None:
            return []
        for key in path:
            found = found[key]
        return [((), found)]

    return read


def _composed(member: str) -> Callable[[Facts], Samples]:
    """Return what reads one number of the composed budget, where there is one."""

    def read(facts: Facts) -> Samples:
        composed = facts.budget and facts.budget["composed"]
        return [((), composed[member])] if composed else []

    return read


def _shares(member: str, unit: str) -> Callable[[Facts], Samples]:
    """Return what reads the epsilon or delta of every share in a list of the budget."""

    def read(facts: Facts) -> Samples:
        shares = facts.budget[member] if facts.budget else ()
        return [((share["mechanism"],), share[unit]) for share in shares]

    return read


def _phase(facts: Facts) -> Samples:
    budget = facts.budget
    return [((phase,), phase == budget["phase"]) for phase in PHASES] if budget else []


def _info(*path: str) -> Callable[[Facts], Samples]:
    """Return what reads a text of the budget, which becomes a label of a constant 1."""

    def read(facts: Facts) -> Samples:
        found: Any = facts.budget
        if found is None:
            return []
        for key in path:
            found = found[key]
        return [((found,), 1)]

    return read


RELEASE_METRICS: Final = (
    Metric(
        "conclave_release_info",
        GAUGE,
        "Always 1, with the name of the release",
        _info("release", "name"),
        ("name",),
    ),
    Metric(
        "conclave_phase",
        GAUGE,
        "Whether the release is in the phase, 1 or 0",
        _phase,
        ("phase",),
    ),
    Metric(
        "conclave_switching",
        GAUGE,
        "Whether the published classifier is being made, 1 or 0",
        _plain("switching"),
    ),
    Metric(
        "conclave_student",
        GAUGE,
        "Whether a student answers, or will once it is trained, 1 or 0",
        _plain("student"),
    ),
    Metric("conclave_epsilon_promised", GAUGE, "Epsilon of the whole release", _plain("epsilon")),
    Metric("conclave_delta_promised", GAUGE, "Delta of the whole release", _plain("delta")),
    Metric(
        "conclave_composed_epsilon",
        GAUGE,
        "Epsilon that all releases of the database promise together",
        _composed("epsilon"),
    ),
    Metric(
        "conclave_composed_delta",
        GAUGE,
        "Delta that all releases of the database promise together",
        _composed("delta"),
    ),
    Metric(
        "conclave_composed_releases",
        GAUGE,
        "Releases of the database",
        _composed("releases"),
    ),
    Metric(
        "conclave_epsilon_charged",
        GAUGE,
        "Epsilon that is spent, by mechanism",
        _shares("charged", "epsilon"),
        ("mechanism",),
    ),
    Metric(
        "conclave_delta_charged",
        GAUGE,
        "Delta that is spent, by mechanism",
        _shares("charged", "delta"),
        ("mechanism",),
    ),
    Metric(
        "conclave_epsilon_reserved",
        GAUGE,
        "Epsilon that is set aside, by mechanism",
        _shares("reserved", "epsilon"),
        ("mechanism",),
    ),
    Metric(
        "conclave_delta_reserved",
        GAUGE,
        "Delta that is set aside, by mechanism",
        _shares("reserved", "delta"),
        ("mechanism",),
    ),
    Metric(
        "conclave_answers_total",
        COUNTER,
        "Fresh answers of the ensemble, stable and unstable, since the release opened",
        _plain("queries", "answered"),
    ),
    Metric(
        "conclave_answers_limit",
        GAUGE,
        "Fresh answers that the ensemble may give",
        _plain("queries", "limit"),
    ),
    Metric(
        "conclave_unstable_total",
        COUNTER,
        "Unstable answers since the release opened; with scores, units of the cutoff",
        _plain("unstable", "count"),
    ),
    Metric(
        "conclave_unstable_cutoff",
        GAUGE,
        "Unstable answers, or units, at which the ensemble ends",
        _plain("unstable", "cutoff"),
    ),
    Metric("conclave_ensemble_size", GAUGE, "Learners of the ensemble", _plain("ensemble", "size")),
    Metric(
        "conclave_ledger_sequence",
        GAUGE,
        "Number of the newest entry of the ledger",
        _plain("ledger", "sequence"),
    ),
    Metric(
        "conclave_ledger_head_info",
        GAUGE,
        "Always 1, with the hash of the newest entry of the ledger",
        _info("ledger", "head"),
        ("hash",),
    ),
    Metric(
        "conclave_ledger_head_file_sequence",
        GAUGE,
        "Number of the entry that the head file notes, when this process wrote it last",
        lambda facts: [((), facts.noted_sequence)],
    ),
)
