"""Published theorems on how many private rows suffice, evaluated as numbers.

In the formulas alpha is the accuracy target, beta the failure probability, m the number of queries,
k the number of models, T the number of unstable answers after which the models stop, d the VC
dimension and gamma the least error rate in the hypothesis class. A student is a model that is
trained on queries with their released labels.

If a theorem says ``O(...)``, the value ``rows`` of its :class:`Bound` is the expression in
brackets, times the constant of the proof if the proof states one (:attr:`Constant.PROVED`),
otherwise times one (:attr:`Constant.NOT_STATED`). The value ``rows_explicit`` is the number of rows
with every constant stated. It uses the number k of models as printed, and bounds from textbooks for
results that the papers call "standard".

Sources: Nandi and Bassily 2020 (NB), Theorems 7 and 11; Bassily, Thakkar, Thakurta 2018 (BTT),
Theorems 4.3, 4.4, 4.6 and 4.7 and Claim 4.5; Bassily, Cheu, Moran, Nikolov, Ullman, Wu 2020 (PAP),
Theorem 10 by Lemma 7; and the private PAC learner of Kasiviswanathan, Lee, Nissim, Raskhodnikova,
Smith 2008, as in lecture notes. Differences from the printed theorems are listed in
``docs/planning.md``, "What the theorems say, and where they slip".

In the textbook bounds ``d`` is the VC dimension, at least 1, and ln the natural logarithm. Each
bound is a real number, to be rounded up, and is large enough for the growth function to be at most
``(2 e n / d)^d``, by Sauer's lemma. The textbooks are: Blumer, Ehrenfeucht, Haussler, Warmuth,
*Learnability and the Vapnik-Chervonenkis dimension*, 1989 (BEHW), Theorem 2.1 and the bound that
proves it; Anthony, Bartlett, *Neural Network Learning: Theoretical Foundations*, 1999 (AB),
Theorems 4.2 and 4.3.

The numbers are for planning; no promise of a release relies on them.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from app.privacy.paper.paper import (
    SAMPLING_DIVISOR,
    agnostic_cutoff,
    paper_parameters,
    public_query_count,
    sparse_vector_parameters,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

# More rows than this are not told apart: there are no such data.
ROWS_MAX: Final = 10**18


class Setting(enum.Enum):
    """The setting of a theorem: realizable (some rule has no error), agnostic, or statistics."""

    REALIZABLE = "realizable"
    AGNOSTIC = "agnostic"
    STATISTICS = "statistics"


class Constant(enum.Enum):
    """The origin of the constant factor in a theorem's number of rows."""

    PROVED = "as proved"
    NOT_STATED = "not stated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The accuracy, confidence and other targets at which the theorems are evaluated.

    Attributes:
        epsilon: the release's epsilon, above 0 and at most 5.
        delta: the release's delta, in (0, .036].
        alpha: the accuracy target, in (0, 1).
        beta: the failure probability, in (0, 1).
        query_count: the number m of queries, at least 1.
        dimension: d, the VC dimension of the hypothesis class, at least 1.
        best_error: gamma, the least error rate in the hypothesis class, in [0, 1).
        dual_dimension: p, the dual VC dimension, at least 1; None for ``2^(d+1) - 1``, the largest
            possible value.
        hypothesis_count: the size of the finite class of the private PAC learner; None for
            ``(e m_o/d)^d``, the number of labellings of m_o public points (Sauer).

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
    """The number of rows that one theorem requires; None above :data:`ROWS_MAX`.

    Attributes:
        rows: the private rows of the printed bound, rounded up.
        constant: the origin of the printed bound's constant factor.
        rows_explicit: the private rows with every constant stated, as in a textbook.
        query_count: the number of queries answered, or of public points; None if there are none.
        cutoff: the cutoff T, the number of unstable answers after which the models stop; None if
            the theorem has none.
        ensemble_size: the number k of models; None if the theorem has none.
        error: the error that is promised.
        failure: the probability that the error is exceeded.

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
    """A theorem with the number of private rows that it requires.

    Attributes:
        name: the paper, and the theorem's number in it.
        setting: what the theorem assumes about the labels.
        promise: the error promised, in the papers' symbols.
        bound: the number of rows that the theorem requires; None if it exceeds every double.

    """

    name: str
    setting: Setting
    promise: str
    bound: Bound | None


def rounded(count: float | Fraction) -> int | None:
    """Return a number of rows rounded up; None if it is above :data:`ROWS_MAX`."""
    return math.ceil(count) if count <= ROWS_MAX else None


def realizable_rows(*, alpha: float, beta: float, dimension: int) -> float:
    """Return how many rows suffice: a rule without error on them has error rate at most alpha.

    The number is ``max(4 log2(2/beta), 8 d log2(13/alpha)) / alpha``: BEHW Theorem 2.1.

    Args:
        alpha: the error rate, in (0, 1).
        beta: the failure probability, in (0, 1).
        dimension: d, the VC dimension of the hypothesis class, which contains a rule without error.

    """
    confidence = 4 * math.log2(2 / beta)
    capacity = 8 * dimension * math.log2(13 / alpha)
    return max(confidence, capacity) / alpha


def agnostic_rows(*, alpha: float, beta: float, dimension: int) -> float:
    """Return the number of rows at which the best rule on them is nearly the best of all.

    The number is ``64 (2 d ln(12/alpha) + ln(4/beta)) / alpha^2``: AB Theorem 4.2.

    Args:
        alpha: the excess error rate, in (0, 1).
        beta: the failure probability, in (0, 1).
        dimension: d, the VC dimension of the hypothesis class.

    """
    terms = 2 * dimension * math.log(12 / alpha) + math.log(4 / beta)
    return 64 * terms / alpha / alpha


def disagreement_rows(*, alpha: float, beta: float, dimension: int) -> float:
    """Return how many rows suffice to estimate how often any two rules disagree, to within alpha.

    The number is ``16 (4 d ln(8/alpha) + ln(4/beta)) / alpha^2``, by AB Theorem 4.3. The error
    rates of single rules are then estimated to within alpha as well.

    Args:
        alpha: the largest error of an estimated rate, in (0, 1).
        beta: the probability that an estimate has a larger error, in (0, 1).
        dimension: d, the VC dimension of the hypothesis class.

    """
    # The growth function of pairs of rules is at most the square of that of the class. So AB's
    # Theorem 4.3 requires n alpha^2 / 8 >= 2 d ln(2 e n / d) + ln(4/beta); and
    # 2 d ln n <= n alpha^2 / 16 + 2 d ln(32 d / (e alpha^2)).
    terms = 4 * dimension * math.log(8 / alpha) + math.log(4 / beta)
    return 16 * terms / alpha / alpha


def cover_rows(*, alpha: float, beta: float, dimension: int) -> float:
    """Return how many random points suffice so that rules equal on them rarely differ elsewhere.

    The number is ``4 (log2(2/beta) + 2 d log2(24/alpha)) / alpha``, by BEHW's bound for pairs of
    rules.

    Args:
        alpha: the fraction of the population on which the rules may differ, in (0, 1).
        beta: the probability that some two rules that are equal on the points differ on more, in
            (0, 1).
        dimension: d, the VC dimension of the hypothesis class.

    """
    # BEHW's bound for pairs requires n alpha ln(2) / 2 >= 2 d ln(2 e n / d) + ln(2/beta); and
    # 2 d ln n <= n alpha ln(2) / 4 + 2 d ln(8 d / (e alpha ln 2)), where 16 / ln 2 < 24.
    terms = math.log2(2 / beta) + 2 * dimension * math.log2(24 / alpha)
    return 4 * terms / alpha


# NB, proof of Lemma 9: n' is 8000 times the bracket; n is 56/epsilon times n'.
PROVED_CONSTANT: Final = 8000 * SAMPLING_DIVISOR
# The same proof asks learners for alpha/24 on their rows, and for alpha/24 of drift.
ACCURACY_PARTS: Final = 24


def agnostic_queries(targets: Targets) -> Bound:
    """Return how many rows suffice for m answers of mean error ``alpha + gamma`` (NB Theorem 7).

    The bound printed there is ``448000 (d ln(1/alpha) + ln(m/beta)) ln(2/delta)^(3/2) ln(m alpha /
    min(delta, beta/2)) max(1, sqrt(m) alpha^(3/2)) / (epsilon alpha^2)`` for ``m >= 8 ln(1/(alpha
    beta)) / alpha``; for fewer queries the number is that at the smallest such m.
    """
    alpha, beta, dimension = targets.alpha, targets.beta, targets.dimension
    least = math.ceil(8 * math.log(1 / (alpha * beta)) / alpha)
    count = max(targets.query_count, least)
    delta = float(targets.delta)
    learning = dimension * math.log(1 / alpha) + math.log(count / beta)
    noise = math.log(2 / delta) ** 1.5 * math.log(count * alpha / min(delta, beta / 2))
    crowd = max(1.0, math.sqrt(count * alpha) * alpha)
    order = learning * noise * crowd / float(targets.epsilon) / alpha / alpha
    found = paper_parameters(
        epsilon=targets.epsilon,
        delta=targets.delta,
        alpha=alpha,
        beta=beta,
        query_count=count,
        row_count=1,
        dimension=dimension,
    )
    accuracy, size = alpha / ACCURACY_PARTS, found.ensemble_size
    chunk = math.ceil(realizable_rows(alpha=accuracy, beta=beta / 16 / size, dimension=dimension))
    drift = disagreement_rows(alpha=accuracy, beta=beta / 8, dimension=dimension)
    sampled = max(size * chunk, math.ceil(drift))
    return Bound(
        rows=rounded(PROVED_CONSTANT * order),
        constant=Constant.PROVED,
        rows_explicit=rounded(SAMPLING_DIVISOR * sampled / targets.epsilon),
        query_count=rounded(count),
        cutoff=rounded(found.cutoff),
        ensemble_size=rounded(size),
        error=alpha + targets.best_error,
        failure=beta,
    )


def universal_queries(targets: Targets) -> Bound:
    """Return how many rows suffice for a classifier that answers without limit (NB Theorem 11).

    Epsilon is halved between the answers and the classifier, which corrects the paper, and the
    classifier's draw needs fewer rows than the answers do.
    """
    public = public_query_count(alpha=targets.alpha, beta=targets.beta, dimension=targets.dimension)
    halved = replace(targets, epsilon=targets.epsilon / 2, query_count=math.ceil(public))
    return agnostic_queries(halved)


def ensemble_realizable(targets: Targets) -> Bound:
    """Return how many rows suffice for ``m - T`` right answers of m (BTT Theorem 4.3, realizable).

    The printed bound is ``(d ln(1/alpha) + ln(m/beta)) ln(m T / min(delta, beta)) sqrt(T
    ln(1/delta)) / (epsilon alpha)`` for ``m >= 4 ln(1/(alpha beta)) / alpha^2``, with T of
    Corollary 4.1. With all constants, each of the k models needs the number of
    :func:`realizable_rows`, at the failure probability ``beta/k``.
    """
    return _ensemble(targets, Setting.REALIZABLE)


def ensemble_agnostic(targets: Targets) -> Bound:
    """Return how many rows suffice for ``m - T`` right answers of m (BTT Theorem 4.4, agnostic).

    The printed bound is ``(d + ln(m/beta)) ln(m T / min(delta, beta)) sqrt(T ln(1/delta)) /
    (epsilon alpha^2)`` for ``m >= 4 ln(1/(alpha beta)) / alpha^2``; with all constants, each of the
    k models needs the number of :func:`agnostic_rows`, at the failure probability ``beta/k``.
    """
    return _ensemble(targets, Setting.AGNOSTIC)


def ensemble_as_classifier(targets: Targets) -> Bound:
    """Return how many rows suffice for an answer's error ``7 alpha + 3 gamma`` (BTT Claim 4.5).

    The number of rows is that of Theorem 4.4, with beta lowered to alpha if beta is larger.
    """
    bound = _ensemble(_confident(targets), Setting.AGNOSTIC)
    return replace(bound, error=7 * targets.alpha + 3 * targets.best_error)


def student_realizable(targets: Targets) -> Bound:
    """Return how many rows suffice for a student's error ``15 alpha`` (BTT Theorem 4.6).

    In the realizable case the printed bound is that of Theorem 4.3 at ``m = (d + ln(1/beta)) /
    alpha^2`` answers; the number with all constants takes as m the number of :func:`agnostic_rows`,
    for training the student.
    """
    return replace(_student(_confident(targets), Setting.REALIZABLE), error=15 * targets.alpha)


def student_agnostic(targets: Targets) -> Bound:
    """Return how many rows suffice for a student's error ``15 alpha + 7 gamma`` (BTT Theorem 4.7).

    The printed bound is that of Theorem 4.4 at ``m = (d + ln(1/beta)) / alpha^2`` answers.
    """
    error = 15 * targets.alpha + 7 * targets.best_error
    return replace(_student(_confident(targets), Setting.AGNOSTIC), error=error)


def _ensemble(targets: Targets, setting: Setting) -> Bound:
    """BTT Algorithm 4 on at least the queries that its theorems ask for."""
    alpha, beta = targets.alpha, targets.beta
    least = math.ceil(4 * math.log(1 / (alpha * beta)) / alpha / alpha)
    count = max(targets.query_count, least)
    gamma = targets.best_error if setting is Setting.AGNOSTIC else 0.0
    cutoff_real = agnostic_cutoff(alpha=alpha + gamma, beta=beta, query_count=count)
    cutoff = math.ceil(cutoff_real)
    size = sparse_vector_parameters(
        epsilon=float(targets.epsilon),
        delta=float(targets.delta),
        beta=beta,
        query_count=count,
        cutoff=cutoff,
    ).ensemble_size
    learner = realizable_rows if setting is Setting.REALIZABLE else agnostic_rows
    chunk = math.ceil(learner(alpha=alpha, beta=beta / size, dimension=targets.dimension))
    return Bound(
        rows=rounded(_ensemble_order(targets, setting, count=count, cutoff=cutoff_real)),
        constant=Constant.NOT_STATED,
        rows_explicit=rounded(size * chunk),
        query_count=rounded(count),
        cutoff=rounded(cutoff),
        ensemble_size=rounded(size),
        error=cutoff / count,
        failure=2 * beta,
    )


def _ensemble_order(targets: Targets, setting: Setting, *, count: int, cutoff: float) -> float:
    """What stands in the brackets of BTT Theorems 4.3 and 4.4, T not rounded."""
    alpha, beta, delta = targets.alpha, targets.beta, float(targets.delta)
    realizable = setting is Setting.REALIZABLE
    capacity = targets.dimension * (math.log(1 / alpha) if realizable else 1.0)
    votes = math.log(count * cutoff / min(delta, beta)) * math.sqrt(cutoff * math.log(1 / delta))
    order = (capacity + math.log(count / beta)) * votes / float(targets.epsilon) / alpha
    return order if realizable else order / alpha


def _student(targets: Targets, setting: Setting) -> Bound:
    """Return the ensemble's bound at the m of BTT Algorithm 5: printed, and explicit."""
    alpha, beta, dimension = targets.alpha, targets.beta, targets.dimension
    printed = math.ceil((dimension + math.log(1 / beta)) / alpha / alpha)
    explicit = math.ceil(agnostic_rows(alpha=alpha, beta=beta, dimension=dimension))
    order = _ensemble(replace(targets, query_count=printed), setting)
    bound = _ensemble(replace(targets, query_count=explicit), setting)
    return replace(bound, rows=order.rows, failure=3 * beta)


def _confident(targets: Targets) -> Targets:
    """BTT section 4.2 takes beta at most alpha; a smaller one asks for more."""
    return replace(targets, beta=min(targets.beta, targets.alpha))


def query_release(targets: Targets) -> Bound:
    """Return how many rows suffice to estimate every hypothesis's mean label (PAP Theorem 10).

    Each mean is estimated to within alpha. The printed bound is ``(d ln(1/alpha) +
    ln(1/beta))^(3/2) sqrt(p ln(1/delta)) / (epsilon alpha^2)``, p being the dual VC dimension of
    the hypothesis class.
    """
    # With every constant: the m points of cover_rows at alpha/4, and Lemma 7 at alpha/4 (with an
    # error corrected) and beta/2, with ln|H~| = d ln(e m/d) and ln|X| = p ln(e |H~|/p); H~ is the
    # class restricted to the points, and X the set of its cells.
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
    """Return how many rows make a rule drawn by the exponential mechanism nearly the best.

    |H| is the number of hypotheses. With ``a = alpha/3`` and ``b = beta/2`` the number is the
    larger of ``2 (ln|H| + ln(1/b)) / (epsilon a)``, for the draw, and
    ``3 (ln(2|H|) + ln(1/b)) / a^2``, at which all error rates on the rows are within a of the true
    ones.
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


def sample_complexity(targets: Targets) -> tuple[Theorem, ...]:
    """Return the numbers of rows that all theorems require, in the order of the papers."""
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
