"""Learners and votes over a list: rules, failures, constants and storage."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import ConfigurationError, InvariantError, LedgerCorruptError
from app.learning.chunks import chunk_offsets
from app.learning.ensemble import Learner, check_learner, fit_ensemble, read_ensemble_bytes
from app.learning.enumerated.boxes import Boxes, axes_of, box_class
from app.learning.enumerated.enumerated_ensemble import EnumeratedEnsemble
from app.learning.enumerated.learners import fit_enumerated
from app.learning.trees.tree_lists import TreeList
from tests.unit.learning.enumerated.test_boxes import TESTS, rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

RECTANGLES = box_class("rectangles", axes_of(TESTS))
VALUES = rows(240, seed=21)
ENCODED = RECTANGLES.encode(VALUES)
PREDICTED = RECTANGLES.hypotheses.predict(ENCODED)
CONCEPT = 40
LABELS = PREDICTED[CONCEPT].astype(np.int64)


def fit(
    rule: str, labels: NDArray[np.int64], chunk_count: int = 1, *, encoded: object = None
) -> EnumeratedEnsemble:
    """Fit chunks over the rectangles."""
    given = ENCODED if encoded is None else encoded
    assert isinstance(given, np.ndarray)
    return fit_enumerated(
        rule,
        encoded=given[: len(labels)],
        labels=labels,
        offsets=chunk_offsets(len(labels), chunk_count),
        hypothesis_class=RECTANGLES,
        secret=b"t" * 32,
    )


def test_canonical_takes_the_first_best_in_public_order() -> None:
    """By q(1-q) descending, then by index: what a plain search of all hypotheses finds."""
    noisy = LABELS ^ (np.random.default_rng(1).random(240) < 0.2)
    frequencies = RECTANGLES.hypotheses.public_frequencies
    offsets = chunk_offsets(240, 12)
    expected = []
    for start, end in pairwise(offsets.tolist()):
        errors = (PREDICTED[:, start:end] != noisy[start:end]).sum(axis=1)
        ranked = [
            (errors[index], -round(q * (1 - q), 12), index) for index, q in enumerate(frequencies)
        ]
        expected.append(min(ranked)[2])
    assert fit("canonical", noisy, 12)._places.ravel().tolist() == expected


def test_halving_draws_among_the_ones_without_error() -> None:
    """Every drawn hypothesis labels the chunk right, and more than one is drawn."""
    labels = PREDICTED[-20, :12].astype(np.int64)
    places = fit("halving", labels)._places[0]
    right = np.flatnonzero((PREDICTED[:, :12] == labels).all(axis=1))
    assert len(places) == 100
    assert 1 < len(np.unique(places)) <= len(right)
    assert set(places.tolist()) <= set(right.tolist())


def test_halving_weighs_errors_where_all_err() -> None:
    """Contradictory rows leave weights exp(-2 errors): the best come most often."""
    twice = np.repeat(ENCODED[:20], 2, axis=0)
    labels = np.tile([0, 1], 20)
    places = fit("halving", labels, encoded=twice)._places[0]
    assert places.max() < RECTANGLES.size
    assert fit("halving", labels, encoded=twice).to_bytes() == (
        fit("halving", labels, encoded=twice).to_bytes()
    )


@pytest.mark.parametrize("rule", ["canonical", "halving"])
def test_one_record_moves_one_vote_at_most(rule: str) -> None:
    """Replacing a row changes only the model of its own chunk."""
    other_labels, other = LABELS.copy(), ENCODED.copy()
    other_labels[17], other[17] = 1 - LABELS[17], ENCODED[100]
    one = fit(rule, LABELS, 12)._places
    two = fit(rule, other_labels, 12, encoded=other)._places
    assert set(np.flatnonzero((one != two).any(axis=1)).tolist()) <= {0}


def test_a_chunk_with_one_label_votes_it_and_an_empty_one_class_zero() -> None:
    """Constants need no hypothesis of the list."""
    labels = np.array([1, 1, 0])
    places = fit("canonical", labels, 3)._places
    assert places.ravel().tolist() == [RECTANGLES.size + label for label in (1, 1, 0)]
    assert fit("canonical", labels[:0], 2)._places.ravel().tolist() == [RECTANGLES.size] * 2
    counts = fit("halving", labels, 3).vote_counts(VALUES[:2])
    assert counts.tolist() == [[1, 2]] * 2


def test_a_failing_search_votes_class_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a list raises inside a chunk is that chunk's constant vote."""

    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(Boxes, "error_counts", fail)
    ensemble = fit("canonical", LABELS, 4)
    assert ensemble.vote_counts(VALUES[:1]).tolist() == [[4, 0]]


def test_progress_counts_chunks() -> None:
    """Every chunk is told once, in order."""
    told: list[tuple[int, int]] = []
    fit_enumerated(
        "canonical",
        encoded=ENCODED[:6],
        labels=LABELS[:6],
        offsets=chunk_offsets(6, 3),
        hypothesis_class=RECTANGLES,
        secret=b"",
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_an_unknown_rule_is_refused() -> None:
    """As it is for trees."""
    with pytest.raises(ConfigurationError, match=r"learner.rule: unknown rule 'greedy'"):
        fit("greedy", LABELS)


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("size", [5, 200])
def test_votes_are_pluralities_of_the_places(size: int, width: int) -> None:
    """Short of the list and beyond it, constants included, one query at a time or all at once."""
    generator = np.random.default_rng(3)
    places = generator.integers(0, RECTANGLES.size + 2, (size, width))
    table = np.concatenate([PREDICTED, [[0] * 240, [1] * 240]])
    ones = (table[places].sum(axis=1) * 2 > width).sum(axis=0)
    ensemble = EnumeratedEnsemble(RECTANGLES.hypotheses, places)
    counts = ensemble.vote_counts(VALUES)
    assert counts.tolist() == np.stack([size - ones, ones], axis=1).tolist()
    assert ensemble.vote_counts(VALUES[7:8]).tolist() == counts[7:8].tolist()
    assert ensemble.vote_counts(VALUES[:0]).shape == (0, 2)
    assert (ensemble.size, ensemble.class_count) == (size, 2)


def test_ties_go_to_the_smallest_label() -> None:
    """Of three labels with one vote each, class 0."""
    trees = TreeList((), np.array([[2], [1], [0]]), depth=0, class_count=3)
    ensemble = EnumeratedEnsemble(trees, np.array([[0, 1, 2], [0, 0, 1]]))
    assert ensemble.vote_counts(np.zeros((1, 1))).tolist() == [[1, 0, 1]]


def test_an_ensemble_survives_its_bytes() -> None:
    """Stored places and the public list give the same votes."""
    learner = Learner(hypothesis_class=RECTANGLES)
    check_learner(learner)
    ensemble = fit_ensemble(
        learner,
        VALUES,
        LABELS,
        permutation=np.arange(240)[::-1],
        offsets=chunk_offsets(240, 8),
        secret=b"k",
    )
    again = read_ensemble_bytes(learner, ensemble.to_bytes())
    assert again.to_bytes() == ensemble.to_bytes()
    assert np.array_equal(again.vote_counts(VALUES), ensemble.vote_counts(VALUES))


@pytest.mark.parametrize(
    ("kept", "place", "written", "message"),
    [
        (None, 0, b"XXXX", "do not start"),
        (10, 0, b"", "do not start"),
        (-1, 0, b"", "another length"),
        (None, 4, b"\x03", "another list"),
        (None, 12, b"\x01", "those of another list"),
        (None, -4, b"\xff\xff\xff\xff", "outside the list"),
    ],
)
def test_bytes_of_another_ensemble_are_refused(
    kept: int | None, place: int, written: bytes, message: str
) -> None:
    """Header, length, list and places are checked."""
    body = bytearray(fit("canonical", LABELS, 4).to_bytes()[:kept])
    start = place % len(body)
    body[start : start + len(written)] = written
    with pytest.raises(LedgerCorruptError, match=message):
        EnumeratedEnsemble.from_bytes(RECTANGLES.hypotheses, bytes(body))


def test_places_outside_the_list_are_refused() -> None:
    """Below 0, or beyond the constants."""
    for place in (-1, RECTANGLES.size + 2):
        with pytest.raises(InvariantError, match="a place lies in the list"):
            EnumeratedEnsemble(RECTANGLES.hypotheses, np.array([[place]]))
