"""Relabelling and answers with the constants of the papers, checked in every step.

Relabelling gives each private row the label that a privately drawn rule predicts, before the models
are trained.

The papers are Nandi and Bassily 2020 (NB), and Bassily, Thakkar, Thakurta 2018. The parameters are
the printed ones (:mod:`app.privacy.paper.paper`), as rationals that are rounded to the safe side.
Their privacy is not taken from the papers but decided here: for the sparse vector technique by
:func:`app.privacy.sparse_vector.calibration.check`, and for the draw with replacement, relabelling
and sampling by :func:`app.privacy.budget.sampled_budget.check`.

Claim and proof: ``app/privacy/exponential/relabel_proof.md``, "Calibration paper". The claim does
not depend on the number k of chunks: with fewer chunks than printed, only accuracy suffers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError, InvariantError
from app.privacy.arithmetic import COUNT_MAX, composed_delta
from app.privacy.budget.sampled_budget import PipelineBudget, check
from app.privacy.exponential.amplification import relabelled_epsilon
from app.privacy.paper.paper import (
    SAMPLING_DIVISOR,
    PaperParameters,
    paper_parameters,
    refuse_out_of_range,
)
from app.privacy.sparse_vector import calibration as svt
from app.privacy.stability.table_inequality import precise_context, to_decimal

if TYPE_CHECKING:
    from app.privacy.budget.composition import Charge

RELABEL_EPSILON: Final = Fraction(1)
# The printed numbers are doubles, right within far less than this.
DOUBLE_ERROR: Final = Fraction(1, 1 << 40)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTargets:
    """The inputs of Algorithm 3 of Nandi and Bassily apart from the budget.

    Attributes:
        alpha: the accuracy target, in (0, 1).
        beta: the failure probability, in (0, 1).
        query_count: the number m of queries, at least 1.

    """

    alpha: float
    beta: float
    query_count: int


def paper_budget(
    targets: PaperTargets,
    *,
    relabel: Charge | None,
    answers: Charge | None,
    private_grid: bool,
    class_count: int,
) -> PipelineBudget | None:
    """Return the budget of relabelling and answers by Nandi and Bassily; None without answers.

    Args:
        targets: the accuracy target, failure probability and number of queries.
        relabel: the charge for relabelling; None if rows keep their labels.
        answers: the charge for the answers.
        private_grid: whether relabelling chooses among the labellings that the hypothesis class
            allows on the private rows themselves.
        class_count: the number L of labels.

    Raises:
        ConfigurationError: the papers' privacy proof does not hold at this budget.

    """
    if answers is None:
        return None
    epsilon_hat, delta_hat = _budget_of_a_copy(
        printed(targets, relabel=relabel, answers=answers), answers.delta
    )
    budget = PipelineBudget(
        sampling_rate=pipeline_epsilon(relabel, answers) / SAMPLING_DIVISOR,
        relabel_epsilon=(
            _relabel_cost(private_grid=private_grid, class_count=class_count) if relabel else None
        ),
        relabel_delta=relabel.delta if relabel else Fraction(0),
        relabel_is_private=private_grid and relabel is not None,
        answers_epsilon=epsilon_hat,
        answers_delta=delta_hat,
        copies=copies_max(answers.delta),
        copies_delta=answers.delta / 2,
    )
    try:
        check(budget, relabel=relabel, answers=answers)
    except InvariantError:
        problem = (
            f'"private" with {class_count} classes does not fit calibration paper at this epsilon:'
            ' set it to "public", or privacy.epsilon higher'
        )
        raise ConfigurationError("hypotheses.grid", problem) from None
    return budget


def paper_calibration(
    targets: PaperTargets, *, relabel: Charge | None, answers: Charge
) -> svt.SvtCalibration:
    """Return the sparse vector's parameters with the constants of Nandi and Bassily, Algorithm 5.

    The parameters pass :func:`app.privacy.sparse_vector.calibration.check` whenever
    ``T <= 3 m / 2``, T being the cutoff and m the number of queries. T is larger only for very few
    queries at a failure probability beta as small as ``e^(-10 m)``; these targets are refused.

    Raises:
        ConfigurationError: the printed parameters do not satisfy the privacy claim.

    """
    # Why the check accepts them if T <= 3 m / 2: write e = epsilon-hat < 1 and D = delta-hat for
    # the budget of one copy of a record in the sample, and let b1 and b2 be the scales of the noise
    # rho on the threshold w and of the noise nu on a query.
    # The queries up to and including one unstable answer cost
    # 1/b1 + 2/b2 = 2/lambda = 2e / sqrt(32 T ln(2/D)); by advanced composition at D/2, T times this
    # cost is e/2 plus at most 2 T (2/lambda)^2 = e^2 / (4 ln(2/D)), which is less than e. The exact
    # composition that is checked costs no more.
    # With a = e^(-1/b2) and b1 = b2/2 the bound P(nu > x) <= a^(x+1)/(1+a) (all integers x) and
    # E a^rho = (1+a)^2 / (1+a+a^2) give
    # P(nu - rho > w) <= a^w a(1+a)/(1+a+a^2) <= (2/3) e^(-w/b2) = D/(3m), so that T released labels
    # cost at most T D / (3m) <= D/2.
    found = printed(targets, relabel=relabel, answers=answers)
    if found.cutoff > COUNT_MAX:
        problem = f"gives a cutoff of T = {found.cutoff}, and at most {COUNT_MAX} are accounted"
        raise ConfigurationError("answers.alpha", f"{problem}: set it or answers.queries lower")
    calibration = _on_rationals(found, answers.delta)
    try:
        svt.check(calibration)
    except InvariantError:
        problem = (
            f"is so small that the printed cutoff T = {found.cutoff} exceeds what the printed"
            f" threshold covers at m = {targets.query_count} queries: set it higher"
        )
        raise ConfigurationError("answers.beta", problem) from None
    return calibration


def printed(
    targets: PaperTargets,
    *,
    relabel: Charge | None,
    answers: Charge,
    row_count: int = 0,
    dimension: int = 1,
) -> PaperParameters:
    """Return the parameters that Nandi and Bassily print, for given budgets and targets.

    Relabelling and answers run on one sample, so the printed epsilon is the sum of both shares.
    """
    epsilon = pipeline_epsilon(relabel, answers)
    refuse_out_of_range(epsilon=epsilon, delta=answers.delta)
    return paper_parameters(
        epsilon=epsilon,
        delta=answers.delta,
        alpha=targets.alpha,
        beta=targets.beta,
        query_count=targets.query_count,
        row_count=row_count,
        dimension=dimension,
    )


def pipeline_epsilon(relabel: Charge | None, answers: Charge) -> Fraction:
    """Return the joint epsilon of relabelling and answers."""
    return answers.epsilon + (relabel.epsilon if relabel else 0)


def copies_max(delta: Fraction) -> int:
    """Return the most copies of a record in a sample, except with probability ``delta/2``.

    The sample is drawn with replacement, so a record is drawn ``Binomial(n', 1/n')`` times, n'
    being the sample's size. The bound ``ln(2/delta)`` is that of Lemma 8 of Nandi and Bassily 2020,
    with an error corrected; it holds for delta up to :data:`~app.privacy.paper.paper.DELTA_MAX`.
    """
    return math.floor(math.log(2 / delta) * (1 - 2.0**-40))


def _relabel_cost(*, private_grid: bool, class_count: int) -> Fraction:
    """Return what the draw at the printed parameter of 1 costs on the sample."""
    if not private_grid:
        return RELABEL_EPSILON
    return relabelled_epsilon(
        relabel_epsilon=RELABEL_EPSILON, inner_epsilon=Fraction(0), class_count=class_count
    )


def _budget_of_a_copy(found: PaperParameters, delta: Fraction) -> tuple[Fraction, Fraction]:
    """Return epsilon-hat and delta-hat as rationals, rounded down.

    They are worked out again in decimals, so that a restart on another machine, whose
    logarithm may differ in its last digit, finds the very same.
    """
    with localcontext(precise_context()):
        group, copies = Decimal(min(1.0, found.epsilon_prime)), (2 / to_decimal(delta)).ln()
        epsilon_hat = Fraction(group / copies)
        delta_hat = Fraction(to_decimal(delta) / (2 * group.exp() * copies))
    return epsilon_hat * (1 - DOUBLE_ERROR), delta_hat * (1 - DOUBLE_ERROR)


def _on_rationals(found: PaperParameters, answers_delta: Fraction) -> svt.SvtCalibration:
    """Round scales and threshold up, budgets down; delta goes first to the hits."""
    scale = _on_grid_above(found.laplace_scale)
    epsilon, delta = _budget_of_a_copy(found, answers_delta)
    hits = composed_delta(epsilon_each=2 / scale, count=found.cutoff, epsilon=epsilon)
    return svt.SvtCalibration(
        epsilon=epsilon,
        delta=delta,
        cutoff=found.cutoff,
        variant=svt.Variant.REFRESHED,
        threshold_scale=scale,
        query_scale=2 * scale,
        threshold=math.ceil(Fraction(found.threshold) * (1 + DOUBLE_ERROR)),
        delta_svt=Fraction(hits),
        delta_release=delta - Fraction(hits),
    )


def _on_grid_above(scale: float) -> Fraction:
    return Fraction(
        math.ceil(Fraction(scale) * (1 + DOUBLE_ERROR) * svt.SCALE_GRID), svt.SCALE_GRID
    )
