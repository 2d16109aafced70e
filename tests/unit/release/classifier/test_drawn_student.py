"""The switch to a student: no charge, no private row, one publication, whatever fails."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.rows import PrivateRows
from app.data.vectors import replay_key
from app.errors import LedgerCorruptError, LedgerUnavailableError
from app.ledger.entries.entry_kinds import ClassifierPublished
from app.ledger.ledger import AnswerRow, RecordedAnswer
from app.ledger.verification import verify
from app.noise.scripted import ScriptedNoise
from app.privacy.voting.query_decision import Phase, Sequel
from app.release.classifier import drawn_student as module
from app.release.classifier.drawn_student import taught, train_student
from app.release.classifier.switch import classifier_of, switch_phase
from tests.builders.ledger.faulty_ledger import FaultyLedger
from tests.builders.ledger.releases import tamper
from tests.builders.release.opened_release import NoNoise, changed, kinds, pieces, statement_of
from tests.builders.release.small_release import (
    HIT,
    STABLE,
    RowAnswerer,
    SmallRelease,
    VotesByMargin,
    ask,
    private_rows,
)
from tests.builders.release.student_release import NEIGHBORS, STUDENT, TREE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.release.classifier.published_classifier import TrainedStudent
    from app.release.release import Release
    from tests.builders.ledger.faulty_ledger import Fault

ODD = "tests.builders.learners.odd_estimators"
MARGINS = (-30, -1, 1, 30)


@pytest.fixture
def taught_release(small_release: SmallRelease) -> SmallRelease:
    """Return a release that a student follows, without a classifier's share."""
    return changed(small_release, **STUDENT)


def answered(release: SmallRelease, words: Sequence[int] = (STABLE,) * 4) -> Release:
    """Give every answer of the ensemble, and return the release that is to switch."""
    answerer = release.answerer(words)
    answerer.answer_batch([ask(margin) for margin in MARGINS])
    assert answerer.release.is_switching
    return answerer.release


def switched(release: SmallRelease, words: Sequence[int] = (STABLE,) * 4) -> Release:
    """Switch, without a draw."""
    given = answered(release, words)
    switch_phase(given, NoNoise())
    return given


def answers_with(labels: Sequence[int]) -> list[AnswerRow]:
    """Return stable answers with these labels."""
    return [
        AnswerRow(
            bytes(32), replay_key(ask(margin).vector), RecordedAnswer(number, label, stable=True)
        )
        for number, (margin, label) in enumerate(zip(MARGINS, labels, strict=True), start=1)
    ]


def document(release: Release) -> dict[str, object]:
    """Return what was published."""
    assert release.classifier is not None
    given: dict[str, object] = json.loads(release.classifier.json)
    return given


@pytest.mark.parametrize("learner", [{}, TREE, NEIGHBORS], ids=["rule", "tree", "neighbors"])
def test_a_student_is_published_without_a_charge(
    taught_release: SmallRelease, learner: dict[str, str]
) -> None:
    """It answers as the ensemble did, no share is spent for it, and the ledger verifies."""
    release = switched(changed(taught_release, **learner))
    assert release.phase is Phase.CLASSIFIER
    assert not release.is_switching
    assert [share.mechanism for share in release.state.charged] == ["relabel", "answers"]
    assert release.state.reserved == ()
    assert kinds(taught_release)[-2:] == ["AnswersReleased", "StudentPublished"]
    assert release.classifier is not None
    vectors = [ask(margin).vector for margin in MARGINS]
    assert release.classifier.predict_many(vectors) == ["no", "no", "yes", "yes"]
    assert [release.classifier.predict(vector) for vector in vectors] == ["no", "no", "yes", "yes"]
    assert release.classifier.predict_many([]) == []
    verify(release.ledger, expect_head=None)


def test_no_private_row_is_kept_for_a_student(taught_release: SmallRelease) -> None:
    """Where nothing may be drawn the rows are let go as soon as the ensemble stands."""
    assert taught_release.open().private_rows is None


def test_what_follows_decides_whether_rows_are_kept(small_release: SmallRelease) -> None:
    """Rows are kept while either limit may lead to a draw, and let go once the student's is met."""
    either = changed(small_release, answers__on_cutoff="student")
    assert either.open().private_rows is not None
    answerer = either.answerer([HIT, HIT])
    answerer.answer_batch([ask(1), ask(2)])
    assert answerer.release.sequel is Sequel.STUDENT
    assert answerer.release.private_rows is None
    switch_phase(answerer.release, NoNoise())
    assert kinds(either)[-1] == "StudentPublished"
    assert [share.mechanism for share in answerer.release.state.reserved] == ["classifier"]


def test_a_limit_may_lead_to_the_classifier_beside_a_student(small_release: SmallRelease) -> None:
    """With on_cutoff = student, the last answer still leads to the classifier that is drawn."""
    either = changed(small_release, answers__on_cutoff="student")
    release = answered(either)
    assert release.sequel is Sequel.CLASSIFIER
    assert release.private_rows is not None


def test_an_unstable_answer_teaches_nothing(taught_release: SmallRelease) -> None:
    """A coin's label is left out, and so is an abstention; a rule's student is a tree."""
    for unstable in ("abstain", "coin"):
        folder = taught_release.folder / unstable
        folder.mkdir()
        given = changed(SmallRelease(folder, taught_release.changes), answers__unstable=unstable)
        words = [STABLE, HIT, 0, STABLE, STABLE] if unstable == "coin" else [STABLE, HIT]
        published = document(switched(given, words + [STABLE] * 2))
        assert published["student"] == {"labelled_queries": 3, "rule": "canonical"}
        assert (published["version"], published["format"]) == (1, "conclave-classifier")


def test_the_document_of_an_estimator_tells_no_query(taught_release: SmallRelease) -> None:
    """It names the estimator, its parameters and how many answers taught it."""
    release = switched(changed(taught_release, **NEIGHBORS))
    published = document(release)
    assert published["version"] == 3
    assert published["student"] == {
        "labelled_queries": 4,
        "estimator": NEIGHBORS["student__estimator"],
        "params": {"n_neighbors": 1},
        "otherwise": "no",
    }
    assert published.keys().isdisjoint({"tree", "halfspace", "predictor"})
    assert "-30" not in str(published["student"])


@pytest.mark.parametrize(
    ("words", "labelled", "label"),
    [([HIT, HIT], 0, "no"), ([STABLE, HIT, HIT], 1, "yes")],
    ids=["no answer", "one label"],
)
def test_with_nothing_to_tell_apart_a_student_is_constant(
    taught_release: SmallRelease, words: list[int], labelled: int, label: str
) -> None:
    """Without a labelled query it gives the first class, and with one label that label."""
    given = changed(taught_release, answers__on_cutoff="student", **TREE)
    answerer = given.answerer(words)
    answerer.answer_batch([ask(margin) for margin in (5, 6, 7)][: len(words)])
    switch_phase(answerer.release, NoNoise())
    published = document(answerer.release)
    assert published["tree"] == {"label": label}
    assert published["student"] == {
        "labelled_queries": labelled,
        "estimator": TREE["student__estimator"],
        "params": {"max_depth": 3},
    }
    assert "student" not in pieces(given)


@pytest.mark.parametrize("name", ["FailsToFit", "PredictsOddly", "CannotBeStored"])
def test_a_learner_that_fails_leaves_the_label_most_queries_have(
    taught_release: SmallRelease, name: str
) -> None:
    """An exception, a label that is none and a model without bytes give a constant that says so."""
    given = changed(taught_release, student__estimator=f"{ODD}.{name}")
    answerer = given.answerer([STABLE] * 4)
    answerer.answer_batch([ask(margin) for margin in (-25, 1, 2, 3)])
    switch_phase(answerer.release, NoNoise())
    published = document(answerer.release)
    assert published["tree"] == {"label": "yes"}
    assert isinstance(published["student"], dict)
    assert published["student"]["failed"] is True


@pytest.mark.parametrize(
    ("faults", "failures"),
    [(["refused", "refused"], 2), (["lost"], 1), (["refused"], 1), ([], 0)],
)
def test_a_student_is_trained_once(
    taught_release: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    faults: list[Fault | None],
    failures: int,
) -> None:
    """A publication that fails is tried again with the same student, and is made once."""
    given = changed(taught_release, **TREE)
    ledger = FaultyLedger(given)
    answerer = given.answerer([STABLE] * 4, ledger=ledger)
    answerer.answer_batch([ask(margin) for margin in MARGINS])
    trained: list[TrainedStudent] = []

    def train(release: Release) -> TrainedStudent:
        trained.append(train_student(release))
        return trained[-1]

    monkeypatch.setattr(module, "train_student", train)
    ledger.faults = list(faults)
    for _ in range(failures):
        assert answerer.release.classifier is None
        with pytest.raises(LedgerUnavailableError):
            switch_phase(answerer.release, NoNoise())
    switch_phase(answerer.release, NoNoise())
    (only,) = trained
    assert answerer.release.classifier == only.classifier
    assert answerer.release.trained_student is None
    assert kinds(given).count("StudentPublished") == 1


@pytest.mark.parametrize("learner", [{}, TREE], ids=["rule", "estimator"])
def test_a_restart_serves_the_published_student(
    taught_release: SmallRelease, learner: dict[str, str]
) -> None:
    """It is read with its piece, byte for byte the same document, and never trained again."""
    given = changed(taught_release, **learner)
    release = switched(given)
    restarted = given.open(noise=ScriptedNoise([]))
    assert not restarted.is_switching
    assert restarted.private_ensemble is None
    assert restarted.classifier == release.classifier
    assert restarted.classifier is not None
    assert [restarted.classifier.predict(ask(margin).vector) for margin in (-20, 20)] == [
        "no",
        "yes",
    ]
    before = kinds(given)
    switch_phase(restarted, NoNoise())
    assert kinds(given) == before


@pytest.mark.parametrize("damage", ["altered", "missing"])
def test_a_damaged_student_refuses_to_start(taught_release: SmallRelease, damage: str) -> None:
    """The fitted estimator is never unpickled unless its digest is the one that is bound."""
    given = changed(taught_release, **TREE)
    switched(given)
    tamper(given.folder / "conclave.db", statement_of(damage, "student"))
    with pytest.raises(LedgerCorruptError, match="student"):
        given.open()


def test_a_crash_before_the_publication_trains_the_same_student(
    taught_release: SmallRelease,
) -> None:
    """What another start trains on the same answers is the same, bytes and document."""
    given = changed(taught_release, **TREE)
    first = train_student(answered(given))
    restarted = given.open()
    assert restarted.is_switching
    again = train_student(restarted)
    assert again.classifier.json == first.classifier.json
    assert again.pieces == first.pieces


def test_of_two_processes_one_publishes(
    taught_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was overtaken while it trained serves what the other published."""
    given = changed(taught_release, **TREE)
    slow, fast = answered(given), given.open()

    def overtaken(release: Release) -> TrainedStudent:
        trained = train_student(release)
        monkeypatch.setattr(module, "train_student", train_student)
        switch_phase(fast, NoNoise())
        return trained

    monkeypatch.setattr(module, "train_student", overtaken)
    switch_phase(slow, NoNoise())
    assert slow.classifier == fast.classifier
    assert kinds(given).count("StudentPublished") == 1


def test_a_classifier_that_was_learned_before_comes_first(small_release: SmallRelease) -> None:
    """At most one classifier is published: where one was learned no student is trained."""
    given = changed(small_release, answers__after="student")
    release = answered(given)
    ledger = given.ledger()
    assert classifier_of(given.configuration(), ledger).charge()
    drawn = train_student(release).classifier
    with ledger.transaction() as transaction:
        transaction.append(ClassifierPublished(classifier=drawn.json.decode()))
    switch_phase(release, NoNoise())
    assert "StudentPublished" not in kinds(given)
    assert release.classifier is not None


def test_a_missing_answer_stops_the_training(taught_release: SmallRelease) -> None:
    """A student of fewer answers than the entries count is never published."""
    release = answered(taught_release)
    tamper(
        taught_release.folder / "conclave.db",
        "DELETE FROM idempotency_keys",
        "DELETE FROM answers WHERE query_id = 2",
    )
    with pytest.raises(LedgerCorruptError, match="missing from the answers table"):
        switch_phase(release, NoNoise())


@pytest.mark.parametrize("learner", [{}, TREE, NEIGHBORS], ids=["rule", "tree", "neighbors"])
def test_equal_transcripts_have_equal_students(
    small_release: SmallRelease, learner: dict[str, str]
) -> None:
    """On neighbouring data whose answers are the same, the students are the same to the byte."""
    rows = private_rows()
    trained = []
    neighboring = np.append(rows.labels[:-1], 1 - rows.labels[-1])
    for name, labels in (("one", rows.labels), ("other", neighboring)):
        folder = small_release.folder / name
        folder.mkdir()
        given = changed(SmallRelease(folder), **STUDENT, **learner)
        release = given.open(rows=PrivateRows(values=rows.values, labels=labels))
        release.private_ensemble = VotesByMargin()
        answerer = RowAnswerer(release, ScriptedNoise([STABLE, HIT, STABLE, STABLE]))
        answerer.answer_batch([ask(margin) for margin in MARGINS])
        switch_phase(release, NoNoise())
        trained.append((document(release), pieces(given).get("student")))
    assert trained[0] == trained[1]


def test_a_student_learns_the_released_labels(taught_release: SmallRelease) -> None:
    """Of two transcripts that differ in one label the students differ."""
    students = [
        taught(taught_release.configuration(), answers_with(labels), seed=b"").classifier.json
        for labels in ((0, 0, 1, 1), (0, 1, 1, 1))
    ]
    assert students[0] != students[1]
