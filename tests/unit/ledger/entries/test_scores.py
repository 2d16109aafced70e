"""Answers with scores: what an entry may say of bins and units, and what verification finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from app.errors import LedgerCorruptError, VerificationError
from app.ledger.entries.entry_kinds import (
    AnswersReleased,
    EnsembleFitted,
    LedgerEvent,
    ScoresReleased,
)
from app.ledger.verification import verify
from tests.builders.ledger.releases import create, opened, scores_of_every_kind, shares, tamper
from tests.builders.ledger.whole_bodies import store_whole
from tests.unit.ledger.entries.test_fold import REFRESHING, fold_all, refreshed

if TYPE_CHECKING:
    from pathlib import Path

SCORES = {"answers.output": '"score"'}
FITTED = EnsembleFitted(size=8, private_digests={"ensemble": "cd" * 32})
OPENED: list[LedgerEvent] = [opened(cutoff=4, parameters=SCORES), *shares(), FITTED]
# Bin 3 of 10, bin 3 of 10 shifted, an unstable one, and the one that uses the last unit.
RANGE = ScoresReleased(
    first_query_id=1,
    digests=[f"{number:032x}" for number in range(4)],
    labels=[0, 0, None, 1],
    stable=[True, True, False, False],
    precisions=[10, 10, 7, 10],
    bins=[3, 3, None, None],
    shifted=[False, True, False, False],
    units=[0, 1, 2, 1],
)


def test_units_are_counted_and_answers_apart() -> None:
    """The cutoff's counter is the sum of units, however many answers they are."""
    state = fold_all([*OPENED, RANGE])
    assert (state.answered, state.unstable) == (4, 4)


def test_the_second_class_begins_at_one_half() -> None:
    """A mid-point of exactly 1/2 stands for the second class, in either histogram."""
    one = replace(RANGE, digests=RANGE.digests[:2], labels=[1, 1], stable=[True, True])
    middle = replace(one, precisions=[3, 2], bins=[1, 1], shifted=[False, True], units=[0, 1])
    assert fold_all([*OPENED, middle]).answered == 2


@pytest.mark.parametrize(
    ("changes", "account"),
    [
        ({"units": [0, 0, 2, 1]}, "units"),
        ({"units": [1, 1, 2, 1]}, "units"),
        ({"units": [0, 1, 1, 1]}, "units"),
        ({"units": [0, 1, 2, 2]}, "units"),
        ({"units": [0, 1, 2, 0]}, "units"),
        ({"bins": [10, 3, None, None]}, "another bin"),
        ({"bins": [None, 3, None, None]}, "another bin"),
        ({"bins": [3, 3, 3, None]}, "another bin"),
        ({"bins": [3, 11, None, None]}, "another bin"),
        ({"shifted": [True, True, False, False], "units": [1, 1, 2, 0]}, "units"),
        ({"shifted": [False, True, True, False]}, "another bin"),
        ({"labels": [1, 0, None, 1]}, "another bin"),
        ({"labels": [0, 1, None, 1]}, "another bin"),
        ({"precisions": [10, 10, 7]}, "a precision"),
        ({"units": [0, 1, 2]}, "a precision"),
        ({"precisions": [1, 10, 7, 10]}, "does not fit its kind"),
        ({"units": [0, 3, 2, 1]}, "does not fit its kind"),
    ],
)
def test_scores_that_no_run_gives_are_refused(changes: dict[str, Any], account: str) -> None:
    """Bins, labels and units that the tests cannot have come to do not fold."""
    with pytest.raises(LedgerCorruptError, match=account):
        fold_all([*OPENED, replace(RANGE, **changes)])


def test_a_stable_answer_never_uses_the_last_unit() -> None:
    """At the last unit the run ends, so that no shifted bin is released with it."""
    last = opened(cutoff=1, parameters=SCORES)
    shifted = replace(
        RANGE,
        digests=RANGE.digests[:1],
        labels=[0],
        stable=[True],
        precisions=[10],
        bins=[3],
        shifted=[True],
        units=[1],
    )
    with pytest.raises(LedgerCorruptError, match="units"):
        fold_all([last, *shares(), FITTED, shifted])


def test_nothing_follows_the_last_unit() -> None:
    """An answer after the run's end is refused, in the same entry and in the next."""
    after = replace(RANGE, stable=[True, True, False, False], units=[0, 1, 2, 1])
    with pytest.raises(LedgerCorruptError, match="units"):
        fold_all([*OPENED, after, replace(RANGE, first_query_id=5)])
    within = replace(
        RANGE,
        labels=[None, None, None, None],
        stable=[False] * 4,
        bins=[None] * 4,
        shifted=[False] * 4,
        units=[2, 2, 0, 0],
    )
    with pytest.raises(LedgerCorruptError, match="units"):
        fold_all([*OPENED, within])


def test_a_release_answers_what_it_was_opened_to() -> None:
    """Labels do not follow in a release of scores, nor scores in one of labels."""
    labels = AnswersReleased(first_query_id=1, digests=RANGE.digests[:1], labels=[0], stable=[True])
    with pytest.raises(LedgerCorruptError, match="answers otherwise"):
        fold_all([*OPENED, labels])
    with pytest.raises(LedgerCorruptError, match="answers otherwise"):
        fold_all([opened(cutoff=4), *shares(), FITTED, RANGE])


def test_scores_need_a_cutoff() -> None:
    """Without a count of units no score is legal."""
    with pytest.raises(LedgerCorruptError, match="no count of units"):
        fold_all([opened(cutoff=None, parameters=SCORES), *shares(), FITTED, RANGE])


def test_every_unit_ends_an_epoch() -> None:
    """A stable answer's unit binds the next noise too, under the count of units."""
    release: list[LedgerEvent] = [opened(cutoff=9, parameters=SCORES), *shares(), REFRESHING]
    used = replace(
        RANGE,
        digests=RANGE.digests[:3],
        labels=RANGE.labels[:3],
        stable=RANGE.stable[:3],
        precisions=RANGE.precisions[:3],
        bins=RANGE.bins[:3],
        shifted=RANGE.shifted[:3],
        units=RANGE.units[:3],
    )
    state = fold_all([*release, used, refreshed(3), replace(used, first_query_id=4), refreshed(6)])
    assert (state.unstable, state.refreshed_at) == (6, 6)
    with pytest.raises(LedgerCorruptError, match="drew no noise"):
        fold_all([*release, used, refreshed(3), *([replace(used, first_query_id=4)] * 2)])


def test_a_ledger_of_scores_verifies(tmp_path: Path) -> None:
    """What was recorded reads back, and every digest, bin and unit agrees."""
    path = tmp_path / "scores.db"
    answers = [row.answer for row in scores_of_every_kind(path).answers_after(0)]
    assert [(each.precision, each.bin_index, each.bin_shifted, each.units) for each in answers] == [
        (10, 3, False, 0),
        (10, 3, True, 1),
        (1000, None, False, 2),
        (10, 3, False, 0),
        (10, None, False, 1),
    ]
    report = verify(create(path))
    assert (report.answered, report.unstable) == (5, 4)


@pytest.mark.parametrize(
    ("change", "account"),
    [
        ("bin_index = 2 WHERE query_id = 1", "answer 1 .* another score"),
        ("bin_shifted = false WHERE query_id = 2", "answer 2 .* another score"),
        ("units = 1 WHERE query_id = 3", "answer 3 .* another score"),
        ("precision = 11 WHERE query_id = 4", "answer 4 .* another score"),
        ("precision = NULL WHERE query_id = 5", "answer 5 .* another score"),
    ],
)
@pytest.mark.parametrize("is_whole", [False, True])
def test_an_altered_score_is_named(
    tmp_path: Path, change: str, account: str, *, is_whole: bool
) -> None:
    """A column of a score that does not agree with the chain is found, as its body is stored."""
    path = tmp_path / "scores.db"
    scores_of_every_kind(path).close()
    if is_whole:
        store_whole(path)
    else:
        account = "entry [0-9]* does not have the hash"
    tamper(path, f"UPDATE answers SET {change}")  # noqa: S608 -- made of constants
    with pytest.raises(VerificationError, match=account):
        verify(create(path))
