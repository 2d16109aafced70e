"""All chunks' logistic regressions at once, each at scikit-learn's optimum and its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from app.errors import InvariantError
from app.learning.estimators import batched_logistic
from app.learning.estimators.batched_logistic import fit_logistic
from tests.builders.learners.packed_chunks import PackedChunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

# What scikit-learn's solver leaves at its smallest tolerance, in weights of up to ten.
SOLVER = {"solver": "newton-cholesky", "tol": 1e-12, "max_iter": 1000}


@pytest.mark.parametrize("class_count", [2, 3])
@pytest.mark.parametrize(("strength", "intercept"), [(1.0, True), (0.01, True), (50.0, False)])
def test_every_chunk_is_at_scikit_learns_optimum(
    class_count: int, strength: float, *, intercept: bool
) -> None:
    """Weights and intercepts agree with its most precise solver, up to a shared intercept."""
    chunks = PackedChunks.make(5, class_count=class_count)
    weights, intercepts = chunks.logistic(inverse_strength=strength, has_intercept=intercept)
    for index, (rows, labels) in enumerate(chunks.each()):
        peer = LogisticRegression(C=strength, fit_intercept=intercept, **SOLVER)
        peer.fit(rows, labels)
        known = peer.classes_
        ours, theirs = weights[index][known], peer.coef_
        if len(known) == 2:
            ours = ours[1:]
            theirs_offset = float(np.ravel(peer.intercept_)[0])
            assert intercepts[index, known[1]] == pytest.approx(theirs_offset, abs=1e-5)
        assert np.abs(ours - theirs).max() < 1e-5
        assert np.isneginf(np.delete(intercepts[index], known)).all()


@pytest.mark.parametrize("class_count", [2, 3])
def test_a_chunk_is_fitted_alike_in_any_company(class_count: int) -> None:
    """Alone, and beside chunks that are changed, its numbers are the same to the last bit."""
    chunks = PackedChunks.make(30, class_count=class_count)
    weights, intercepts = chunks.logistic()
    for index in (0, 7, 29):
        alone = chunks.only(index).logistic()
        assert np.array_equal(alone[0][0], weights[index])
        assert np.array_equal(alone[1][0], intercepts[index])
        changed = chunks.with_one_changed(index).logistic()
        others = np.arange(30) != index
        assert np.array_equal(changed[0][others], weights[others])
        assert not np.array_equal(changed[0][index], weights[index])


def test_a_chunk_of_one_class_or_none_knows_it_alone() -> None:
    """Nothing is fitted where there is nothing to tell apart; an empty chunk says class 0."""
    weights, intercepts = fit_logistic(
        np.ones((3, 2)),
        np.array([2, 2, 2]),
        np.array([0, 3, 3]),
        class_count=3,
        inverse_strength=1.0,
        has_intercept=True,
    )
    assert not weights.any()
    assert intercepts.tolist() == [[-np.inf, -np.inf, 0.0], [0.0, -np.inf, -np.inf]]


def test_rows_that_a_plane_divides_still_have_an_optimum() -> None:
    """A weak penalty on separable rows asks for halved steps, and ends."""
    rows = np.linspace(0.0, 1.0, 20)[:, np.newaxis]
    weights, intercepts = fit_logistic(
        rows,
        (rows[:, 0] > 0.5).astype(np.int64),
        np.array([0, 20]),
        class_count=2,
        inverse_strength=1e8,
        has_intercept=True,
    )
    assert np.array_equal(rows[:, 0] * weights[0, 1, 0] + intercepts[0, 1] > 0, rows[:, 0] > 0.5)


def test_a_chunk_that_fails_moves_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever one chunk raises, the others of its group are as they were; it says class 0."""
    chunks = PackedChunks.make(6, class_count=2)
    weights, intercepts = chunks.logistic()
    spoiled = chunks.rows[int(chunks.offsets[3]), 0]
    whole = batched_logistic.minimise

    def fails_on_one(functions: batched_logistic._TwoClasses) -> object:
        if np.any(functions._design[:, 0, 0] == spoiled):
            raise np.linalg.LinAlgError("private")
        return whole(functions)

    monkeypatch.setattr(batched_logistic, "minimise", fails_on_one)
    again = chunks.logistic()
    others = np.arange(6) != 3
    assert np.array_equal(again[0][others], weights[others])
    assert np.array_equal(again[1][others], intercepts[others])
    assert again[1][3].tolist() == [0.0, -np.inf]


def test_a_function_that_cannot_fall_stays_where_it_is() -> None:
    """A step that no halving makes good is not taken, and ends the search."""

    class Rises:
        shape = (1, 1)
        slope_max = 0.0

        def values(self, which: NDArray[np.intp], points: NDArray[np.float64]) -> object:
            del which
            return np.abs(points[:, 0])

        def derivatives(self, which: NDArray[np.intp], points: object) -> tuple[object, object]:
            del points
            return np.ones((len(which), 1)), np.ones((len(which), 1, 1))

    assert batched_logistic.minimise(Rises()).tolist() == [[0.0]]  # type: ignore[arg-type]  # a double


def test_a_function_without_an_end_is_left_after_a_hundred_steps() -> None:
    """What falls for ever is left where the last step has come to."""

    class Falls:
        shape = (1, 1)
        slope_max = 0.0

        def values(self, which: NDArray[np.intp], points: NDArray[np.float64]) -> object:
            del which
            return -points[:, 0]

        def derivatives(self, which: NDArray[np.intp], points: object) -> tuple[object, object]:
            del points
            return -np.ones((len(which), 1)), np.ones((len(which), 1, 1))

    steps = float(batched_logistic.STEPS_MAX)
    assert batched_logistic.minimise(Falls()).tolist() == [[steps]]  # type: ignore[arg-type]  # a double


def test_no_chunk_is_no_fit() -> None:
    """What has no class is refused before it is worked."""
    chunk = batched_logistic._Chunk.of(
        np.zeros((0, 1)), np.zeros(0, dtype=np.int64), np.array([0, 0]), 0
    )
    with pytest.raises(InvariantError):
        batched_logistic._fit_group([chunk], inverse_strength=1.0, has_intercept=True)
