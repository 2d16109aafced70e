"""The privacy budget of a release: exact shares of epsilon and delta, and their sum.

Claim: mechanisms that run on the same rows, each ``(epsilon_i, delta_i)``-private, are together
``(sum epsilon_i, sum delta_i)``-private in any adaptive order. A mechanism with delta 0 may also
run between two steps of another mechanism. Mechanisms that share one privacy account
(``account.py``) are charged their shares as well, and count as one mechanism with the sum of these
shares. Every number is rational, so the sum equals the budget without rounding.

Exponential mechanisms are drawn with integer weights, at a cost in delta that is far below
``2**-20`` of the release's delta. A ``2**-20`` part of the release's delta is withheld from the
answers and divided evenly among the exponential mechanisms that have a share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.errors import invariant

if TYPE_CHECKING:
    from collections.abc import Iterable

WITHHELD_PART: Final = Fraction(1, 1 << 20)
NUMERICAL_FACTOR: Final = 4
RANGE_FACTOR: Final = 8


class Mechanism(StrEnum):
    """A mechanism of a release that has its own share of epsilon."""

    RELABEL = "relabel"
    ANSWERS = "answers"
    CLASSIFIER = "classifier"
    STATISTICS = "statistics"


EXPONENTIAL: Final = frozenset({Mechanism.RELABEL, Mechanism.CLASSIFIER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Fractions of the total epsilon, one for each mechanism; zero switches a mechanism off.

    Attributes:
        relabel: the fraction for the exponential mechanism that relabels the rows.
        answers: the fraction for the models' answers.
        classifier: the fraction for the published classifier.
        statistics: the fraction for the table of statistics.

    """

    relabel: Fraction = Fraction(0)
    answers: Fraction = Fraction(0)
    classifier: Fraction = Fraction(0)
    statistics: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        """Raise an error unless the fractions are non-negative and add up to at most 1."""
        parts = self.by_mechanism().values()
        invariant(all(part >= 0 for part in parts), "a share is not negative")
        invariant(sum(parts) <= 1, "shares are at most the whole")

    def by_mechanism(self) -> dict[Mechanism, Fraction]:
        """Return each mechanism's fraction of epsilon, in the order of spending."""
        return {
            Mechanism.RELABEL: self.relabel,
            Mechanism.ANSWERS: self.answers,
            Mechanism.CLASSIFIER: self.classifier,
            Mechanism.STATISTICS: self.statistics,
        }


@dataclass(frozen=True, slots=True)
class Charge:
    """The whole epsilon and delta of one mechanism, spent when it starts."""

    mechanism: Mechanism
    epsilon: Fraction
    delta: Fraction


def charges(
    *, epsilon: Fraction, delta: Fraction, shares: Shares, delta_shares: Shares | None = None
) -> tuple[Charge, ...]:
    """Return a release's budget, divided among the mechanisms that have a share.

    Args:
        epsilon: the release's epsilon, above 0.
        delta: the release's delta, in (0, 1).
        shares: the fractions of epsilon.
        delta_shares: the fractions of delta, after the withheld part is subtracted, for answers,
            statistics and a classifier that is learned with noise. By default the answers get the
            whole remaining delta; if the statistics have a share of epsilon, they get a tenth of it
            and the answers nine tenths.

    Returns:
        One charge for each mechanism with a share of epsilon, in the order in which they are
        charged; the charges add up to at most ``epsilon`` and ``delta``.

    """
    invariant(epsilon > 0, "epsilon is above zero")
    invariant(0 < delta < 1, "delta lies between zero and one")
    delta_parts = _delta_parts(shares, delta_shares)
    return tuple(
        Charge(mechanism, epsilon * share, delta * delta_parts[mechanism])
        for mechanism, share in shares.by_mechanism().items()
        if share > 0
    )


def total(charged: Iterable[Charge]) -> tuple[Fraction, Fraction]:
    """Return the sum of charges as a pair, ``(epsilon, delta)``."""
    listed = list(charged)
    return (
        sum((charge.epsilon for charge in listed), Fraction(0)),
        sum((charge.delta for charge in listed), Fraction(0)),
    )


def mechanism_epsilon(
    *, share: Fraction, log_weight_error: Fraction, is_range: bool = False
) -> Fraction:
    """Return the epsilon of an exponential mechanism, less the cost of rounding errors.

    If the weights are correct up to a factor ``e^(+-eta)``, rounding costs ``4 eta``: ``2 eta`` for
    the drawn weight and ``2 eta`` for the sum of weights, counting both neighbouring data sets. The
    interval that contains the logarithms of the likelihood ratios grows by ``4 eta`` at both ends,
    so if the share bounds the length of this interval (the range), rounding costs ``8 eta``.

    Args:
        share: the epsilon that the ledger charges.
        log_weight_error: ``eta``, an upper bound on the error of a weight's logarithm.
        is_range: whether ``share`` bounds this range, and not only the size of each logarithm.

    """
    invariant(log_weight_error >= 0, "an error bound is not negative")
    factor = RANGE_FACTOR if is_range else NUMERICAL_FACTOR
    epsilon = share - factor * log_weight_error
    invariant(epsilon > 0, "the share exceeds its numerical error")
    return epsilon


def float_below(value: Fraction) -> float:
    """Return the largest double that is at most ``value``."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def _delta_parts(shares: Shares, delta_shares: Shares | None) -> dict[Mechanism, Fraction]:
    """Fractions of delta by mechanism, the withheld part included."""
    parts = shares.by_mechanism()
    drawn = [mechanism for mechanism in EXPONENTIAL if parts[mechanism] > 0]
    withheld = WITHHELD_PART if drawn else Fraction(0)
    rest = delta_shares or _default_delta_shares(shares)
    invariant(rest.relabel == 0, "what only draws exactly gets the withheld part")
    return {
        mechanism: part * (1 - withheld) + (withheld / len(drawn) if mechanism in drawn else 0)
        for mechanism, part in rest.by_mechanism().items()
    }


def _default_delta_shares(shares: Shares) -> Shares:
    if shares.statistics > 0:
        return Shares(answers=Fraction(9, 10), statistics=Fraction(1, 10))
    return Shares(answers=Fraction(1))
