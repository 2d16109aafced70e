"""The page on hypothesis classes says what the classes are."""

from __future__ import annotations

import re
import sys
from itertools import product
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.learning.encoding.binary_tests import BinaryTest
from app.learning.encoding.public_columns import PublicColumn
from app.learning.enumerated.enumerated_class import SIZE_MAX
from app.learning.halfspaces.halfspaces import dichotomy_bound
from app.learning.hypothesis import ClassAsked
from app.learning.predictors.own_predictors import Predictor, PublicFeature
from app.learning.predictors.predictor_classes import (
    PredictorClass,
    PredictorSource,
    predictor_class,
    read_predictor,
)
from app.learning.registry import CLASSES, dichotomy_class, hypothesis_class
from app.noise.exact_choice import SCALE_BITS
from examples.staircases import Staircases
from tests.docs.pages import ROOT, examples, text

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = ROOT / "docs" / "hypotheses.md"
ROW = re.compile(r"^\| `(\w+)`(?: of depth (\d))? \| (\d) \| (\d+) \| (\d+) \|", re.MULTILINE)
SIZES = [
    pytest.param(kind, *(int(number or 1) for number in numbers), id=" ".join((kind, *numbers)))
    for kind, *numbers in ROW.findall(text(PAGE))
]
NUMBER = PublicColumn(bounds=(0.0, 1.0))
# Labellings of m points of general position on as many numbers, as in the first table.
GROWTH: dict[str, tuple[int, Callable[[int], int]]] = {
    "thresholds": (1, lambda m: m + 1),
    "stumps": (1, lambda m: 2 * m),
    "intervals": (1, lambda m: 1 + m * (m + 1) // 2),
    "halfspaces": (2, lambda m: 2 * (1 + (m - 1) + (m - 1) * (m - 2) // 2)),
}
CODE = "page_on_hypotheses"
FEATURES = (
    PublicFeature(name="across", bounds=(0.0, 10.0)),
    PublicFeature(name="up", bounds=(0.0, 10.0)),
)


def test_every_class_of_the_settings_is_on_the_page() -> None:
    """Each name that ``class`` takes has a row of its own, and so has a class of one's own."""
    first_table = text(PAGE).partition("\n## ")[0]
    named = re.findall(r"^\| `(\w+)` \|", first_table, re.MULTILINE)
    assert named == list(CLASSES)
    assert '| `"package.module:Class"` |' in text(PAGE)


@pytest.mark.parametrize(("kind", "depth", "numbers", "bins", "size"), SIZES)
def test_the_sizes_are_those_of_the_classes(
    kind: str, depth: int, numbers: int, bins: int, size: int
) -> None:
    """A class over equal bins has as many hypotheses as the page says."""
    tests = [
        BinaryTest(
            feature_index=index, cut=cut / bins, category_code=None, public_frequency=1 - cut / bins
        )
        for index, cut in product(range(numbers), range(1, bins))
    ]
    columns = [NUMBER] * numbers
    assert (
        hypothesis_class(
            ClassAsked(kind=kind, tests=tests, depth=depth, class_count=2, columns=columns)
        ).size
        == size
    )


@pytest.mark.parametrize("kind", GROWTH)
@pytest.mark.parametrize("count", [1, 2, 5, 7])
def test_points_have_as_many_labellings_as_the_page_says(kind: str, count: int) -> None:
    """The formulas hold for points in general position."""
    numbers, formula = GROWTH[kind]
    values = np.random.default_rng(2).random((count, numbers))
    listed = dichotomy_class(
        ClassAsked(kind=kind, columns=[NUMBER] * numbers, depth=1, class_count=2), values
    )
    assert listed.size == formula(count)


def test_the_limits_are_those_of_the_code() -> None:
    """The longest list, the bits of a draw and the rows that halfspaces take are as said."""
    page = " ".join(text(PAGE).split())
    assert f"at most {SIZE_MAX} hypotheses" in page
    assert f"integers of {SCALE_BITS} bits" in page
    limits = re.search(r"take (\d+) rows on one number, (\d+) on two and (\d+) on three", page)
    assert limits is not None
    for dimension, most in enumerate(map(int, limits.groups()), start=1):
        assert dichotomy_bound(most, dimension) <= SIZE_MAX < dichotomy_bound(most + 1, dimension)


def test_every_member_of_the_protocol_is_explained() -> None:
    """The page names what a class and a predictor must have, and a feature has."""
    members = {"hypotheses", "read", "dimension", "predict", "describe"}
    wanted = {
        name
        for protocol in (PredictorClass, Predictor)
        for name in (*vars(protocol), *protocol.__annotations__)
        if not name.startswith("_")
    }
    assert wanted == members
    for name in members | {"name", "bounds", "categories", "other"}:
        assert re.search(rf"`{name}\b", text(PAGE)), name


def test_the_class_on_the_page_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page shows is made, predicts, and is rebuilt from its description."""
    (program,) = examples(PAGE, "python")
    module = ModuleType(CODE)
    exec(program, vars(module))  # noqa: S102 -- the page's own example is what is tested
    monkeypatch.setitem(sys.modules, CODE, module)
    source = PredictorSource(
        section="hypotheses", kind=f"{CODE}:Scores", features=FEATURES, classes=("no", "yes")
    )
    found = predictor_class(source)
    values = np.array([[2.0, 3.0], [np.nan, 1.0], [8.0, 2.0]])
    labels = found.hypotheses.predict(values).tolist()
    assert labels == [[0, 0, 1], [0, 0, 1], [0, 0, 1], [1, 0, 1], [1, 0, 1]]
    again = read_predictor(source, found.hypotheses.describe(3))
    assert again.predict({"across": 2.0, "up": 3.0}) == "yes"


def test_the_example_lists_every_staircase_once() -> None:
    """Over five bins by five there are 252, no two alike on the grid, and none that rises."""
    source = PredictorSource(
        section="hypotheses",
        kind="examples.staircases:Staircases",
        features=FEATURES,
        classes=("no", "yes"),
    )
    found = predictor_class(source)
    grid = np.array(list(product(range(1, 10, 2), repeat=2)), dtype=np.float64)
    labels = found.hypotheses.predict(grid)
    assert found.size == len(np.unique(labels, axis=0)) == 252
    cells = labels.reshape(-1, 5, 5).astype(np.int64)
    assert (np.diff(cells, axis=1) >= 0).all()
    assert (np.diff(cells, axis=2) >= 0).all()
    assert found.dimension == Staircases.dimension == 5


def test_the_example_has_the_dimension_that_it_says() -> None:
    """Five cells on a falling diagonal take every labelling; no six cells of the grid can."""
    owner = Staircases(FEATURES, ("no", "yes"))
    diagonal = [{"across": 1.0 + 2 * step, "up": 9.0 - 2 * step} for step in range(5)]
    labellings = {
        tuple(staircase.predict(row) for row in diagonal) for staircase in owner.hypotheses([])
    }
    assert len(labellings) == 2**5


def test_the_example_takes_its_cuts_from_public_points() -> None:
    """With points the bins hold equally many of them; a staircase is read as it was described."""
    owner = Staircases(FEATURES, ("no", "yes"))
    points = [{"across": float(number), "up": number / 10} for number in range(10)]
    listed = owner.hypotheses(points)
    assert listed[7].describe()["cuts"] == ((2.0, 4.0, 6.0, 8.0), (0.2, 0.4, 0.6, 0.8))
    assert owner.read(listed[7].describe()) == listed[7]


@pytest.mark.parametrize(
    ("features", "classes"),
    [
        (FEATURES[:1], ("no", "yes")),
        ((FEATURES[0], PublicFeature(name="x", categories=("a",))), ("no", "yes")),
        (FEATURES, ("a", "b", "c")),
    ],
    ids=["one number", "a category", "three labels"],
)
def test_the_example_refuses_what_it_is_not_for(
    features: tuple[PublicFeature, ...], classes: tuple[str, ...]
) -> None:
    """It says so when it is made."""
    with pytest.raises(ValueError, match=r"two numeric features|too many values"):
        Staircases(features, classes)
