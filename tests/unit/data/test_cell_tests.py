"""Public cells in words: what is read, and one line for what is not."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.cell_tests import read_splits
from app.data.schema import CategoricalFeature, NumericFeature, Schema
from app.data.vectors import encode
from app.errors import ConfigurationError
from examples import public_cells

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = Schema(
    label="answer",
    classes=("no", "yes"),
    features=(
        NumericFeature(name="age", lower=0.0, upper=99.0),
        CategoricalFeature(name="age group", categories=("young", "a = b")),
    ),
    missing=("?",),
)
CELLS = ["age >= 40", "age group = a = b", "", "", "age >= 60.5", "", "age group = ?", "", ""]

IN_WORDS = (
    'cells[0]: must be "feature >= number" of a number, "feature >= date" of a date, '
    '"feature = category", or "" for a cell'
)


def test_a_list_is_read_from_the_root_down() -> None:
    """False sides come first; names and categories may hold what parts tests."""
    splits = read_splits(SCHEMA, CELLS, section="hypotheses")
    vectors = [(20.0, "young"), (20.0, "a = b"), (None, "a = b"), (50.0, None), (70.0, "young")]
    assert splits.places(encode(SCHEMA, [*vectors, (70.0, "?")])).tolist() == [0, 1, 1, 2, 3, 4]


def test_one_empty_text_is_one_cell() -> None:
    """It is the smallest partition there is."""
    assert read_splits(SCHEMA, [""], section="hypotheses").cell_count == 1


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        (["age >= 40", ""], "cells: ends before every test has both of its sides"),
        ([], "cells: ends before every test has both of its sides"),
        (["", ""], "cells[1]: follows the last side of the last test"),
        (["age = 40", "", ""], IN_WORDS),
        (["age >= old", "", ""], IN_WORDS),
        (["age >= 0", "", ""], "cells[0]: must cut between the bounds of the feature"),
        (["age >= nan", "", ""], "cells[0]: must cut between the bounds of the feature"),
        (["age >= 40", "age group = old", "", "", ""],
         "cells[1]: names no category of the feature"),
    ],
)  # fmt: skip
def test_what_is_no_partition_is_named(written: list[str], problem: str) -> None:
    """The line names the section, the entry and what is wrong with it."""
    with pytest.raises(ConfigurationError) as refused:
        read_splits(SCHEMA, written, section="classifier")
    assert str(refused.value) == f"classifier.{problem}"


def public_file(folder: Path) -> Path:
    """Write 400 rows, evenly over two numbers."""
    lines = [f"{x},{y},no" for x, y in product(range(20), range(20))]
    path = folder / "public.csv"
    path.write_text("\n".join(["x,y,answer", *lines]) + "\n", encoding="utf-8")
    return path


def test_public_rows_give_cells_in_order(tmp_path: Path) -> None:
    """A test is asked where both sides are heavy enough, and passed over elsewhere."""
    rows = public_cells.public_rows(public_file(tmp_path), count=400)
    tests = ["x >= 10", "y >= 2", "x >= 15"]
    found = public_cells.cells_in_order(rows, tests, least_share=0.1)
    assert found == ["x >= 10", "", "x >= 15", "", ""]
    assert public_cells.cells_in_order(rows, tests, least_share=0.6) == [""]


def test_public_rows_give_cells_at_medians(tmp_path: Path) -> None:
    """Cells of a seventh or more of the rows: quarters, as eighths are too light."""
    arguments = [
        str(public_file(tmp_path)),
        "--least-share",
        "0.14",
        "--bounds",
        "x=0:20",
        "y=0:20",
    ]
    text = public_cells.main(arguments)
    assert text == 'cells = [\n    "x >= 10",\n' + (
        '    "y >= 10",\n    "",\n    "",\n' * 2 + "]\n"
    )


def test_printed_cells_are_read(tmp_path: Path) -> None:
    """What the example prints parts rows as it was told to."""
    schema = Schema(
        label="answer",
        classes=("no", "yes"),
        features=tuple(NumericFeature(name=name, lower=0.0, upper=20.0) for name in "xy"),
    )
    rows = public_cells.public_rows(public_file(tmp_path), count=400)
    cells = public_cells.cells_by_medians(rows, dict.fromkeys("xy", (0.0, 20.0)), least_share=0.05)
    splits = read_splits(schema, cells, section="hypotheses")
    values = np.array([[float(row["x"]), float(row["y"])] for row in rows])
    counts = np.bincount(splits.places(values), minlength=splits.cell_count)
    assert splits.cell_count >= 8
    assert counts.min() >= 20
