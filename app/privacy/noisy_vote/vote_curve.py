"""A floating-point model of the two-label vote's probabilities, for planning.

The model gives the probability of each label by its number of votes. The losing label is the label
with fewer votes.

The lead of a label is its number of votes minus that of the next label.

The log-odds of a label fall from one vote count to the next by a step that depends on the log-odds
alone. The number of votes at which given log-odds are reached is a sum over these steps,
approximated by an integral (Euler and Maclaurin). The model does not distinguish even and odd
numbers of votes.

No claim relies on the model. It chooses the Renyi order for the exact table, and estimates the
tables for other numbers of answers, to within about one vote.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from app.privacy.budget.account import log_moment
from app.privacy.stability.probability_curve import HELD_BELOW

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.privacy.budget.account import Draw

    Floats = NDArray[np.float64]

POINTS: Final = 97
COARSE_POINTS: Final = 17
STEP_MAX: Final = 64.0
BISECTIONS: Final = 32
EXPONENT_MAX: Final = 700.0
ORDERS: Final = np.exp(np.linspace(-1.4, 1.4, 57))
"""Orders that are looked at, less one, as times the order of the Gaussian vote less one."""
WANTED_LOSS: Final = 0.01
"""The lead is made least at which the other label wins so often."""
CURVES_KEPT: Final = 4096
NEWTON_STEPS: Final = 5


@dataclass(frozen=True, slots=True)
class VoteCurve:
    """A floating-point model of the two-label vote's probabilities.

    Attributes:
        alpha: the Renyi order of the model.
        logits: log-odds that the losing label is answered, falling from 0.
        votes: for each of the log-odds, the number of votes by which the losing label is short of a
            tie.

    """

    alpha: float
    logits: tuple[float, ...]
    votes: tuple[float, ...]

    def lead(self, probability: float) -> float:
        """Return the lead, in votes, at which the losing label has this probability."""
        logit = math.log(probability) - math.log1p(-probability)
        return 2 * float(np.interp(-logit, -np.array(self.logits), self.votes))

    def lost(self, leads: Floats) -> Floats:
        """Return the probability that noise changes a label with a given lead in votes."""
        logits = np.interp(np.maximum(leads, 0.0) / 2, self.votes, self.logits)
        return np.asarray(1 / (1 + np.exp(-logits)))


def ln_price(excess: Floats | float, *, epsilon: float, delta: float) -> Floats:
    """Return ``alpha - 1`` times the Renyi divergence that a budget allows, at each order alpha.

    The Renyi divergence is that of all answers together.

    Args:
        excess: Renyi orders alpha, each less one.
        epsilon: the epsilon of all answers together.
        delta: the delta of all answers together.

    """
    order = 1 + np.asarray(excess, dtype=np.float64)
    price = math.log(delta) + excess * epsilon - excess * np.log(excess / order) + np.log(order)
    return np.asarray(price)


@lru_cache(maxsize=CURVES_KEPT)
def vote_curve(
    *,
    epsilon: float,
    delta: float,
    answers: float,
    gaussian_order: float,
    draws: tuple[Draw, ...] = (),
) -> VoteCurve:
    """Return a model of the label probabilities that a budget allows, at the best Renyi order.

    The best order is the one at which the smallest lead suffices for the losing label to be
    answered only once in a hundred times.

    Args:
        epsilon: the epsilon of all answers together.
        delta: the delta of all answers together.
        answers: the number m of answers.
        gaussian_order: the best Renyi order for Gaussian noise at this budget; the model searches
            near it.
        draws: the draws of a relabelling rule and of a classifier whose cost is computed jointly
            with that of the answers.

    """
    excess = (gaussian_order - 1) * ORDERS
    price = ln_price(excess, epsilon=epsilon, delta=delta)
    if draws:
        price = price - [float(log_moment(draws, 1 + Fraction(each))) for each in excess]
    price = price / answers
    excess, price = excess[price > 0], price[price > 0]
    wanted = math.log(WANTED_LOSS) - math.log1p(-WANTED_LOSS)
    ends = votes_at(excess, price, np.linspace(0.0, wanted, COARSE_POINTS))[:, -1]
    best = int(np.argmin(ends))
    logits = np.linspace(0.0, math.log(HELD_BELOW), POINTS)
    votes = votes_at(excess[best : best + 1], price[best : best + 1], logits)[0]
    rising = np.maximum.accumulate(votes)
    return VoteCurve(1 + float(excess[best]), tuple(logits.tolist()), tuple(rising.tolist()))


def votes_at(excess: Floats, price: Floats, logits: Floats) -> Floats:
    """Return the votes between a tie and each of the given log-odds, shape (orders, logits).

    The log-odds are those of the label with fewer votes.

    Args:
        excess: Renyi orders alpha, each less one, shape (orders,).
        price: the price ``(alpha - 1) r`` of one answer at each order, r being the Renyi divergence
            of one answer, shape (orders,).
        logits: log-odds, evenly spaced from 0 down, shape (logits,).

    """
    steps = _steps(excess[:, None], price[:, None], logits[None, :])
    rates, width = 1 / steps, logits[0] - logits[1]
    whole = np.zeros_like(rates)
    whole[:, 1:] = np.cumsum((rates[:, 1:] + rates[:, :-1]) / 2, axis=1) * width
    return np.asarray(whole + np.log(steps / steps[:, :1]) / 2)


def _steps(excess: Floats, price: Floats, logits: Floats) -> Floats:
    """Return by how much the next logit may be lower, for every order and logit."""
    low = np.zeros(np.broadcast_shapes(excess.shape, logits.shape))
    high = np.full_like(low, STEP_MAX)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        held = _held(excess, price, logits, logits - middle)
        low, high = np.where(held, middle, low), np.where(held, high, middle)
    return high


def _held(excess: Floats, price: Floats, one: Floats, other: Floats) -> NDArray[np.bool_]:
    """Tell whether both orders of two logits cost at most the price of an answer."""
    return _costs(excess, price, one, other) & _costs(excess, price, other, one)


def _costs(excess: Floats, price: Floats, one: Floats, other: Floats) -> NDArray[np.bool_]:
    first = _ln(one) + excess * (_ln(one) - _ln(other)) - price
    second = _ln(-one) + excess * (_ln(-one) - _ln(-other)) - price
    total = np.exp(np.minimum(first, EXPONENT_MAX)) + np.expm1(np.minimum(second, EXPONENT_MAX))
    return np.asarray(total <= 0)


def _ln(logit: Floats) -> Floats:
    """Return the logarithm of the probability with this logit."""
    return np.asarray(-np.logaddexp(0.0, -logit))


def answers_within(
    lead: float,
    *,
    epsilon: float,
    delta: float,
    gaussian_order: float,
    start: float,
    draws: tuple[Draw, ...] = (),
) -> float:
    """Return the number of answers at which noise changes 1 in 100 labels with this lead.

    The lead needed grows nearly as the square root of the number of answers, so a few steps of
    iteration suffice.

    Args:
        lead: the lead of the label with the most votes, in votes.
        epsilon: the epsilon of all answers together.
        delta: the delta of all answers together.
        gaussian_order: the best Renyi order for Gaussian noise at this budget.
        start: the number of answers at which the iteration begins.
        draws: the draws of a relabelling rule and of a classifier whose cost is computed jointly
            with that of the answers.

    """
    if lead <= 0:
        return 0.0
    answers = start
    for _ in range(NEWTON_STEPS):
        curve = vote_curve(
            epsilon=epsilon,
            delta=delta,
            answers=answers,
            gaussian_order=gaussian_order,
            draws=draws,
        )
        answers = max(1e-3, answers * (lead / curve.lead(WANTED_LOSS)) ** 2)
    return answers
