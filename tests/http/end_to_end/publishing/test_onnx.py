"""A served classifier and its ONNX model label ten thousand rows alike.

Every release spends its whole budget on the classifier, which `conclave learn`
publishes and a server serves from the first query.  The first rows of a data set
are enough to learn from.  Rows to label are those of its test set or of a square;
every sixth value is replaced by one that a careless exporter would get wrong: on a
cut or a bound, the next double beside it, far outside, missing, or an unknown string.
"""

from __future__ import annotations

import csv
import itertools
import math
import os
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest

from app.cli import run
from app.release.classifier.classifier_document import read_document
from app.release.classifier.onnx.onnx_model import FITTED
from app.release.classifier.published_classifier import PublishedClassifier
from app.settings.settings import load_settings
from tests.builders.release.onnx_models import labels_of
from tests.builders.server.http_release import agreed
from tests.builders.server.serving import Served
from tests.http.end_to_end.publishing.test_student import AFTER, ESTIMATORS, LIMIT, SHARES
from tests.http.end_to_end.test_classes import TEMPLATE, is_inside

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from app.data.vectors import Vector
    from app.release.classifier.classifier_document import ClassifierDocument, NodeDocument
    from tests.http.end_to_end.conftest import OpenedRelease

ROW_COUNT = 10_000
PRIVATE_ROW_COUNT = 2000
REPLACED_SHARE = 1 / 6
ONLY_CLASSIFIER = {
    "CONCLAVE_PRIVACY__SHARES__RELABEL": "0",
    "CONCLAVE_PRIVACY__SHARES__ANSWERS": "0",
    "CONCLAVE_PRIVACY__SHARES__CLASSIFIER": "1",
}


@pytest.fixture(autouse=True)
def only_classifier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the classifier the whole budget."""
    for name, value in ONLY_CLASSIFIER.items():
        monkeypatch.setenv(name, value)


def check_model(config: Path, rows: Sequence[Vector]) -> None:
    """Publish and serve, and compare what server, document and model say, row by row."""
    target = config.parent / "published"
    options = ["--config", str(config), "-o", str(target)]
    assert run(["learn", *options]) == 0
    with Served(load_settings(config, os.environ)) as served:
        document = read_document(served.get("/classifier").content)
        reply = served.get("/classifier", headers={"Accept": "application/onnx"})
        assert reply.headers["content-type"] == "application/onnx"
        asked = with_edges(document, rows)
        answers = [answer["label"] for answer in served.stream(asked)]
    assert len(answers) == ROW_COUNT
    assert set(answers) == set(document.classes)
    assert labels_of(reply.content, document, asked) == answers
    published = PublishedClassifier(document, b"")
    assert [published.predict(row) for row in asked] == answers
    assert run(["export", *options, "--format", "onnx"]) == 0
    assert target.read_bytes() == reply.content


def with_edges(document: ClassifierDocument, rows: Sequence[Vector]) -> list[Vector]:
    """Return the first ten thousand of endless rows, some of their values replaced."""
    generator = np.random.default_rng(11)
    edges = [_edges(document, index) for index in range(len(document.features))]
    replaced = generator.random((ROW_COUNT, len(edges))) < REPLACED_SHARE
    return [
        tuple(
            edges[index][generator.integers(len(edges[index]))]
            if replaced[number, index]
            else value
            for index, value in enumerate(row)
        )
        for number, row in enumerate(itertools.islice(itertools.cycle(rows), ROW_COUNT))
    ]


def _edges(document: ClassifierDocument, index: int) -> list[float | str | None]:
    """Return the values of a feature at which a mistake would show."""
    feature = document.features[index]
    if feature.bounds is None:
        return [*(feature.categories or ()), *document.missing, None, "", "unknown", "Ünbekannt"]
    exact = {*feature.bounds, *_cuts(document.tree, index), 0.0}
    beside = {math.nextafter(value, way) for value in exact for way in (-math.inf, math.inf)}
    return [*sorted(exact | beside), -0.0, 1e300, -1e300, None]


def _cuts(node: NodeDocument | None, feature: int) -> set[float]:
    if node is None or node.label is not None:
        return set()
    own = {node.at_least} if node.feature == feature and node.at_least is not None else set()
    return own | _cuts(node.true, feature) | _cuts(node.false, feature)


@pytest.fixture
def example(
    repository: Path, data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], tuple[Path, list[Vector]]]:
    """Return what puts an example into a folder of its own, and reads its test rows."""

    def prepare(name: str) -> tuple[Path, list[Vector]]:
        config = tmp_path / "conclave.toml"
        config.write_bytes((repository / "examples" / f"{name}.toml").read_bytes())
        monkeypatch.setenv("CONCLAVE_DATA__ROWS", str(PRIVATE_ROW_COUNT))
        with (data_folder / name / "train.csv").open(encoding="utf-8") as file:
            lines = list(itertools.islice(file, PRIVATE_ROW_COUNT + 1))
        (tmp_path / "train.csv").write_text("".join(lines), encoding="utf-8")
        features = load_settings(config, os.environ).data.features
        with (data_folder / name / "test.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return config, [
            tuple(_value(row[each.name], is_number=each.kind == "numeric") for each in features)
            for row in rows
        ]

    return prepare


def _value(cell: str, *, is_number: bool) -> float | str | None:
    if is_number:
        return float(cell) if cell else None
    return cell


@pytest.mark.data
@pytest.mark.parametrize("depth", ["2", "4"])
def test_mixed_features_are_labelled_alike(
    example: Callable[[str], tuple[Path, list[Vector]]],
    depth: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Adult: numbers and strings, missing and unknown ones, in trees of 2 and 4 levels."""
    config, rows = example("adult")
    monkeypatch.setenv("CONCLAVE_CLASSIFIER__DEPTH", depth)
    monkeypatch.setenv("CONCLAVE_CLASSIFIER__BINS", "4")
    check_model(config, rows)


@pytest.mark.data
def test_numbers_alone_are_labelled_alike(
    example: Callable[[str], tuple[Path, list[Vector]]],
) -> None:
    """Skin: three numbers, which a model takes as one matrix."""
    config, rows = example("skin")
    check_model(config, rows)


@pytest.mark.parametrize("kind", ["intervals", "rectangles", "halfspaces"])
def test_boxes_and_halfspaces_are_labelled_alike(tmp_path: Path, kind: str) -> None:
    """Boxes and halfspaces beside a string that they do not look at."""
    generator = np.random.default_rng(5)
    points: list[Any] = generator.random((3000, 2)).round(4).tolist()
    lines = [
        f"{across},a,{up},{'yes' if is_inside(kind, across, up) else 'no'}" for across, up in points
    ]
    header = "across,mark,up,inside"
    (tmp_path / "square.csv").write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    config = tmp_path / "conclave.toml"
    text = TEMPLATE.format(kind=kind, rule="canonical", limit=12, ensemble=30, cells="")
    config.write_text(text, encoding="utf-8")
    check_model(config, [(across, "a", up) for across, up in points])


@pytest.mark.parametrize("kind", ["rule", "neighbors"])
def test_a_student_has_a_model_where_a_rule_made_it(opened: OpenedRelease, kind: str) -> None:
    """A rule's student is a tree and labels as its model; an estimator's is refused as one."""
    release = opened(answers=AFTER, shares=SHARES, student=ESTIMATORS[kind])
    vectors: list[Vector] = [(float(age), "common") for age in range(-5, 120, 5)]
    with Served(release.settings()) as served:
        served.stream(agreed(number) for number in range(LIMIT))
        answers = [answer["label"] for answer in served.stream(vectors)]
        document = read_document(served.get("/classifier").content)
        reply = served.get("/classifier", headers={"Accept": "application/onnx"})
    if kind == "rule":
        assert labels_of(reply.content, document, vectors) == answers
    else:
        assert reply.status_code == httpx.codes.NOT_ACCEPTABLE
        assert reply.json()["detail"] == FITTED
