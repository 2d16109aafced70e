"""The fingerprint tells multisets of rows apart, and nothing to who has no key."""

from __future__ import annotations

import math

import numpy as np
import pytest

from app.data.demo_data import demo_rows
from app.data.rows import PrivateRows, fingerprint
from app.errors import InvariantError

KEY = b"a secret of the database"
VALUES = [[1.0, 2.0], [3.0, math.nan], [1.0, 2.0]]


def rows(values: list[list[float]], labels: list[int]) -> PrivateRows:
    """Return rows with these values."""
    return PrivateRows(values=np.array(values), labels=np.array(labels, dtype=np.int64))


def test_the_order_of_rows_is_no_matter() -> None:
    """A permutation of the rows, labels with them, has the same fingerprint."""
    demo = demo_rows()
    order = np.argsort(demo.values[:, 0])
    shuffled = PrivateRows(values=demo.values[order], labels=demo.labels[order])
    assert fingerprint(shuffled, KEY) == fingerprint(demo, KEY)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(rows(VALUES, [0, 1, 1]), id="a label"),
        pytest.param(rows([[1.0, 2.0], [3.0, 0.0], [1.0, 2.0]], [0, 1, 0]), id="a value"),
        pytest.param(rows(VALUES[:2], [0, 1]), id="a row fewer"),
        pytest.param(rows([VALUES[0], VALUES[1], VALUES[1]], [0, 1, 1]), id="another twice"),
        pytest.param(rows([[2.0, 1.0], [3.0, math.nan], [1.0, 2.0]], [0, 1, 0]), id="columns"),
    ],
)
def test_other_rows_have_another_fingerprint(other: PrivateRows) -> None:
    """Any change of the multiset of rows changes the fingerprint."""
    assert fingerprint(other, KEY) != fingerprint(rows(VALUES, [0, 1, 0]), KEY)


def test_another_key_gives_another_fingerprint() -> None:
    """Without the database's secret the same rows cannot be recognised."""
    same = rows(VALUES, [0, 1, 0])
    assert fingerprint(same, KEY) != fingerprint(same, b"another secret")
    assert len(fingerprint(same, KEY)) == 64


def test_every_row_has_one_label() -> None:
    """Rows and labels of different counts are no private rows."""
    with pytest.raises(InvariantError, match="every row has one label"):
        rows(VALUES, [0, 1])
