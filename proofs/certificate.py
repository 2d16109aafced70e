"""From a table as the server keeps it to a Coq file that proves its promise.

Nothing here is trusted: numbers that are badly chosen make Coq refuse the file.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from proofs.terms import line, pair, record

if TYPE_CHECKING:
    from collections.abc import Mapping

DIGITS: Final = 80
FRACTION_BITS: Final = 128
SERIES_REST_MAX: Final = Fraction(1, 1 << 160)

RANGE_DIVISORS: Final = {"range": 8, "pure": 2}

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
SHARED_TEMPLATE: Final = """\
(* {title}: draws share the account of its table.                               *)
From Coq Require Import NArith List.
From mathcomp Require Import all_ssreflect all_algebra.
From Conclave Require Import votes game words release account checker account_sound.
Import ListNotations.

Definition served : table := {served}.

Definition moment_of_draws : fraction := {moment}.
Definition promised : fraction := {promised}.

Lemma served_accepted : is_true (check_shared_table served moment_of_draws promised).
Proof. by vm_cast_no_check (erefl true). Qed.

Definition served_is_private (R : rcfType) :=
  @shared_table_is_private R served moment_of_draws promised served_accepted.

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
    served = record(table_numbers(table, title=title))
    if not table.get("draws"):
        return TEMPLATE.format(title=title, served=served)
    shared = account_numbers(table)
    return SHARED_TEMPLATE.format(
        title=title, served=served, moment=pair(shared.moment), promised=pair(shared.promised)
    )


def table_line(table: Mapping[str, str | list[str]], *, title: str) -> str:
    """Return a table as the extracted program reads it, with its draws where there are any.

    Raises:
        ValueError: as :func:`table_numbers`.

    """
    numbers = table_numbers(table, title=title)
    if not table.get("draws"):
        return line("table", numbers)
    return line("account", numbers, account_numbers(table))


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


@dataclass(frozen=True, kw_only=True)
class AccountNumbers:
    """The product of the moments of an account's draws, and the delta of all of it."""

    moment: Fraction
    promised: Fraction


def account_numbers(table: Mapping[str, str | list[str]]) -> AccountNumbers:
    """Return what the draws of an account may cost, and what it promises.

    The moment is an assumption of the theorem: a draw of epsilon e and bounded range has
    divergence ``min(e, order e^2 / 8)``, any other that is e-private ``min(e, order e^2 / 2)``.
    """
    alpha = Fraction(str(table["alpha"]))
    log_moment = Fraction(0)
    for draw in table.get("draws", ()):
        kind, _, plain = draw.partition(" ")
        epsilon = Fraction(plain)
        divergence = min(epsilon, alpha * epsilon**2 / RANGE_DIVISORS[kind])
        log_moment += (alpha - 1) * divergence
    return AccountNumbers(moment=_moment(log_moment), promised=Fraction(str(table["delta"])))


def altered_account(
    table: TableNumbers, account: AccountNumbers
) -> dict[str, tuple[TableNumbers, AccountNumbers]]:
    """Return alterations that the checker must refuse, by what they are."""
    words, middle = table.words, len(table.words) // 2
    lowered = [*words[:middle], words[middle] * 999 // 1000, *words[middle + 1 :]]
    doubled = replace(account, moment=2 * account.moment)
    less = replace(account, promised=account.promised * Fraction(999, 1000))
    return {
        "a word lowered by a thousandth": (replace(table, words=lowered), account),
        "one hit more": (replace(table, cutoff=table.cutoff + 1), account),
        "draws of twice the moment": (table, doubled),
        "delta less by a thousandth": (table, less),
    }


def table_numbers(table: Mapping[str, str | list[str]], *, title: str) -> TableNumbers:
    """Return what the checker decides about.

    Where draws share the account, the part of delta for the hits is divided by their moment.

    Raises:
        ValueError: the order is no integer over a power of two.

    """
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
        hits_share=number["delta_svt"] / account_numbers(table).moment,
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


def _moment(log_moment: Fraction) -> Fraction:
    """Return the exponential, rounded up; 1 without draws."""
    if not log_moment:
        return Fraction(1)
    with localcontext(Context(prec=DIGITS)):
        logarithm = Decimal(log_moment.numerator) / Decimal(log_moment.denominator)
        below = Fraction(logarithm.exp())
    return Fraction(math.floor(below * (1 << FRACTION_BITS)) + 1, 1 << FRACTION_BITS)


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
