"""The papers' theorems on sample complexity, as numbers.

Each theorem gives private rows that are enough.  Where it says ``O(...)`` the value
here is what stands in the brackets, times the constant of the proof where the proof
states one (:attr:`Constant.PROVED`), else once (:attr:`Constant.NOT_STATED`).  Beside
it, ``rows_explicit`` leaves no constant open.

Sources: NB Theorems 7 and 11; BTT Theorems 4.3, 4.4, 4.6 and 4.7 and Claim 4.5; PAP
Theorem 10 by Lemma 7; the lecture notes' private PAC learner.  What differs from the
print is in ``docs/planning.md``, "What the theorems say, and where they slip".

These are real numbers for planning; no promise of a release rests on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.privacy.paper.class_rows import private_learner, query_release
from app.privacy.paper.ensemble_rows import (
    agnostic_queries,
    ensemble_agnostic,
    ensemble_as_classifier,
    ensemble_realizable,
    student_agnostic,
    student_realizable,
    universal_queries,
)
from app.privacy.paper.sample_bounds import Bound, Setting, Targets, Theorem

if TYPE_CHECKING:
    from collections.abc import Callable


def sample_complexity(targets: Targets) -> tuple[Theorem, ...]:
    """Return every theorem at the given targets, in the papers' order."""
    return tuple(
        Theorem(name=name, setting=setting, promise=promise, bound=_within_doubles(bound, targets))
        for name, setting, promise, bound in (
            ("NB 7", Setting.AGNOSTIC, "alpha + gamma", agnostic_queries),
            ("NB 11", Setting.AGNOSTIC, "alpha + gamma", universal_queries),
            ("BTT 4.3", Setting.REALIZABLE, "T/m", ensemble_realizable),
            ("BTT 4.4", Setting.AGNOSTIC, "T/m", ensemble_agnostic),
            ("BTT 4.5", Setting.AGNOSTIC, "7 alpha + 3 gamma", ensemble_as_classifier),
            ("BTT 4.6", Setting.REALIZABLE, "15 alpha", student_realizable),
            ("BTT 4.7", Setting.AGNOSTIC, "15 alpha + 7 gamma", student_agnostic),
            ("PAP 10", Setting.STATISTICS, "alpha", query_release),
            ("LN", Setting.AGNOSTIC, "alpha + gamma", private_learner),
        )
    )


def _within_doubles(bound: Callable[[Targets], Bound], targets: Targets) -> Bound | None:
    """Return a bound, or None where a number on the way is past every double."""
    try:
        return bound(targets)
    except ArithmeticError:
        return None
