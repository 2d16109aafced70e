"""A byte a feature tells what every test says of a row."""

from __future__ import annotations

import numpy as np
import pytest

from app.errors import InvariantError
from app.learning.encoding.binary_tests import BinaryTest, evaluate
from app.learning.encoding.feature_codes import CELLS_MAX, CellCodes
from tests.builders.learners.coded_tests import random_rows, random_tests


def _cut(cut: float, feature: int = 0) -> BinaryTest:
    return BinaryTest(feature_index=feature, cut=cut, category_code=None, public_frequency=0.5)


def _category(code: int, feature: int = 0) -> BinaryTest:
    return BinaryTest(feature_index=feature, cut=None, category_code=code, public_frequency=0.5)


def _coding(tests: tuple[BinaryTest, ...]) -> CellCodes:
    coding = CellCodes.of(tests)
    assert coding is not None
    return coding


@pytest.mark.parametrize("seed", range(5))
def test_codes_give_the_outcomes_of_all_tests(seed: int) -> None:
    """What is coded is decoded to the bits of the tests themselves."""
    generator = np.random.default_rng(seed)
    tests = random_tests(generator, features=4)
    values, _ = random_rows(generator, features=4, count=300)
    coding = _coding(tests)
    codes = coding.codes(values)
    bits = evaluate(tests, values)
    assert np.array_equal(coding.bits(codes), bits)
    assert np.array_equal(coding.encoded(codes), bits)
    assert np.array_equal(coding.codes_of_bits(bits), codes)
    assert coding.width == len(codes)
    asked = generator.integers(0, len(tests), len(values))
    assert np.array_equal(coding.outcomes(codes, asked), bits[np.arange(len(values)), asked])


def test_a_code_is_of_its_own_row() -> None:
    """A row is read alone: its codes are the same beside any others."""
    generator = np.random.default_rng(9)
    coding = _coding(random_tests(generator, features=4))
    values, _ = random_rows(generator, features=4, count=50)
    together = coding.codes(values)
    for row in range(len(values)):
        assert np.array_equal(coding.codes(values[row : row + 1])[:, 0], together[:, row])


@pytest.mark.parametrize(
    "tests",
    [
        (),
        (_cut(0.5), _category(1)),
        (_cut(0.5), _cut(0.5)),
        tuple(_cut(cut / CELLS_MAX) for cut in range(CELLS_MAX)),
        (_cut(0.5, feature=1), *(_category(code) for code in (1, 1))),
    ],
    ids=["none", "two kinds", "twice", "too many", "one of two features"],
)
def test_what_a_byte_cannot_tell_has_no_codes(tests: tuple[BinaryTest, ...]) -> None:
    """Such tests are left to whoever reads bits."""
    assert CellCodes.of(tests) is None


def test_each_row_is_asked_one_test() -> None:
    """Another number of questions is a mistake of the caller."""
    coding = _coding((_cut(0.5),))
    with pytest.raises(InvariantError):
        coding.outcomes(np.zeros((1, 3), np.uint8), np.zeros(2, np.int64))
