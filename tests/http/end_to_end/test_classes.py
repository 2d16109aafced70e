"""Every class of numbers opens, answers, restarts, switches and publishes.

Rows lie evenly in a square and follow a rule of the class exactly.  With 100
learners of 60 rows each, queries far from the rule's borders, 16 of epsilon
for the answers and delta 1e-6, votes are all but unanimous and a query is
unstable with probability below 1e-9, at distance 40 even.  Cells have a learner a row:
the smallest has 720.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.settings.settings import load_settings
from tests.builders.server.serving import Served

if TYPE_CHECKING:
    from pathlib import Path

    from app.settings.settings import Settings

ENSEMBLE_SIZE = 100
ROW_COUNT = 60 * ENSEMBLE_SIZE
LIMIT = 12
TEMPLATE = """\
[release]
name = "square"
[data]
source = "square.csv"
label = "inside"
classes = ["no", "yes"]
missing = ["?"]
[[data.features]]
name = "across"
kind = "numeric"
bounds = [0, 1]
thresholds = [0.25, 0.75]
[[data.features]]
name = "mark"
kind = "categorical"
categories = ["a"]
[[data.features]]
name = "up"
kind = "numeric"
bounds = [0, 1]
thresholds = [0.25, 0.75]
[hypotheses]
class = "{kind}"
{cells}[learner]
rule = "{rule}"
[privacy]
epsilon = 40
delta = 1e-6
[privacy.shares]
relabel = 0.3
answers = 0.4
classifier = 0.3
[answers]
queries = {limit}
cutoff = 3
ensemble = {ensemble}
[server]
port = 0
"""
CELLS = """\
cells = ["across >= 0.25", "", "across >= 0.75", "up >= 0.25", "", "up >= 0.75", "", "", ""]
"""
# By class: who is inside, and some that are far inside or far outside.
FAR_INSIDE = {
    "thresholds": [[0.9, 0.1], [0.95, 0.5]],
    "intervals": [[0.5, 0.1], [0.45, 0.9]],
    "rectangles": [[0.5, 0.5], [0.45, 0.55]],
    "cells": [[0.5, 0.5], [0.45, 0.55]],
    "halfspaces": [[0.9, 0.9], [0.95, 0.85]],
}
FAR_OUTSIDE = {
    "thresholds": [[0.1, 0.9], [0.3, 0.2]],
    "intervals": [[0.05, 0.5], [0.95, 0.4]],
    "rectangles": [[0.05, 0.05], [0.95, 0.5]],
    "cells": [[0.05, 0.05], [0.95, 0.5]],
    "halfspaces": [[0.1, 0.1], [0.2, 0.05]],
}


def is_inside(kind: str, across: float, up: float) -> bool:
    """Return whether a row follows the rule of its class."""
    if kind == "thresholds":
        return across >= 0.75
    if kind == "halfspaces":
        return across + up >= 1.0
    return 0.25 <= across < 0.75 and (kind == "intervals" or 0.25 <= up < 0.75)


def release_of(folder: Path, kind: str, rule: str, *, limit: int = LIMIT) -> Settings:
    """Write rows and a configuration, and return the settings."""
    generator = np.random.default_rng(5)
    lines = ["across,mark,up,inside"]
    for across, up in generator.random((ROW_COUNT, 2)).round(4).tolist():
        lines.append(f"{across},a,{up},{'yes' if is_inside(kind, across, up) else 'no'}")
    (folder / "square.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    path = folder / "conclave.toml"
    text = TEMPLATE.format(kind=kind, rule=rule, limit=limit, **of_class(kind))
    path.write_text(text, encoding="utf-8")
    return load_settings(path, {})


def of_class(kind: str) -> dict[str, object]:
    """Return a learner a row and public cells for those, and the usual ensemble for others."""
    if kind == "cells":
        return {"ensemble": ROW_COUNT, "cells": CELLS}
    return {"ensemble": ENSEMBLE_SIZE, "cells": ""}


def asked(kind: str) -> list[tuple[list[object], str]]:
    """Return as many distinct queries as the ensemble answers, and their labels."""
    places = [(place, "yes") for place in FAR_INSIDE[kind]]
    places += [(place, "no") for place in FAR_OUTSIDE[kind]]
    return [
        ([place[0] + 0.001 * number, "a", place[1]], label)
        for number in range(LIMIT // len(places))
        for place, label in places
    ]


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("thresholds", "canonical"),
        ("intervals", "canonical"),
        ("intervals", "halving"),
        ("rectangles", "canonical"),
        ("rectangles", "halving"),
        ("halfspaces", "canonical"),
    ],
)
def test_a_class_serves_from_the_first_answer_to_its_publication(
    tmp_path: Path, kind: str, rule: str
) -> None:
    """Answers are right before and after a restart, and so is what is published."""
    settings, queries = release_of(tmp_path, kind, rule), asked(kind)
    with Served(settings) as served:
        before = served.stream(vector for vector, _ in queries[: LIMIT // 2])
    with Served(settings) as served:
        replayed = served.stream(vector for vector, _ in queries[: LIMIT // 2])
        assert replayed == [each | {"replayed": True} for each in before]
        after = served.stream(vector for vector, _ in queries[LIMIT // 2 :])
        assert [each["label"] for each in before + after] == [label for _, label in queries]
        assert all(each["stable"] for each in before + after)
        classified = served.stream(vector for vector, _ in queries)
        assert {each["phase"] for each in classified} == {"classifier"}
        assert [each["label"] for each in classified] == [label for _, label in queries]
        assert served.answer([None, "?", None])["phase"] == "classifier"
        document = served.get("/classifier").json()
    assert document["version"] == (2 if kind == "halfspaces" else 1)


def tensors(vectors: list[list[object]]) -> dict[str, object]:
    """Return a batch of the V2 protocol, an input a feature."""
    kinds = {"across": "FP64", "mark": "BYTES", "up": "FP64"}
    columns = zip(kinds.items(), zip(*vectors, strict=True), strict=True)
    inputs = [
        {"name": name, "datatype": kind, "shape": [len(vectors), 1], "data": list(values)}
        for (name, kind), values in columns
    ]
    return {"inputs": inputs}


def test_public_cells_serve_by_the_cell_until_all_are_decided(tmp_path: Path) -> None:
    """By every route a vector of a decided cell gets its answer, and decisions alone count."""
    settings = release_of(tmp_path, "cells", "canonical", limit=5)
    inside, outside = [[0.5, "a", 0.5], [0.45, "a", 0.55]], [[0.05, "a", 0.05], [0.1, "?", 0.9]]
    with Served(settings) as served:
        streamed = served.stream([inside[0], outside[0], inside[1], outside[1]])
        assert [(each["query_id"], each["replayed"]) for each in streamed] == [
            (1, False),
            (2, False),
            (1, True),
            (2, True),
        ]
        assert [each["label"] for each in streamed] == ["yes", "no", "yes", "no"]
        assert served.get("/budget").json()["queries"] == {"answered": 2, "limit": 5, "left": 3}
    with Served(settings) as served:
        again = served.answer([0.3, "a", 0.7])
        assert (again["query_id"], again["label"], again["replayed"]) == (1, "yes", True)
        reply = served.post_json("/v2/models/square/infer", tensors([[0.6, "?", 0.3], outside[0]]))
        outputs = {each["name"]: each["data"] for each in reply["outputs"]}
        assert (outputs["query_id"], outputs["label"]) == ([1, 2], ["yes", "no"])
        batch = served.stream([[0.95, "a", 0.5], [0.9, "a", 0.1], [0.5, "a", 0.1], [0.5, "a", 0.9]])
        assert [each["query_id"] for each in batch] == [3, 3, 4, 5]
        classified = served.answer(inside[0])
        assert (classified["phase"], classified["label"]) == ("classifier", "yes")
