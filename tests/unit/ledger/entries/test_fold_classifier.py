"""The fold of a classifier that uses delta: never drawn between the first answer and the last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from app.errors import LedgerCorruptError
from app.ledger.entries.entry_kinds import (
    ClassifierPublished,
    LedgerEvent,
    ReleaseOpened,
    ShareCharged,
)
from app.ledger.entries.fold import LEARNER
from tests.builders.ledger.releases import opened
from tests.unit.ledger.entries.test_fold import FITTED, HALTED, answers, fold_all
from tests.unit.ledger.entries.test_fold_statistics import ANSWERS

if TYPE_CHECKING:
    from collections.abc import Sequence

CHARGED = ShareCharged(mechanism="classifier", epsilon="0.3", delta="1e-7")
PUBLISHED = ClassifierPublished(classifier="{}")
BETWEEN = "classifier that uses delta after the ensemble's first answer and before its last"


def opening(learner: str | None) -> list[LedgerEvent]:
    """Return a release of four answers that serves, bound to a learner or none."""
    first = opened(queries=4, cutoff=2)
    assert isinstance(first, ReleaseOpened)
    bound = {} if learner is None else {LEARNER: learner}
    return [replace(first, parameters={**first.parameters, **bound}), ANSWERS, FITTED]


LEGAL: dict[str, list[LedgerEvent]] = {
    "before the first answer": [*opening('"linear"'), CHARGED, PUBLISHED, answers(1, [True])],
    "after the limit": [*opening('"auto"'), answers(1, [True] * 4), CHARGED, PUBLISHED],
    "after the cutoff": [*opening('"linear"'), answers(1, [False] * 2), CHARGED, PUBLISHED],
    "after a halt": [*opening('"linear"'), answers(1, [True]), HALTED, CHARGED, PUBLISHED],
    "charged before": [*opening('"linear"'), CHARGED, answers(1, [True] * 4), PUBLISHED],
    "pure, between": [*opening(None), answers(1, [True]), CHARGED, PUBLISHED],
    "a grid, between": [*opening('"grid"'), answers(1, [True]), CHARGED, PUBLISHED],
}
ILLEGAL: dict[str, list[LedgerEvent]] = {
    "charged between": [*opening('"linear"'), answers(1, [True]), CHARGED],
    "of no known learner": [*opening('"unknown"'), answers(1, [True]), CHARGED],
    "published between": [*opening('"auto"'), CHARGED, answers(1, [True]), PUBLISHED],
}


@pytest.mark.parametrize("events", LEGAL.values(), ids=LEGAL)
def test_a_classifier_is_drawn_where_its_delta_adds(events: Sequence[LedgerEvent]) -> None:
    """Before the first answer or after the last; a pure one anywhere."""
    state = fold_all(events)
    assert state.charge_of("classifier") == CHARGED
    assert state.classifier == PUBLISHED


@pytest.mark.parametrize("events", ILLEGAL.values(), ids=ILLEGAL)
def test_a_classifier_between_answers_is_refused(events: Sequence[LedgerEvent]) -> None:
    """Its charge, and its publication under a charge of before."""
    with pytest.raises(LedgerCorruptError, match=BETWEEN):
        fold_all(events)
