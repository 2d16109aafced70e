"""The learner ``grid`` in a release: its charge, its place, its document, its model."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.auditing.hypothesis_draws import audit_draws
from app.data.rows import PrivateRows
from app.data.vectors import encode
from app.errors import ConfigurationError, ReleaseMismatchError
from app.ledger.verification import verify
from app.planning.from_settings import plan_settings
from app.privacy.voting.query_decision import Phase
from app.release.classifier.grid import DRAWS_MAX, GridDraw
from app.release.classifier.learner_table import classifier_draw
from app.release.classifier.published_classifier import GRID_VERSION, read_published
from app.release.classifier.switch import switch_phase
from tests.builders.release.learning import POINTS, crash_after_the_charge, learned
from tests.builders.release.onnx_models import model_labels
from tests.builders.release.opened_release import changed, kinds
from tests.builders.release.small_release import (
    ROW_COUNT,
    STABLE,
    SmallRelease,
    ask,
    seeded_noise,
)

if TYPE_CHECKING:
    from app.data.vectors import Vector

LEFT_OUT = '{"group": []}'
MANY = 10_000


def gridded(release: SmallRelease, **changes: str) -> SmallRelease:
    """Return the release with the learner of grids, over its one number."""
    return changed(
        release, **{"classifier__learner": "grid", "classifier__tests": LEFT_OUT, **changes}
    )


def prepared(release: SmallRelease, row_count: int = ROW_COUNT) -> GridDraw:
    """Return the draw of a release."""
    configuration = release.configuration()
    points = encode(configuration.schema, [])
    found = classifier_draw(configuration, points, row_count=row_count)
    assert isinstance(found, GridDraw)
    return found


def four_numbers(release: SmallRelease, **changes: str) -> SmallRelease:
    """Return the release over four numbers of odd bounds."""
    bounds = ("[-50, 50]", "[0, 1]", "[-1e-3, 7.7]", "[1e6, 1000003]")
    features = ", ".join(
        f'{{"name": "x{place}", "kind": "numeric", "bounds": {both}}}'
        for place, both in enumerate(bounds)
    )
    given = {"data__features": f"[{features}]", "classifier__tests": "{}", **changes}
    return gridded(release, **given)


def test_the_charge_is_the_share_and_what_is_published_predicts(
    small_release: SmallRelease,
) -> None:
    """All of epsilon's share, no delta but what is withheld; the same document is read back."""
    release = gridded(small_release)
    told: list[str] = []
    published = learned(release, told=told)
    ledger = release.ledger()
    charge = ledger.read_state().charge_of("classifier")
    assert charge is not None
    assert Fraction(charge.epsilon) == 6
    assert Fraction(charge.delta) == Fraction(1, 100) * Fraction(1, 1 << 21)
    assert published.document.version == GRID_VERSION
    assert [published.predict((margin, "a")) for margin in (-40.0, 40.0)] == ["no", "yes"]
    assert "in grids of 8, 16, 32 intervals of 1 numbers, at epsilon 6 on 60 rows" in told[0]
    state = ledger.read_state()
    assert state.classifier is not None
    assert read_published(state.classifier) == published
    verify(ledger)


def test_it_may_learn_between_answers(small_release: SmallRelease) -> None:
    """It uses no delta, so nothing waits: charged and published after the first answer."""
    release = gridded(small_release)
    answerer = release.answerer([STABLE] * 4)
    answerer.answer_batch([ask(-30)])
    learned(release, POINTS)
    assert kinds(release)[-2:] == ["ShareCharged", "ClassifierPublished"]
    verify(release.ledger())


def test_the_switch_draws_once(small_release: SmallRelease) -> None:
    """After the last answer it is charged, drawn and published; a start reads it again."""
    release = gridded(small_release)
    answerer = release.answerer([STABLE] * 4)
    answerer.answer_batch([ask(margin) for margin in (-30, -1, 1, 30)])
    assert answerer.phase is Phase.CLASSIFIER
    switch_phase(answerer.release, seeded_noise(7))
    drawn = answerer.release.classifier
    assert drawn is not None
    assert drawn.document.grid is not None
    again = release.open()
    assert again.classifier == drawn
    assert kinds(release).count("ClassifierPublished") == 1


def test_a_draw_that_crashed_is_made_again(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Charged and not persisted: no second charge, one publication."""
    release = gridded(small_release)
    crash_after_the_charge(release, monkeypatch)
    learned(release)
    assert kinds(release).count("ShareCharged") == 3
    assert kinds(release)[-1] == "ClassifierPublished"


def test_the_learner_is_bound_to_the_release(small_release: SmallRelease) -> None:
    """A release that was opened to draw from a class does not open with a grid."""
    changed(small_release, classifier__tests=LEFT_OUT).open()
    with pytest.raises(ReleaseMismatchError, match=r"^classifier\.learner: "):
        gridded(small_release).open()


@pytest.mark.parametrize("classes", ['["no", "yes"]', '["low", "middle", "high"]'])
def test_document_and_model_predict_as_the_server_on_many_rows(
    small_release: SmallRelease, classes: str
) -> None:
    """Ten thousand rows, on cuts, beyond bounds and missing too; of two labels and of three."""
    release = four_numbers(
        small_release,
        data__classes=classes,
        privacy__shares='{"relabel": 0, "answers": 0, "classifier": 1}',
    )
    configuration = release.configuration()
    schema, generator = configuration.schema, np.random.default_rng(3)
    lower, upper = (bounds[0] for bounds in schema.value_bounds)
    values = generator.uniform(lower, upper, (4000, 4))
    cells = values @ (1 / (upper - lower)) * 3
    labels = np.floor(cells).astype(np.int64) % len(schema.classes)
    published = learned(release, rows=PrivateRows(values=values, labels=labels))
    grid = published.document.grid
    assert grid is not None
    rows = generator.uniform(lower - 0.1, upper + 0.1, (MANY, 4))
    for place, cuts in enumerate(grid.cuts):
        on_a_cut = generator.random(MANY) < 0.2
        rows[:, place] = np.where(on_a_cut, generator.choice(cuts, MANY), rows[:, place])
    is_missing = generator.random(rows.shape) < 0.01
    vectors: list[Vector] = [
        tuple(None if gone else float(each) for each, gone in zip(row, missing, strict=True))
        for row, missing in zip(rows, is_missing, strict=True)
    ]
    served = published.predict_many(vectors)
    assert len(set(served)) == len(schema.classes)
    assert model_labels(published.document, vectors) == served
    # What a private row with these numbers was counted by.
    found = prepared(release).parameters.grid
    encoded = found.encode(encode(schema, vectors))
    flat = np.repeat(grid.labels, grid.lengths)
    finest = found.cells(encoded, found.sides[-1])
    assert [schema.classes[label] for label in flat[finest]] == served


def test_a_plan_names_it_and_bounds_no_draw_from_a_class(small_release: SmallRelease) -> None:
    """Without a class there is no excess error, and with the number of rows its draw is tried."""
    planned = plan_settings(gridded(small_release).settings(), ROW_COUNT)
    assert planned.request.learner == "grid"
    assert planned.request.classifier_hypothesis_count is None
    with pytest.raises(ConfigurationError, match="takes numbers only") as refused:
        plan_settings(changed(small_release, classifier__learner="grid").settings(), ROW_COUNT)
    assert refused.value.key == "classifier.tests"


def test_too_many_numbers_are_refused_before_a_charge(small_release: SmallRelease) -> None:
    """Four are the most, and one that an empty list leaves out does not count."""
    features = ", ".join(
        f'{{"name": "x{place}", "kind": "numeric", "bounds": [0, 1]}}' for place in range(5)
    )
    release = gridded(small_release, data__features=f"[{features}]", classifier__tests="{}")
    with pytest.raises(ConfigurationError, match="4 numbers at most, and here are 5"):
        release.open()
    assert release.ledger().read_state().release is None
    fewer = gridded(small_release, data__features=f"[{features}]", classifier__tests='{"x2": []}')
    assert prepared(fewer).parameters.grid.features == (0, 1, 3, 4)


def test_noise_beyond_64_bits_is_refused_before_a_charge(small_release: SmallRelease) -> None:
    """An epsilon of next to nothing names the share, and nothing is opened."""
    release = gridded(small_release, privacy__epsilon="1e-15")
    with pytest.raises(ConfigurationError, match="noise stays within 64 bits") as refused:
        prepared(release)
    assert refused.value.key == "privacy.shares.classifier"


@pytest.mark.parametrize(
    ("class_count", "sides"), [(2, (8, 16, 32)), (3, (8, 16)), (100, (8,)), (600, ())]
)
def test_many_labels_leave_out_the_finest_levels(
    small_release: SmallRelease, class_count: int, sides: tuple[int, ...]
) -> None:
    """Noise is drawn for two million counts at most; where even the coarsest has more, none is."""
    names = ", ".join(f'"{label}"' for label in range(class_count))
    release = four_numbers(small_release, data__classes=f"[{names}]")
    if not sides:
        with pytest.raises(ConfigurationError, match="takes fewer than 600 labels"):
            prepared(release)
        return
    parameters = prepared(release).parameters
    assert parameters.grid.sides == sides
    assert parameters.draw_count <= DRAWS_MAX
    assert sum(parameters.level_epsilons) == parameters.epsilon == 6


def test_the_audit_shows_the_whole_claim_and_no_more(small_release: SmallRelease) -> None:
    """``conclave audit`` bounds its levels together as it bounds a draw."""
    settings = gridded(small_release).settings()
    report = next(each for each in audit_draws(settings) if each.mechanism.startswith("published"))
    assert report.holds
    assert report.exact.epsilon == pytest.approx(report.epsilon)
