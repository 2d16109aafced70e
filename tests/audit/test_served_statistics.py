"""The statistics table as it is served: what reaches the mechanism, when, and what comes out.

The mechanism itself is audited in ``test_query_release``.  Here the service's own path
is played on neighbours, and beside it four faults that must be caught: counts that move
by two, a domain of the occupied cells, a charge after the draw, a table in the middle.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from app.data.rows import PrivateRows
from app.errors import InvariantError
from app.privacy.multiplicative_weights import mechanism as multiplicative_weights
from app.release.statistics import opening_table as module
from app.release.statistics.opening_table import (
    draw_after_answers,
    open_statistics,
    table_of,
)
from app.release.statistics.released_table import drawn_statistics
from app.release.statistics.statistics_table import StatisticsDraw, statistics_draw
from tests.builders.release.small_release import (
    STABLE,
    SmallRelease,
    ask,
    private_rows,
    seeded_noise,
)
from tests.unit.release.statistics.test_statistics import MARGINS, POINTS, SHARES, answered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from app.ledger.entries.fold import LedgerState
    from app.noise.source import NoiseSource
    from app.privacy.multiplicative_weights.mechanism import Parameters, Table
    from app.release.release import Release

    Draw = Callable[[StatisticsDraw, PrivateRows, NoiseSource], Table]
    Opening = Callable[[Release, NoiseSource], None]

pytestmark = pytest.mark.audit

ROW_COUNT = 40


# --- What reaches the mechanism -----------------------------------------------------


@dataclass(frozen=True)
class Handed:
    """What the service gave the mechanism for some rows."""

    parameters: Parameters
    private_cell_count: NDArray[np.int64]

    @property
    def counts(self) -> NDArray[np.int64]:
        """The count of every query."""
        return self.parameters.labels.astype(np.int64) @ self.private_cell_count


def as_printed(draw: StatisticsDraw, rows: PrivateRows, noise: NoiseSource) -> Table:
    """Plant queries of -1 and +1: a row weighs two."""
    cells = 2 * draw.domain.private_count_at(draw.grid.places(rows.values))
    calibration = replace(draw.calibration, row_count=2 * draw.calibration.row_count)
    return multiplicative_weights.draw(
        multiplicative_weights.Parameters.calibrated(calibration, draw.domain.labels), cells, noise
    )


def on_occupied_cells(draw: StatisticsDraw, rows: PrivateRows, noise: NoiseSource) -> Table:
    """Plant a domain of the cells that rows lie in."""
    cells = draw.domain.private_count_at(draw.grid.places(rows.values))
    labels = np.ascontiguousarray(draw.domain.labels[:, cells > 0])
    calibration = replace(draw.calibration, cell_count=labels.shape[1])
    return multiplicative_weights.draw(
        multiplicative_weights.Parameters.calibrated(calibration, labels), cells[cells > 0], noise
    )


@pytest.fixture
def handed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Handed]:
    """Return what plays a draw on rows, faithfully or not, and keeps what was handed over."""
    release = SmallRelease(tmp_path, SHARES)
    public = statistics_draw(release.configuration(), POINTS, row_count=ROW_COUNT)
    seen: list[Handed] = []
    original = multiplicative_weights.draw

    def watch(parameters: Parameters, cells: NDArray[np.int64], noise: NoiseSource) -> Table:
        seen.append(Handed(parameters, cells))
        return original(parameters, cells, noise)

    monkeypatch.setattr(multiplicative_weights, "draw", watch)

    def play(rows: PrivateRows, draw: Draw = StatisticsDraw.draw) -> Handed:
        draw(public, rows, seeded_noise(1))
        return seen[-1]

    return play


def neighbors() -> list[tuple[PrivateRows, PrivateRows]]:
    """Return pairs in which one row is replaced: near, far, missing, into an empty cell."""
    drawn = private_rows(ROW_COUNT)
    near = np.stack([np.minimum(drawn.values[:, 0], 24.0), drawn.values[:, 1]], axis=1)
    rows = PrivateRows(values=near, labels=drawn.labels)
    pairs = []
    for values in ([49.0, 0.0], [math.nan, 3.0], [-49.0, 1.0], [0.0, 2.0], [25.0, 0.0]):
        other = rows.values.copy()
        other[7] = values
        pairs.append((rows, PrivateRows(values=other, labels=rows.labels)))
    return pairs


def holds(play: Callable[..., Handed], draw: Draw) -> bool:
    """Whether one row moves each count by at most one, and nothing else at all."""
    for one, other in neighbors():
        left, right = play(one, draw), play(other, draw)
        if not np.array_equal(left.parameters.labels, right.parameters.labels):
            return False
        if left.parameters.test != right.parameters.test:
            return False
        if np.abs(left.counts - right.counts).max() > 1:
            return False
    return True


def test_one_row_moves_what_the_service_counts_by_one(handed: Callable[..., Handed]) -> None:
    """Queries are (1 + h)/2 over all cells of the public space, whatever the rows."""
    assert holds(handed, StatisticsDraw.draw)


@pytest.mark.parametrize("fault", [as_printed, on_occupied_cells])
def test_planted_counts_and_cells_are_caught(handed: Callable[..., Handed], fault: Draw) -> None:
    """A row that counts twice, and cells that show where rows are."""
    assert not holds(handed, fault)


# --- When rows are read ---------------------------------------------------------------


class WatchedRows:
    """Rows that note the ledger's state whenever their values are read."""

    def __init__(self, rows: PrivateRows, release: SmallRelease) -> None:
        """Watch these rows."""
        self._rows, self._release = rows, release
        self.count, self.labels, self.weights = rows.count, rows.labels, rows.weights
        self.states: list[LedgerState] = []

    @property
    def values(self) -> NDArray[np.float64]:
        """The values, and a note."""
        self.states.append(self._release.ledger().read_state())
        return self._rows.values


def charged_after(release: Release, noise: NoiseSource) -> None:
    """Plant a draw whose charge follows."""
    drawn = draw_after_answers(release, noise)
    publication = table_of(release.configuration, release.ledger)
    publication.charge()
    publication.publish(drawn)


def reads_are_charged(release: SmallRelease, opening: Opening) -> bool:
    """Open the table, and say whether the charge was committed at every reading of a row."""
    given = answered(release)
    assert isinstance(given.private_rows, PrivateRows)
    watched: Any = WatchedRows(given.private_rows, release)
    given.private_rows = watched
    opening(given, seeded_noise(5))
    assert watched.states
    return all(state.charge_of("statistics") is not None for state in watched.states)


def test_the_charge_is_committed_before_a_row_is_read(tmp_path: Path) -> None:
    """As the server opens the table."""
    assert reads_are_charged(SmallRelease(tmp_path, SHARES), open_statistics)


def test_a_charge_after_the_draw_is_caught(tmp_path: Path) -> None:
    """By the state of the ledger when the rows are read."""
    assert not reads_are_charged(SmallRelease(tmp_path, SHARES), charged_after)


def test_a_table_that_was_never_charged_is_refused_by_the_ledger(tmp_path: Path) -> None:
    """Whoever forgets the charge cannot publish."""
    release = answered(SmallRelease(tmp_path, SHARES))
    drawn = draw_after_answers(release, seeded_noise(5))
    with pytest.raises(InvariantError, match="before the charge of statistics"):
        table_of(release.configuration, release.ledger).publish(drawn)


def test_a_table_in_the_middle_is_refused_by_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the service's own check planted away, neither charge nor table is taken."""
    release = SmallRelease(tmp_path, SHARES)
    answerer = release.answerer([STABLE] * 4)
    answerer.answer_batch([ask(margin) for margin in MARGINS[:2]])
    monkeypatch.setattr(module, "_refuse_between", lambda _: None)
    with pytest.raises(InvariantError, match="first answer and before its last"):
        open_statistics(answerer.release, seeded_noise(5))
    assert release.ledger().read_state().charge_of("statistics") is None


# --- What comes out --------------------------------------------------------------------

DRAWS = 200
BETA = 0.3
# Failures beyond this many of 200 have a probability below 1e-6 where each has 0.3: by
# Hoeffding exp(-2 * 200 * t^2) with t = 0.186.
FAILURES_MAX = math.floor(DRAWS * (BETA + 0.186))


def failures(folder: Path, *, promised: float) -> int:
    """Count draws in which some value is further off than a part of alpha/2."""
    changes = SHARES | {"privacy__epsilon": "2", "answers__beta": str(BETA)}
    configuration = SmallRelease(folder, changes).configuration()
    rows = private_rows(4000)
    draw = statistics_draw(configuration, rows.values[:200], row_count=rows.count)
    cells = draw.domain.private_count_at(draw.grid.places(rows.values))
    exact = 2 * (draw.domain.labels.astype(np.int64) @ cells) / rows.count - 1
    noise, count = seeded_noise(11), 0
    for _ in range(DRAWS):
        table = draw.draw(rows, noise)
        alpha = _alpha(drawn_statistics(configuration, draw, table, POINTS).document)
        assert alpha < 2
        values = [float(table.expectation(index)) for index in range(len(exact))]
        count += bool(np.abs(np.array(values) - exact).max() > promised * alpha / 2)
    return count


def _alpha(document: str) -> float:
    return float(json.loads(document)["alpha"])


def test_values_stay_within_alpha_as_often_as_promised(tmp_path: Path) -> None:
    """Of many tables no more fail than beta allows."""
    assert failures(tmp_path, promised=1.0) <= FAILURES_MAX


def test_a_promise_of_an_eighth_is_caught(tmp_path: Path) -> None:
    """The same count has the power to see an alpha that is far too small."""
    assert failures(tmp_path, promised=0.125) > FAILURES_MAX
