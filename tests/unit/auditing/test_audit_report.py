"""An audit's verdict: each of its findings is enough by itself to fail it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.auditing.audit import AuditReport
from app.auditing.event_bounds import ROUNDING, Bound
from app.auditing.hypothesis_draws import DrawReport
from app.auditing.sampling import Sampled

CLAIM = 1.0
WITHIN, BEYOND = Bound(CLAIM + ROUNDING / 2, "any"), Bound(CLAIM + 2 * ROUNDING, "any")


def sampled(bound: Bound) -> Sampled:
    """Return what sampling shows, with this bound."""
    return Sampled(bound=bound, bounds=(bound,), runs=200, detection_limit=1.5, largest_shown=3.0)


def draw(bound: Bound) -> DrawReport:
    """Return what a draw shows, with this bound."""
    return DrawReport("relabelling", epsilon=CLAIM, delta=1e-12, exact=bound)


REPORT = AuditReport(
    mechanism="any",
    epsilon=CLAIM,
    delta=1e-6,
    exact=WITHIN,
    sampled=sampled(WITHIN),
    broken=(),
    draws=(draw(WITHIN), draw(WITHIN)),
)


def test_bounds_at_the_claim_and_no_broken_condition_hold() -> None:
    """A bound may touch the claim, within what doubles are off by."""
    assert REPORT.holds


@pytest.mark.parametrize(
    "report",
    [
        replace(REPORT, exact=BEYOND),
        replace(REPORT, sampled=sampled(BEYOND)),
        replace(REPORT, broken=("every query draws noise of its own",)),
        replace(REPORT, draws=(draw(WITHIN), draw(BEYOND))),
        replace(REPORT, draws=(draw(BEYOND), draw(WITHIN))),
    ],
    ids=("exact", "sampled", "condition", "last draw", "first draw"),
)
def test_one_finding_fails_an_audit(report: AuditReport) -> None:
    """An exact or sampled bound, a condition or a draw's bound: each alone fails it."""
    assert not report.holds
