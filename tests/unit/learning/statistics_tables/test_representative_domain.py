"""Cells of finitely many hypotheses: all of them, and of the public space alone."""

from __future__ import annotations

from itertools import product
from math import inf, nan
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import ConfigurationError, InvariantError
from app.learning.enumerated.boxes import Axis, box_class, box_dichotomies
from app.learning.statistics_tables.representative_domain import (
    GRID_POINT_COUNT_MAX,
    LABEL_COUNT_MAX,
    Projection,
    cover,
    product_domain,
    refuse_cells,
    refuse_grid,
    representative_axes,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.enumerated.hypothesis_list import HypothesisList

CUTS = {0: [1.0, 2.0, 3.0], 2: [10.0, 20.0]}


def boxes(kind: str) -> HypothesisList:
    """Return boxes of one family over the cuts of features 0 and 2 of three."""
    axes = [
        Axis(feature, np.array(cuts), np.linspace(0.8, 0.2, len(cuts)))
        for feature, cuts in CUTS.items()
        if kind == "rectangles" or feature == 0
    ]
    return box_class(kind, axes).hypotheses


def rows(count: int, *, seed: int = 1) -> NDArray[np.float64]:
    """Return rows anywhere, on cuts, far out and missing."""
    places = [-inf, 0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 9.9, 10.0, 15.0, 20.0, 1e300, inf, nan]
    return np.random.default_rng(seed).choice(places, (count, 3))


@pytest.mark.parametrize(
    ("kind", "cell_count"), [("thresholds", 4), ("intervals", 4), ("rectangles", 12)]
)
def test_the_domain_holds_every_cell_once(kind: str, cell_count: int) -> None:
    """Cuts r and s divide the space into (r + 1)(s + 1) cells, each with labels of its own."""
    domain = product_domain(boxes(kind), representative_axes(CUTS, 3))
    assert domain.cell_count == cell_count
    assert len(np.unique(domain.labels, axis=1).T) == cell_count
    assert domain.labels.shape[0] == len(boxes(kind))


@pytest.mark.parametrize("kind", ["thresholds", "intervals", "rectangles"])
def test_every_row_there_can_be_is_in_a_cell_of_its_labels(kind: str) -> None:
    """Rows on cuts, beyond all of them and missing are counted where they are labelled alike."""
    hypotheses = boxes(kind)
    domain = product_domain(hypotheses, representative_axes(CUTS, 3))
    for row in np.unique(rows(400), axis=0):
        encoded = hypotheses.encode(row[None])
        counts = domain.private_cell_count(encoded)
        assert counts.sum() == 1
        cell = int(counts.argmax())
        assert np.array_equal(domain.labels[:, cell], hypotheses.predict(encoded)[:, 0])


def test_counts_add_up_over_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows are looked at together, each is counted once."""
    hypotheses = boxes("rectangles")
    encoded = hypotheses.encode(rows(300))
    axes = representative_axes(CUTS, 3)
    whole = product_domain(hypotheses, axes)
    counts = whole.private_cell_count(encoded)
    monkeypatch.setattr(
        "app.learning.statistics_tables.representative_domain.PREDICTIONS_PER_BLOCK", 700
    )
    part = product_domain(hypotheses, axes)
    assert np.array_equal(part.labels, whole.labels)
    assert np.array_equal(part.private_cell_count(encoded), counts)
    assert counts.sum() == 300


def test_a_count_is_that_of_the_rows_labelled_one() -> None:
    """Counts of cells, summed by a hypothesis's labels, are its rows with label 1."""
    hypotheses = boxes("rectangles")
    domain = product_domain(hypotheses, representative_axes(CUTS, 3))
    encoded = hypotheses.encode(rows(300))
    sums = domain.labels @ domain.private_cell_count(encoded)
    assert np.array_equal(sums, hypotheses.predict(encoded).sum(axis=1))


def test_a_row_outside_the_grid_is_counted_and_not_told() -> None:
    """A grid that forgot a cut puts the row it does not know into the first cell."""
    hypotheses = boxes("thresholds")
    domain = product_domain(hypotheses, representative_axes({0: [1.0, 2.0]}, 3))
    forgotten = hypotheses.encode(np.array([[3.5, 0.0, 0.0]]))
    assert domain.private_cell_count(forgotten).tolist() == [1, 0, 0]


def test_a_domain_is_read_only() -> None:
    """The table of labels cannot be written to."""
    domain = product_domain(boxes("thresholds"), representative_axes(CUTS, 3))
    with pytest.raises(ValueError, match="read-only"):
        domain.labels[0, 0] = 1


def test_axes_hold_a_missing_value_and_each_reference_once() -> None:
    """A feature that no hypothesis looks at has one value that stands for all."""
    axes = representative_axes({0: [2.0, 1.0, 2.0], 2: [5.0]}, 3)
    assert [axis[1:].tolist() for axis in axes] == [[1.0, 2.0], [], [5.0]]
    assert all(np.isnan(axis[0]) for axis in axes)


def test_a_cover_has_one_hypothesis_for_each_dichotomy() -> None:
    """Of the boxes with equal labels on the public points the first one stays."""
    hypotheses = boxes("intervals")
    points = hypotheses.encode(np.array([[0.0, 0.0, 0.0], [2.2, 0.0, 0.0]]))
    chosen = cover(hypotheses, points)
    assert sorted(map(tuple, chosen.predict(points).tolist())) == list(product((0, 1), repeat=2))


def test_a_hypothesis_is_projected_to_the_one_that_agrees_on_the_points() -> None:
    """Whatever box is asked about, the index is of one with its labels on all points."""
    points = rows(40)
    covered = box_dichotomies("rectangles", points[np.isfinite(points).all(axis=1)], [0, 2])
    encoded = covered.encode(points[np.isfinite(points).all(axis=1)])
    projection = Projection(covered, encoded)
    asked = boxes("rectangles")
    labels = asked.predict(asked.encode(points[np.isfinite(points).all(axis=1)]))
    for each in labels:
        index = projection.index_of(each)
        assert np.array_equal(covered.predict(encoded)[index], each)


def test_the_nearest_hypothesis_is_the_first_with_the_fewest_other_labels() -> None:
    """Labels outside the class lie one point off; whoever asks is told how far."""
    hypotheses = boxes("intervals")
    points = hypotheses.encode(np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]))
    covered = cover(hypotheses, points)
    projection = Projection(covered, points)
    for labels in product((0, 1), repeat=3):
        given = np.array(labels, dtype=np.uint8)
        apart = (covered.predict(points) != given).sum(axis=1)
        assert projection.nearest(given) == (int(apart.argmin()), int(apart.min()))


@pytest.mark.parametrize("labels", [[1, 0, 1], [0, 0]])
def test_labels_that_no_hypothesis_has_are_refused(labels: Sequence[int]) -> None:
    """A labelling outside the class, or of other points, has no projection."""
    hypotheses = boxes("intervals")
    points = hypotheses.encode(np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]))
    projection = Projection(cover(hypotheses, points), points)
    with pytest.raises(InvariantError):
        projection.index_of(np.array(labels, dtype=np.uint8))


def test_a_list_with_two_hypotheses_that_agree_is_no_cover() -> None:
    """Where two hypotheses agree on the public points there is no projection."""
    hypotheses = boxes("intervals")
    with pytest.raises(InvariantError, match="agree"):
        Projection(hypotheses, hypotheses.encode(np.zeros((1, 3))))


def test_sizes_that_cannot_be_listed_are_refused_by_public_numbers() -> None:
    """A grid or table beyond its limit is a configuration error that names the size."""
    refuse_grid(GRID_POINT_COUNT_MAX)
    refuse_cells(LABEL_COUNT_MAX, 1)
    with pytest.raises(ConfigurationError, match=str(GRID_POINT_COUNT_MAX + 1)):
        refuse_grid(GRID_POINT_COUNT_MAX + 1)
    with pytest.raises(ConfigurationError, match=str(LABEL_COUNT_MAX)):
        refuse_cells(LABEL_COUNT_MAX, 2)
