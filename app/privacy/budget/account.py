"""Joint accounting by Renyi divergence of the answers and other draws of a release.

**Algorithm.** Composition at one order (Mironov 2017), with the exponential mechanism charged by
its range (Dong, Durfee and Rogers 2020; Cesar and Rogers 2021).

**Claim.** Answers by a table of order ``alpha`` that leaves room for the draws' divergences are
with those draws (epsilon, delta)-differentially private under replacement of one record, epsilon
being the account's, wherever the draws come and whatever is asked.

**Proof.** One moment of all that comes, in the induction of Theorem A:
``app/privacy/budget/account_proof.md``.

**Inputs and outputs.** Shares of epsilon and an order, exact rationals, all of it public.  Out:
the log moment that the draws take, exact.

**Utility.** At the order of the answers' own share a draw is charged its share at most, so that
an account is never worse than shares that add up.

**Deviations.** A draw that is ``epsilon``-private has divergence ``epsilon`` at most.  One that
has bounded range ``epsilon``, as the exponential mechanism has, also ``alpha epsilon^2 / 8``; any
other that is ``epsilon``-private has range ``2 epsilon``, so that the same is
``alpha epsilon^2 / 2``.

**Raises.** ``InvariantError``: a draw without a share, answers without one, or a learner whose
draw needs delta.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.errors import InvariantError, invariant
from app.privacy.budget.composition import Mechanism
from app.privacy.published_learners import LEARNERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.privacy.budget.composition import Charge

RANGE_DIVISOR: Final = 8
PURE_DIVISOR: Final = 2
RANGE: Final = "range"
PURE: Final = "pure"
ONE_ACCOUNT: Final = (
    "relabelling, answers and classifier are one account: together they cost the sum of their "
    "shares, and the answers use what the draws leave of it"
)
"""What a plan, a statement and a release's parameters say of it, for people."""
ACCOUNT_PROOF: Final = "app/privacy/budget/account_proof.md"


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw in a joint accounting by Renyi divergence.

    Attributes:
        epsilon: its share, numerical error included.
        has_bounded_range: whether the logarithms of its likelihood ratios lie in an
            interval of that length, and not only at that distance from zero.

    """

    epsilon: Fraction
    has_bounded_range: bool = True

    def __post_init__(self) -> None:
        """Refuse what costs nothing."""
        invariant(self.epsilon > 0, "a draw in an account has a share")

    def divergence(self, alpha: Fraction) -> Fraction:
        """Return an upper bound on the draw's Renyi divergence of an order."""
        divisor = RANGE_DIVISOR if self.has_bounded_range else PURE_DIVISOR
        return min(self.epsilon, alpha * self.epsilon**2 / divisor)

    def to_plain(self) -> str:
        """Return the draw in plain values, without loss."""
        return f"{RANGE if self.has_bounded_range else PURE} {self.epsilon}"

    @classmethod
    def from_plain(cls, plain: str) -> Draw:
        """Return the draw that :meth:`to_plain` wrote.

        Raises:
            ValueError: it is no draw.

        """
        kind, _, epsilon = plain.partition(" ")
        if kind not in (RANGE, PURE):
            raise ValueError(kind)
        return cls(Fraction(epsilon), has_bounded_range=kind == RANGE)


def log_moment(draws: Iterable[Draw], alpha: Fraction) -> Fraction:
    """Return ``(alpha - 1)`` times the Renyi divergence of order alpha of all draws together."""
    return (alpha - 1) * sum((draw.divergence(alpha) for draw in draws), Fraction(0))


def left_for_answers(epsilon: Fraction, draws: Iterable[Draw]) -> Fraction:
    """Return the budget left for answers if every other draw costs its whole part."""
    return epsilon - sum((draw.epsilon for draw in draws), Fraction(0))


@dataclass(frozen=True, slots=True)
class Account:
    """The joint privacy promise of the answers and other draws under one Renyi accounting.

    Attributes:
        epsilon: of all of them.
        draws: those that are no answers.

    """

    epsilon: Fraction
    draws: tuple[Draw, ...]

    def __post_init__(self) -> None:
        """Refuse an account that leaves the answers nothing."""
        invariant(left_for_answers(self.epsilon, self.draws) > 0, "answers have a share")

    def draws_at(self, epsilon: Fraction) -> tuple[Draw, ...]:
        """Return the draws under another epsilon, divided in the same way."""
        factor = epsilon / self.epsilon
        return tuple(replace(draw, epsilon=draw.epsilon * factor) for draw in self.draws)


def account_of(charges: Iterable[Charge], *, learner: str | None) -> Account:
    """Return the joint accounting of a release's charges; statistics are outside it.

    Args:
        charges: of the mechanisms with a share.
        learner: what publishes the classifier, by name; None where that has no share.

    Raises:
        InvariantError: the learner's draw is not pure.

    """
    parts = {charge.mechanism: charge.epsilon for charge in charges}
    draws = []
    if Mechanism.RELABEL in parts:
        draws.append(Draw(parts[Mechanism.RELABEL]))
    if Mechanism.CLASSIFIER in parts:
        if learner is None or LEARNERS[learner].uses_delta:
            raise InvariantError("a classifier in an account is a pure draw")
        is_ranged = LEARNERS[learner].has_bounded_range
        draws.append(Draw(parts[Mechanism.CLASSIFIER], has_bounded_range=is_ranged))
    answers = parts.get(Mechanism.ANSWERS, Fraction(0))
    return Account(sum((draw.epsilon for draw in draws), answers), tuple(draws))
