"""The learner ``linear`` in a release: its charge, its place, its document."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.auditing.hypothesis_draws import audit_draws
from app.data.rows import PrivateRows
from app.data.vectors import encode
from app.errors import ConfigurationError, ReleaseMismatchError, VerificationError
from app.ledger.verification import verify
from app.planning.from_settings import plan_settings
from app.privacy.budget.composition import Mechanism
from app.privacy.noisy_gradient import mechanism as noisy_gradient
from app.privacy.voting.query_decision import Phase
from app.release.classifier.learner_registration import FIRST_INPUTS, NEWEST_INPUTS, ClassifierAsked
from app.release.classifier.learner_table import chosen_learner
from app.release.classifier.linear import LinearDraw, linear_draw
from app.release.classifier.publish_at_once import check_learnable
from app.release.classifier.published_classifier import (
    NUMBERS_VERSION,
    SCORES_VERSION,
    read_published,
)
from app.release.classifier.switch import switch_phase
from tests.builders.release.learning import POINTS, crash_after_the_charge, learned
from tests.builders.release.onnx_models import model_labels
from tests.builders.release.opened_release import changed, kinds
from tests.builders.release.small_release import (
    ROW_COUNT,
    STABLE,
    SmallRelease,
    ask,
    private_rows,
    seeded_noise,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.data.vectors import Vector
    from app.release.terms.configuration import Configuration

CHARGED = "privacy.delta_shares.classifier"
PEOPLE: tuple[Vector, ...] = tuple(
    (float(margin), group) for margin in range(-50, 51, 10) for group in ("a", "b", None)
)


def descent(
    configuration: Configuration,
    points: NDArray[np.float64],
    row_count: int,
    inputs: int = NEWEST_INPUTS,
) -> LinearDraw:
    """Return the descent of a release on public points."""
    return linear_draw(
        ClassifierAsked(
            settings=configuration.settings,
            charge=configuration.charges[Mechanism.CLASSIFIER],
            public_values=points,
            row_count=row_count,
            inputs=inputs,
        )
    )


def linear(release: SmallRelease, **changes: str) -> SmallRelease:
    """Return the release with the linear learner."""
    return changed(release, classifier__learner="linear", **changes)


@pytest.mark.parametrize("points", [(), PEOPLE], ids=["schema", "points"])
def test_the_charge_is_exact_and_what_is_published_predicts(
    small_release: SmallRelease, points: Sequence[Vector]
) -> None:
    """A tenth of delta, with what is withheld for a draw; the document and its model agree."""
    release = linear(small_release)
    published = learned(release, points)
    ledger = release.ledger()
    charge = ledger.read_state().charge_of("classifier")
    assert charge is not None
    part = Fraction(1, 1 << 20)
    assert Fraction(charge.epsilon) == 6
    assert Fraction(charge.delta) == Fraction(1, 100) * ((1 - part) / 10 + part / 2)
    document = published.document
    assert document.version == (NUMBERS_VERSION if points else SCORES_VERSION)
    assert [published.predict((margin, "a")) for margin in (-40.0, 40.0)] == ["no", "yes"]
    assert model_labels(document, PEOPLE) == published.predict_many(PEOPLE)
    state = ledger.read_state()
    assert state.classifier is not None
    assert read_published(state.classifier) == published
    verify(ledger)


def test_learning_between_answers_is_refused_and_the_switch_draws(
    small_release: SmallRelease,
) -> None:
    """After the first answer nothing is charged until the last; then the server draws it."""
    release = linear(small_release)
    answerer = release.answerer([STABLE] * 4)
    answerer.answer_batch([ask(-30)])
    before = kinds(release)
    with pytest.raises(VerificationError, match="1 answers are given: wait for the last one"):
        check_learnable(release.configuration(), release.ledger())
    with pytest.raises(VerificationError, match="wait for the last one"):
        learned(release, POINTS)
    assert kinds(release) == before
    answerer.answer_batch([ask(margin) for margin in (-1, 1, 30)])
    assert answerer.phase is Phase.CLASSIFIER
    switch_phase(answerer.release, seeded_noise(7))
    assert answerer.release.classifier is not None
    assert answerer.release.classifier.document.scores is not None
    assert kinds(release)[-2:] == ["ShareCharged", "ClassifierPublished"]
    verify(answerer.release.ledger)


def test_a_draw_that_crashed_is_made_again_after_the_last_answer(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Charged before the first answer and not persisted: no second charge, one publication."""
    release = linear(small_release)
    crash_after_the_charge(release, monkeypatch, POINTS)
    answerer = release.answerer([STABLE] * 4)
    answerer.answer_batch([ask(-30)])
    with pytest.raises(VerificationError, match="wait for the last one"):
        learned(release, POINTS)
    answerer.answer_batch([ask(margin) for margin in (-1, 1, 30)])
    switch_phase(answerer.release, seeded_noise(7))
    assert kinds(release).count("ShareCharged") == 3
    assert kinds(release)[-1] == "ClassifierPublished"


def test_the_learner_is_bound_to_the_release(small_release: SmallRelease) -> None:
    """A release that was opened to draw exactly does not open with another learner."""
    small_release.open()
    with pytest.raises(ReleaseMismatchError, match=r"^classifier\.learner: "):
        linear(small_release).open()
    given = small_release.configuration().bound
    assert "classifier.learner" not in given
    assert CHARGED not in given
    assert linear(small_release).configuration().bound[CHARGED] == "1/10"


@pytest.mark.parametrize(
    ("row_count", "expected"), [(9999, "exponential"), (10_000, "linear"), (None, "linear")]
)
def test_auto_takes_the_linear_score_from_a_thousand_on(
    small_release: SmallRelease, row_count: int | None, expected: str
) -> None:
    """At a tenth for the classifier ten thousand rows are enough, and one less is not."""
    shares = {"relabel": "0.45", "answers": "0.45", "classifier": "0.1"}
    release = changed(
        small_release,
        classifier__learner="auto",
        privacy__epsilon="1",
        **{f"privacy__shares__{name}": share for name, share in shares.items()},
    )
    chosen = chosen_learner(release.settings(), row_count=row_count, opened=None)
    assert chosen.row.learner.name == expected


@pytest.mark.parametrize(("epsilon", "expected"), [("20", "linear"), ("0.1", "exponential")])
def test_auto_chooses_by_public_numbers(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch, epsilon: str, expected: str
) -> None:
    """Rows times epsilon decide; the charge is the same whichever it is."""
    monkeypatch.setattr("app.privacy.noisy_gradient.descent_choices.LINEAR_FROM", 100)
    release = changed(small_release, classifier__learner="auto", privacy__epsilon=epsilon)
    published = learned(release, PEOPLE)
    assert (published.document.scores is not None) == (expected == "linear")
    charge = release.configuration().charges[Mechanism.CLASSIFIER]
    assert charge.delta > Fraction(9, 10000)
    planned = plan_settings(release.configuration().settings, ROW_COUNT)
    assert planned.request.learner == expected


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, "must be 0: only a classifier with a share"),
        ({"privacy__shares__classifier": "0", "answers__after": "halt"}, "must be 0: only"),
    ],
)
def test_a_share_of_delta_without_its_learner_is_refused(
    small_release: SmallRelease, changes: dict[str, str], problem: str
) -> None:
    """A pure classifier has no use for it, and neither has one that is never drawn."""
    learner = "linear" if changes else "exponential"
    release = changed(
        small_release,
        classifier__learner=learner,
        privacy__delta_shares__classifier="0.1",
        privacy__delta_shares__answers="0.9",
        **changes,
    )
    with pytest.raises(ConfigurationError) as refused:
        release.configuration()
    assert (refused.value.key, refused.value.problem[: len(problem)]) == (CHARGED, problem)


def test_no_share_of_delta_for_a_learner_that_needs_it_is_refused(
    small_release: SmallRelease,
) -> None:
    """A zero is told at once, by its key."""
    with pytest.raises(ConfigurationError, match="must be above 0 while classifier has") as refused:
        linear(small_release, privacy__delta_shares__classifier="0").configuration()
    assert refused.value.key == CHARGED


def test_too_many_tests_are_refused_before_a_charge(small_release: SmallRelease) -> None:
    """Four thousand tests are the most; the line says how many there are."""
    release = linear(small_release, classifier__bins="5000")
    with pytest.raises(ConfigurationError, match="gives 500") as refused:
        learned(release)
    assert refused.value.key == "classifier.bins"
    assert release.ledger().read_state().release is None


def test_the_audit_shows_most_of_the_claim_and_no_more(small_release: SmallRelease) -> None:
    """``conclave audit`` bounds the descent as it bounds a draw."""
    settings = linear(small_release, classifier__bins="4").configuration().settings
    report = next(each for each in audit_draws(settings) if each.mechanism.startswith("published"))
    assert report.holds
    assert report.exact.epsilon > 0.7 * report.epsilon


def test_three_labels_are_learned_too(small_release: SmallRelease) -> None:
    """One score a class; the largest is the class that most rows of a kind have."""
    release = linear(
        small_release,
        data__classes='["low", "middle", "high"]',
        privacy__epsilon="1000",
        privacy__shares='{"relabel": 0, "answers": 0, "classifier": 1}',
    )
    values = encode(release.configuration().schema, PEOPLE * 10)
    labels = np.digitize(values[:, 0], [-20.0, 20.0]).astype(np.int64)
    rows = PrivateRows(values=values, labels=labels)
    published = learned(release, PEOPLE, rows=rows)
    found = [published.predict((margin, "a")) for margin in (-45.0, 0.0, 45.0)]
    assert found == ["low", "middle", "high"]
    assert model_labels(published.document, PEOPLE) == published.predict_many(PEOPLE)


def test_points_leave_the_tests_that_they_tell_apart(small_release: SmallRelease) -> None:
    """Cuts that no public point tells apart have no term; pairs come of points alone."""
    configuration = linear(small_release).configuration()
    alike = encode(configuration.schema, [(10.0, "a")] * 5)
    found = [
        descent(configuration, points, ROW_COUNT)
        for points in (alike, alike[:0], encode(configuration.schema, PEOPLE))
    ]
    assert [len(each.inputs) for each in found] == [0, 7, 6 + 3 * 3 + 1]
    earlier = descent(configuration, encode(configuration.schema, PEOPLE), ROW_COUNT, FIRST_INPUTS)
    assert len(earlier.inputs) == 6 + 3 * 3
    rows = private_rows()
    assert len(rows.labels) == ROW_COUNT
    for draw in found:
        scores = draw.draw(rows, seeded_noise(3))
        assert len(scores.weights) == len(draw.inputs)


@pytest.mark.parametrize("inputs", [FIRST_INPUTS, NEWEST_INPUTS])
def test_a_published_score_is_the_one_that_was_learned(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch, inputs: int
) -> None:
    """Divided by its unit, it is what the descent compares with labels, but that no row is cut."""
    configuration = linear(small_release).configuration()
    values = encode(configuration.schema, PEOPLE)
    found = descent(configuration, values, 10**6, inputs)
    features = found.parameters.features
    weights = np.linspace(-1.0, 1.0, features.width).reshape(-1, 1)
    monkeypatch.setattr(noisy_gradient, "draw", lambda *_: noisy_gradient.Weights(weights))
    published = found.draw(private_rows(), seeded_noise(3))
    bits = found.inputs.encode(values)
    vectors = features.coordinates(bits).astype(np.float64)
    image = bits @ features.matrix + features.offset
    cut = np.linalg.norm(vectors, axis=1) / np.linalg.norm(image, axis=1) * features.grid
    assert 0.4 < cut.min() < cut.max() < 1
    learned_scores = (vectors @ weights)[:, 0] / features.unit
    given = published.scores(bits)[:, 0] / published.unit
    assert np.allclose(given * cut, learned_scores, atol=0.01)
    assert np.ptp(learned_scores) > 1
