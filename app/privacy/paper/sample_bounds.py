"""What a theorem on sample complexity is asked, and what it answers.

The theorems are in :mod:`app.privacy.paper.ensemble_rows` and
:mod:`app.privacy.paper.class_rows`; :mod:`app.privacy.paper.row_theorems` lists them.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fractions import Fraction

# More rows than this are not told apart: there are no such data.
ROWS_MAX: Final = 10**18


class Setting(enum.Enum):
    """What a theorem assumes of the labels."""

    REALIZABLE = "realizable"
    AGNOSTIC = "agnostic"
    STATISTICS = "statistics"


class Constant(enum.Enum):
    """Where the constant of ``rows`` is from."""

    PROVED = "as proved"
    NOT_STATED = "not stated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """What is asked of the theorems.

    Attributes:
        epsilon: of the release, above 0 and at most 5.
        delta: of the release, in (0, .036].
        alpha: accuracy, in (0, 1).
        beta: failure probability, in (0, 1).
        query_count: m, at least 1.
        dimension: d, at least 1.
        best_error: gamma, the least error rate in the class, in [0, 1).
        dual_dimension: p, at least 1; None takes ``2^(d+1) - 1``, the most there is
            (PAP Fact 4).
        hypothesis_count: size of the finite class of the lecture notes; None takes
            ``(e m_o/d)^d``, the labellings of m_o public points (Sauer).

    """

    epsilon: Fraction
    delta: Fraction
    alpha: float
    beta: float
    query_count: int
    dimension: int
    best_error: float = 0.0
    dual_dimension: int | None = None
    hypothesis_count: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What one theorem asks for; a number past :data:`ROWS_MAX` is None.

    Attributes:
        rows: private rows of the printed bound, rounded up.
        constant: where its constant is from.
        rows_explicit: private rows with every constant of a textbook.
        query_count: queries answered, or public points; None where there are none.
        cutoff: T, or None.
        ensemble_size: k, or None.
        error: the error that is promised.
        failure: probability at which it is exceeded.

    """

    rows: int | None
    constant: Constant
    rows_explicit: int | None
    query_count: int | None
    cutoff: int | None
    ensemble_size: int | None
    error: float
    failure: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Theorem:
    """A theorem and its bound; None where its numbers are past every double.

    Attributes:
        name: paper and number.
        setting: what it assumes of the labels.
        promise: the error promised, in the papers' symbols.
        bound: what it asks for.

    """

    name: str
    setting: Setting
    promise: str
    bound: Bound | None


def rounded(count: float | Fraction) -> int | None:
    """Round up; None past the largest number told apart."""
    return math.ceil(count) if count <= ROWS_MAX else None
