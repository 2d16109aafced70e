"""The learner ``kernel`` in a release: public coins, public lengths, its document and model."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.auditing.hypothesis_draws import audit_draws
from app.data.rows import PrivateRows
from app.data.vectors import encode
from app.errors import ConfigurationError, VerificationError
from app.learning.linear.cosine_features import PHASES, drawn_waves
from app.learning.linear.kernel_scores import KernelInputs
from app.ledger.verification import verify
from app.planning.from_settings import plan_settings
from app.privacy.budget.composition import Mechanism
from app.privacy.noisy_gradient import mechanism as noisy_gradient
from app.privacy.noisy_gradient.descent_choices import WAVE_COUNT
from app.release.classifier.classifier_document import read_document
from app.release.classifier.kernel import KernelDraw, kernel_draw
from app.release.classifier.learner_registration import ClassifierAsked
from app.release.classifier.published_classifier import (
    WAVES_VERSION,
    PublishedClassifier,
    draw_published,
    published_document,
    read_published,
)
from app.release.classifier.published_scores import kernel_document
from app.release.classifier.switch import switch_phase
from app.release.classifier.written_hypotheses import Written
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
    from app.noise.source import NoiseSource

QUERIES = 10_000
PEOPLE: tuple[Vector, ...] = tuple(
    (float(margin), group) for margin in range(-50, 51, 2) for group in ("a", "b", None)
)


def kernel(release: SmallRelease, **changes: str) -> SmallRelease:
    """Return the release with the kernel learner."""
    return changed(release, classifier__learner="kernel", **changes)


def prepared(release: SmallRelease, points: Sequence[Vector] = PEOPLE) -> KernelDraw:
    """Return the draw of the small release, over public points."""
    configuration = kernel(release).configuration()
    charge = configuration.charges[Mechanism.CLASSIFIER]
    values = encode(configuration.schema, points)
    return kernel_draw(ClassifierAsked(configuration.settings, charge, values, ROW_COUNT))


def published(release: SmallRelease, draw: KernelDraw, rows: PrivateRows) -> PublishedClassifier:
    """Return the document of a draw from rows."""
    return draw_published(release.configuration(), draw, rows, seeded_noise(3))


def vectors(count: int, *, seed: int) -> list[Vector]:
    """Return queries: numbers at, within and far beyond the bounds, missing ones, any group."""
    generator = np.random.default_rng(seed)
    margins = generator.choice([-1e300, -50.0, -25.0, 0.0, 25.0, 50.0, 1e300, np.nan], size=count)
    within = generator.random(count) < 0.8
    margins = np.where(within, generator.uniform(-55, 55, count), margins)
    groups = generator.choice(["a", "b", "c", "", "?"], size=count)
    return [
        (None if np.isnan(margin) else float(margin), str(group))
        for margin, group in zip(margins, groups, strict=True)
    ]


@pytest.mark.parametrize("points", [(), PEOPLE], ids=["schema", "points"])
def test_the_charge_is_exact_and_what_is_published_predicts(
    small_release: SmallRelease, points: Sequence[Vector]
) -> None:
    """It is charged as a linear score is, told in public numbers, persisted, and verified."""
    release, said = kernel(small_release), list[str]()
    learned_one = learned(release, points, told=said)
    ledger = release.ledger()
    charge = ledger.read_state().charge_of("classifier")
    assert charge is not None
    part = Fraction(1, 1 << 20)
    assert Fraction(charge.epsilon) == 6
    assert Fraction(charge.delta) == Fraction(1, 100) * ((1 - part) / 10 + part / 2)
    assert "and 300 waves of numbers, at epsilon 6" in said[0]
    assert [learned_one.predict((margin, "a")) for margin in (-40.0, 40.0)] == ["no", "yes"]
    state = ledger.read_state()
    assert state.classifier is not None
    assert read_published(state.classifier) == learned_one
    verify(ledger)


def test_learning_between_answers_is_refused_and_the_switch_draws(
    small_release: SmallRelease,
) -> None:
    """It uses delta, so it waits for the last answer; then the server draws and publishes it."""
    release = kernel(small_release)
    answerer = release.answerer([STABLE] * 4)
    answerer.answer_batch([ask(-30)])
    before = kinds(release)
    with pytest.raises(VerificationError, match="1 answers are given: wait for the last one"):
        learned(release, POINTS)
    assert kinds(release) == before
    answerer.answer_batch([ask(margin) for margin in (-1, 1, 30)])
    switch_phase(answerer.release, seeded_noise(7))
    assert answerer.release.classifier is not None
    assert answerer.release.classifier.document.version == WAVES_VERSION
    assert kinds(release)[-2:] == ["ShareCharged", "ClassifierPublished"]
    verify(answerer.release.ledger)


def test_a_failed_draw_publishes_coins_that_nobody_saw(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Charged and not persisted, it is drawn again with other coins, under one charge."""
    release = kernel(small_release)
    crash_after_the_charge(release, monkeypatch, POINTS)
    learned(release, POINTS)
    assert kinds(release).count("ShareCharged") == 3
    assert kinds(release)[-1] == "ClassifierPublished"


def test_plan_and_audit_know_it(small_release: SmallRelease) -> None:
    """The plan names it, and the audit shows most of its claim and no more."""
    settings = kernel(small_release).configuration().settings
    assert plan_settings(settings, ROW_COUNT).request.learner == "kernel"
    report = next(each for each in audit_draws(settings) if each.mechanism.startswith("published"))
    assert report.holds
    assert report.exact.epsilon > 0.7 * report.epsilon


@pytest.mark.parametrize("classes", ['["no", "yes"]', '["low", "middle", "high"]'])
def test_a_model_and_a_document_predict_as_what_was_learned(
    small_release: SmallRelease, classes: str
) -> None:
    """On 10,000 queries: the scores learned, the server's document, and ONNX, for any labels."""
    release = changed(small_release, data__classes=classes)
    draw = prepared(release)
    rows = private_rows()
    labels = rows.labels + (rows.values[:, 0] > 25) * (draw.class_count - 2)
    scores = draw.draw(PrivateRows(values=rows.values, labels=labels), seeded_noise(3))
    schema = release.configuration().schema
    found = published_document(
        "small", schema, written=Written(scores=kernel_document(scores, schema))
    )
    assert found.document.version == WAVES_VERSION
    queries = vectors(QUERIES, seed=5)
    answers = found.predict_many(queries)
    assert len(set(answers)) == draw.class_count
    encoded = scores.inputs.encode(encode(schema, queries))
    assert answers == [schema.classes[label] for label in scores.predict(encoded)]
    assert model_labels(found.document, queries) == answers
    again = PublishedClassifier(read_document(found.json), found.json)
    assert again.predict_many(queries[:500]) == answers[:500]


def test_the_document_has_the_coins_and_the_table(small_release: SmallRelease) -> None:
    """Frequencies and shifts are the drawn integers, one weight a wave and score."""
    draw = prepared(small_release)
    inputs = draw.inputs(seeded_noise(3))
    document = published(small_release, draw, private_rows()).document
    assert document.scores is not None
    waves = document.scores.waves
    assert waves is not None
    assert np.array_equal(np.array(waves.frequencies).T, inputs.waves.frequencies)
    assert np.array_equal(waves.shifts, inputs.waves.shifts)
    assert (waves.features, waves.bounds, waves.steps) == ((0,), ((-50.0, 50.0),), 1 << 16)
    assert [len(each) for each in (waves.weights, waves.cosines)] == [WAVE_COUNT, 1024]


def told(draw: KernelDraw, rows: PrivateRows, patch: pytest.MonkeyPatch) -> list[bytes]:
    """Return what a descent on rows is told before it reads one: waves, map and length."""
    seen: list[bytes] = []

    def watched(parameters: noisy_gradient.Parameters, *_: object) -> noisy_gradient.Weights:
        features = parameters.features
        seen.extend([features.matrix.tobytes(), str(features.norm_bound).encode()])
        return noisy_gradient.Weights(np.zeros((features.width, 1)))

    with patch.context() as patched:
        patched.setattr(noisy_gradient, "draw", watched)
        inputs = draw.draw(rows, seeded_noise(3)).inputs
    assert isinstance(inputs, KernelInputs)
    waves = inputs.waves
    return [*seen, waves.frequencies.tobytes(), waves.shifts.tobytes()]


def others(rows: PrivateRows) -> list[PrivateRows]:
    """Return the rows with other labels, and with other features."""
    labels = 1 - rows.labels
    return [
        PrivateRows(values=rows.values, labels=labels),
        PrivateRows(values=np.zeros_like(rows.values), labels=rows.labels),
    ]


def test_no_row_decides_waves_whitening_or_length(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same coins, rows of any features and labels meet the same public map."""
    draw, rows = prepared(small_release), private_rows()
    given = told(draw, rows, monkeypatch)
    assert all(told(draw, other, monkeypatch) == given for other in others(rows))


def test_a_length_of_private_rows_is_found(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were rows cut to their own median length, other features would be told by it."""
    draw, rows = prepared(small_release), private_rows()

    def faulty(rows: PrivateRows) -> list[bytes]:
        honest = KernelDraw.parameters

        def parameters(self: KernelDraw, inputs: KernelInputs) -> noisy_gradient.Parameters:
            private = replace(self, public_values=rows.values)
            bound = honest(private, inputs).features.norm_bound
            found = honest(self, inputs)
            cut = min(bound, found.features.norm_bound)
            return replace(found, features=replace(found.features, norm_bound=cut))

        with monkeypatch.context() as patched:
            patched.setattr(KernelDraw, "parameters", parameters)
            return told(draw, rows, monkeypatch)

    assert any(faulty(other) != faulty(rows) for other in others(rows))


def test_a_frequency_chosen_by_private_labels_is_found(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were waves as fine as one label's rows lie, other labels would be told by them."""
    draw, rows = prepared(small_release), private_rows()

    def faulty(rows: PrivateRows) -> list[bytes]:
        def inputs(self: KernelDraw, noise: NoiseSource) -> KernelInputs:
            of_label = rows.values[rows.labels == 1]
            return honest(replace(self, public_values=of_label), noise)

        honest = KernelDraw.inputs
        with monkeypatch.context() as patched:
            patched.setattr(KernelDraw, "inputs", inputs)
            return told(draw, rows, monkeypatch)

    assert any(faulty(other) != faulty(rows) for other in others(rows))


def test_a_descent_without_numbers_or_over_too_many_tests_is_refused(
    small_release: SmallRelease,
) -> None:
    """Waves are of numbers, and what would take hours is told by its key."""
    words = '[{"name": "group", "kind": "categorical", "categories": ["a", "b"]}]'
    with pytest.raises(ConfigurationError, match="needs a feature that is a number") as refused:
        prepared(changed(small_release, data__features=words), [("a",)])
    assert refused.value.key == "classifier.learner"
    with pytest.raises(ConfigurationError, match="gives 500") as refused:
        prepared(changed(small_release, classifier__bins="5000"), ())
    assert refused.value.key == "classifier.bins"


@pytest.mark.parametrize("with_points", [True, False])
def test_much_budget_learns_a_ring(small_release: SmallRelease, with_points: object) -> None:
    """What no sum of tests says, waves do: inside or outside a circle, with points or without."""
    number = '{{"name": "{}", "kind": "numeric", "bounds": [0, 1]}}'
    release = kernel(
        small_release,
        data__features=f"[{number.format('x')}, {number.format('y')}]",
        privacy__epsilon="100",
        privacy__shares='{"relabel": 0, "answers": 0, "classifier": 1}',
    )
    configuration = release.configuration()
    charge = configuration.charges[Mechanism.CLASSIFIER]
    generator = np.random.default_rng(4)

    def ring(points: NDArray[np.float64]) -> NDArray[np.int64]:
        radius = np.hypot(points[:, 0] - 0.5, points[:, 1] - 0.5)
        return ((radius > 0.2) & (radius < 0.4)).astype(np.int64)

    rows, people, asked = (generator.random((count, 2)) for count in (3000, 400, 2000))
    points = people if with_points else people[:0]
    draw = kernel_draw(ClassifierAsked(configuration.settings, charge, points, 3000))
    scores = draw.draw(PrivateRows(values=rows, labels=ring(rows)), seeded_noise(2))
    found = scores.predict(scores.inputs.encode(asked))
    # The commoner label is right for .62.
    assert (found == ring(asked)).mean() > 0.93


@pytest.mark.parametrize("points", [PEOPLE[:1], PEOPLE[:1] * 5, ((None, "c"),), PEOPLE[:2]])
@pytest.mark.parametrize("epsilon", ["0.001", "1000"])
def test_points_that_tell_nothing_apart_fail_no_draw(
    small_release: SmallRelease, points: Sequence[Vector], epsilon: str
) -> None:
    """Nothing is left to fail once it is charged: one point, equal ones, a missing number."""
    release = kernel(small_release, privacy__epsilon=epsilon)
    document = published(release, prepared(release, points), private_rows()).document
    assert document.scores is not None
    assert document.scores.waves is not None
    assert len(document.scores.waves.weights) == WAVE_COUNT


def test_coins_are_fresh_and_frequencies_of_32_bits(small_release: SmallRelease) -> None:
    """Two draws have other waves, all of whose integers are phases."""
    draw = prepared(small_release)
    one, other = (draw.inputs(seeded_noise(seed)).waves for seed in (1, 2))
    assert not np.array_equal(one.frequencies, other.frequencies)
    assert not np.array_equal(one.shifts, other.shifts)
    again = drawn_waves((0,), ((-50.0, 50.0),), (100.0,), count=5, noise=seeded_noise(1))
    assert again.frequencies.max() < PHASES
