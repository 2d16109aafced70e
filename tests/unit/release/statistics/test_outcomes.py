"""Statistics over any two outcomes of more than two labels, from one table of two outcomes."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.rows import PrivateRows
from app.errors import InvalidHypothesisError, InvariantError
from app.learning.statistics_tables.representative_domain import product_domain
from app.learning.trees.tree_lists import TreeList
from app.release.statistics import released_table as module
from app.release.statistics.posted_hypotheses import (
    NEEDS_OUTCOMES,
    AskedNode,
    labels_on,
    parse_hypotheses,
)
from app.release.statistics.statistics_table import statistics_draw
from tests.unit.release.statistics.test_statistics import ALONE
from tests.unit.release.statistics.test_statistics_classes import (
    EXACT,
    at_least,
    configuration,
    encoded,
    released,
)

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from app.data.schema import Schema
    from app.release.statistics.posted_hypotheses import AskedHypothesis
    from app.release.statistics.released_table import ReleasedStatistics
    from app.release.terms.configuration import Configuration

CLASSES = ("no", "yes", "maybe")
THREE = {"data__classes": '["no", "yes", "maybe"]'}
PAIRS = tuple(permutations(CLASSES, 2))
# By the epsilon of EXACT a value is within a few of 500 rows.
ERROR_MAX = 0.03


def rows_of(count: int, *, seed: int) -> PrivateRows:
    """Return rows with labels of all three classes."""
    labels = np.arange(count, dtype=np.int64) % len(CLASSES)
    return PrivateRows(values=encoded(count, seed=seed), labels=labels)


def asked(first: str, second: str) -> dict[str, object]:
    """Return a stump that says the second outcome from a margin of 0 on."""
    tree = at_least(0, 0.0, {"label": second}, {"label": first})
    return {"tree": tree, "outcomes": [first, second]}


def worst_error(table: ReleasedStatistics, given: Configuration, rows: PrivateRows) -> float:
    """Return the largest error of the stump's value, over all pairs of outcomes."""
    questions = parse_hypotheses(given.schema, [asked(*pair) for pair in PAIRS])
    exact = 2 * float((rows.values[:, 0] >= 0.0).mean()) - 1
    return max(abs(value - exact) for value in table.answer(questions).values)


@pytest.mark.parametrize("kind", ["trees", "intervals"])
def test_one_table_answers_any_two_outcomes(tmp_path: Path, kind: str) -> None:
    """Whichever two of three labels a hypothesis names, its mean is that of the rows."""
    given = configuration(tmp_path, EXACT | THREE | {"statistics__class": kind})
    rows = rows_of(500, seed=3)
    table = released(given, rows)
    assert worst_error(table, given, rows) <= ERROR_MAX
    assert table.document.classes == CLASSES


def test_the_error_would_show_a_label_taken_for_an_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: leaves are read by their place among the classes, as with two labels."""

    def by_class(
        schema: Schema, hypothesis: AskedHypothesis, values: NDArray[np.float64]
    ) -> NDArray[np.uint8]:
        labelled = labels_on(schema, hypothesis, values)
        places = np.array([schema.classes.index(label) for label in hypothesis.outcomes])
        return (places[labelled] > 0).astype(np.uint8)

    given = configuration(tmp_path, EXACT | THREE)
    rows = rows_of(500, seed=3)
    table = released(given, rows)
    monkeypatch.setattr(module, "labels_on", by_class)
    assert worst_error(table, given, rows) > 10 * ERROR_MAX


def test_the_labels_of_the_rows_do_not_enter(tmp_path: Path) -> None:
    """The class, its noise and the table itself are the same whatever rows are labelled."""
    three, two = (
        released(configuration(tmp_path, ALONE | more), rows_of(60, seed=7)).document
        for more in (THREE, {})
    )
    for name in ("tests", "hypotheses", "counts", "cell_count", "calibration", "alpha"):
        assert getattr(three, name) == getattr(two, name)


def counts_of(labels: NDArray[np.uint8], cells: NDArray[np.number]) -> NDArray[np.int64]:
    """Return what each query counts, shape (N,), from the rows of each cell."""
    return labels.astype(np.int64) @ cells.astype(np.int64)


def test_a_record_moves_no_count_by_more_than_one(tmp_path: Path) -> None:
    """Neighbours of three labels; planted: hypotheses of three labels move by two, refused."""
    given = configuration(tmp_path, ALONE | THREE)
    draw = statistics_draw(given, encoded(40, seed=1), row_count=60)
    values = encoded(60, seed=2)
    first = counts_of(draw.domain.labels, draw.domain.private_count_at(draw.grid.places(values)))
    moves = []
    for row in encoded(30, seed=3):
        other = np.concatenate([values[1:], row[np.newaxis]])
        cells = draw.domain.private_count_at(draw.grid.places(other))
        moves.append(np.abs(counts_of(draw.domain.labels, cells) - first).max())
    assert max(moves) == 1
    stump = np.array([[0, 0, 2]])
    planted = TreeList(draw.tests, stump, depth=1, class_count=len(CLASSES))
    labels = planted.predict(planted.encode(encoded(200, seed=2)))
    assert int(labels.max()) - int(labels.min()) == 2
    with pytest.raises(InvariantError, match="a query is a hypothesis with two labels"):
        product_domain(planted, draw.grid.axes)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"outcomes": None}, NEEDS_OUTCOMES),
        ({"outcomes": ["no"]}, NEEDS_OUTCOMES),
        ({"outcomes": ["no", "no"]}, NEEDS_OUTCOMES),
        ({"outcomes": ["no", "yes", "maybe"]}, NEEDS_OUTCOMES),
        ({"outcomes": ["no", "never"]}, NEEDS_OUTCOMES),
        ({"outcomes": ["no", 1]}, NEEDS_OUTCOMES),
        ({"outcomes": "no"}, NEEDS_OUTCOMES),
        ({"tree": {"label": "maybe"}}, "has a label that is none of its outcomes"),
        ({"tree": {"label": "never"}}, "has a label that is not one of the classes"),
    ],
)
def test_outcomes_that_are_not_two_of_the_classes_are_refused(
    tmp_path: Path, changes: dict[str, object], problem: str
) -> None:
    """One line says which hypothesis it is and what it needs."""
    schema = configuration(tmp_path, ALONE | THREE).schema
    good = asked("no", "yes")
    with pytest.raises(InvalidHypothesisError) as refused:
        parse_hypotheses(schema, [good, good | changes])
    assert str(refused.value) == f"hypotheses[1] {problem}"


def test_two_classes_may_be_named_in_either_order(tmp_path: Path) -> None:
    """They are the outcomes where none are named, in the order of the classes."""
    given = configuration(tmp_path, EXACT)
    table = released(given, PrivateRows(encoded(500, seed=3), np.zeros(500, dtype=np.int64)))
    tree = asked("no", "yes")["tree"]
    documents = [{"tree": tree}, {"tree": tree, "outcomes": ["yes", "no"]}]
    known, turned = parse_hypotheses(given.schema, documents)
    assert isinstance(known.tree, AskedNode)
    assert (known.outcomes, turned.outcomes) == (("no", "yes"), ("yes", "no"))
    one, other = table.answer([known, turned]).values
    assert abs(one + other) <= ERROR_MAX
