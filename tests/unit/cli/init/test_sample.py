"""A public sample gives bounds, categories, cuts on both sides of the median, and shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.init.columns import Column
from app.cli.init.sample import (
    CATEGORIES_MAX,
    CLASSES_MAX,
    ONE_VALUE,
    OWN_VALUES,
    classes_in,
    cuts_of,
    described,
    missing_in,
    read_sample,
)
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("values", "cuts"),
    [
        ([1, 2, 3, 4], [2, 3, 4]),
        ([0] * 6 + [10, 20, 30, 40, 50], [1, 40]),
        ([0.0] * 6 + [0.5, 2.5, 3.5], [0.5, 3.5]),
        ([0] * 6 + [3, 9, 9], [1]),
        ([9] * 6 + [1, 2, 3], [2, 9]),
        ([5] * 6 + [1, 2, 8, 9], [2, 5, 6]),
        ([0] * 4 + [1, 2, 3, 4, 5], [1, 3, 5]),
        ([0.5] * 6 + [1, 2, 3], [1, 3]),
        ([2.0**60] * 2 + [2.0**61], [2.0**61]),
        ([7, 7, 7], []),
    ],
)
def test_cuts_follow_the_sample(values: list[float], cuts: list[float]) -> None:
    """Cuts part the values equally, or set a common one apart and part each side once."""
    assert cuts_of([float(value) for value in values]) == cuts


@given(st.lists(st.integers(-5, 5).map(float) | st.floats(-10, 10), min_size=1, max_size=40))
def test_there_are_cuts_on_both_sides_of_the_median(values: list[float]) -> None:
    """Where values lie below the median or above it, a cut of that side parts them off."""
    ordered = sorted(values)
    median, cuts = ordered[len(ordered) // 2], cuts_of(values)
    assert cuts == sorted(set(cuts))
    assert all(ordered[0] < cut <= ordered[-1] for cut in cuts)
    assert any(cut <= median for cut in cuts) == (ordered[0] < median)
    assert any(cut > median for cut in cuts) == (ordered[-1] > median)


def test_dates_and_booleans_are_kinds_of_their_own() -> None:
    """Days have bounds, cuts and shares as numbers do, and a boolean has the share of true."""
    days = [f"2020-01-{day:02d}" for day in range(1, 32)]
    found = described(Column(name="seen"), [*days, ""], ())
    assert (found.kind, found.bounds) == ("date", (18262.0, 18292.0))
    assert len(found.cuts) == len(found.cut_shares) == 4
    truths = described(Column(name="smoker"), ["True", "false", "FALSE", ""], ())
    assert (truths.kind, truths.categories) == ("boolean", ("false", "true"))
    assert truths.category_shares == (0.5, 0.25)
    assert described(Column(name="bit"), ["1", "0", "1"], ()).kind == "numeric"
    assert described(Column(name="word"), ["true", "unknown"], ()).kind == "categorical"
    same = described(Column(name="flag"), ["true", "t"], ())
    assert same.left_out == ONE_VALUE


@pytest.mark.parametrize(
    ("kind", "cell", "problem"), [("date", "soon", "is a date"), ("boolean", "2", "is a boolean")]
)
def test_a_sample_against_the_dictionary_is_refused(
    kind: Literal["date", "boolean"], cell: str, problem: str
) -> None:
    """A column whose kind is known has no cells of another."""
    with pytest.raises(ConfigurationError, match=f'column "x" {problem}, and has other cells'):
        described(Column(name="x", kind=kind), [cell], ())


def test_a_number_gets_bounds_cuts_and_shares_of_all_rows() -> None:
    """Missing rows count among all; what a dictionary says of the bounds stays, and clips."""
    cells = ["30", "40", "?", "50", "60"]
    found = described(Column(name="age"), cells, ["?"])
    assert (found.kind, found.bounds) == ("numeric", (30, 60))
    assert (found.cuts, found.cut_shares) == ((40, 50, 60), (0.6, 0.4, 0.2))
    known = described(Column(name="age", kind="numeric", bounds=(0, 45)), cells, ["?"])
    assert (known.bounds, known.cuts) == ((0, 45), (40, 45))


def test_a_text_gets_categories_and_shares() -> None:
    """Categories are those of the sample in their order, or of the dictionary in its own."""
    cells = ["x", "?", "z", "x"]
    found = described(Column(name="kind"), cells, ["?"])
    assert (found.categories, found.category_shares) == (("x", "z"), (0.5, 0.25))
    known = Column(name="kind", kind="categorical", categories=("z", "y"))
    assert described(known, cells, ["?"]).category_shares == (0.25, 0.0)


def test_many_categories_are_cut_to_the_commonest() -> None:
    """What is rarer counts as other anyway."""
    cells = [f"c{index:02}" for index in range(CATEGORIES_MAX + 5) for _ in range(2)] + ["c54"]
    found = described(Column(name="kind"), cells, [])
    assert len(found.categories) == CATEGORIES_MAX
    assert "c54" in found.categories


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (["7"] * 30, ONE_VALUE),
        (["x"] * 30, ONE_VALUE),
        ([str(number) for number in range(100, 160)], OWN_VALUES),
        ([f"name {number}" for number in range(60)], OWN_VALUES),
    ],
)
def test_a_column_that_says_nothing_is_left_out(cells: list[str], why: str) -> None:
    """One value for all, or one for each, makes no feature, and the column says why."""
    assert described(Column(name="id"), cells, []).left_out == why


def test_a_number_by_the_dictionary_has_no_text() -> None:
    """A sample that contradicts the dictionary is refused, by its column."""
    with pytest.raises(ConfigurationError, match='column "age" is numeric'):
        described(Column(name="age", kind="numeric"), ["x"], [])


def test_labels_are_those_of_the_sample() -> None:
    """Two or more, in their order; of a column of numbers without end, none."""
    assert classes_in(["yes", "", "?", "no"], ["?"]) == ("no", "yes")
    assert classes_in(["yes"], []) == ()
    assert classes_in([str(number) for number in range(CLASSES_MAX + 1)], []) == ()


def test_usual_spellings_of_missing_are_found() -> None:
    """A spelling counts where the sample has it, in whichever column."""
    assert missing_in({"a": ["1", "NA"], "b": ["?", "x"]}) == ("?", "NA")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a,b\n", "no row of data"),
        ("", "no row of data"),
        ("a,a\n1,2\n", "names a column twice"),
        ("a,b\n1,2\n1\n", "row 2 has 1 cells"),
        ('a,b\n"1,2\n', "a quote is stray, or never closed"),
        (f"a,b\n{'x' * 140_000},2\n", "has a cell above 131072 characters"),
        ("a,b\n\udcff,2\n", "is not a CSV in UTF-8"),
    ],
)
def test_a_sample_that_is_no_table_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    """The line names the option, and the row where there is one."""
    path = tmp_path / "public.csv"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(ConfigurationError, match=f"^--public: .*{problem}"):
        read_sample(path)
