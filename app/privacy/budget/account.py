"""One privacy budget, by Renyi divergence, for a release's answers and random draws.

A joint privacy account computes the cost of the answers together with the cost of the random draws:
of a relabelling rule, and of a classifier.

**Algorithm.** Composition of Renyi divergences at one order (Mironov 2017). The cost of the
exponential mechanism is computed from its bounded range, the length of the interval that contains
the logarithms of its likelihood ratios (Dong, Durfee and Rogers 2020; Cesar and Rogers 2021).

**Claim.** Let queries be answered by a table of probabilities, of an unstable answer or of a label.
Let the table be made for Renyi order ``alpha``, and for what the divergences of the draws leave of
the budget. The answers and the draws together are (epsilon, delta)-differentially private under
replacement of one record, epsilon being that of the joint account, whenever the draws are made and
whatever queries are asked.

**Proof.** The induction of Theorem A (on tables of the probability of an unstable answer) also
holds for the moment of the likelihood ratio of answers and draws together:
``app/privacy/budget/account_proof.md``.

**Inputs and outputs.** In: shares of epsilon and a Renyi order, exact rationals, all public. Out:
an exact bound on the cost of the draws, ``alpha - 1`` times the sum of their Renyi divergences.

**Utility.** A joint account never costs more than adding up the shares of answers and draws. At the
Renyi order that suits the answers without draws, the divergence of a draw is at most the draw's
share of epsilon.

**Deviations.** An ``epsilon``-private draw has divergence at most ``epsilon``. If its range is at
most ``epsilon``, as in the exponential mechanism, the divergence is also at most
``alpha epsilon^2 / 8``. Any other ``epsilon``-private draw has a range of at most ``2 epsilon``,
which gives ``alpha epsilon^2 / 2``. The noise of a gradient descent is set for its share of epsilon
and delta, as normal noise. The divergence of the descent is ``alpha G^2 / 2``, where ``G`` is the
distance by which one record moves all its steps, in standard deviations of the noise; this
divergence uses no delta.

**Raises.** ``InvariantError``: a draw has no share, the answers have no share, or a classifier has
a share but no learner.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from app.errors import InvariantError, invariant
from app.privacy.budget.composition import Mechanism
from app.privacy.learner_properties import AUTO, LEARNERS
from app.privacy.noisy_gradient.calibration import separation_bound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.privacy.budget.composition import Charge

RANGE_DIVISOR: Final = 8
PURE_DIVISOR: Final = 2
NORMAL_DIVISOR: Final = 2
RANGE: Final = "range"
PURE: Final = "pure"
NORMAL: Final = "normal"
EITHER: Final = "range or normal"
ONE_ACCOUNT: Final = (
    "relabelling, answers and classifier are one account: together they cost the sum of their "
    "shares, and the answers use what the draws leave of it"
)
"""What a plan, a statement and a release's parameters say of it, for people."""
ACCOUNT_PROOF: Final = "app/privacy/budget/account_proof.md"


@dataclass(frozen=True, slots=True)
class Draw:
    """One random draw (a rule for relabelling, or a classifier) in a joint privacy account.

    Attributes:
        epsilon: the draw's share of epsilon, which includes the cost of numerical error.
        has_bounded_range: whether all logarithms of the draw's likelihood ratios lie in one
            interval of length epsilon, and not only within distance epsilon of zero.
        squared_separation: ``G^2`` for a noisy gradient descent, ``G`` being the distance by which
            one record moves all its steps, in standard deviations of the noise; None for another
            draw. If ``has_bounded_range`` is true too, public numbers decide later whether the draw
            is a descent or has a bounded range; it is charged the larger of both costs.

    """

    epsilon: Fraction
    has_bounded_range: bool = True
    squared_separation: Fraction | None = None

    def __post_init__(self) -> None:
        """Raise an error for a draw without cost."""
        invariant(self.epsilon > 0, "a draw in an account has a share")
        separation = self.squared_separation
        invariant(separation is None or separation > 0, "a descent shows something")

    def divergence(self, alpha: Fraction) -> Fraction:
        """Return an upper bound on the draw's Renyi divergence of a given order."""
        if self.squared_separation is None:
            divisor = RANGE_DIVISOR if self.has_bounded_range else PURE_DIVISOR
            return min(self.epsilon, alpha * self.epsilon**2 / divisor)
        normal = alpha * self.squared_separation / NORMAL_DIVISOR
        if not self.has_bounded_range:
            return normal
        return max(normal, Draw(self.epsilon).divergence(alpha))

    def at_part(self, factor: Fraction) -> Draw:
        """Return the draw as it would be with ``factor`` times its share of epsilon."""
        separation = self.squared_separation
        return replace(
            self,
            epsilon=self.epsilon * factor,
            squared_separation=None if separation is None else separation * factor**2,
        )

    def to_plain(self) -> str:
        """Return the draw as one string, without loss of precision."""
        if self.squared_separation is None:
            return f"{RANGE if self.has_bounded_range else PURE} {self.epsilon}"
        kind = EITHER if self.has_bounded_range else NORMAL
        return f"{kind} {self.epsilon} {self.squared_separation}"

    @classmethod
    def from_plain(cls, plain: str) -> Draw:
        """Return the draw that :meth:`to_plain` wrote.

        Raises:
            ValueError: the text does not describe a draw.

        """
        kind, _, last = plain.rpartition(" ")
        if kind in (RANGE, PURE):
            return cls(Fraction(last), has_bounded_range=kind == RANGE)
        kind, _, epsilon = kind.rpartition(" ")
        if kind not in (NORMAL, EITHER):
            raise ValueError(plain)
        return cls(
            Fraction(epsilon),
            has_bounded_range=kind == EITHER,
            squared_separation=Fraction(last),
        )


def log_moment(draws: Iterable[Draw], alpha: Fraction) -> Fraction:
    """Return ``alpha - 1`` times the sum of all draws' Renyi divergences of order alpha."""
    return (alpha - 1) * sum((draw.divergence(alpha) for draw in draws), Fraction(0))


def left_for_answers(epsilon: Fraction, draws: Iterable[Draw]) -> Fraction:
    """Return the epsilon that remains for answers after the random draws."""
    return epsilon - sum((draw.epsilon for draw in draws), Fraction(0))


@dataclass(frozen=True, slots=True)
class Account:
    """The joint privacy budget of answers and random draws, computed by Renyi divergence.

    Attributes:
        epsilon: the epsilon of all answers and draws together.
        draws: the random draws in the account.

    """

    epsilon: Fraction
    draws: tuple[Draw, ...]

    def __post_init__(self) -> None:
        """Raise an error if the account leaves no epsilon for answers."""
        invariant(left_for_answers(self.epsilon, self.draws) > 0, "answers have a share")

    def draws_at(self, epsilon: Fraction) -> tuple[Draw, ...]:
        """Return the draws with epsilons scaled so that the account's total is ``epsilon``."""
        factor = epsilon / self.epsilon
        return tuple(draw.at_part(factor) for draw in self.draws)


def account_of(charges: Iterable[Charge], *, learner: str | None) -> Account:
    """Return the joint privacy account of a release's answers, relabelling and classifier.

    Args:
        charges: the charges of all mechanisms that have a share of epsilon.
        learner: the setting ``classifier.learner``; None if the classifier has no share.

    Raises:
        InvariantError: a classifier has a share, and ``learner`` is None.

    """
    charged = {charge.mechanism: charge for charge in charges}
    parts = {mechanism: charge.epsilon for mechanism, charge in charged.items()}
    draws = []
    if Mechanism.RELABEL in parts:
        draws.append(Draw(parts[Mechanism.RELABEL]))
    if Mechanism.CLASSIFIER in parts:
        draws.append(_classifier_draw(charged[Mechanism.CLASSIFIER], learner))
    answers = parts.get(Mechanism.ANSWERS, Fraction(0))
    return Account(sum((draw.epsilon for draw in draws), answers), tuple(draws))


def _classifier_draw(charge: Charge, learner: str | None) -> Draw:
    """Return the draw of a learner at its charge; of ``auto``, one that covers all it may take."""
    if learner is None:
        raise InvariantError("a classifier in an account has a learner")
    is_ranged = learner == AUTO or LEARNERS[learner].has_bounded_range
    if learner == AUTO or LEARNERS[learner].uses_delta:
        return Draw(
            charge.epsilon,
            has_bounded_range=is_ranged,
            squared_separation=_separation(charge.epsilon, charge.delta),
        )
    return Draw(charge.epsilon, has_bounded_range=is_ranged)


_separation = lru_cache(maxsize=64)(separation_bound)
