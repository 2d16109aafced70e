"""Bytes of rows give back what their class reads."""

from __future__ import annotations

import numpy as np
import pytest

from app.learning.encoding.row_codes import IntegerCodes


@pytest.mark.parametrize(("largest", "width"), [(0, 3), (255, 3), (256, 6), (1 << 16, 12)])
def test_numbers_are_held_in_as_few_bytes_as_they_take(largest: int, width: int) -> None:
    """Three columns, whatever the largest number; some rows are the same alone."""
    generator = np.random.default_rng(largest)
    values = generator.integers(0, largest + 1, (50, 3)).astype(np.float64)
    coding = IntegerCodes(lambda rows: rows.astype(np.int64), columns=3, largest=largest)
    codes = coding.codes(values)
    assert coding.width == width == len(codes)
    assert codes.dtype == np.uint8
    assert np.array_equal(coding.encoded(codes), values)
    assert np.array_equal(coding.encoded(codes[:, 7:9]), values[7:9])
