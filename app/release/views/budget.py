"""What ``GET /budget`` shows: public quantities, folded from entries."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from app.ledger.entries.entry_kinds import StudentPublished
from app.privacy.voting.universal import Phase, Sequel
from app.release.composed_budget import composed_view
from app.release.terms.hopelessness import is_hopeless

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.ledger.entries.entry_kinds import ShareCharged, ShareReserved
    from app.ledger.entries.fold import LedgerState
    from app.release.release import Release


def budget_view(release: Release, at: LedgerState | None = None) -> dict[str, object]:
    """Return the body of ``GET /budget``; epsilon and delta as JSON numbers.

    Args:
        release: what serves.
        at: a state of its ledger; None for the one that this server knows.

    """
    state = at or release.state  # one moment: the writer may commit meanwhile
    phase = release.phase_at(state)
    return {
        "release": {"name": release.name},
        "phase": phase.value,
        "student": _is_student(release, state),
        "switching": phase is Phase.CLASSIFIER and state.classifier is None,
        "epsilon": float(release.configuration.epsilon),
        "delta": float(release.configuration.delta),
        "composed": composed_view(release.ledger.openings),
        "charged": _shares(state.charged),
        "reserved": _shares(state.reserved),
        "left": _left(release, state),
        "queries": _counter("answered", state.answered, "limit", release.mechanism.answer_limit),
        "with_scores": release.mechanism.with_scores,
        "follows": {
            "limit": release.mechanism.after.value,
            "cutoff": release.mechanism.on_cutoff.value,
        },
        "unstable": _counter("count", state.unstable, "cutoff", release.mechanism.cutoff),
        "ensemble": {"size": state.ensemble.size if state.ensemble else 0},
        "hopeless": is_hopeless(state.release),
        "ledger": {"sequence": state.head.sequence, "head": state.head.hash},
    }


def _is_student(release: Release, state: LedgerState) -> bool:
    """Tell whether a student answers, or will once it is trained."""
    if state.classifier is not None:
        follows = isinstance(state.classifier, StudentPublished)
        return follows and release.phase_at(state) is Phase.CLASSIFIER
    return release.sequel_at(state) is Sequel.STUDENT


def _counter(
    count_name: str, count: int, limit_name: str, limit: int | None
) -> dict[str, int | None]:
    left = None if limit is None else max(0, limit - count)
    return {count_name: count, limit_name: limit, "left": left}


def _left(release: Release, state: LedgerState) -> dict[str, float]:
    """Return what is neither charged nor reserved, computed exactly."""
    epsilon, delta = release.configuration.epsilon, release.configuration.delta
    for shares in (state.charged, state.reserved):
        for share in shares:
            epsilon, delta = epsilon - Fraction(share.epsilon), delta - Fraction(share.delta)
    return {"epsilon": float(epsilon), "delta": float(delta)}


def _shares(shares: Iterable[ShareCharged | ShareReserved]) -> list[dict[str, object]]:
    return [
        {
            "mechanism": share.mechanism,
            "epsilon": float(Fraction(share.epsilon)),
            "delta": float(Fraction(share.delta)),
        }
        for share in shares
    ]
