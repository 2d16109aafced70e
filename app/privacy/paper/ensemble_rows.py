"""NB Theorems 7 and 11, and BTT Theorems 4.3 to 4.7: rows for an ensemble's answers.

Where a theorem says ``O(...)`` its ``rows`` are what stands in the brackets, times the
constant of the proof where the proof states one.  ``rows_explicit`` are those of the
construction itself, with k as printed and every "standard result" by
:mod:`app.privacy.paper.learning_rows`.

What differs from the print is in ``docs/planning.md``, "What the theorems say, and
where they slip".
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from app.privacy.paper.learning_rows import agnostic_rows, disagreement_rows, realizable_rows
from app.privacy.paper.paper import (
    SAMPLING_DIVISOR,
    agnostic_cutoff,
    paper_parameters,
    public_query_count,
    sparse_vector_parameters,
)
from app.privacy.paper.sample_bounds import Bound, Constant, Setting, Targets, rounded

# NB, proof of Lemma 9: n' is 8000 times the bracket; n is 56/epsilon times n'.
PROVED_CONSTANT: Final = 8000 * SAMPLING_DIVISOR
# The same proof asks learners for alpha/24 on their rows, and for alpha/24 of drift.
ACCURACY_PARTS: Final = 24


def agnostic_queries(targets: Targets) -> Bound:
    """NB Theorem 7: m answers with an average error of ``alpha + gamma``.

    ``448000 (d ln(1/alpha) + ln(m/beta)) ln(2/delta)^(3/2) ln(m alpha /
    min(delta, beta/2)) max(1, sqrt(m) alpha^(3/2)) / (epsilon alpha^2)`` for
    ``m >= 8 ln(1/(alpha beta)) / alpha``; fewer queries are planned as so many.
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
    """NB Theorem 11: any number of answers; Theorem 7 for the m_o of Algorithm 4.

    Epsilon is halved between the answers and the classifier (erratum d), whose draw
    needs fewer rows than the answers do.
    """
    public = public_query_count(alpha=targets.alpha, beta=targets.beta, dimension=targets.dimension)
    halved = replace(targets, epsilon=targets.epsilon / 2, query_count=math.ceil(public))
    return agnostic_queries(halved)


def ensemble_realizable(targets: Targets) -> Bound:
    """BTT Theorem 4.3: at least ``m - T`` of m answers are right.

    ``(d ln(1/alpha) + ln(m/beta)) ln(m T / min(delta, beta)) sqrt(T ln(1/delta)) /
    (epsilon alpha)`` for ``m >= 4 ln(1/(alpha beta)) / alpha^2``, with T of
    Corollary 4.1; explicitly ``k n(alpha, beta/k)`` with BEHW's n.
    """
    return _ensemble(targets, Setting.REALIZABLE)


def ensemble_agnostic(targets: Targets) -> Bound:
    """BTT Theorem 4.4: at least ``m - T`` of m answers are right, T with gamma.

    ``(d + ln(m/beta)) ln(m T / min(delta, beta)) sqrt(T ln(1/delta)) / (epsilon
    alpha^2)`` for ``m >= 4 ln(1/(alpha beta)) / alpha^2``; explicitly
    ``k n(alpha, beta/k)`` with AB's n.
    """
    return _ensemble(targets, Setting.AGNOSTIC)


def ensemble_as_classifier(targets: Targets) -> Bound:
    """BTT Claim 4.5: one answer is wrong with probability ``7 alpha + 3 gamma``.

    On the rows of Theorem 4.4; beta is at most alpha.
    """
    bound = _ensemble(_confident(targets), Setting.AGNOSTIC)
    return replace(bound, error=7 * targets.alpha + 3 * targets.best_error)


def student_realizable(targets: Targets) -> Bound:
    """BTT Theorem 4.6: a student of the answers is wrong on ``15 alpha``.

    The rows of Theorem 4.3 at ``m = (d + ln(1/beta)) / alpha^2`` answers; explicitly
    at the m that AB's n asks of the student.
    """
    return replace(_student(_confident(targets), Setting.REALIZABLE), error=15 * targets.alpha)


def student_agnostic(targets: Targets) -> Bound:
    """BTT Theorem 4.7: a student of the answers is wrong on ``15 alpha + 7 gamma``.

    The rows of Theorem 4.4, m as of Theorem 4.6.
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
