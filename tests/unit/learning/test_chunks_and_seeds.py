"""Chunks have public sizes; seeds belong to one chunk each."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

from app.errors import InvariantError
from app.learning.chunks import chunk_offsets, fitted_or_none, silence
from app.learning.learner_seeds import chunk_seed, generator, random_state


@pytest.mark.parametrize(("row_count", "chunk_count"), [(10, 3), (9, 3), (2, 5), (0, 1), (7, 7)])
def test_chunks_cover_every_row_once_and_differ_by_one(row_count: int, chunk_count: int) -> None:
    """Sizes are a function of n and k alone."""
    offsets = chunk_offsets(row_count, chunk_count)
    sizes = np.diff(offsets)
    assert (offsets[0], offsets[-1], len(sizes)) == (0, row_count, chunk_count)
    assert sizes.max() - sizes.min() <= 1


def test_no_chunks_is_refused() -> None:
    """An ensemble has at least one vote."""
    with pytest.raises(InvariantError):
        chunk_offsets(3, 0)


def test_seeds_differ_by_chunk_and_by_secret_and_repeat() -> None:
    """The same chunk of the same release has the same generator after a restart."""
    seeds = {chunk_seed(secret, index) for secret in (b"a", b"b") for index in range(10)}
    assert len(seeds) == 20
    seed = chunk_seed(b"a", 3)
    assert generator(seed).random() == generator(chunk_seed(b"a", 3)).random()
    assert 0 <= random_state(seed) < 1 << 32


def test_failures_and_warnings_are_swallowed() -> None:
    """A learner that warns, divides by zero or raises is seen by nobody."""

    def warn() -> str:
        warnings.warn("private", stacklevel=1)
        np.log(np.zeros(1))
        return "fitted"

    def fail() -> str:
        message = "private"
        raise ArithmeticError(message)

    assert fitted_or_none(warn) == "fitted"
    assert fitted_or_none(fail) is None


def test_the_silence_lasts_from_the_first_learner_to_the_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two threads run learners, and whichever ends first gives nothing back."""
    first, second = silence(), silence()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        sys.stdout.write("told")
        warnings.warn("told", stacklevel=1)
        second.__exit__(None, None, None)
        sys.stdout.write("heard")
        warnings.warn("heard", stacklevel=1)
    assert capsys.readouterr().out == "heard"
    assert [str(each.message) for each in seen] == ["heard"]
