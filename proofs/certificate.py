"""From a table as the server keeps it to a Coq file that proves its promise.

Nothing here is trusted: numbers that are badly chosen make Coq refuse the file.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from proofs.terms import record

if TYPE_CHECKING:
    from collections.abc import Mapping

DIGITS: Final = 80
FRACTION_BITS: Final = 128
SERIES_REST_MAX: Final = Fraction(1, 1 << 160)

TEMPLATE: Final = """\
(* {title} *)
From Coq Require Import NArith List.
From mathcomp Require Import all_ssreflect all_algebra.
From Conclave Require Import votes game words release checker checker_sound.
Import ListNotations.

Definition served : table := {served}.

Lemma served_accepted : is_true (check_table served).
Proof. by vm_cast_no_check (erefl true). Qed.

Definition served_is_private (R : rcfType) :=
  table_is_private R served_accepted.

Print Assumptions served_is_private.
"""


def read_table(text: str) -> dict[str, str | list[str]]:
    """Return the fields of a table from the JSON that the server keeps."""
    table = json.loads(text)
    return {str(key): value for key, value in table.items()}


def write_certificate(table: Mapping[str, str | list[str]], *, title: str) -> str:
    """Return the Coq file that states and proves what a table promises.

    Raises:
        ValueError: as :func:`table_numbers`.

    """
    return TEMPLATE.format(title=title, served=record(table_numbers(table, title=title)))


@dataclass(frozen=True, kw_only=True)
class TableNumbers:
    """The fields of ``table`` in ``checker.v``, in their order."""

    epsilon: Fraction
    delta: Fraction
    cutoff: int
    order: tuple[int, int]
    ratio: Fraction
    growth: Fraction
    growth_terms: int
    hits_share: Fraction
    release_share: Fraction
    words: list[int]


def table_numbers(table: Mapping[str, str | list[str]], *, title: str) -> TableNumbers:
    """Return what the checker decides about.

    Raises:
        ValueError: where draws share the account, of which the theorem says nothing, or the
            order is no integer over a power of two.

    """
    if table.get("draws"):
        message = f"{title}: draws share its account"
        raise ValueError(message)
    number = {key: Fraction(value) for key, value in table.items() if isinstance(value, str)}
    growth, terms = exponential_below(number["epsilon"])
    return TableNumbers(
        epsilon=number["epsilon"],
        delta=number["delta"],
        cutoff=int(number["cutoff"]),
        order=_order(number["alpha"], title=title),
        ratio=_ratio(number["ln_ratio"]),
        growth=growth,
        growth_terms=terms,
        hits_share=number["delta_svt"],
        release_share=number["delta_release"],
        words=[int(word) for word in table["thresholds"]],
    )


def _order(alpha: Fraction, *, title: str) -> tuple[int, int]:
    """Return ``(m, k)`` for order ``1 + m / 2^k``."""
    excess = alpha - 1
    if excess < 0 or excess.denominator.bit_count() != 1:
        message = f"{title}: the order does not exceed 1 by an integer over a power of two"
        raise ValueError(message)
    return excess.numerator, excess.denominator.bit_length() - 1


def _round_down(value: Fraction) -> Fraction:
    return Fraction(math.floor(value * (1 << FRACTION_BITS)), 1 << FRACTION_BITS)


def _ratio(ln_ratio: Fraction) -> Fraction:
    """Return R, rounded down: that is what the table's margin leaves room for."""
    with localcontext(Context(prec=DIGITS)):
        logarithm = Decimal(ln_ratio.numerator) / Decimal(ln_ratio.denominator)
        return _round_down(Fraction(logarithm.exp()))


def exponential_below(epsilon: Fraction) -> tuple[Fraction, int]:
    """Return a rational below the exponential's series, and the series' last index."""
    term, total, index = Fraction(1), Fraction(1), 0
    while term > SERIES_REST_MAX:
        index += 1
        term = term * epsilon / index
        total += term
    return _round_down(total), index
