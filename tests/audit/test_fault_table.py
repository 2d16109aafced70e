"""Every planted fault is caught in every cell, and docs/guarantee.md says by what.

Bounds and conditions are exact: nothing is left to chance, so nothing here fails by it.
The page is the expectation: a condition that is no longer asked, or a bound that is no
longer found, disagrees with it.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.audit.planted import fault_table
from tests.audit.planted.fault_table import EPSILONS, FAULTS, LETTERS, cells, find, read_table
from tests.tidy.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.audit.planted.fault_table import Fault, Found

pytestmark = pytest.mark.audit

# Every fault in every cell at one epsilon; `make audit` has the others, whose tables are longer.
PLANTED_EPSILONS = (
    pytest.param(Fraction(1, 2), marks=pytest.mark.long),
    pytest.param(Fraction(1), marks=pytest.mark.long),
    Fraction(2),
)
ROUNDED = 0.0075
"""The page has two digits, and another machine's doubles may round the third otherwise."""


@cache
def page() -> Mapping[tuple[str, str, int, Fraction], Found]:
    """Return what docs/guarantee.md says."""
    return read_table((ROOT / "docs" / "guarantee.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("epsilon", PLANTED_EPSILONS)
@pytest.mark.parametrize(("key", "calibration", "cutoff"), cells())
def test_a_fault_is_found_as_the_page_says(
    key: str, calibration: str, cutoff: int, epsilon: Fraction
) -> None:
    """The bound is the one printed, and exactly the conditions printed are broken."""
    found, said = (
        find(FAULTS[key], calibration, cutoff, epsilon),
        page()[key, calibration, cutoff, epsilon],
    )
    assert found.letters == said.letters
    assert found.share == said.share or abs(found.share - said.share) < ROUNDED
    assert found.is_caught is is_caught(key, calibration, cutoff)


def is_caught(key: str, calibration: str, cutoff: int) -> bool:
    """Tell whether there is something to catch: a fault that changes the law of the cell."""
    return key != "none" and (calibration, cutoff) not in FAULTS[key].unchanged


def test_the_page_has_every_cell_and_no_other() -> None:
    """The table on the page is that of the faults, mechanisms, cutoffs and epsilons here."""
    expected = {(*cell, epsilon) for cell in cells() for epsilon in EPSILONS}
    assert set(page()) == expected


def test_on_the_page_every_fault_is_caught_where_it_changes_the_law() -> None:
    """No cell of a fault is blank but those whose law is that of a correct mechanism."""
    for (key, calibration, cutoff, epsilon), said in page().items():
        caught = is_caught(key, calibration, cutoff)
        assert said.is_caught is caught, (key, calibration, cutoff, epsilon)
        if not caught:
            assert said == page()["none", calibration, cutoff, epsilon]


def test_every_condition_is_explained_and_catches_something() -> None:
    """Each letter is explained on the page, and breaks in some cell."""
    text = (ROOT / "docs" / "guarantee.md").read_text(encoding="utf-8")
    used = {letter for said in page().values() for letter in said.letters}
    assert used == set(LETTERS.values())
    for condition, letter in LETTERS.items():
        assert f"* {letter}: {condition}" in text


def test_the_command_prints_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what the page says was found, the command makes the section of the page, to the letter."""

    def said(fault: Fault, calibration: str, cutoff: int, epsilon: Fraction) -> Found:
        (key,) = (key for key, each in FAULTS.items() if each is fault)
        return page()[key, calibration, cutoff, epsilon]

    monkeypatch.setattr(fault_table, "find", said)
    assert fault_table.table() in (ROOT / "docs" / "guarantee.md").read_text(encoding="utf-8")
