"""What does a release that goes on give, month by month, against releases that end?

Expected: at epsilon 1 a record, 5,000 new rows and 20,000 queries a month, all queries answered
from the month of the quorum on: Adult in 24 cells with a quorum of 6, Skin in 64 with one of 12;
hundreds of answers a month where the quorum is too small, and a few where cells are too fine.

Twenty-four months are played on real rows (Adult's are drawn again) through the code that serves:
noisy counts and labels by ``app/privacy/generations/pooled_labels.py``, learners of one row each by
``app/learning/cells/learners.py``, the table of ``app/privacy/stability/hit_table.py``, hits by
``steps`` of ``app/privacy/stability/mechanism.py``, and joins, charges and retirements by the
ledger's fold.  Left out are the database and HTTP, and with them the replay of vectors: a query is
one of the distinct test vectors, each time a fresh one.

Other labellings than the pooled one are drawn by ``app/privacy/exponential/mechanism.py``.

    python -m benchmarks.living [--plays N] [--months N] [--demand N] [--data NAMES] [--order SEED]
        [--labelling own|inherit|cohort|pooled] [--quorums N ...]
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.cell_tests import read_splits
from app.learning.cells.cell_class import CellClass
from app.learning.cells.learners import fit_cells
from app.ledger.entries import generations as living
from app.ledger.entries.entry_kinds import (
    AnswersReleased2,
    GenerationAppended,
    GenerationRetired,
    GenerationsJoined,
    LabellingDrawn,
    ReleaseOpened,
    SlotsChanged,
    labelling_name,
    slots_name,
)
from app.ledger.entries.generations import Generations
from app.privacy.exponential import mechanism as exponential
from app.privacy.generations import pooled_labels
from app.privacy.stability import mechanism as stability
from app.privacy.stability.hit_table import calibrate
from app.privacy.voting.votes import aggregate
from benchmarks.utility.online_data import loaded, private_rows, test_set
from benchmarks.utility.online_settings import public_cells
from benchmarks.utility.seeded_noise import SeededNoise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.cells.cell_class import CellSplits

    Integers = NDArray[np.int64]

EPSILON: Final = Fraction(1)
DELTA: Final = Fraction(1, 10**6)
LABEL_SHARE: Final = Fraction(1, 10)
LABEL_DELTA: Final = DELTA / 10**6
"""For the weights of a drawn labelling, beside the answers' delta; noisy counts need none."""
ROWS: Final = 5_000
DIGEST: Final = "00" * 32
AHEAD: Final = 4_096
"""Queries that are decided at once, as a batch is."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A data set in public cells, with a cutoff and quorums to play."""

    data: str
    least_share: float
    cutoff: int
    quorums: tuple[int, ...]


SCENES: Final = (
    Scene("adult", 0.03, 20, (3, 4, 6, 12)),
    Scene("skin", 0.012, 5, (3, 6, 8, 12)),
    Scene("skin", 0.0045, 20, (3, 6, 12)),
)


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of all months, by cell, and the test vectors.

    Attributes:
        splits: the public cells.
        cells: of private rows, in the order in which they come.
        labels: of the same rows.
        asked: the cell of each distinct test vector.
        right: test rows of each label in each cell, shape (C, 2).

    """

    splits: CellSplits
    cells: Integers
    labels: Integers
    asked: Integers
    right: Integers


@cache
def rows_of(data: str, least_share: float, months: int, seed: int) -> Rows:
    """Read rows, and draw an order for so many months of them."""
    private, tests = private_rows(data), test_set(data)
    schema = loaded(data, {}).data.public_schema()
    splits = read_splits(schema, public_cells(data, least_share), section="hypotheses")
    cells, asked = splits.places(private.values), splits.places(tests.values)
    generator = np.random.default_rng(seed)
    wanted = months * ROWS
    order = (
        generator.permutation(private.count)[:wanted]
        if private.count >= wanted
        else generator.integers(0, private.count, wanted)
    )
    flat = 2 * asked[tests.place].astype(np.int64) + tests.labels
    right = np.bincount(flat, minlength=2 * splits.cell_count).reshape(-1, 2)
    return Rows(
        splits,
        cells[order].astype(np.int64),
        private.labels[order].astype(np.int64),
        asked.astype(np.int64),
        right.astype(np.int64),
    )


@dataclass(eq=False)
class Life:
    """A release that goes on: its entries' state, its private state, and the noise of both."""

    rows: Rows
    scene: Scene
    quorum: int
    noise: SeededNoise
    labelling: str = "pooled"
    known: Generations = field(default_factory=Generations)
    counts: list[pooled_labels.NoisyCounts] = field(default_factory=list)
    order: list[Integers] = field(default_factory=list)
    votes: list[Integers] = field(default_factory=list)
    drawn: dict[int, Integers] = field(default_factory=dict)
    answered: int = 0

    @property
    def opened(self) -> ReleaseOpened:
        """Return the first entry."""
        answers = EPSILON * (1 - LABEL_SHARE)
        return ReleaseOpened(
            release_id="00" * 16,
            name="living",
            epsilon=str(EPSILON),
            delta=str(DELTA + LABEL_DELTA),
            queries=None,
            cutoff=None,
            parameters={
                living.QUORUM: str(self.quorum),
                living.ACTIVE_MAX: "null",
                living.LABELLING: f'"{self.labelling}"',
                living.TABLE: f"{answers} {DELTA} {self.scene.cutoff}",
            },
            fingerprint=DIGEST,
            private_digests={},
        )

    @property
    def cell_class(self) -> CellClass:
        """Return the class of all labellings."""
        return CellClass(splits=self.rows.splits, class_count=2)

    def append(self, month: int) -> None:
        """Append the month's rows: slots, and labels at a tenth of epsilon where they are due."""
        number, known = month + 1, self.known
        self.order.append(month * ROWS + self.noise.permutation(ROWS))
        shares = {living.ANSWERS: [str(EPSILON * (1 - LABEL_SHARE)), str(DELTA)]}
        if number <= self.drawing:
            shares[living.RELABEL] = [str(EPSILON * LABEL_SHARE), str(LABEL_DELTA)]
        event = GenerationAppended(
            number=number,
            slots=ROWS,
            chunks=ROWS,
            epsilon=str(EPSILON),
            delta=str(DELTA + LABEL_DELTA),
            shares=shares,
            cutoff=self.scene.cutoff,
            joins_at=number,
            fingerprint=DIGEST,
            private_digests={slots_name(number, known.tick): DIGEST},
        )
        self.known = living.appended(known, self.opened, event)
        if self.labelling == "cohort" and number < self.quorum:
            return
        first = 1 if self.labelling == "cohort" and number == self.quorum else number
        for each in range(first, number + 1):
            self._label(each)

    @property
    def drawing(self) -> int:
        """The number of first generations that pay for a draw of labels."""
        return {"inherit": 1, "cohort": self.quorum}.get(self.labelling, 10**6)

    def _label(self, number: int) -> None:
        """Fold a generation's labels, after their draw where one is due."""
        is_shared = self.labelling in ("inherit", "cohort")
        source = 1 if is_shared else number
        if self.labelling == "pooled":
            part = slice((number - 1) * ROWS, number * ROWS)
            draw = pooled_labels.Parameters(
                cell_count=self.rows.splits.cell_count,
                class_count=2,
                slot_count=ROWS,
                epsilon=EPSILON * LABEL_SHARE,
            )
            records = self.rows.cells[part], self.rows.labels[part]
            self.counts.append(pooled_labels.draw(draw, records, self.noise))
        elif source == number:
            members = self.quorum if self.labelling == "cohort" else 1
            self.drawn[number] = self._draw(
                slice((number - 1) * ROWS, (number - 1 + members) * ROWS)
            )
        names = {labelling_name(number): DIGEST} if source == number else {}
        event = LabellingDrawn(number=number, of=source, private_digests=names)
        self.known = living.labelled(self.known, self.opened, event)

    def _draw(self, part: slice) -> Integers:
        """Draw a label for every cell from some rows, by the exponential mechanism."""
        cells, labels = self.rows.cells[part], self.rows.labels[part]
        parameters = exponential.Parameters(
            epsilon=EPSILON * LABEL_SHARE,
            delta_truncation=LABEL_DELTA,
            row_count=len(labels),
            hypotheses=self.cell_class,
        )
        drawn = exponential.draw(parameters, (cells[:, np.newaxis], labels), self.noise)
        every = np.arange(self.rows.splits.cell_count)[:, np.newaxis]
        return np.asarray(drawn.predict(every), dtype=np.int64)

    def tick(self) -> None:
        """Make a tick: the new generation joins, and all are fitted with the labels of now."""
        known = self.known
        pieces = {slots_name(each.number, known.tick + 1): DIGEST for each in known.kept}
        event = SlotsChanged(tick=known.tick + 1, period=known.period + 1, private_digests=pieces)
        known = living.ticked(known, self.opened, event)
        if known.joining:
            joins = GenerationsJoined(numbers=list(known.joining), active=known.active_set + 1)
            known = living.joined(known, joins)
        self.known = known
        if self.labelling == "pooled":
            labels = pooled_labels.running_sum(self.counts).labels()
            self.votes = [self._fitted(order, labels) for order in self.order]
            return
        for each in known.all[len(self.votes) :]:
            if each.labelled_by is not None:
                order = self.order[each.number - 1]
                self.votes.append(self._fitted(order, self.drawn[each.labelled_by]))

    def _fitted(self, order: Integers, cell_labels: Integers) -> Integers:
        """Fit a generation's learners, one a row; return their votes by cell, (C, 2)."""
        cells = self.rows.cells[order]
        fitted = fit_cells(
            encoded=cells[:, np.newaxis],
            labels=cell_labels[cells],
            offsets=np.arange(len(order) + 1),
            hypothesis_class=self.cell_class,
        )
        return fitted._counts  # noqa: SLF001 -- what vote_counts looks up, one row a cell

    def ask(self, cells: Integers) -> list[tuple[int, int]]:
        """Ask queries in order; return the cell and label of each stable answer."""
        given: list[tuple[int, int]] = []
        table = calibrate(
            epsilon=EPSILON * (1 - LABEL_SHARE), delta=DELTA, cutoff=self.scene.cutoff
        )
        given_parameters = stability.Parameters(table.thresholds, self.scene.cutoff)
        while len(cells) and living.may_vote(self.opened, self.known):
            votes = np.sum([self.votes[each.number - 1] for each in self.known.active], axis=0)
            plurality, distance = aggregate(votes)
            state = stability.State(self.known.hits_used)
            _, hits = stability.steps(given_parameters, state, distance[cells[:AHEAD]], self.noise)
            decided = cells[: len(hits)]
            stable = decided[~hits]
            given += zip(stable.tolist(), plurality[stable].tolist(), strict=True)
            self._charge(hits)
            cells = cells[len(hits) :]
        return given

    def _charge(self, hits: NDArray[np.bool_]) -> None:
        """Fold a batch of answers, and the retirements that follow."""
        event = AnswersReleased2(
            first_query_id=self.answered + 1,
            digests=[],
            labels=[],
            stable=(~hits).tolist(),
            active=self.known.active_set,
        )
        self.answered += len(hits)
        known = living.charged(self.known, self.opened, event)
        while known.spent:
            number, active = known.spent[0].number, known.active_set + 1
            retires = GenerationRetired(number=number, reason="cutoff", active=active)
            known = living.retired(known, retires)
        self.known = known


@dataclass(frozen=True, slots=True)
class Played:
    """What a life gave.

    Attributes:
        stable: stable answers of each month.
        accuracy: of stable answers, each vector weighed by its test rows.
        accuracy_of_vectors: the same, where each distinct vector counts once.
        active: generations that vote at the end.

    """

    stable: tuple[int, ...]
    accuracy: float
    accuracy_of_vectors: float
    active: int


def play(
    scene: Scene,
    quorum: int,
    *,
    months: int,
    demand: int,
    seed: int,
    order: int,
    labelling: str = "pooled",
) -> Played:
    """Play a life of so many months, with rows in an order of its own or a common one."""
    rows = rows_of(scene.data, scene.least_share, months, order)
    life = Life(rows, scene, quorum, SeededNoise(seed), labelling)
    queries = np.random.default_rng(seed + 1)
    stable, given = [], []
    for month in range(months):
        life.append(month)
        life.tick()
        asked = rows.asked[queries.integers(0, len(rows.asked), demand)]
        answers = life.ask(asked)
        stable.append(len(answers))
        given += answers
    accuracies = _accuracies(rows, given)
    return Played(tuple(stable), *accuracies, len(life.known.active))


def _accuracies(rows: Rows, given: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Return the accuracy by test rows and by distinct vectors; not a number without answers."""
    if not given:
        return float("nan"), float("nan")
    test_rows = np.maximum(1, rows.right.sum(axis=1))
    vectors = np.maximum(1, np.bincount(rows.asked, minlength=len(test_rows)))
    cells, labels = np.array(given).T
    right = rows.right[cells, labels] / test_rows[cells]
    by_row = float(np.average(right, weights=(test_rows / vectors)[cells]))
    return by_row, float(right.mean())


def main() -> None:
    """Print a table of lives."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plays", type=int, default=20)
    parser.add_argument("--months", type=int, default=24)
    parser.add_argument("--demand", type=int, default=20_000)
    parser.add_argument("--order", type=int, help="seed of one order of rows for all lives")
    parser.add_argument("--data", nargs="+", default=["adult", "skin"])
    parser.add_argument(
        "--labelling", choices=("own", "inherit", "cohort", "pooled"), default="pooled"
    )
    parser.add_argument("--quorums", nargs="+", type=int, help="in place of the table's")
    asked = parser.parse_args()
    print(
        "| data, cells, T | quorum | stable answers a month | months 3, 6, 12, 24"
        " | accuracy by row, by vector | active at the end | processor seconds a life |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for scene in SCENES:
        if scene.data in asked.data:
            for quorum in asked.quorums or scene.quorums:
                print(_line(scene, quorum, asked), flush=True)


def _line(scene: Scene, quorum: int, asked: argparse.Namespace) -> str:
    """Play lives of a scene and write a line of the table."""
    started = time.process_time()
    lives = [
        play(
            scene,
            quorum,
            months=asked.months,
            demand=asked.demand,
            seed=seed,
            order=seed if asked.order is None else asked.order,
            labelling=asked.labelling,
        )
        for seed in range(asked.plays)
    ]
    seconds = (time.process_time() - started) / asked.plays
    stable = np.array([life.stable for life in lives], dtype=float)
    error = stable.mean(axis=1).std(ddof=1) / asked.plays**0.5 if asked.plays > 1 else 0.0
    by_month = stable.mean(axis=0)
    months = [month for month in (3, 6, 12, 24) if month <= asked.months]
    shown = ", ".join(f"{by_month[month - 1]:,.0f}" for month in months)
    answered = [life for life in lives if sum(life.stable)]
    accuracy = np.mean([life.accuracy for life in answered])
    of_vectors = np.mean([life.accuracy_of_vectors for life in answered])
    active = np.mean([life.active for life in lives])
    cells = rows_of(scene.data, scene.least_share, asked.months, 0).splits.cell_count
    return (
        f"| {scene.data}, {cells}, {scene.cutoff} | {quorum} | {stable.mean():,.1f}"
        f" +- {error:.1f} | {shown} | {accuracy:.3f}, {of_vectors:.3f} | {active:.1f}"
        f" | {seconds:.1f} |"
    )


if __name__ == "__main__":
    main()
