"""Only sampled rows reach the ensemble, in the order of the permutation."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.persons import Persons
from app.data.rows import PrivateRows
from app.errors import ConfigurationError, InvariantError
from app.release.drawing import chunk_places, positions_bytes, sampled_rows
from tests.builders.release.opened_release import changed, pieces
from tests.builders.release.small_release import private_rows, seeded_noise

if TYPE_CHECKING:
    from tests.builders.release.small_release import SmallRelease


def numbered(count: int) -> PrivateRows:
    """Rows whose value and label are their position."""
    return PrivateRows(values=np.arange(count, dtype=float)[:, None], labels=np.arange(count))


def test_the_sample_is_the_first_entries_of_the_permutation() -> None:
    """Values and labels come together, in the permutation's order."""
    sample = sampled_rows(numbered(5), np.array([3, 0, 4, 1, 2]), count=3)
    assert sample.values[:, 0].tolist() == [3, 0, 4]
    assert sample.labels.tolist() == [3, 0, 4]


@pytest.mark.parametrize("count", [0, 6])
def test_a_sample_has_rows_and_no_more_than_there_are(count: int) -> None:
    """Nothing is taken from beyond the rows."""
    with pytest.raises(InvariantError):
        sampled_rows(numbered(5), np.arange(5), count=count)


@pytest.mark.parametrize("count_max", [None, 1, 2, 9])
def test_a_chunk_keeps_its_first_units(count_max: int | None) -> None:
    """Chunks are cut first, so that no other chunk has a row of what one leaves out."""
    sample = sampled_rows(numbered(7), np.array([3, 0, 6, 4, 1, 5, 2]), count=7)
    positions, offsets = sample.cut(np.arange(7), size=2, count_max=count_max)
    chunks = [[3, 0, 6], [4, 1, 5, 2]]
    kept = [chunk[:count_max] for chunk in chunks]
    assert [positions[a:b].tolist() for a, b in pairwise(offsets)] == kept


def test_a_chunk_keeps_its_first_persons_with_all_rows() -> None:
    """How many rows a person has decides nothing on who is kept."""
    persons = Persons(np.array([0, 1, 1, 2, 3, 3, 3]), np.zeros((4, 16), dtype=np.uint8))
    rows = PrivateRows(np.zeros((7, 1)), np.zeros(7, dtype=np.int64), persons)
    sample = sampled_rows(rows, np.array([3, 0, 1, 2]), count=4)
    positions, offsets = sample.cut(np.arange(4), size=2, count_max=1)
    assert positions.tolist() == [4, 5, 6, 1, 2]
    assert offsets.tolist() == [0, 3, 5]


def test_without_replacement_the_sample_is_cut_as_it_lies() -> None:
    """It is in uniformly random order already; no noise is drawn."""
    noise = seeded_noise()
    assert chunk_places(4, with_replacement=False, noise=noise).tolist() == [0, 1, 2, 3]
    assert noise.drawn_count == 0


def test_with_replacement_every_place_is_drawn_from_all() -> None:
    """Each place is uniform and independent: over many draws every one comes about as often."""
    drawn = chunk_places(30_000, with_replacement=True, noise=seeded_noise())
    counts = Counter((drawn // 3000).tolist())
    # Each tenth is Binomial(30000, 1/10), standard deviation 52; six of those are 312.
    assert all(abs(counts[tenth] - 3000) < 312 for tenth in range(10))
    copies = Counter(Counter(drawn.tolist()).values())
    # About 1/(e j!) of the rows are drawn j times.
    assert copies[1] == pytest.approx(30_000 / np.e, rel=0.05)
    assert copies[2] == pytest.approx(30_000 / (2 * np.e), rel=0.05)


def test_rows_outside_the_sample_reach_nothing(small_release: SmallRelease) -> None:
    """With every row outside the sample replaced, the same draws give the same learners."""
    half = changed(small_release, privacy__sampling="0.5")
    release = half.open()
    first = pieces(half)
    sample = np.frombuffer(first["permutation"], dtype="<u4")[:30]
    rows = private_rows()
    values, labels = rows.values.copy(), 1 - rows.labels
    values[:, 0] = -values[:, 0]
    values[sample], labels[sample] = rows.values[sample], rows.labels[sample]
    folder = half.folder / "other"
    folder.mkdir()
    other = type(half)(folder, half.changes)
    again = other.open(rows=PrivateRows(values=values, labels=labels))
    second = pieces(other)
    assert second["permutation"] == first["permutation"]
    assert second["hypothesis"] == first["hypothesis"]
    votes = release.ensemble.vote_counts(rows.values)
    assert again.ensemble.vote_counts(rows.values).tolist() == votes.tolist()


def test_the_answers_may_spend_more_on_a_sample(small_release: SmallRelease) -> None:
    """The calibration is for the sample's budget, and a later start finds it so."""
    half = changed(small_release, privacy__sampling="0.5", privacy__epsilon="2")
    folder = half.folder / "whole"
    folder.mkdir()
    whole = type(half)(folder, {**half.changes, "privacy__sampling": "1"})
    mechanism = half.open().mechanism
    assert half.open().mechanism == mechanism
    assert mechanism != whole.open().mechanism


def test_a_sample_without_a_row_is_refused_before_it_is_charged(
    small_release: SmallRelease,
) -> None:
    """The line names the setting, and the ledger holds no release."""
    release = changed(small_release, privacy__sampling="0.01")
    with pytest.raises(ConfigurationError) as refused:
        release.open()
    assert str(refused.value) == "privacy.sampling: leaves no row of 60"
    assert release.ledger().read_state().release is None


def test_positions_are_kept_as_small_words() -> None:
    """Four bytes a position, little-endian."""
    assert positions_bytes(np.array([1, 256])) == bytes([1, 0, 0, 0, 0, 1, 0, 0])
