"""The budget of relabelling and answers, adjusted for the sample of rows that they use.

Relabelling gives each private row the label that a privately drawn rule predicts, before the models
are trained.

A release charges a share of epsilon for relabelling and one for answers. Both run on one sample of
``q n`` of the n rows, the first rows of a uniform permutation. All computations on this sample,
including the answers to an adaptive client, count as one algorithm.

Claim: let the draw of the rule that relabels cost :attr:`PipelineBudget.relabel_epsilon` on the
sample, and let the answers be ``(answers_epsilon, answers_delta)``-private in the relabelled rows.
Then relabelling and answers together are ``(epsilon_r + epsilon_a, delta_r + delta_a)``-private in
all rows, where (epsilon_r, delta_r) and (epsilon_a, delta_a) are their charges. If they share one
privacy account, the budget is that of ``app.privacy.budget.account``. Proof: sampling, composition
and Lemma L (the cost of relabelling if the set of hypotheses depends on the private rows),
``app/privacy/exponential/relabel_proof.md``. :func:`check` decides whether the claim holds, with
every rounding on the safe side.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError, invariant
from app.privacy.exponential.amplification import (
    copied_delta,
    rate_at,
    relabel_cost_floor,
    sampled_delta,
    sampling_holds,
    unsampled_epsilon,
)

if TYPE_CHECKING:
    from app.privacy.budget.account import Account
    from app.privacy.budget.composition import Charge

EVERY_ROW: Final = Fraction(1)
RATE_DIGITS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineBudget:
    """The budgets of relabelling and answers on the sampled rows that they use.

    Attributes:
        sampling_rate: the fraction q of the rows that are sampled.
        relabel_epsilon: the largest epsilon of relabelling on the sample, with the cost of
            numerical error; None if rows keep their labels.
        relabel_delta: the delta, on the sample, for rounding the weights of the relabelling draw to
            integers.
        relabel_is_private: whether the set of hypotheses for relabelling depends on the private
            rows.
        answers_epsilon: the epsilon for which the answering mechanism's noise is set, per replaced
            row.
        answers_delta: the delta for which the answering mechanism's noise is set.
        copies: the number of sampled rows that may be copies of one record; above 1 only if the
            sample is drawn with replacement.
        copies_delta: the probability that a record has more than ``copies`` copies in the sample.
        account: the privacy account that the answers share with random draws, relabelling among
            them; None if shares of epsilon are added up.

    """

    sampling_rate: Fraction
    relabel_epsilon: Fraction | None
    relabel_delta: Fraction = Fraction(0)
    relabel_is_private: bool
    answers_epsilon: Fraction
    answers_delta: Fraction
    copies: int = 1
    copies_delta: Fraction = Fraction(0)
    account: Account | None = None

    def __post_init__(self) -> None:
        """Raise an error for numbers out of range."""
        invariant(0 < self.sampling_rate <= 1, "a sampling rate lies above zero and up to one")
        invariant(self.relabel_epsilon is None or self.relabel_epsilon > 0, "a draw may cost")
        invariant(self.answers_epsilon > 0, "answers have a share of epsilon")
        invariant(self.answers_delta > 0, "answers have a share of delta")
        invariant(self.copies >= 1, "a record fills a row")

    @property
    def inner_epsilon(self) -> Fraction:
        """The epsilon of relabelling and answers together, on the sampled rows.

        If they share a privacy account with random draws, it is the account's epsilon.
        """
        if self.account is not None:
            return self.account.epsilon
        return (self.relabel_epsilon or 0) + self.copies * self.answers_epsilon

    @property
    def is_with_replacement(self) -> bool:
        """Whether the rows for the answers are drawn with replacement from the relabelled rows."""
        return self.copies > 1

    def sampled_row_count(self, row_count: int) -> int:
        """Return the number of sampled rows, ``n' = floor(q n)``."""
        return int(self.sampling_rate * row_count)


def pipeline_budget(
    *,
    relabel: Charge | None,
    answers: Charge | None,
    sampling_rate: Fraction = EVERY_ROW,
    private_grid: bool = False,
    class_count: int = 2,
) -> PipelineBudget | None:
    """Return the budget, divided between relabelling and answers; None if answers have no share.

    The epsilon on the sample is the largest whose cost over all rows, which sampling lowers, is at
    most the two charges together. It is divided in proportion to the charges.

    Args:
        relabel: the charge for relabelling; None if rows keep their labels.
        answers: the charge for the answers.
        sampling_rate: the fraction q of the rows that are sampled, in (0, 1].
        private_grid: whether relabelling chooses among the labellings that the hypothesis class
            allows on the private rows themselves.
        class_count: the number L of labels.

    Raises:
        ConfigurationError: the least cost of relabelling by Lemma L exceeds its part of the budget;
            the message names the settings that would lower it.

    """
    if answers is None:
        return None
    charged = answers.epsilon + (relabel.epsilon if relabel else 0)
    inner = unsampled_epsilon(epsilon=charged, rate=sampling_rate)
    part = None if relabel is None else inner * relabel.epsilon / charged
    if relabel is not None and part is not None and private_grid:
        _refuse_below_floor(part, relabel, charged, class_count=class_count)
    budget = PipelineBudget(
        sampling_rate=sampling_rate,
        relabel_epsilon=part,
        relabel_delta=Fraction(0) if relabel is None else relabel.delta / sampling_rate,
        relabel_is_private=private_grid and relabel is not None,
        answers_epsilon=inner * answers.epsilon / charged,
        answers_delta=answers.delta / sampling_rate,
    )
    check(budget, relabel=relabel, answers=answers)
    return budget


def joint_budget(
    *, relabel: Charge | None, answers: Charge | None, account: Account
) -> PipelineBudget | None:
    """Return the joint budget of relabelling and answers, as one account; None without answers.

    The noise of the answers is set for the whole epsilon of the account, and leaves room in this
    epsilon for the cost of the draws.

    Args:
        relabel: the charge for relabelling; None if rows keep their labels.
        answers: the charge for the answers.
        account: the privacy account of relabelling, answers and, if it has a share, the classifier.

    """
    if answers is None:
        return None
    return PipelineBudget(
        sampling_rate=EVERY_ROW,
        relabel_epsilon=None if relabel is None else relabel.epsilon,
        relabel_delta=Fraction(0) if relabel is None else relabel.delta,
        relabel_is_private=False,
        answers_epsilon=account.epsilon,
        answers_delta=answers.delta,
        account=account,
    )


def check(budget: PipelineBudget, *, relabel: Charge | None, answers: Charge) -> None:
    """Raise an error unless the budget covers the cost of relabelling and answers.

    Raises:
        InvariantError: a condition of the privacy claim does not hold.

    """
    charged = answers.epsilon + (relabel.epsilon if relabel else 0)
    fits = sampling_holds(
        inner_epsilon=budget.inner_epsilon, rate=budget.sampling_rate, epsilon=charged
    )
    invariant(fits, "sampling brings the parts' epsilon under what is charged")
    in_sample = budget.copies_delta + (
        budget.answers_delta
        if budget.copies == 1
        else copied_delta(
            epsilon=budget.answers_epsilon, delta=budget.answers_delta, copies=budget.copies
        )
    )
    delta = sampled_delta(inner_delta=in_sample, rate=budget.sampling_rate)
    invariant(delta <= answers.delta, "and the answers' delta")
    drawn = sampled_delta(inner_delta=budget.relabel_delta, rate=budget.sampling_rate)
    invariant(drawn <= (relabel.delta if relabel else 0), "and the draw's delta")


def _refuse_below_floor(
    part: Fraction, relabel: Charge, charged: Fraction, *, class_count: int
) -> None:
    """Refuse a private grid whose draw would cost more than its part at any parameter."""
    floor = relabel_cost_floor(class_count)
    if part > floor:
        return
    # A part of relabel/charged of ln(1 + (e^charged - 1) / q) has to exceed the floor.
    rate = rate_at(inner_epsilon=floor * charged / relabel.epsilon, epsilon=charged)
    problem = (
        f'"private" costs more than 2 ln {class_count} = {float(floor):.4g} on the rows relabelled,'
        f" and relabelling has {float(part):.4g} there: set privacy.sampling below"
        f" {_rounded_rate(rate)}, or give relabelling more than {float(floor):.4g} of epsilon"
        ' (privacy.shares.relabel), or set it to "public"'
    )
    raise ConfigurationError("hypotheses.grid", problem)


def _rounded_rate(rate: Fraction) -> str:
    """Write a rate with a few digits, rounded down."""
    text = Decimal(rate.numerator) / Decimal(rate.denominator)
    return f"{text.quantize(Decimal(1).scaleb(text.adjusted() - RATE_DIGITS + 1), 'ROUND_FLOOR'):f}"
