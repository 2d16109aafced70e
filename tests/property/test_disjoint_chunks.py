"""k learners see k disjoint sets of rows, and one that fails changes its own vote only."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.learning.chunks import chunk_offsets
from app.learning.enumerated import learners as enumerated_learners
from app.learning.estimators.estimator_ensemble import EstimatorEnsemble
from app.learning.trees import learners as tree_learners
from app.release.private_state import PERMUTATION
from tests.property.one_record import (
    DOUBLES,
    Case,
    Neighbors,
    Opened,
    estimator,
    neighbors,
    opened,
    rule,
    votes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

EXAMPLES = settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])


def distinct(pair: Neighbors) -> Neighbors:
    """Return tables whose every row has a number of its own, in a cell of its own."""
    count = len(pair.records)
    records = [((i + 0.5) / count, *record[1:]) for i, record in enumerate(pair.records)]
    return replace(pair, records=tuple(records))


def seen_by_rules(case: Case, pair: Neighbors) -> list[NDArray[np.generic]]:
    """Return the encoded rows that each learner of a built-in rule was given."""
    seen: list[NDArray[np.generic]] = []
    with pytest.MonkeyPatch.context() as patch:
        for module in (tree_learners, enumerated_learners):
            genuine = module._fit_or_constant

            def spied(*given: Any, fit: Any = genuine) -> Any:
                seen.append(given[1])
                return fit(*given)

            patch.setattr(module, "_fit_or_constant", spied)
        opened(case, pair.records, pair, source="csv")
    return seen


def check_disjoint(seen: Sequence[NDArray[np.generic]], pair: Neighbors) -> None:
    """Check that k learners saw the sample, each row once, in parts of public sizes."""
    sizes = np.diff(chunk_offsets(pair.sampled, pair.chunk_count))
    assert [len(rows) for rows in seen] == sizes.tolist()
    together = [row.tobytes() for rows in seen for row in rows]
    assert len(together) == len(set(together)) == pair.sampled


@pytest.mark.parametrize("class_name", ["trees", "thresholds", "intervals"])
@EXAMPLES
@given(pair=neighbors())
def test_learners_of_a_rule_see_disjoint_rows(class_name: str, pair: Neighbors) -> None:
    """The chunks are a partition of the sample into k parts."""
    fine = {"hypotheses__class": class_name, "hypotheses__depth": "1", "hypotheses__bins": "64"}
    pair = distinct(pair)
    check_disjoint(seen_by_rules(Case.of("fine", fine), pair), pair)


@EXAMPLES
@given(pair=neighbors())
def test_estimators_see_disjoint_rows(pair: Neighbors) -> None:
    """What each estimator was fitted on is told by itself; one label needs no estimator."""
    pair = distinct(pair)
    fitted = opened(estimator(f"{DOUBLES}.Remembers"), pair.records, pair, source="csv").ensemble
    assert isinstance(fitted, EstimatorEnsemble)
    models = [model for model in fitted._models if not isinstance(model, int)]
    seen = [row.tobytes() for model in models for row in model.rows_]  # type: ignore[attr-defined]  # the double's
    assert len(seen) == len(set(seen))


# -- a learner that fails ----------------------------------------------------------


@EXAMPLES
@given(pair=neighbors(rows_min=8, chunks_min=3))
def test_a_failing_estimator_changes_its_own_vote_only(pair: Neighbors) -> None:
    """Where a chunk's labels make it fail it votes class 0; the others vote as ever."""
    path = f"{DOUBLES}.FailsOnOddChunks"
    failing, sound = (
        opened(estimator(path, params), pair.records, pair, source="csv")
        for params in ('{"fails": true}', '{"fails": false}')
    )
    before, after = votes(sound.ensemble), votes(failing.ensemble)
    fails = np.array([is_odd_and_mixed(labels) for labels in chunk_labels(pair, failing)])
    assert not after[fails].any()
    assert np.array_equal(before[~fails], after[~fails])


@pytest.mark.parametrize(
    "case",
    [rule("canonical"), rule("halving"), rule("canonical", "intervals")],
    ids=lambda case: case.name,
)
@EXAMPLES
@given(pair=neighbors(rows_min=8, chunks_min=3), data=st.data())
def test_a_failing_rule_changes_its_own_vote_only(
    case: Case, pair: Neighbors, data: st.DataObject
) -> None:
    """Whichever chunk fails, the other learners are the same."""
    failed = data.draw(st.integers(0, pair.chunk_count - 1))
    sound = opened(case, pair.records, pair, source="csv")
    with failing_chunk(failed):
        failing = opened(case, pair.records, pair, source="csv")
    before, after = votes(sound.ensemble), votes(failing.ensemble)
    assert np.array_equal(np.delete(before, failed, axis=0), np.delete(after, failed, axis=0))
    mixed = len(set(chunk_labels(pair, sound)[failed].tolist())) > 1
    assert np.array_equal(after[failed], 0 * before[failed] if mixed else before[failed])


def chunk_labels(pair: Neighbors, found: Opened) -> list[NDArray[np.int64]]:
    """Return the labels of every chunk, by the permutation that is persisted."""
    permutation = np.frombuffer(found.pieces[PERMUTATION], dtype="<u4")[: pair.sampled]
    offsets = chunk_offsets(pair.sampled, pair.chunk_count)
    return np.split(found.rows.labels[permutation], offsets[1:-1])


def is_odd_and_mixed(labels: NDArray[np.int64]) -> bool:
    """Tell whether the double fails: it is asked where there are two labels only."""
    return bool(labels.sum() % 2) and len(np.unique(labels)) > 1


@contextmanager
def failing_chunk(failed: int) -> Iterator[None]:
    """Let the search of one chunk raise, of trees or of a list."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (tree_learners, enumerated_learners):
            patch.setattr(module, "_fit_or_constant", failing_once(module, failed))
        yield


def failing_once(module: Any, failed: int) -> Any:
    """Return the fit of a chunk, which raises where it comes to the one that fails."""
    genuine, number = module._fit_or_constant, itertools.count()

    def fail(*_: object) -> None:
        raise ArithmeticError

    def fitted(searcher: Any, *given: Any) -> Any:
        if next(number) != failed:
            return genuine(searcher, *given)
        if module is tree_learners:
            return genuine(fail, *given)
        return genuine(SimpleNamespace(choose=fail, constant=searcher.constant), *given)

    return fitted
