"""The privacy cost of an algorithm on sampled, relabelled or repeated rows.

Relabelling gives each private row the label that a privately drawn rule predicts, before the models
are trained.

Claim: each function converts the cost of an inner algorithm to the cost of the whole algorithm, or
the cost of the whole to that of the inner one, under replacement of one record. The inner algorithm
may answer an adaptive client. For a fixed deterministic client its whole transcript is a randomised
function of its rows, and a client with random coins is an average over such clients.

All numbers are computed in decimals of many digits; a cost is rounded up, and a permitted cost is
rounded down. Proofs: ``app/privacy/exponential/relabel_proof.md``.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Final

from app.errors import invariant
from app.privacy.arithmetic import DOWN, UP, exponential_down, exponential_up, rounded
from app.privacy.stability.table_inequality import precise_context, to_decimal

GRID: Final = 1 << 80
CLASS_COUNT_MIN: Final = 2


def relabelled_epsilon(
    *, relabel_epsilon: Fraction, inner_epsilon: Fraction, class_count: int
) -> Fraction:
    """Return the epsilon of an algorithm that runs on privately relabelled rows.

    By Lemma L it is ``inner + 2 ln(L - 1 + e^(relabel/2))``, and delta is that of the inner
    algorithm. The lemma covers functions of the relabelled rows only, and never the drawn
    hypothesis itself.

    Args:
        relabel_epsilon: the parameter ``relabel`` of the exponential mechanism, at least 0.
        inner_epsilon: the epsilon ``inner`` of the algorithm on the relabelled rows, at least 0.
        class_count: the number L of labels, two or more.

    Returns:
        The epsilon of the composition, rounded up.

    """
    invariant(relabel_epsilon >= 0, "the relabelling parameter is not negative")
    invariant(inner_epsilon >= 0, "the inner charge is not negative")
    invariant(class_count >= CLASS_COUNT_MIN, "there are two or more classes")
    with localcontext(precise_context()):
        growth = class_count - 1 + to_decimal(relabel_epsilon / 2).exp()
        return _rounded_up(to_decimal(inner_epsilon) + 2 * growth.ln())


def sampled_epsilon(*, inner_epsilon: Fraction, rate: Fraction) -> Fraction:
    """Return the epsilon, counted over all rows, of an algorithm on a sample of the rows.

    It is ``ln(1 + q (e^inner - 1))``, for replacement of one record.

    Args:
        inner_epsilon: the epsilon ``inner`` of the algorithm on its sample, at least 0.
        rate: the fraction q of the rows that is sampled, in (0, 1].

    Returns:
        The epsilon counted over all rows, rounded up.

    """
    invariant(inner_epsilon >= 0, "the inner charge is not negative")
    invariant(0 < rate <= 1, "a sampling rate lies above zero and up to one")
    with localcontext(precise_context()):
        growth = 1 + to_decimal(rate) * (to_decimal(inner_epsilon).exp() - 1)
        return _rounded_up(growth.ln())


def relabel_parameter(*, cost: Fraction, class_count: int) -> Fraction | None:
    """Return the largest epsilon of an exponential mechanism that relabels at a given cost.

    The epsilon is ``2 ln(e^(cost/2) - (L - 1))``, which solves the formula of
    :func:`relabelled_epsilon`, without an inner cost, for the parameter of the exponential
    mechanism.

    Args:
        cost: the epsilon that relabelling may cost, at least 0.
        class_count: the number L of labels, two or more.

    Returns:
        The parameter; None if ``cost`` does not exceed ``2 ln L``, the least cost of relabelling.

    """
    invariant(cost >= 0, "what relabelling may cost is not negative")
    invariant(class_count >= CLASS_COUNT_MIN, "there are two or more classes")
    with localcontext(precise_context()):
        growth = to_decimal(cost / 2).exp() - (class_count - 1)
        parameter = _rounded_down(2 * growth.ln()) if growth > 1 else Fraction(0)
    return parameter if parameter > 0 else None


def relabel_cost_floor(class_count: int) -> Fraction:
    """Return ``2 ln L``, rounded up: the least possible epsilon of relabelling."""
    return relabelled_epsilon(
        relabel_epsilon=Fraction(0), inner_epsilon=Fraction(0), class_count=class_count
    )


def unsampled_epsilon(*, epsilon: Fraction, rate: Fraction) -> Fraction:
    """Return the largest epsilon on a sample whose cost over all rows is at most ``epsilon``.

    It is ``ln(1 + (e^epsilon - 1) / q)``, rounded down, the solution of :func:`sampled_epsilon` for
    the inner cost. If every row is in the sample, nothing is rounded.

    Args:
        epsilon: the epsilon that may be charged, above 0.
        rate: the fraction q of the rows that is sampled, in (0, 1].

    """
    invariant(epsilon > 0, "a charge to divide is positive")
    invariant(0 < rate <= 1, "a sampling rate lies above zero and up to one")
    if rate == 1:
        return epsilon
    with localcontext(precise_context()):
        growth = 1 + (to_decimal(epsilon).exp() - 1) / to_decimal(rate)
        # Never below epsilon, which the grid's rounding could be where epsilon is tiny.
        return max(epsilon, _rounded_down(growth.ln()))


def sampling_holds(*, inner_epsilon: Fraction, rate: Fraction, epsilon: Fraction) -> bool:
    """Return whether an algorithm on a sample costs at most ``epsilon`` over all rows.

    The exact condition is ``1 + q (e^inner - 1) <= e^epsilon``; rounding never makes the result
    wrongly true.

    Args:
        inner_epsilon: the epsilon ``inner`` of the algorithm on its sample, at least 0.
        rate: the fraction q of the rows that is sampled, in (0, 1].
        epsilon: the epsilon that is charged over all rows, at least 0.

    """
    if rate == 1:
        return inner_epsilon <= epsilon
    growth = UP.subtract(exponential_up(inner_epsilon), Decimal(1))
    charged = DOWN.subtract(exponential_down(epsilon), Decimal(1))
    return UP.multiply(rounded(rate, UP), growth) <= charged


def rate_at(*, inner_epsilon: Fraction, epsilon: Fraction) -> Fraction:
    """Return the largest sampling rate at which an algorithm costs ``epsilon`` over all rows.

    Args:
        inner_epsilon: the epsilon of the algorithm on its sample, above 0.
        epsilon: the epsilon that is charged over all rows, above 0.

    Returns:
        A rate in (0, 1], rounded down.

    """
    invariant(inner_epsilon > 0 < epsilon, "charges are positive")
    with localcontext(precise_context()):
        rate = (to_decimal(epsilon).exp() - 1) / (to_decimal(inner_epsilon).exp() - 1)
        return min(Fraction(1), _rounded_down(rate))


def copied_delta(*, epsilon: Fraction, delta: Fraction, copies: int) -> Fraction:
    """Return the delta of a mechanism if one record may be present several times in its rows.

    Group privacy: ``copies`` replacements, one by one, cost ``copies epsilon`` and at most
    ``copies e^(copies epsilon) delta``.

    Args:
        epsilon: the mechanism's epsilon for one replaced row, above 0.
        delta: the mechanism's delta for one replaced row.
        copies: the largest number of rows that may be copies of one record, at least 1.

    Returns:
        The delta for all copies together, rounded up.

    """
    invariant(copies >= 1, "a record that matters fills a row")
    with localcontext(precise_context()):
        growth = Fraction(to_decimal(copies * epsilon).exp()) * (1 + Fraction(1, GRID))
    return copies * growth * delta


def sampled_delta(*, inner_delta: Fraction, rate: Fraction) -> Fraction:
    """Return ``q delta``: the delta, over all rows, of an algorithm on a fraction q of them."""
    invariant(0 < rate <= 1, "a sampling rate lies above zero and up to one")
    return inner_delta * rate


def _rounded_up(value: Decimal) -> Fraction:
    """Put a cost on a grid of ``2**-80``, above the error of the decimals used."""
    return Fraction(math.ceil(Fraction(value) * GRID) + 1, GRID)


def _rounded_down(value: Decimal) -> Fraction:
    """Put what may be spent on the same grid, below the error of the decimals used."""
    return Fraction(math.floor(Fraction(value) * GRID) - 1, GRID)
