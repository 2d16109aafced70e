"""A statistics table over rows of persons: means over persons, of each over the person's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.rows import PrivateRows
from app.release.progress import no_progress
from app.release.statistics.opening_table import open_at_once
from app.release.statistics.released_table import released_table
from app.release.statistics.statistics_table import statistics_draw
from tests.builders.release.rows_of_persons import of_persons, rows_of
from tests.builders.release.small_release import SmallRelease, seeded_noise

if TYPE_CHECKING:
    from pathlib import Path

    from app.release.statistics.released_table import StatisticsDocument

PERSON_COUNT = 60
ONE_EACH = [1] * PERSON_COUNT
POINTS = np.array([[-40.0, 0.0], [-10.0, 1.0], [10.0, 2.0], [40.0, 3.0]])
ALONE = {
    "privacy__shares__relabel": "0",
    "privacy__shares__answers": "0",
    "privacy__shares__classifier": "0",
    "privacy__shares__statistics": "1",
}


def opened(small: SmallRelease, rows: PrivateRows) -> tuple[StatisticsDocument, str]:
    """Return the table that one seed draws, and what its operator is told before."""
    told: list[str] = []
    ledger = small.ledger()
    state = open_at_once(
        small.configuration(),
        ledger=ledger,
        rows=rows,
        public_values=POINTS,
        noise=seeded_noise(6),
        progress=no_progress,
        tell=told.append,
    )
    document = released_table(state, ledger, small.configuration().schema).document
    ledger.close()
    return document, told[0]


def tables(folder: Path, *rows: PrivateRows) -> list[StatisticsDocument]:
    """Return the tables of data sets, by rows where they name no persons."""
    found = []
    for number, given in enumerate(rows):
        (folder / str(number)).mkdir()
        small = of_persons if given.persons is not None else _by_rows
        found.append(opened(small(folder / str(number), **ALONE), given)[0])
    return found


def _by_rows(folder: Path, **changes: str) -> SmallRelease:
    return SmallRelease(folder, changes)


def test_one_row_a_person_is_a_table_of_rows(tmp_path: Path) -> None:
    """From one seed the documents are the same."""
    rows = rows_of(ONE_EACH)
    plain = PrivateRows(values=rows.values, labels=rows.labels)
    by_persons, by_rows = tables(tmp_path, rows, plain)
    assert by_persons == by_rows
    assert by_persons.row_count == PERSON_COUNT


def test_copies_of_a_row_are_one(tmp_path: Path) -> None:
    """A person with eight copies of a row counts as with one."""
    few, many = tables(tmp_path, rows_of(ONE_EACH), rows_of([8, *ONE_EACH[1:]]))
    assert few == many


def test_a_table_is_of_persons(tmp_path: Path) -> None:
    """Of a person with two rows on either side of a cut, half a person is on each."""
    rows = rows_of([2] * 1000)
    values = rows.values.copy()
    values[::2, 0], values[1::2, 0] = -30, 30
    values[:500, 0] = 30  # a quarter of the persons have both on one side
    given = PrivateRows(values=values, labels=rows.labels, persons=rows.persons)
    document, told = opened(of_persons(tmp_path, **ALONE), given)
    assert document.row_count == 1000
    assert " on 1000 persons" in told
    # Margins of 30 are a half and an eighth of what all count for: 625 persons.
    assert min(abs(count - 625) for count in document.counts) <= 5
    assert max(document.counts) <= 1000


@pytest.mark.parametrize("count", [1, 50])
def test_a_person_of_any_number_of_rows_moves_a_count_by_one(tmp_path: Path, count: int) -> None:
    """All rows of one, on the other side of every cut, are one person more there."""
    small = of_persons(tmp_path, **ALONE)
    rows = rows_of([count, *ONE_EACH[1:]])
    moved = rows.values.copy()
    moved[:count, 0] = 45.0
    one, other = (
        _counted(small, PrivateRows(values=values, labels=rows.labels, persons=rows.persons))
        for values in (rows.values, moved)
    )
    assert np.abs(one - other).max() <= 1 + 1e-9


def _counted(small: SmallRelease, rows: PrivateRows) -> np.ndarray:
    """Return what is counted of every query, before it is rounded."""
    draw = statistics_draw(small.configuration(), POINTS, row_count=rows.count)
    cells = draw.domain.private_count_at(draw.grid.places(rows.values), rows.weights)
    return np.asarray(draw.domain.labels.astype(np.float64) @ cells)
