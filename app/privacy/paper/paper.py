"""The parameters of the mechanisms as the papers print them, with errors corrected.

Sources: Nandi and Bassily 2020 (NB), Algorithms 3 to 5, and Bassily, Thakkar, Thakurta 2018 (BTT),
Algorithms 3 to 6, with four errors corrected: T is an integer, the caller splits epsilon into
shares, and delta-hat (the delta of the sparse vector technique for one copy of a record) and the
threshold for answers with scores are corrected. The integer T (the cutoff) enters the formulas of
lambda (the noise scale), w (the threshold) and k (the number of models). The number n' of sampled
rows is rounded down, and T, k and the number m_o of queries for the semi-private learner (the
classifier after the models) are rounded up.

The parameters are real numbers, for planning. For a release ``paper_pipeline.py`` rounds them to
rationals and checks their privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from app.errors import ConfigurationError

DELTA_MAX: Final = Fraction(36, 1000)
# Sampling turns the inner (4, 4 e delta) into (epsilon, delta) while
# 4 e epsilon / 56 is at most one, which is so up to 5.15.
EPSILON_MAX: Final = Fraction(5)
SAMPLING_DIVISOR: Final = 56


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVectorParameters:
    """The parameters of Algorithms 3, 4 and 6 of Bassily, Thakkar and Thakurta (BTT).

    Attributes:
        laplace_scale: lambda, the scale of the noise, in votes.
        threshold: w, the threshold for the distance of a query, in votes.
        ensemble_size_real: the number k of models before it is rounded up.
        ensemble_size: the number k of models.
        soft_laplace_scale: lambda of Algorithm 6, for answers with scores.
        soft_threshold: w of Algorithm 6, with an error in the paper corrected.

    """

    laplace_scale: float
    threshold: float
    ensemble_size_real: float
    ensemble_size: int
    soft_laplace_scale: float
    soft_threshold: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperParameters:
    """The parameters of Algorithms 3 to 5 of Nandi and Bassily (NB), named as in the paper.

    Attributes:
        sampled_row_count: n', the number of sampled rows.
        cutoff_real: the cutoff T before it is rounded up.
        cutoff: the cutoff T, the number of unstable answers after which the models stop.
        epsilon_prime: the epsilon that all copies of a record in the bootstrap sample may cost
            together.
        epsilon_hat: the epsilon of the sparse vector technique for one copy of a record.
        delta_hat: the delta of the sparse vector technique for one copy of a record.
        laplace_scale: lambda, the scale of the noise, in votes.
        threshold: w, the threshold for the distance of a query, in votes.
        ensemble_size: the number k of models.
        public_query_count_real: m_o before it is rounded up.
        public_query_count: m_o, the number of queries that the semi-private learner needs.

    """

    sampled_row_count: int
    cutoff_real: float
    cutoff: int
    epsilon_prime: float
    epsilon_hat: float
    delta_hat: float
    laplace_scale: float
    threshold: float
    ensemble_size: int
    public_query_count_real: float
    public_query_count: int


def sparse_vector_parameters(
    *, epsilon: float, delta: float, beta: float, query_count: int, cutoff: int
) -> SparseVectorParameters:
    """Return the parameters of the sparse vector algorithms of BTT, for labels and for scores.

    Args:
        epsilon: the epsilon of the answers, above 0.
        delta: the delta of the answers, in (0, 1).
        beta: the failure probability, in (0, 1).
        query_count: the number m of queries, at least 1.
        cutoff: the cutoff T, at least 1.

    """
    ln_delta = math.log(2 / delta)
    laplace_scale = math.sqrt(32 * cutoff * ln_delta) / epsilon
    soft_scale = math.sqrt(64 * cutoff * ln_delta) / epsilon
    failure = math.log(4 * query_count * cutoff / min(delta, beta / 2))
    size = 136 * failure * math.sqrt(cutoff * ln_delta) / epsilon
    return SparseVectorParameters(
        laplace_scale=laplace_scale,
        threshold=2 * laplace_scale * math.log(2 * query_count / delta),
        ensemble_size_real=size,
        ensemble_size=math.ceil(size),
        soft_laplace_scale=soft_scale,
        soft_threshold=2 * soft_scale * math.log(4 * query_count / delta),
    )


def agnostic_cutoff(*, alpha: float, beta: float, query_count: int) -> float:
    """Return the paper's limit of unstable answers, T, before rounding (BTT Corollary 4.1).

    Args:
        alpha: the largest error rate of a model: an excess plus the least error rate in the
            hypothesis class.
        beta: the failure probability, in (0, 1).
        query_count: the number m of queries, at least 1.

    """
    return 3 * (alpha * query_count + math.sqrt(query_count * math.log(query_count / beta) / 2))


def paper_parameters(
    *,
    epsilon: Fraction,
    delta: Fraction,
    alpha: float,
    beta: float,
    query_count: int,
    row_count: int,
    dimension: int,
) -> PaperParameters:
    """Return the parameters of the papers' agnostic learner, and its number of queries.

    Args:
        epsilon: the joint epsilon of relabelling and answers, in (0, 5].
        delta: the delta of the answers, in (0, .036].
        alpha: the accuracy target, in (0, 1).
        beta: the failure probability, in (0, 1).
        query_count: the number m of queries, at least 1.
        row_count: n, the public number of rows.
        dimension: d, the VC dimension of the hypothesis class.

    Raises:
        ConfigurationError: the papers' privacy claim does not hold at this budget.

    """
    refuse_out_of_range(epsilon=epsilon, delta=delta)
    cutoff_real = _realizable_cutoff(alpha=alpha, beta=beta, query_count=query_count)
    cutoff = math.ceil(cutoff_real)
    epsilon_prime = alpha * max(1.0, math.sqrt(query_count * alpha))
    group_epsilon = min(1.0, epsilon_prime)
    copies = math.log(2 / delta)
    epsilon_hat = group_epsilon / copies
    delta_hat = float(delta) / (2 * math.exp(group_epsilon) * copies)
    inner = sparse_vector_parameters(
        epsilon=epsilon_hat, delta=delta_hat, beta=beta, query_count=query_count, cutoff=cutoff
    )
    public_real = public_query_count(alpha=alpha, beta=beta, dimension=dimension)
    # NB Algorithm 5 prints k = 34 sqrt(2) lambda ln(...), twice the 136 of BTT.
    return PaperParameters(
        sampled_row_count=math.floor(epsilon * row_count / SAMPLING_DIVISOR),
        cutoff_real=cutoff_real,
        cutoff=cutoff,
        epsilon_prime=epsilon_prime,
        epsilon_hat=epsilon_hat,
        delta_hat=delta_hat,
        laplace_scale=inner.laplace_scale,
        threshold=inner.threshold,
        ensemble_size=math.ceil(2 * inner.ensemble_size_real),
        public_query_count_real=public_real,
        public_query_count=math.ceil(public_real),
    )


def rows_needed(*, epsilon: Fraction, ensemble_size: int) -> int:
    """Return the smallest number n of rows whose sample has a row for each of k chunks."""
    return math.ceil(SAMPLING_DIVISOR * ensemble_size / epsilon)


def public_query_count(*, alpha: float, beta: float, dimension: int) -> float:
    """Return the paper's number of public queries, m_o, before rounding up (NB Algorithm 4).

    The models answer these queries before a classifier is published.
    """
    return 32 * (dimension * math.log(1 / alpha) + math.log(1 / beta)) / alpha


def refuse_out_of_range(*, epsilon: Fraction, delta: Fraction) -> None:
    """Raise an error for a budget at which the papers' proofs do not hold.

    Raises:
        ConfigurationError: the budget is out of range; the error names ``privacy.epsilon`` or
            ``privacy.delta``.

    """
    if not 0 < epsilon <= EPSILON_MAX:
        raise ConfigurationError(
            "privacy.epsilon", f"must be above 0 and at most {EPSILON_MAX} in calibration paper"
        )
    if not 0 < delta <= DELTA_MAX:
        raise ConfigurationError(
            "privacy.delta", f"must be above 0 and at most {float(DELTA_MAX)} in calibration paper"
        )


def _realizable_cutoff(*, alpha: float, beta: float, query_count: int) -> float:
    """Real T of NB Algorithm 3, step 1."""
    deviation = math.sqrt(3 * query_count * alpha * math.log(query_count / beta))
    return max(1.0, query_count * alpha / 8 + deviation / 4)
