"""PAP Theorem 10 and the lecture notes' learner: rows for a class as a whole.

``rows`` and ``rows_explicit`` are as in :mod:`app.privacy.paper.ensemble_rows`.
"""

from __future__ import annotations

import math

from app.privacy.paper.learning_rows import cover_rows
from app.privacy.paper.paper import public_query_count
from app.privacy.paper.sample_bounds import Bound, Constant, Targets, rounded


def query_release(targets: Targets) -> Bound:
    """PAP Theorem 10: every mean over the class within alpha, from public points.

    ``(d ln(1/alpha) + ln(1/beta))^(3/2) sqrt(p ln(1/delta)) / (epsilon alpha^2)`` with
    ``(d ln(1/alpha) + ln(1/beta)) / alpha`` public points.  Explicitly: points for a
    cover at alpha/4, and Lemma 7 at alpha/4 (erratum i) and beta/2 with ``ln|H~| =
    d ln(e m/d)`` and ``ln|X| = p ln(e |H~|/p)``.
    """
    alpha, beta, dimension = targets.alpha, targets.beta, targets.dimension
    epsilon, delta = float(targets.epsilon), float(targets.delta)
    dual = targets.dual_dimension
    dual_dimension = 2.0 ** (dimension + 1) - 1 if dual is None else float(dual)
    learning = dimension * math.log(1 / alpha) + math.log(1 / beta)
    order = learning**1.5 * math.sqrt(dual_dimension * math.log(1 / delta))
    public = math.ceil(cover_rows(alpha=alpha / 4, beta=beta / 2, dimension=dimension))
    explicit = _multiplicative_weights_rows(
        epsilon=epsilon,
        delta=delta,
        alpha=alpha / 4,
        beta=beta / 2,
        ln_queries=_ln_labellings(points=public, dimension=dimension),
        dual_dimension=dual_dimension,
    )
    return Bound(
        rows=rounded(order / epsilon / alpha / alpha),
        constant=Constant.NOT_STATED,
        rows_explicit=rounded(explicit),
        query_count=rounded(public),
        cutoff=None,
        ensemble_size=None,
        error=alpha,
        failure=beta,
    )


def private_learner(targets: Targets) -> Bound:
    """LN: a draw of the exponential mechanism is within alpha of the best.

    With ``a = alpha/3`` and ``b = beta/2`` the larger of ``2 (ln|H| + ln(1/b)) /
    (epsilon a)``, for the draw, and ``3 (ln(2|H|) + ln(1/b)) / a^2``, for all error
    rates on the rows to be right within a.
    """
    accuracy, confidence = targets.alpha / 3, math.log(2 / targets.beta)
    size = _ln_hypotheses(targets)
    draw = 2 * (size + confidence) / float(targets.epsilon) / accuracy
    rates = 3 * (math.log(2) + size + confidence) / accuracy / accuracy
    rows = rounded(max(draw, rates))
    return Bound(
        rows=rows,
        constant=Constant.PROVED,
        rows_explicit=rows,
        query_count=None,
        cutoff=None,
        ensemble_size=None,
        error=targets.alpha + targets.best_error,
        failure=targets.beta,
    )


def _multiplicative_weights_rows(
    *,
    epsilon: float,
    delta: float,
    alpha: float,
    beta: float,
    ln_queries: float,
    dual_dimension: float,
) -> float:
    """PAP Lemma 7, for queries with values in [0, 1].

    ``200 sqrt(ln|X| ln(2/delta)) (ln|H~| + ln(128 ln|X| / (alpha^2 beta))) / (epsilon
    alpha^2)``.  More than |H~| dual dimensions tell no more points apart.
    """
    dual = dual_dimension
    if math.log(dual) > ln_queries:
        dual = math.exp(ln_queries)
    ln_points = dual * (1 + ln_queries - math.log(dual))
    accuracy = ln_queries + math.log(128 * ln_points / alpha / alpha / beta)
    return 200 * math.sqrt(ln_points * math.log(2 / delta)) * accuracy / epsilon / alpha / alpha


def _ln_hypotheses(targets: Targets) -> float:
    """Return ln|H| of the lecture notes' class."""
    if targets.hypothesis_count is not None:
        return math.log(targets.hypothesis_count)
    public = public_query_count(alpha=targets.alpha, beta=targets.beta, dimension=targets.dimension)
    return _ln_labellings(points=math.ceil(public), dimension=targets.dimension)


def _ln_labellings(*, points: int, dimension: int) -> float:
    """Bound ln of the labellings of some points, ``d ln(e m/d)``; d above m counts as m."""
    rank = min(dimension, points)
    return rank * math.log(math.e * points / rank)
