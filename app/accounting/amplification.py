"""What sampling and relabelling do to a charge.

Both take the charge of an inner algorithm and return the one of the whole, in
decimals of many digits, rounded up: a cost is never rounded down.  Proofs:
``docs/proofs/relabel.md``.
"""

from __future__ import annotations

import math
from decimal import localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.accounting.profile_inequality import precise_context, to_decimal
from app.errors import invariant

if TYPE_CHECKING:
    from decimal import Decimal

GRID: Final = 1 << 80
CLASS_COUNT_MIN: Final = 2


def relabelled_epsilon(
    *, relabel_epsilon: Fraction, inner_epsilon: Fraction, class_count: int
) -> Fraction:
    """Charge an algorithm run on rows relabelled from their own dichotomies.

    Lemma L: ``inner + 2 ln(L - 1 + e^(relabel/2))``; delta stays the inner one.  It
    holds for functions of the relabelled rows only, never for the drawn hypothesis.

    Args:
        relabel_epsilon: parameter of the exponential mechanism, at least 0.
        inner_epsilon: charge of the algorithm on the relabelled rows, at least 0.
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
    """Charge an algorithm run on a sample drawn without replacement.

    ``ln(1 + q (e^inner - 1))``, for replacement of one record.

    Args:
        inner_epsilon: charge of the algorithm on its sample, at least 0.
        rate: fraction q of the rows that is sampled, in (0, 1].

    Returns:
        The epsilon in all the rows, rounded up.

    """
    invariant(inner_epsilon >= 0, "the inner charge is not negative")
    invariant(0 < rate <= 1, "a sampling rate lies above zero and up to one")
    with localcontext(precise_context()):
        growth = 1 + to_decimal(rate) * (to_decimal(inner_epsilon).exp() - 1)
        return _rounded_up(growth.ln())


def sampled_delta(*, inner_delta: Fraction, rate: Fraction) -> Fraction:
    """Return the delta in all the rows of an algorithm run on a sample: ``q delta``."""
    invariant(0 < rate <= 1, "a sampling rate lies above zero and up to one")
    return inner_delta * rate


def _rounded_up(value: Decimal) -> Fraction:
    """Put a cost on a grid of ``2**-80``, above the error of the decimals used."""
    return Fraction(math.ceil(Fraction(value) * GRID) + 1, GRID)
