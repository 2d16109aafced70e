"""A classifier of every learner and every class, learned for real, and rows to compare it on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.field_values import finite_numbers
from app.data.rows import PrivateRows
from app.data.vectors import encode
from app.release.classifier.learner_table import classifier_draw
from app.release.classifier.published_classifier import draw_published
from app.release.classifier.published_scores import PublishedScores
from app.release.terms.configuration import configure
from app.settings.settings import Settings
from tests.builders.release.small_release import seeded_noise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.data.schema import Schema
    from app.data.vectors import Vector
    from app.release.classifier.published_classifier import PublishedClassifier

LEARNED_ROWS: Final = 400
POINT_COUNT: Final = 100
ASKED: Final = 10_000
CLASSES: Final = ("low", "high", "ä\n\"'")
NUMBERS: Final = (
    {"name": "age", "kind": "numeric", "bounds": [-10, 90]},
    {"name": "label", "kind": "numeric", "bounds": [0.0, 0.3]},
    {"name": "far", "kind": "numeric", "bounds": [1e6, 1e6 + 3]},
)
WORK: Final = {"name": "work", "kind": "categorical", "categories": ["Private", "state", "7.5"]}
KINDS: Final = (
    {"name": "member", "kind": "boolean"},
    {"name": "born", "kind": "date", "bounds": ["1969-12-01", "1970-03-01"]},
)
# In days, as vectors and documents have them.
BORN_DAYS: Final = (-31, 59)
TOKENS: Final = ("?", "45.0", "Inf")
CELLS: Final = ["age >= 35", "label >= 0.1", "", "", "work = Private", "", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a release asks of its classifier.

    Attributes:
        classifier: its section.
        class_count: number of labels.
        has_work: whether there is a categorical feature.
        has_kinds: whether there are a boolean and a date, which then say the labels.

    """

    classifier: Mapping[str, object]
    class_count: int = 2
    has_work: bool = True
    has_kinds: bool = False

    @property
    def features(self) -> tuple[Mapping[str, object], ...]:
        """The features, as a configuration lists them."""
        kinds = KINDS if self.has_kinds else ()
        return (*NUMBERS, WORK, *kinds) if self.has_work else NUMBERS


def _drawn(kind: str, **more: object) -> Mapping[str, object]:
    return {"class": kind, "depth": 2, "bins": 4, **more}


# Every row of the table of learners, and of the exponential one every class that a document holds.
LEARNERS: Final[Mapping[str, Asked]] = {
    "thresholds": Asked(
        classifier=_drawn("thresholds", tests={"age": [1.0, 30.5], "far": [], "label": []})
    ),
    "stumps": Asked(classifier=_drawn("stumps")),
    "trees": Asked(classifier=_drawn("trees"), class_count=3),
    "trees-of-kinds": Asked(
        classifier=_drawn("trees", tests={"age": [], "label": [], "far": [], "work": []}),
        has_kinds=True,
    ),
    "linear-of-kinds": Asked(classifier={"learner": "linear", "bins": 4}, has_kinds=True),
    "scored-tree": Asked(classifier=_drawn("trees", learner="scored-tree")),
    "scored-tree-of-three": Asked(
        classifier=_drawn("trees", learner="exponential", wanted="ranking"), class_count=3
    ),
    "cells": Asked(classifier=_drawn("cells", cells=CELLS), class_count=3),
    "intervals": Asked(classifier=_drawn("intervals", tests={"far": [], "label": []})),
    "rectangles": Asked(classifier=_drawn("rectangles", tests={"far": []})),
    "halfspaces": Asked(classifier=_drawn("halfspaces", tests={"far": []}), has_work=False),
    "linear": Asked(classifier={"learner": "linear", "bins": 4}),
    "linear-of-three": Asked(classifier={"learner": "linear", "bins": 4}, class_count=3),
    "kernel": Asked(classifier={"learner": "kernel", "bins": 4}),
    "kernel-of-three": Asked(
        classifier={"learner": "kernel", "bins": 4}, class_count=3, has_work=False
    ),
    "grid": Asked(classifier={"learner": "grid", "tests": {"work": []}}),
    "grid-of-three": Asked(classifier={"learner": "grid"}, class_count=3, has_work=False),
}


@cache
def classifier_of(name: str) -> PublishedClassifier:
    """Learn by its learner from rows whose labels the first two numbers say."""
    asked = LEARNERS[name]
    configuration = configure(_settings(asked))
    schema = configuration.schema
    values = encode(schema, rows_of(asked, LEARNED_ROWS, seed=1))
    age, share = np.nan_to_num(values[:, 0]), np.nan_to_num(values[:, 1])
    labels = (age > 30).astype(np.int64) + (share > 0.15) * (asked.class_count - 2)
    if asked.has_kinds:
        labels = ((values[:, -2] == 1) ^ (values[:, -1] >= 1)).astype(np.int64)
    points = encode(schema, rows_of(asked, POINT_COUNT, seed=2))
    draw = classifier_draw(configuration, points, row_count=LEARNED_ROWS)
    rows = PrivateRows(values=values, labels=labels)
    return draw_published(configuration, draw, rows, seeded_noise(3))


def schema_of(name: str) -> Schema:
    """Return the public schema that a learner's rows are of."""
    return configure(_settings(LEARNERS[name])).schema


def rows_of(asked: Asked, count: int, *, seed: int) -> list[Vector]:
    """Return rows at cuts, at the bounds, next to both, beyond them, missing, other, anywhere."""
    generator = np.random.default_rng(seed)
    columns = [_values(feature, count, generator) for feature in asked.features]
    return list(zip(*columns, strict=True))


def _values(
    feature: Mapping[str, object], count: int, generator: np.random.Generator
) -> Sequence[float | str | None]:
    if feature["kind"] == "boolean":
        return [("false", "true", None)[place] for place in generator.integers(0, 3, count)]
    if feature["kind"] == "date":
        return _numbers(BORN_DAYS, count, generator)
    if feature["kind"] == "categorical":
        return _texts(feature, count, generator)
    return _numbers(feature["bounds"], count, generator)


def _numbers(
    bounds: object, count: int, generator: np.random.Generator
) -> Sequence[float | str | None]:
    lower, upper = np.array(bounds, dtype=np.float64)
    anywhere = generator.uniform(
        lower - 0.2 * (upper - lower), upper + 0.2 * (upper - lower), count
    )
    # Cuts of equal intervals are multiples of a 32nd of the bounds.
    on_a_cut = lower + generator.integers(0, 33, count) / 32 * (upper - lower)
    beside = np.nextafter(on_a_cut, generator.choice([-np.inf, np.inf], count))
    far = generator.choice([-np.inf, np.inf, -0.0, 45.0, 1e300], count)
    found = np.choose(generator.integers(0, 8, count), [on_a_cut, beside, far, *[anywhere] * 5])
    missing = generator.random(count) < 0.03
    return [None if gone else number for number, gone in zip(found.tolist(), missing, strict=True)]


def _texts(
    feature: Mapping[str, object], count: int, generator: np.random.Generator
) -> Sequence[float | str | None]:
    categories = feature["categories"]
    assert isinstance(categories, list)
    known = [*categories, *categories, *categories, "PRIVATE", "other ", "", "?", "45.0", None]
    return [known[place] for place in generator.integers(0, len(known), count)]


def asked_rows(name: str, count: int = ASKED) -> list[Vector]:
    """Return rows for a classifier, none of which it learned from."""
    return rows_of(LEARNERS[name], count, seed=4)


def scores_of(classifier: PublishedClassifier, rows: Sequence[Vector]) -> list[list[int]]:
    """Return the scores that the server predicts by."""
    document = classifier.document
    if document.scores is None:
        return classifier.scores_many(rows)
    scores = PublishedScores(document.scores, features=document.features, missing=document.missing)
    missing = finite_numbers(document.missing)
    is_number = [feature.kind == "numeric" for feature in document.features]
    return [
        scores.scores(
            tuple(
                None if value in missing and number else value
                for value, number in zip(row, is_number, strict=True)
            )
        )
        for row in rows
    ]


def _settings(asked: Asked) -> Settings:
    """Return a release whose whole epsilon is its classifier's."""
    return Settings.read(
        {
            "release": {"name": "embedded"},
            "data": {
                "source": "unused.csv",
                "label": "income",
                "classes": list(CLASSES[: asked.class_count]),
                "missing": list(TOKENS),
                "features": [dict(feature) for feature in asked.features],
            },
            "hypotheses": {"class": "trees"},
            "classifier": dict(asked.classifier),
            "privacy": {"epsilon": 8, "shares": {"relabel": 0, "answers": 0, "classifier": 1}},
            "ledger": {"url": "sqlite:///unused.db"},
        }
    )
