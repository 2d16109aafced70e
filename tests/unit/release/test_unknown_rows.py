"""A release that an earlier version opened on rows which it read by their neighbours."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from app.answering.batch_decisions import DEFERRED
from app.answering.queries import Fresh
from app.errors import BudgetExhaustedError, ReleaseMismatchError, UnknownRowsError
from app.ledger.entries.entry_kinds import ReleaseOpened
from app.ledger.ledger import RecordedAnswer
from app.ledger.verification import verify
from app.main import learn_from_settings, open_from_settings
from app.noise.system import SystemNoise
from app.privacy.voting.query_decision import Phase
from app.release import opening as open_release
from app.release.classifier.switch import switch_phase
from app.release.release import CLASSIFIER_SERVES, DRAWS_NOTHING, REPLAYS, UNKNOWN_ROWS
from app.release.terms.hopeless_release import WARNING
from tests.builders.release.small_release import (
    HIT,
    STABLE,
    RowAnswerer,
    SmallRelease,
    ask,
    private_rows,
    scripted_noise,
    seeded_noise,
)
from tests.builders.schema.planted_encodings import block_typed

if TYPE_CHECKING:
    from pathlib import Path

SWITCHING = {
    "answers__on_cutoff": "classifier",
    "privacy__shares__classifier": "0.3",
    "privacy__shares__answers": "0.6",
}
OTHER_ROWS = private_rows(seed=8)


@pytest.fixture
def earlier(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Open releases as e54552f did, which noted nothing of how rows are read."""

    def before(**members: Any) -> Any:
        parameters = members.pop("parameters")
        parameters = {key: parameters[key] for key in parameters if key != open_release.READING}
        return ReleaseOpened(**members, parameters=parameters)

    monkeypatch.setattr(open_release, "ReleaseOpened", before)
    return monkeypatch


def reopened(release: SmallRelease) -> RowAnswerer:
    """Continue on rows of another fingerprint, without any noise to draw with."""
    return RowAnswerer(release.open(rows=OTHER_ROWS, noise=scripted_noise()), scripted_noise())


@pytest.mark.usefixtures("earlier")
def test_recorded_answers_are_served_on(small_release: SmallRelease) -> None:
    """Recorded vectors and keys get their answers; a new vector casts no vote."""
    small_release.answerer([STABLE]).answer_batch([ask(1, "key")])
    again = reopened(small_release)
    head = again.release.ledger.read_state().head
    replayed, keyed, refused = again.answer_batch([ask(1), ask(1, "key"), ask(2)])
    assert isinstance(replayed, RecordedAnswer)
    assert isinstance(keyed, RecordedAnswer)
    assert isinstance(refused, BudgetExhaustedError)
    assert again.phase is Phase.HALTED
    assert again.release.private_rows is None
    assert again.release.private_ensemble is None
    assert again.release.ledger.read_state().head == head


@pytest.mark.usefixtures("earlier")
def test_known_rows_go_on(small_release: SmallRelease) -> None:
    """Rows with one type a column have the fingerprint of before, and nothing changes."""
    small_release.answerer([STABLE]).answer_batch([ask(1)])
    again = small_release.answerer([STABLE])
    assert isinstance(again.answer_batch([ask(2)])[0], Fresh)


@pytest.mark.usefixtures("earlier")
def test_a_published_classifier_is_served_on(tmp_path: Path) -> None:
    """What is published needs no row."""
    release = SmallRelease(tmp_path, SWITCHING)
    answerer = release.answerer([HIT, HIT])
    answerer.answer_batch([ask(1), ask(2)])
    switch_phase(answerer.release, seeded_noise())
    again = reopened(release)
    assert again.phase is Phase.CLASSIFIER
    assert again.answer_batch([ask(3)]) == [DEFERRED]


@pytest.mark.usefixtures("earlier")
@pytest.mark.parametrize("table", [False, True])
def test_nothing_is_drawn_after_the_last_answer(tmp_path: Path, *, table: bool) -> None:
    """Neither a classifier nor a table of statistics follows on rows that are not known."""
    shares = {"privacy__shares__answers": "0.5", "privacy__shares__statistics": "0.1"}
    changes = shares if table else {}
    release = SmallRelease(tmp_path, {**SWITCHING, **changes})
    release.answerer([HIT, HIT]).answer_batch([ask(1), ask(2)])
    again = reopened(release).release
    assert again.phase is Phase.HALTED
    assert not again.is_switching
    assert not again.may_draw
    assert not again.must_open_statistics


@pytest.mark.usefixtures("earlier")
def test_a_student_still_follows(tmp_path: Path) -> None:
    """A student learns from answers alone, and needs no row either."""
    release = SmallRelease(tmp_path, {"answers__on_cutoff": "student"})
    release.answerer([HIT, HIT]).answer_batch([ask(1), ask(2)])
    again = reopened(release).release
    assert again.is_switching
    switch_phase(again, scripted_noise())
    assert again.classifier is not None


@pytest.mark.usefixtures("earlier")
@pytest.mark.parametrize("shares", ["0.6", "0"])
def test_what_is_not_drawn_yet_is_refused(
    tmp_path: Path, earlier: pytest.MonkeyPatch, shares: str
) -> None:
    """A release that was charged, and has nothing to serve, ends the start in one line."""
    release = SmallRelease(tmp_path, {**SWITCHING, "privacy__shares__answers": shares})
    with earlier.context() as crashing:
        crashing.delattr(open_release, "draw_ensemble")
        if shares == "0":
            release.open()
        else:
            with pytest.raises(NameError):
                release.open()
    with pytest.raises(UnknownRowsError) as refused:
        release.open(rows=OTHER_ROWS)
    assert str(refused.value).startswith(f"data.source: {UNKNOWN_ROWS}: {DRAWS_NOTHING}; ")
    assert "\n" not in str(refused.value)


def test_other_rows_of_a_new_release_are_refused(small_release: SmallRelease) -> None:
    """A release of this version has read its rows one by one, so that others are others."""
    small_release.open()
    with pytest.raises(ReleaseMismatchError, match="holds other rows than those") as refused:
        small_release.open(rows=OTHER_ROWS)
    assert not isinstance(refused.value, UnknownRowsError)


def test_a_release_on_mixed_types(tmp_path: Path, earlier: pytest.MonkeyPatch) -> None:
    """Of a column of 37 and '37' the operator hears why nothing new is answered."""
    database = tmp_path / "rows.db"
    with sqlite3.connect(database) as connection:
        connection.execute("create table people (margin, 'group', answer)")
        rows = [(99 if place % 3 else place, "a", "no") for place in range(59)]
        values = [*rows, ("37", "b", "yes")]
        connection.executemany("insert into people values (?, ?, ?)", values)
    connection.close()
    changes = {
        **SWITCHING,
        "data__source": f"sqlite:///{database}",
        "data__query": "select * from people",
        "data__missing": '["99.0"]',
        "ledger__url": f"sqlite:///{tmp_path / 'conclave.db'}",
    }
    settings = SmallRelease(tmp_path, changes).settings()
    with earlier.context() as planted:
        block_typed(planted)
        open_from_settings(settings, noise=SystemNoise(), even_if_hopeless=True).ledger.close()
    said: list[str] = []
    again = open_from_settings(settings, noise=SystemNoise(), warn=said.append)
    assert again.has_unknown_rows
    assert said == [WARNING, f"data.source {UNKNOWN_ROWS}: {DRAWS_NOTHING}; {REPLAYS}"]
    assert CLASSIFIER_SERVES not in said[1]
    again.ledger.close()
    with pytest.raises(UnknownRowsError, match=DRAWS_NOTHING):
        learn_from_settings(settings, public=None, noise=SystemNoise())
    ledger = SmallRelease(tmp_path, changes).ledger()
    assert verify(ledger).head == ledger.read_state().head
