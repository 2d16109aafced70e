"""Public tests turn encoded rows into bits."""

from __future__ import annotations

import numpy as np
import pytest

from app.errors import InvariantError
from app.learning.encoding import binary_tests
from app.learning.encoding.binary_tests import BinaryTest, distinct_cuts, evaluate


def _cut(feature_index: int, cut: float) -> BinaryTest:
    return BinaryTest(
        feature_index=feature_index, cut=cut, category_code=None, public_frequency=0.5
    )


def _category(feature_index: int, code: int) -> BinaryTest:
    return BinaryTest(
        feature_index=feature_index, cut=None, category_code=code, public_frequency=0.5
    )


def test_a_cut_is_at_or_above_and_a_category_is_equal() -> None:
    """A value on the cut satisfies it; a missing number satisfies no cut."""
    values = np.array([[5.0, 1.0], [4.9, 2.0], [np.nan, 0.0]])
    tests = (_cut(0, 5.0), _category(1, 1), _category(1, 2), _cut(0, -1e9))
    assert evaluate(tests, values).tolist() == [[1, 1, 0, 1], [0, 0, 1, 1], [0, 0, 0, 0]]


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluation in blocks of two rows gives what one block gives."""
    values = np.arange(7.0)[:, np.newaxis]
    whole = evaluate((_cut(0, 3.0),), values)
    monkeypatch.setattr(binary_tests, "ROWS_PER_BLOCK", 2)
    assert np.array_equal(evaluate((_cut(0, 3.0),), values), whole)
    assert whole.dtype == np.uint8


def test_no_rows_and_no_tests_have_their_shapes() -> None:
    """Empty inputs give empty bits of the right shape."""
    assert evaluate((_cut(0, 3.0),), np.zeros((0, 1))).shape == (0, 1)
    assert evaluate((), np.zeros((4, 1))).shape == (4, 0)


@pytest.mark.parametrize(
    ("cut", "code", "frequency"), [(None, None, 0.5), (1.0, 1, 0.5), (1.0, None, 1.5)]
)
def test_a_test_has_one_kind_and_a_share(
    cut: float | None, code: int | None, frequency: float
) -> None:
    """A test that is neither or both kinds, or has no share, is refused."""
    with pytest.raises(InvariantError):
        BinaryTest(feature_index=0, cut=cut, category_code=code, public_frequency=frequency)


@pytest.mark.parametrize(
    ("complements", "kept"), [(False, (0, 1, 3)), (True, (0, 3))], ids=["as they are", "either way"]
)
def test_distinct_cuts_keep_the_first_of_each(*, complements: bool, kept: tuple[int, ...]) -> None:
    """The second test is the first's complement, the third the first again."""
    bits = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1]], dtype=np.uint8)
    assert distinct_cuts(bits, complements=complements) == kept


def test_without_points_every_cut_is_distinct() -> None:
    """Nothing tells tests apart, so that all of them stay."""
    assert distinct_cuts(np.empty((0, 3), dtype=np.uint8), complements=True) == (0, 1, 2)
