"""The switch: one charge, one draw, one publication, whatever becomes of its commits."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from app.errors import InvariantError, LedgerUnavailableError
from app.ledger.database.locks import ANOTHER_DRAWS, DRAW_SUFFIX
from app.ledger.verification import verify
from app.noise.scripted import ScriptedNoise
from app.privacy.voting.query_decision import Phase
from app.release.classifier import switch as module
from app.release.classifier.switch import answered_points, draw_classifier, switch_phase
from tests.builders.crash.faulting import set_pragma
from tests.builders.ledger.faulty_ledger import FaultyLedger
from tests.builders.release.opened_release import changed
from tests.builders.release.small_release import (
    STABLE,
    SmallRelease,
    ask,
    private_rows,
    seeded_noise,
)

if TYPE_CHECKING:
    from app.noise.source import NoiseSource
    from app.release.classifier.published_classifier import PublishedClassifier
    from app.release.release import Release
    from tests.builders.ledger.faulty_ledger import Fault


MARGINS = (-30, -1, 1, 30)
SQLITE_PAGES_MAX = 1 << 30


def answered(release: SmallRelease) -> Release:
    """Give every answer of the ensemble, and return the release that is to switch."""
    answerer = release.answerer([STABLE] * 4)
    answerer.answer_batch([ask(margin) for margin in MARGINS])
    assert answerer.release.is_switching
    return answerer.release


def kinds(release: Release) -> list[str]:
    """Return the kinds of the entries after the ensemble's answers."""
    return [str(entry["kind"]) for entry in release.ledger.public_entries(6, 100)]


@pytest.mark.parametrize(
    ("faults", "failures"),
    [([None, "refused", None, "refused"], 2), ([None, "lost"], 1), (["refused"], 1), ([], 0)],
)
def test_the_classifier_is_drawn_once(
    small_release: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    faults: list[Fault | None],
    failures: int,
) -> None:
    """A publication that fails, which may tell of the draw, is tried again with the same draw."""
    ledger = FaultyLedger(small_release)
    answerer = small_release.answerer([STABLE] * 4, ledger=ledger)
    answerer.answer_batch([ask(margin) for margin in MARGINS])
    drawn: list[PublishedClassifier] = []

    def draw(release: Release, noise: NoiseSource) -> PublishedClassifier:
        drawn.append(draw_classifier(release, noise))
        return drawn[-1]

    monkeypatch.setattr(module, "draw_classifier", draw)
    noise = seeded_noise(5)
    ledger.faults = list(faults)
    for _ in range(failures):
        assert answerer.release.classifier is None
        with pytest.raises(LedgerUnavailableError):
            switch_phase(answerer.release, noise)
    switch_phase(answerer.release, noise)
    (only,) = drawn
    assert answerer.release.classifier == only
    assert answerer.release.private_classifier is None
    assert [share.mechanism for share in ledger.read_state().charged] == [
        "relabel",
        "answers",
        "classifier",
    ]


def test_the_charge_has_an_entry_of_its_own_before_rows_are_read(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the draw begins the share is committed as charged and nothing is reserved."""
    release = answered(small_release)

    def draw(given: Release, noise: NoiseSource) -> PublishedClassifier:
        state = small_release.ledger().read_state()
        assert state.charge_of("classifier") is not None
        assert state.reserved == ()
        assert state.classifier is None
        return draw_classifier(given, noise)

    monkeypatch.setattr(module, "draw_classifier", draw)
    switch_phase(release, seeded_noise())
    assert kinds(release) == ["ShareCharged", "ClassifierPublished"]
    verify(release.ledger, expect_head=None)


def test_a_crash_after_the_charge_draws_at_the_next_start(small_release: SmallRelease) -> None:
    """Charged and not published, a restart waits for the switch and draws under that charge."""
    with pytest.raises(InvariantError, match="the scripted noise has ended"):
        switch_phase(answered(small_release), ScriptedNoise([]))
    restarted = small_release.open(noise=ScriptedNoise([]))
    assert restarted.is_switching
    assert restarted.state.charge_of("classifier") is not None
    assert restarted.private_rows is not None
    switch_phase(restarted, seeded_noise())
    assert kinds(restarted) == ["ShareCharged", "ClassifierPublished"]


def test_a_published_classifier_is_never_drawn_again(small_release: SmallRelease) -> None:
    """A restart serves the published document, byte for byte, and keeps no row."""
    release = answered(small_release)
    switch_phase(release, seeded_noise())
    restarted = small_release.open(noise=ScriptedNoise([]))
    assert not restarted.is_switching
    assert restarted.phase is Phase.CLASSIFIER
    assert restarted.classifier == release.classifier
    assert restarted.private_rows is None
    assert restarted.private_ensemble is None
    switch_phase(restarted, ScriptedNoise([]))
    assert kinds(restarted) == ["ShareCharged", "ClassifierPublished"]


def test_rows_are_let_go_once_the_classifier_is_published(small_release: SmallRelease) -> None:
    """They are kept until the publication is committed, and no longer."""
    release = answered(small_release)
    assert release.private_rows is not None
    switch_phase(release, seeded_noise())
    assert release.private_rows is None
    with pytest.raises(InvariantError, match="kept until the classifier is drawn"):
        release.rows_for_drawing()


def test_of_two_processes_one_publishes(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who lost its turn with its file and was overtaken serves what the other published."""
    slow, fast = answered(small_release), small_release.open()

    def overtaken(given: Release, noise: NoiseSource) -> PublishedClassifier:
        drawn = draw_classifier(given, noise)
        monkeypatch.setattr(module, "draw_classifier", draw_classifier)
        (small_release.folder / f"conclave.db{DRAW_SUFFIX}1").unlink()
        switch_phase(fast, seeded_noise(8))
        return drawn

    monkeypatch.setattr(module, "draw_classifier", overtaken)
    switch_phase(slow, seeded_noise(7))
    assert slow.classifier == fast.classifier
    assert kinds(slow) == ["ShareCharged", "ClassifierPublished"]


@pytest.mark.parametrize("pragma", ["max_page_count", "query_only"])
def test_after_a_refused_publication_no_other_process_draws(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch, pragma: str
) -> None:
    """The refusal may tell of the draw: it is published once there is room, and no second one."""
    first, second = answered(small_release), small_release.open()

    def draw_and_fill(given: Release, noise: NoiseSource) -> PublishedClassifier:
        drawn = draw_classifier(given, noise)
        # Longer than what is left of a page, as a larger class would make it.
        drawn = replace(drawn, json=drawn.json + b" " * 20_000)
        set_pragma(given.ledger, pragma, 1)
        return drawn

    monkeypatch.setattr(module, "draw_classifier", draw_and_fill)
    for _ in range(2):
        with pytest.raises(LedgerUnavailableError):
            switch_phase(first, seeded_noise(7))
    monkeypatch.setattr(module, "draw_classifier", pytest.fail)
    with pytest.raises(LedgerUnavailableError, match=ANOTHER_DRAWS):
        switch_phase(second, seeded_noise(8))
    kept = first.private_classifier
    assert kept is not None
    set_pragma(first.ledger, pragma, SQLITE_PAGES_MAX if pragma == "max_page_count" else 0)
    switch_phase(first, seeded_noise(7))
    switch_phase(second, seeded_noise(8))
    assert first.classifier == second.classifier
    published = first.ledger.read_state().classifier
    assert published is not None
    assert published.classifier == kept.json.decode()
    assert kinds(second) == ["ShareCharged", "ClassifierPublished"]


def test_a_process_that_ends_leaves_its_draw_to_another(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its result is lost with it, so that the next process draws, under the same charge."""
    first, second = answered(small_release), small_release.open()

    def draw_and_fill(given: Release, noise: NoiseSource) -> PublishedClassifier:
        drawn = draw_classifier(given, noise)
        set_pragma(given.ledger, "query_only", 1)
        return drawn

    monkeypatch.setattr(module, "draw_classifier", draw_and_fill)
    with pytest.raises(LedgerUnavailableError):
        switch_phase(first, seeded_noise(7))
    first.ledger.close()
    monkeypatch.setattr(module, "draw_classifier", draw_classifier)
    switch_phase(second, seeded_noise(8))
    assert kinds(second) == ["ShareCharged", "ClassifierPublished"]


def test_the_public_points_are_the_queries_answered(small_release: SmallRelease) -> None:
    """Every recorded vector, clipped and encoded as rows are, in the order of the answers."""
    release = small_release.answerer([STABLE] * 4)
    release.answer_batch([ask(70), ask(-3, group="other"), ask(None, group="?"), ask(2, group="b")])
    points = answered_points(release.release.ledger, release.release.schema)
    assert points[:, 1].tolist() == [0.0, 2.0, 3.0, 1.0]
    assert points[[0, 1, 3], 0].tolist() == [50.0, -3.0, 2.0]
    assert points[2, 0] != points[2, 0]


def test_without_answers_no_point_restricts_the_class(small_release: SmallRelease) -> None:
    """Where nothing was asked every public test stays in the classifier's class."""
    release = SmallRelease(small_release.folder, {"privacy__shares__answers": "0"}).open()
    assert answered_points(release.ledger, release.schema).shape == (0, 2)
    switch_phase(release, seeded_noise())
    assert release.classifier is not None


@pytest.mark.parametrize("rule", ["canonical", "halving"])
def test_deep_trees_relabel_vote_and_are_published(small_release: SmallRelease, rule: str) -> None:
    """Rows are relabelled at depth 4, learners that search it do learn, and depth 5 is drawn."""
    deep = changed(small_release, hypotheses__depth="4", classifier__depth="5", learner__rule=rule)
    votes = deep.open().ensemble.vote_counts(private_rows().values)
    assert (votes[:, 1] > votes[:, 0]).tolist() == private_rows().labels.astype(bool).tolist()
    release = answered(deep)
    switch_phase(release, seeded_noise(5))
    assert release.classifier is not None
    node, depth = json.loads(release.classifier.json)["tree"], 0
    while "true" in node:
        node, depth = node["true"], depth + 1
    assert depth == 5
    verify(release.ledger, expect_head=None)
