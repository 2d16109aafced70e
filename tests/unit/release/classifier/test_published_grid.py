"""The class that public points fix, as a configuration names it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.learning.trees.tree_class import TreeClass
from app.release.terms.configuration import published_class
from app.settings.settings import load_settings
from tests.builders.release.small_release import CONFIGURATION

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from app.learning.hypothesis import HypothesisClass

KIND = "CONCLAVE_CLASSIFIER__CLASS"
BINS = "CONCLAVE_CLASSIFIER__BINS"
ALIKE = np.full((30, 2), 0.0)


def spiked_points() -> NDArray[np.float64]:
    """Return points of which two thirds have the margin 0; every group is a."""
    margins = [0.0] * 20 + list(range(1, 11))
    return np.stack((np.array(margins, dtype=np.float64), np.zeros(30)), axis=1)


def published(
    folder: Path, points: NDArray[np.float64], environ: dict[str, str]
) -> HypothesisClass:
    """Return the class that points fix in the small release with three bins, or as told."""
    path = folder / "conclave.toml"
    path.write_text(CONFIGURATION, encoding="utf-8")
    return published_class(load_settings(path, {BINS: "3", **environ}), points)


@pytest.mark.parametrize("kind", ["trees", "stumps"])
def test_trees_are_finer_at_spikes(tmp_path: Path, kind: str) -> None:
    """Three of four tests of groups that nobody holds become cuts of margins."""
    trees = published(tmp_path, spiked_points(), {KIND: kind})
    assert isinstance(trees, TreeClass)
    cuts = [test.cut for test in trees.tests if test.cut is not None]
    assert cuts == [1.0, 3.0, 5.0, 7.0, 9.0]
    assert len(trees.tests) == 2 + 4


def test_classes_of_numbers_have_their_bins(tmp_path: Path) -> None:
    """Their size depends on the cuts of each number, so no category's test is spared for one."""
    thresholds = published(tmp_path, spiked_points(), {KIND: "thresholds"})
    without = published(tmp_path, spiked_points()[:0], {KIND: "thresholds"})
    assert thresholds.size <= without.size


def test_a_class_survives_points_that_are_all_alike(tmp_path: Path) -> None:
    """Whatever clients ask, a switch has a class of its depth to draw from."""
    for kind in ("trees", "stumps", "thresholds"):
        assert published(tmp_path, ALIKE, {KIND: kind}).size > 1
