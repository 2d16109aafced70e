"""One trial of a benchmark on data: open a release, ask it a stream, switch, predict."""

from __future__ import annotations

import csv
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.answering.answer_query import QueryAnswerer
from app.answering.queries import Fresh, Query, in_columns
from app.data.vectors import parse_features
from app.ledger.database.recorded_answers import RecordedAnswer
from app.main import open_from_settings
from app.noise.system import SystemNoise
from app.privacy.voting.query_decision import Phase
from app.release.classifier.switch import switch_phase
from app.settings.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from app.data.schema import Schema
    from app.data.vectors import Vector
    from app.release.release import Release

BATCH_QUERIES = 256


@dataclass(frozen=True, slots=True)
class TestRow:
    """A labelled row of the public test file, as a query."""

    vector: Vector
    label: str


@dataclass(frozen=True, slots=True)
class Trial:
    """What one release gave.

    Attributes:
        opening_seconds: from the configuration to a release that answers.
        answered: distinct vectors that got an answer before the ensemble stopped; where a cell is
            decided once, most get the answer of their cell.
        unstable: how many of them were unstable.
        accuracy_first: on the first row of each vector with a stable answer.
        accuracy_rows: on all rows of those vectors.
        switch_seconds: to draw the published classifier; 0 where none was.
        classifier_accuracy: of that on all rows; None where none was.

    """

    opening_seconds: float
    answered: int
    unstable: int
    accuracy_first: float
    accuracy_rows: float
    switch_seconds: float
    classifier_accuracy: float | None


def read_rows(path: Path, schema: Schema) -> list[TestRow]:
    """Read a public, labelled CSV as queries."""
    with path.open(encoding="utf-8", newline="") as file:
        table = csv.DictReader(file)
        return [_row(cells, schema) for cells in table]


def _row(cells: Mapping[str, str], schema: Schema) -> TestRow:
    values: list[object] = []
    for feature in schema.features:
        cell = cells[feature.name]
        is_missing = cell == "" or cell in schema.missing
        is_number = hasattr(feature, "lower") and not is_missing
        values.append(None if is_missing else float(cell) if is_number else cell)
    return TestRow(parse_features(schema, values), cells[schema.label])


def run_trial(
    example: Path, changes: Mapping[str, str], rows: Sequence[TestRow], *, with_switch: bool
) -> Trial:
    """Open a fresh release in a folder of its own and ask it every distinct vector once.

    Args:
        example: the configuration.
        changes: environment variables that beat it.
        rows: in the order in which they are asked.
        with_switch: whether the published classifier is drawn and measured.

    """
    with tempfile.TemporaryDirectory() as folder:
        ledger = f"sqlite:///{Path(folder) / 'ledger.db'}"
        settings = load_settings(example, {**changes, "CONCLAVE_LEDGER__URL": ledger})
        noise = SystemNoise()
        started = time.monotonic()
        release = open_from_settings(settings, noise=noise)
        answerer = QueryAnswerer(release, noise)
        opening_seconds = time.monotonic() - started
        stable, answered = ask_all(answerer, rows)
        started = time.monotonic()
        if with_switch:
            switch_phase(release, noise)
        switch_seconds = time.monotonic() - started if with_switch else 0.0
        trial = Trial(
            opening_seconds=opening_seconds,
            answered=answered,
            unstable=answered - len(stable),
            accuracy_first=_share(stable[row.vector] == row.label for row in _first(rows, stable)),
            accuracy_rows=_share(
                stable[row.vector] == row.label for row in rows if row.vector in stable
            ),
            switch_seconds=switch_seconds,
            classifier_accuracy=_classifier_accuracy(release, rows) if with_switch else None,
        )
        release.ledger.close()
        return trial


def ask_all(answerer: QueryAnswerer, rows: Sequence[TestRow]) -> tuple[dict[Vector, str], int]:
    """Ask until the ensemble stops; return the stable answers' labels, and the number of all."""
    vectors = list(dict.fromkeys(row.vector for row in rows))
    classes = answerer.release.schema.classes
    stable: dict[Vector, str] = {}
    answered = 0
    for start in range(0, len(vectors), BATCH_QUERIES):
        if answerer.phase is not Phase.ENSEMBLE:
            break
        asked = vectors[start : start + BATCH_QUERIES]
        queries = answerer.identify(in_columns([Query(vector) for vector in asked]))
        decisions = answerer.answer_batch(queries)
        for vector, decision in zip(asked, decisions, strict=True):
            answer = decision.recorded if isinstance(decision, Fresh) else decision
            if not isinstance(answer, RecordedAnswer):
                continue
            answered += 1
            if answer.stable and answer.label is not None:
                stable[vector] = classes[answer.label]
    return stable, answered


def _first(rows: Sequence[TestRow], stable: Mapping[Vector, str]) -> list[TestRow]:
    """Return the first row of each vector with a stable answer."""
    first: dict[Vector, TestRow] = {}
    for row in rows:
        if row.vector in stable:
            first.setdefault(row.vector, row)
    return list(first.values())


def _classifier_accuracy(release: Release, rows: Sequence[TestRow]) -> float | None:
    """Return how many rows the published classifier labels right."""
    classifier = release.classifier
    if classifier is None:
        return None
    return _share(classifier.predict(row.vector) == row.label for row in rows)


def _share(outcomes: Iterable[bool]) -> float:
    """Return the share of what is true; 0 of nothing."""
    listed = list(outcomes)
    return sum(listed) / len(listed) if listed else 0.0
