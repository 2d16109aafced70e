"""What serves stays within its claim and uses most of it.

Bounds and conditions are exact: nothing is left to chance, so nothing here can fail by
it.  What faults are caught by is in ``test_fault_table``.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, partial
from typing import TYPE_CHECKING

import pytest

from app.auditing.bounds.profile_bound import adaptive_bound, hit_table
from app.auditing.bounds_by_mechanism import broken_conditions, exact_bound
from app.auditing.event_bounds import ROUNDING
from app.auditing.laws.proof_conditions import HITS_PAID, LABELS_PAID
from tests.audit.planted import planted_systems as planted
from tests.audit.planted.figures import EPSILONS, cells, read_table
from tests.audit.planted.planted_systems import system
from tests.tidy.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from app.auditing.audited_mechanism import Audited
    from tests.audit.planted.figures import Shares

pytestmark = pytest.mark.audit

# What correct mechanisms have to show, as parts of their claims: the audit's power.
LEAST = {"svt": {1: 0.95, 2: 0.95, 3: 0.95}, "profile": {5: 0.8, 20: 0.8}}
ROUNDED = 0.0015
"""The page has one digit of a percent, and another machine's doubles may round it otherwise."""


@cache
def page() -> Mapping[tuple[str, int], Shares]:
    """Return what docs/audit.md says."""
    return read_table((ROOT / "docs" / "audit.md").read_text(encoding="utf-8"))


# Every cell at the largest epsilon; `make audit` has the others, whose tables are longer.
PLACES = [
    pytest.param(
        place, id=str(epsilon), marks=[] if epsilon == max(EPSILONS) else [pytest.mark.long]
    )
    for place, epsilon in enumerate(EPSILONS)
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("calibration", "cutoff"), cells())
def test_the_claim_holds_and_is_used_as_the_page_says(
    calibration: str, cutoff: int, place: int
) -> None:
    """The bound never exceeds the claim, is what is printed, and no condition is broken."""
    audited = system(calibration, cutoff, EPSILONS[place])
    shown = exact_bound(audited).epsilon / float(audited.epsilon)
    assert LEAST.get(calibration, {}).get(cutoff, 0) <= shown <= 1 + ROUNDING
    assert abs(shown - page()[calibration, cutoff][place]) < ROUNDED
    assert broken_conditions(audited) == []


def test_the_page_has_every_figure_and_no_other() -> None:
    """The table is that of the command, so all that it prints is audited here."""
    assert list(page()) == cells()
    assert all(len(shares) == len(EPSILONS) for shares in page().values())


@pytest.mark.parametrize(("cutoff", "read"), [(5, 1.0), (10, 1.25)])
def test_noise_of_one_hit_exceeds_the_claim_of_many(cutoff: int, read: float) -> None:
    """Where the proof leaves less unused, a table for one hit reads above the claim for T."""
    assert exact_bound(system("profile", cutoff, Fraction(1), paid=1)).epsilon > read


@pytest.mark.parametrize(("cutoff", "read"), [(5, 1.05), (20, 1.15)])
def test_a_counter_lost_at_a_restart_exceeds_the_claim_of_many(cutoff: int, read: float) -> None:
    """A run that starts counting again allows twice the hits, and exceeds the claim."""
    faulty = planted.with_counter_lost(system("profile", cutoff, Fraction(1)))
    assert exact_bound(faulty).epsilon > read


@pytest.mark.parametrize("place", [1, None, -2, -1])
def test_every_entry_of_a_table_counts(place: int | None) -> None:
    """One word in 2^64 less, at either end or between, breaks the inequality and nothing else."""
    faulty = planted.with_one_word_off(system("profile", 2, Fraction(2)), place=place)
    assert broken_conditions(faulty) == [HITS_PAID]


@pytest.mark.parametrize(("cutoff", "least"), [(1, 0.9), (2, 0.85), (5, 0.8)])
def test_a_certified_table_stays_within_its_claim_and_uses_it(cutoff: int, least: float) -> None:
    """Adaptive adversaries show most of the claim and never more, and no condition is broken."""
    audited = system("certified", cutoff, Fraction(1))
    assert least < exact_bound(audited).epsilon <= 1
    assert broken_conditions(audited) == []


@pytest.mark.parametrize(
    "plant",
    [
        planted.with_printed_gap,
        planted.with_falling_gap,
        planted.with_one_word_off,
        partial(planted.with_one_word_off, place=-1),
    ],
)
def test_every_word_of_a_certified_table_counts(plant: Callable[[Audited], Audited]) -> None:
    """The gap in place of the distance, or one word less anywhere, is not paid."""
    assert HITS_PAID in broken_conditions(plant(system("certified", 2, Fraction(2))))


@pytest.mark.parametrize("cutoff", [1, 5])
def test_a_certified_run_pays_for_each_of_its_hits(cutoff: int) -> None:
    """A table for one hit fewer shows more than the claim, or than a larger cutoff may."""
    faulty = planted.with_counter_lost(system("certified", cutoff, Fraction(1)))
    assert {HITS_PAID, LABELS_PAID} <= set(broken_conditions(faulty))
    few = system("certified", cutoff + 1, Fraction(1), paid=1)
    assert exact_bound(few).epsilon > 1


@pytest.mark.parametrize("plant", [planted.with_printed_gap, planted.with_falling_gap])
def test_hits_have_to_be_paid_in_both_orders(plant: Callable[[Audited], Audited]) -> None:
    """A gap that grows with the lead breaks the one, and a gap that falls the other."""
    assert HITS_PAID in broken_conditions(plant(system("profile", 2, Fraction(2))))


def test_an_adaptive_adversary_stays_within_and_catches_the_gap() -> None:
    """It shows what a constant one does or more, never above the claim, but with the gap."""
    audited = system("profile", 2, Fraction(1))
    shown = adaptive_bound(audited, hit_table(audited), start=0.74).epsilon
    assert 0.75 < shown <= 1
    faulty = planted.with_printed_gap(audited)
    assert adaptive_bound(faulty, hit_table(faulty), start=1.5).epsilon > 1.5


def test_an_adaptive_adversary_is_spared_many_hits() -> None:
    """Beyond three hits it is not asked, and it says nothing where it shows no more."""
    many, few = system("profile", 5, Fraction(2)), system("profile", 1, Fraction(2))
    assert adaptive_bound(many, hit_table(many), start=0.5).epsilon == 0
    assert adaptive_bound(few, hit_table(few), start=1.9).epsilon == 0
