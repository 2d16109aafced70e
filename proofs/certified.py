"""From a table with a certificate, as the server keeps it, to the checker of ``certified.v``.

Nothing here is trusted: numbers that are badly chosen make Coq refuse the file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from proofs.certificate import exponential_below
from proofs.terms import record

if TYPE_CHECKING:
    from collections.abc import Mapping

NODE_ONE: Final = 1 << 40
SLOPE_ONE: Final = 1 << 96
"""The units in which the server keeps nodes and slopes."""

Kink = tuple[int, int]

TEMPLATE: Final = """\
(* {title} *)
From Coq Require Import NArith List.
From mathcomp Require Import all_ssreflect all_algebra.
From Conclave Require Import votes game words release checker certified certified_sound sweep.
Import ListNotations.

Definition served : certificate := {served}.

Lemma served_accepted : is_true (check_certificate served).
Proof.
rewrite /is_true /check_certificate -sweep_is_check.
by vm_cast_no_check (erefl true).
Qed.

Definition served_is_private (R : realFieldType) :=
  certificate_is_private R served_accepted.

Print Assumptions served_is_private.
"""


def write_certified(table: Mapping[str, str | list[str]], *, title: str) -> str:
    """Return the Coq file that states and proves what a table with a certificate promises."""
    return TEMPLATE.format(title=title, served=record(certificate_numbers(table)))


@dataclass(frozen=True, kw_only=True)
class CertificateNumbers:
    """The fields of ``certificate`` in ``certified.v``, in their order."""

    budget_epsilon: Fraction
    budget_delta: Fraction
    factor_terms: int
    node_unit: int
    slope_unit: int
    factor: int
    functions: list[list[Kink]]
    entries: list[int]


def certificate_numbers(table: Mapping[str, str | list[str]]) -> CertificateNumbers:
    """Return what the checker decides about."""
    epsilon = Fraction(str(table["epsilon"]))
    nodes = [int(node) for node in table["nodes"]]
    slopes = [[int(slope) for slope in row.split()] for row in table["slopes"]]
    return CertificateNumbers(
        budget_epsilon=epsilon,
        budget_delta=Fraction(str(table["delta"])),
        factor_terms=exponential_below(epsilon)[1],
        node_unit=NODE_ONE,
        slope_unit=SLOPE_ONE,
        factor=int(str(table["factor"])),
        functions=[_kinks(nodes, row) for row in slopes],
        entries=[int(word) for word in table["thresholds"]],
    )


def _kinks(nodes: list[int], slopes: list[int]) -> list[Kink]:
    """Return each node with the rise of the slope there."""
    rises = [after - before for before, after in pairwise([0, *slopes])]
    return list(zip(nodes, rises, strict=True))


def altered(numbers: CertificateNumbers) -> dict[str, CertificateNumbers]:
    """Return alterations that the checker must refuse, by what they are."""
    words, functions, factor = numbers.entries, numbers.functions, numbers.factor
    middle = len(words) // 2
    moved = [[(x + (x == factor), k) for x, k in kinks] for kinks in functions]
    word = words[middle] * 999 // 1000
    return {
        "the first word lowered by one": replace(numbers, entries=[words[0] - 1, *words[1:]]),
        "a word lowered by a thousandth": replace(
            numbers, entries=[*words[:middle], word, *words[middle + 1 :]]
        ),
        "V_T of one hit less": replace(numbers, functions=[*functions[:-1], functions[-2]]),
        "the node at c moved by one": replace(numbers, functions=moved),
        "c above e^epsilon": replace(numbers, factor=factor + 1),
        "delta less by a thousandth": replace(
            numbers, budget_delta=numbers.budget_delta * Fraction(999, 1000)
        ),
    }
