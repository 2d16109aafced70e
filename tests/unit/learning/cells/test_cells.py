"""Learners over public cells: each votes by its own rows, or in turn; what is stored is exact."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import ConfigurationError, InvariantError, LedgerCorruptError
from app.learning.cells import learners as cell_learners
from app.learning.cells.cell_class import CellClass, CellSplits
from app.learning.cells.learners import CellEnsemble, fit_cells
from app.learning.chunks import chunk_offsets
from app.learning.ensemble import Learner, check_learner, fit_ensemble, read_ensemble_bytes
from app.privacy.voting.votes import aggregate
from tests.builders.learners.enumeration import unit_tests

if TYPE_CHECKING:
    from numpy.typing import NDArray

SPLITS = CellSplits(unit_tests(2), ((~0, 1), (~1, ~2)))
# A row of each cell.
EACH = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])


def hypotheses(class_count: int = 2) -> CellClass:
    """Return the class over three cells."""
    return CellClass(splits=SPLITS, class_count=class_count)


def by_hand(
    cells: NDArray[np.int64], labels: NDArray[np.int64], chunk_count: int, class_count: int
) -> list[list[int]]:
    """Return the votes of a plain loop over chunks and cells."""
    votes = np.zeros((3, class_count), dtype=np.int64)
    for number, (start, end) in enumerate(pairwise(chunk_offsets(len(cells), chunk_count))):
        for cell in range(3):
            own = labels[start:end][cells[start:end] == cell].tolist()
            turn = [(number + step) % class_count for step in range(class_count)]
            votes[cell, max(turn, key=own.count)] += 1
    return votes.tolist()


def fit(cells: NDArray[np.int64], labels: NDArray[np.int64], k: int, classes: int) -> CellEnsemble:
    """Fit k chunks."""
    return fit_cells(
        encoded=cells[:, np.newaxis],
        labels=labels,
        offsets=chunk_offsets(len(cells), k),
        hypothesis_class=hypotheses(classes),
    )


@pytest.mark.parametrize(("chunk_count", "class_count"), [(1, 2), (7, 2), (60, 2), (7, 3), (90, 3)])
@pytest.mark.parametrize("block", [1 << 14, 4])
def test_votes_are_those_of_a_plain_loop(
    chunk_count: int, class_count: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commonest of one's own rows; ties and empty cells from the chunk's turn on."""
    monkeypatch.setattr(cell_learners, "CHUNKS_PER_BLOCK", block)
    generator = np.random.default_rng(chunk_count)
    cells, labels = generator.integers(0, 3, 90), generator.integers(0, class_count, 90)
    found = fit(cells, labels, chunk_count, class_count)
    expected = by_hand(cells, labels, chunk_count, class_count)
    assert found.vote_counts(EACH).tolist() == expected
    assert (found.size, found.class_count, found.is_scored) == (chunk_count, class_count, False)


@given(
    seed=st.integers(0, 10**6),
    place=st.integers(0, 39),
    cell=st.integers(0, 2),
    label=st.integers(0, 2),
    chunk_count=st.integers(1, 40),
)
def test_one_record_moves_one_vote_in_every_cell(
    seed: int, place: int, cell: int, label: int, chunk_count: int
) -> None:
    """Whatever a record becomes, a cell loses one vote and gains one, and Lemma S holds."""
    generator = np.random.default_rng(seed)
    cells, labels = generator.integers(0, 3, 40), generator.integers(0, 3, 40)
    before = fit(cells, labels, chunk_count, 3).vote_counts(EACH)
    cells[place], labels[place] = cell, label
    after = fit(cells, labels, chunk_count, 3).vote_counts(EACH)
    assert np.abs(before - after).sum(axis=1).max() <= 2
    (first, one), (second, other) = aggregate(before), aggregate(after)
    assert np.abs(one - other).max() <= 1
    assert not (one + other)[first != second].any()


def test_with_a_row_a_chunk_the_lead_is_the_cells_rows() -> None:
    """Votes without a row cancel but for chance: within five deviations of 300 rows of 3,000."""
    # Even less odd numbers in a random tenth of all has a deviation of sqrt(270) < 17.
    generator = np.random.default_rng(2)
    cells = generator.permutation(np.repeat([0, 1, 2], [300, 1200, 1500]))
    counts = fit(cells, (cells == 0).astype(np.int64), 3000, 2).vote_counts(EACH)
    leads = counts[:, 1] - counts[:, 0]
    assert abs(leads[0] - 300) < 85
    assert (leads[1:] < -1000).all()


def test_a_release_reads_back_what_it_stored() -> None:
    """Through the front door: fitted on permuted rows, stored, read, the same votes."""
    learner = Learner(hypothesis_class=hypotheses())
    check_learner(learner)
    values = np.random.default_rng(1).random((50, 2))
    fitted = fit_ensemble(
        learner,
        values,
        (values[:, 0] >= 0.5).astype(np.int64),
        permutation=np.random.default_rng(2).permutation(50),
        offsets=chunk_offsets(50, 25),
        secret=b"s" * 32,
    )
    read = read_ensemble_bytes(learner, fitted.to_bytes())
    assert read.to_bytes() == fitted.to_bytes()
    assert np.array_equal(read.vote_counts(values), fitted.vote_counts(values))
    assert np.array_equal(fitted.repeated(3).vote_counts(values), 3 * fitted.vote_counts(values))
    with pytest.raises(InvariantError):
        read.scores(values)


WHOLE = fit(np.array([0, 1, 2, 2]), np.array([0, 1, 1, 1]), 4, 2).to_bytes()


@pytest.mark.parametrize(
    "body",
    [b"", b"X" + WHOLE[1:], WHOLE[:-1], WHOLE[:8] + b"\4" + WHOLE[9:], WHOLE[:-8] + b"\0" * 8],
    ids=["nothing", "another start", "a short end", "other cells", "votes that do not add up"],
)
def test_altered_bytes_are_refused(body: bytes) -> None:
    """What is no ensemble over these cells is no state to go on from."""
    with pytest.raises(LedgerCorruptError):
        CellEnsemble.from_bytes(SPLITS, 2, body)


@pytest.mark.parametrize(
    ("learner", "key"),
    [
        (Learner(hypothesis_class=hypotheses(), rule="halving"), "learner.rule"),
        (Learner(hypothesis_class=hypotheses(), scored=True), "answers.output"),
    ],
    ids=["halving", "scores"],
)
def test_what_cells_do_not_do_is_refused(learner: Learner, key: str) -> None:
    """Before a row is read: no draws among labellings, and no scores."""
    with pytest.raises(ConfigurationError) as refused:
        check_learner(learner)
    assert str(refused.value).startswith(f"{key}: ")
