"""How many rows a person has shows in no reply, header, metric, log, page, error or entry.

Two data sets differ only in how many copies of a row one person has: one, or eight, whose
weights add up to the same.  From scripted noise everything that comes out of the two lives is
equal, but for hashes and keyed digests.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Final

import pytest

from app.release import opening, streaming
from tests.lives.catalogue import CELLS, Life
from tests.lives.configurations import FEATURES, merged, toml_of
from tests.lives.people import COLUMNS, people
from tests.lives.plays import played
from tests.lives.records import first_difference
from tests.lives.script import scripted
from tests.lives.stage import Stage

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lives.configurations import Tables

PERSON_COUNT: Final = 300
ROW_COUNT: Final = 600
COPIED: Final = 7
COPIES: Final = 8
MARK: Final = "zephyrine"
KEYED: Final = re.compile(rb"\b[0-9a-f]{16,}\b")
PLACES: Final = re.compile(rb"(content-length|etag): \S+")
# Rounded toward zero, the residuals of eight copies add up to eight parts in 2^20 less at most.
LAST_DIGITS: Final = re.compile(rb"((?:weights|intercepts)\\*\":\[)[-\d,\[\]]*")
AS_ONNX: Final = b"onnx"
LINEAR: Final = "a linear score"
KINDS: Final[dict[str, Tables]] = {
    "trees": {},
    "cells, a learner each": {
        "hypotheses": {"class": "cells", "cells": CELLS, "depth": None},
        "classifier": {"class": "stumps"},
        "answers": {"ensemble": "auto"},
    },
    "a sample, then a student": {
        "privacy": {"sampling": 0.5},
        "privacy.shares": {"classifier": 0},
        "answers": {"ensemble": 30, "after": "student", "on_cutoff": "student"},
    },
    "a grid, and statistics": {
        "privacy.shares": {"answers": 0.3, "statistics": 0.2},
        "classifier": {"learner": "grid", "tests": {"group": []}},
    },
    LINEAR: {"classifier": {"learner": "linear"}},
}
STREAMED: Final = ("trees", "a grid, and statistics")


def lived(folder: Path, *, copies: int, changes: Tables) -> list[tuple[str, bytes]]:
    """Return all that comes out of a release in which one row is there so often."""
    folder.mkdir()
    tables = merged(changes)
    data = {"source": "rows.csv", "person": "who", "persons": PERSON_COUNT}
    tables["data"] = {**data, **tables["data"], "features": FEATURES}
    rows = people("step", ("no", "yes"), ROW_COUNT)
    with (folder / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow((*COLUMNS, "who"))
        for place, row in enumerate(rows):
            # The person who is copied has but that row.
            who = COPIED if place == COPIED else place % PERSON_COUNT
            if place != COPIED + PERSON_COUNT:
                cells = ["" if value is None else value for value in (*row, f"{MARK}-{who}")]
                writer.writerows([cells] * (copies if place == COPIED else 1))
    stage = Stage(folder, f"sqlite:///{folder / 'conclave.db'}")
    stage.config.write_text(toml_of(tables), encoding="utf-8")
    with scripted("persons"):
        played(Life("persons", (changes,)), stage)
    return [(name, PLACES.sub(b"", KEYED.sub(b"...", said))) for name, said in stage.items]


def shown(items: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Leave out the database and its head file, which hold private state and hashes alone."""
    return [item for item in items if not item[0].startswith(("ledger ", "head file "))]


def but_for_weights(items: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Leave out the weights of a linear score, as numbers and as a model of them."""
    return [
        (name, AS_ONNX if AS_ONNX in said else LAST_DIGITS.sub(rb"\1", said))
        for name, said in shown(items)
    ]


@pytest.mark.parametrize("case", [*KINDS, *(f"{kind}, streamed" for kind in STREAMED)])
def test_copies_of_a_row_show_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """And no identifier is anywhere, the database included; whether rows stream or not."""
    kind = case.removesuffix(", streamed")
    streams = kind != case
    monkeypatch.setattr(streaming, "ROWS_MIN", PERSON_COUNT + (not streams))
    lives = [
        lived(tmp_path / name, copies=copies, changes=KINDS[kind])
        for name, copies in (("one", 1), ("more", COPIES))
    ]
    compared = but_for_weights if kind == LINEAR else shown
    assert first_difference(*map(compared, lives)) is None
    said = b"".join(said for _, said in lives[0])
    assert said.count(b'"unit":"person"') > 1
    assert (b'"data.fingerprint":"row sums"' in said) == streams
    assert b'"stable":true' in said
    for items in lives:
        assert not [name for name, each in items if MARK.encode() in name.encode() + each]


def test_a_number_of_rows_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: the first entry has the number of rows beside that of persons."""
    lives = []
    for name, copies in (("one", 1), ("more", COPIES)):
        told = {"data.rows": str(ROW_COUNT - 2 + copies), "data.persons": str(PERSON_COUNT)}
        with monkeypatch.context() as planted:
            planted.setattr(opening, "count_parameter", lambda *_, told=told: told)
            planted.setattr(opening, "opened_count", lambda _: PERSON_COUNT)
            lives.append(lived(tmp_path / name, copies=copies, changes={}))
    assert first_difference(*map(shown, lives)) is not None
