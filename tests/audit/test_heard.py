"""What an outsider can check of one run: each promise is broken by what breaks it, and only so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.auditing.transcripts.reply_checks import (
    BARE,
    COUNTED,
    ENDED,
    KEPT,
    NUMBERED,
    REPEATED,
    Answer,
    Life,
    broken_promises,
)

pytestmark = pytest.mark.audit

FIRST = Answer(question=0, query_id=1, label="no", stable=True, replayed=False)
HIT = Answer(question=1, query_id=2, label=None, stable=False, replayed=False)
AGAIN = replace(FIRST, replayed=True)
PUBLISHED = Answer(question=2, query_id=None, label="yes", stable=True, replayed=False)
BEFORE = Life(answers=(FIRST, HIT), answered=2, unstable=1, entries=("a", "b"))
AFTER = Life(answers=(AGAIN, PUBLISHED), answered=2, unstable=1, entries=("a", "b", "c"))


def broken(*lives: Life, cutoff: int | None = 1, abstains: bool = True) -> frozenset[str]:
    """Return what some lives broke."""
    return broken_promises(lives, cutoff=cutoff, abstains=abstains)


def test_a_release_that_keeps_its_promises_breaks_none() -> None:
    """Answers, a hit at the cutoff, a restart, a replay and a published answer are in order."""
    assert broken(BEFORE, AFTER) == frozenset()
    assert broken(BEFORE, AFTER, cutoff=None, abstains=False) == frozenset()


def test_a_number_that_is_missing_or_given_twice_breaks_the_numbering() -> None:
    """Fresh answers count from 1."""
    assert NUMBERED in broken(replace(BEFORE, answers=(replace(FIRST, query_id=2), HIT)))
    assert NUMBERED in broken(replace(BEFORE, answers=(FIRST, replace(HIT, query_id=1))))


def test_a_counter_that_lags_is_found() -> None:
    """Either counter, in either process, and one that was not given."""
    assert broken(replace(BEFORE, answered=1), AFTER) == {COUNTED}
    assert broken(BEFORE, replace(AFTER, unstable=0)) == {COUNTED}
    assert broken(BEFORE, replace(AFTER, answered=-1)) == {COUNTED}


def test_a_hit_beyond_the_cutoff_is_found() -> None:
    """Hits count over all processes."""
    more = Life((replace(HIT, question=3, query_id=3),), 3, 2, BEFORE.entries)
    assert broken(BEFORE, more) == {ENDED}
    assert broken(BEFORE, more, cutoff=2) == frozenset()


@pytest.mark.parametrize(
    "answer",
    [
        replace(AGAIN, label="yes"),
        replace(AGAIN, query_id=7),
        replace(AGAIN, question=9),
    ],
)
def test_an_answer_that_is_not_given_again_alike_is_found(answer: Answer) -> None:
    """Another label or number for a recorded vector, and a replay of what was never asked."""
    assert broken(BEFORE, replace(AFTER, answers=(answer,))) == {REPEATED}


def test_a_vector_that_is_answered_afresh_is_found() -> None:
    """A draw of its own for a recorded vector is no replay."""
    afresh = Life((replace(FIRST, query_id=3),), 3, 1, BEFORE.entries)
    assert broken(BEFORE, afresh) == {REPEATED}


@pytest.mark.parametrize("entries", [(), ("a",), ("a", "x", "c")])
def test_entries_that_are_gone_or_changed_are_found(entries: tuple[str, ...]) -> None:
    """A ledger only grows."""
    assert broken(BEFORE, replace(AFTER, entries=entries)) == {KEPT}


def test_a_label_of_an_unstable_answer_is_found() -> None:
    """Where answers abstain an unstable one has no label; where they toss a coin it has."""
    labelled = replace(BEFORE, answers=(FIRST, replace(HIT, label="no")))
    assert broken(labelled) == {BARE}
    assert broken(labelled, abstains=False) == frozenset()
