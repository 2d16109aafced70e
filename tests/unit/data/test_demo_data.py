"""The embedded demo is what the README says, and the same everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from app.data.demo_data import (
    DEMO_CLASSES,
    concept_labels,
    demo_queries,
    demo_rows,
)
from app.data.vectors import encode, parse_features
from app.settings.settings import demo_settings


def test_the_rows_follow_the_concept_with_a_tenth_flipped() -> None:
    """200,000 rows of eight features in [0, 1]; one label in ten is not the concept's."""
    rows = demo_rows()
    assert rows.values.shape == (200_000, 8)
    assert rows.values.min() >= 0.0
    assert rows.values.max() <= 1.0
    flipped = (concept_labels(rows.values) != rows.labels).mean()
    # Ten standard deviations of a mean of 200,000 coins.
    assert flipped == pytest.approx(0.1, abs=0.007)


@pytest.mark.parametrize(
    ("x0", "x1", "x2", "x3", "label"),
    [
        (0.47, 0.3, 0.0, 0.0, 1),
        (0.47, 0.29, 0.55, 0.0, 1),
        (0.47, 0.29, 0.54, 0.9, 0),
        (0.46, 0.9, 0.9, 0.79, 0),
        (0.46, 0.0, 0.55, 0.8, 1),
        (0.46, 0.0, 0.54, 0.8, 0),
    ],
)
def test_the_concept_is_the_documented_tree(
    x0: float, x1: float, x2: float, x3: float, label: int
) -> None:
    """Each leaf of the tree has its label, and its cuts are inclusive."""
    values = np.array([[x0, x1, x2, x3, 0.5, 0.5, 0.5, 0.5]])
    assert concept_labels(values).tolist() == [label]


def test_the_queries_are_held_out_and_distinct() -> None:
    """3,000 vectors, none twice and none of the rows', fit the demo's schema."""
    queries = demo_queries()
    vectors = set(queries.vectors)
    assert len(vectors) == len(queries.labels) == len(queries.concept_labels) == 3_000
    assert vectors.isdisjoint(map(tuple, demo_rows().values.tolist()))
    schema = demo_settings({}).data.public_schema()
    values = encode(schema, [parse_features(schema, list(vector)) for vector in queries.vectors])
    concept = [DEMO_CLASSES[label] for label in concept_labels(values)]
    assert concept == list(queries.concept_labels)


def test_the_demo_is_the_same_each_time() -> None:
    """The seed is public and fixed, so a restart finds the rows of its ledger."""
    first, again = demo_rows(), demo_rows()
    np.testing.assert_array_equal(first.values, again.values)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert demo_queries().vectors == demo_queries().vectors
