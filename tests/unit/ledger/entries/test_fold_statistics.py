"""The fold of a statistics table: charged first, released once, never between answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import LedgerCorruptError
from app.ledger.entries.entry_kinds import (
    LedgerEvent,
    ShareCharged,
    ShareReserved,
    StatisticsReleased,
)
from tests.builders.ledger.releases import opened
from tests.unit.ledger.entries.test_fold import FITTED, HALTED, answers, fold_all

if TYPE_CHECKING:
    from collections.abc import Sequence

RESERVED = ShareReserved(mechanism="statistics", epsilon="0.3", delta="1e-7")
CHARGED = ShareCharged(mechanism="statistics", epsilon="0.3", delta="1e-7")
RELEASED = StatisticsReleased(statistics="{}", private_digests={"statistics-points": "ab" * 32})
ANSWERS = ShareCharged(mechanism="answers", epsilon="0.6", delta="9e-7")
SERVING: list[LedgerEvent] = [opened(queries=4, cutoff=2), ANSWERS, RESERVED, FITTED]
ALONE: list[LedgerEvent] = [opened(queries=None, cutoff=None), RESERVED]
BETWEEN = "after the ensemble's first answer and before its last"

LEGAL: dict[str, list[LedgerEvent]] = {
    "before the ensemble": [SERVING[0], ANSWERS, RESERVED, CHARGED, RELEASED, FITTED],
    "before the first answer": [*SERVING, CHARGED, RELEASED, answers(1, [True])],
    "after the limit": [*SERVING, answers(1, [True] * 4), CHARGED, RELEASED],
    "after the cutoff": [*SERVING, answers(1, [False] * 2), CHARGED, RELEASED],
    "after a halt": [*SERVING, answers(1, [True]), HALTED, CHARGED, RELEASED],
    "charged before, released after": [*SERVING, CHARGED, answers(1, [True] * 4), RELEASED],
    "without answers": [*ALONE, CHARGED, RELEASED],
}
ILLEGAL: dict[str, tuple[list[LedgerEvent], str]] = {
    "charged between": ([*SERVING, answers(1, [True]), CHARGED], BETWEEN),
    "released between": ([*SERVING, CHARGED, answers(1, [True] * 3), RELEASED], BETWEEN),
    "between, one unstable": ([*SERVING, CHARGED, answers(1, [False]), RELEASED], BETWEEN),
    "before its charge": ([*SERVING, RELEASED], "comes before the charge of statistics"),
    "charged after": ([*ALONE, RELEASED, CHARGED], "comes before the charge of statistics"),
    "a second table": ([*ALONE, CHARGED, RELEASED, RELEASED], "releases statistics a second time"),
    "a second charge": ([*ALONE, CHARGED, CHARGED], "charges a share a second time"),
    "another share": (
        [*ALONE, ShareCharged(mechanism="statistics", epsilon="0.4", delta="1e-7")],
        "another share than was set aside",
    ),
}


@pytest.mark.parametrize("events", LEGAL.values(), ids=LEGAL)
def test_a_table_follows_its_charge(events: Sequence[LedgerEvent]) -> None:
    """Before the first answer, after the last, or where the ensemble has no share."""
    state = fold_all(events)
    assert state.statistics == RELEASED
    assert state.charge_of("statistics") == CHARGED
    assert state.reserved == ()
    assert "statistics-points" in state.private_digests


@pytest.mark.parametrize(("events", "problem"), ILLEGAL.values(), ids=ILLEGAL)
def test_what_does_not_follow_is_refused(events: Sequence[LedgerEvent], problem: str) -> None:
    """A table in the middle, uncharged or twice."""
    with pytest.raises(LedgerCorruptError, match=problem):
        fold_all(events)
