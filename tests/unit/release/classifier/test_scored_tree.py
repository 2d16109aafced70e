"""The learner ``scored-tree`` in a release: its charge, its rule, its document, its ranking."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from app.auditing.hypothesis_draws import audit_draws
from app.data.rows import PrivateRows
from app.data.vectors import decode, encode
from app.errors import ConfigurationError
from app.ledger.verification import verify
from app.planning.from_settings import plan_settings
from app.planning.output.plan_sentences import summary
from app.release.classifier.learner_table import DIVISION_KEY, classifier_draw
from app.release.classifier.published_classifier import (
    SCORED_TREE_VERSION,
    TREE_VERSION,
    draw_published,
    read_published,
)
from app.release.classifier.switch import switch_phase
from tests.builders.release.learning import POINTS, learned
from tests.builders.release.opened_release import changed, kinds
from tests.builders.release.small_release import (
    ROW_COUNT,
    STABLE,
    SmallRelease,
    ask,
    seeded_noise,
)

if TYPE_CHECKING:
    from app.release.classifier.published_classifier import PublishedClassifier

MANY = 20_000
RARE = 0.04


def ranking(release: SmallRelease, **changes: str) -> SmallRelease:
    """Return the release with a classifier that is wanted for ranking, and names no learner."""
    return changed(release, **{"classifier__wanted": "ranking", **changes})


def test_the_charge_is_the_share_and_what_is_published_is_read_again(
    small_release: SmallRelease,
) -> None:
    """One charge of all of epsilon's share, no delta but what is withheld; one document."""
    release, told = ranking(small_release), list[str]()
    published = learned(release, told=told)
    ledger = release.ledger()
    state = ledger.read_state()
    charge = state.charge_of("classifier")
    assert charge is not None
    assert Fraction(charge.epsilon) == 6
    assert Fraction(charge.delta) == Fraction(1, 100) * Fraction(1, 1 << 21)
    assert published.document.version == SCORED_TREE_VERSION
    assert "at epsilon 3.6 on 60 rows" in told[0]
    assert "noise of scale 0.952" in told[0]
    assert state.classifier is not None
    assert read_published(state.classifier) == published
    asked = [(float(margin), "a") for margin in (-40, 40)]
    assert published.predict_many(asked) == ["no", "yes"]
    below, above = published.scores_many(asked)
    assert below[0] <= 0 < above[0]
    verify(ledger)


def test_it_is_bound_by_its_name_and_its_rule(small_release: SmallRelease) -> None:
    """The first entry names the learner and the rule that divides epsilon; both names are one."""
    release = ranking(small_release)
    opened = release.open().state.release
    assert opened is not None
    assert opened.parameters["classifier.learner"] == '"scored-tree"'
    assert opened.parameters[DIVISION_KEY] == "1"
    named = ranking(small_release, classifier__learner="scored-tree")
    assert named.configuration().bound == release.configuration().bound
    plain = changed(small_release, classifier__learner="exponential").configuration().bound
    assert "classifier.learner" not in plain


def test_a_tree_without_scores_stays_as_it_was(small_release: SmallRelease) -> None:
    """Where labels are wanted the draw has all of the share, and no rule is written."""
    published = learned(small_release)
    opened = small_release.ledger().read_state().release
    assert opened is not None
    assert DIVISION_KEY not in opened.parameters
    assert published.document.version == TREE_VERSION
    assert b"scores" not in published.json


def test_it_may_learn_between_answers_or_at_the_switch(small_release: SmallRelease) -> None:
    """It uses no delta, so nothing waits; a start reads again what the switch drew."""
    release = ranking(small_release)
    answerer = release.answerer([STABLE] * 4)
    answerer.answer_batch([ask(-30)])
    learned(release, POINTS)
    assert kinds(release)[-2:] == ["ShareCharged", "ClassifierPublished"]
    verify(release.ledger())


def test_the_switch_draws_once(small_release: SmallRelease) -> None:
    """After the last answer it is charged, drawn and published."""
    release = ranking(small_release)
    answerer = release.answerer([STABLE] * 4)
    answerer.answer_batch([ask(margin) for margin in (-30, -1, 1, 30)])
    switch_phase(answerer.release, seeded_noise(7))
    drawn = answerer.release.classifier
    assert drawn is not None
    assert drawn.document.has_scores
    assert release.open().classifier == drawn


@pytest.mark.parametrize("kind", ["thresholds", "intervals"])
def test_other_rules_than_trees_are_refused(small_release: SmallRelease, kind: str) -> None:
    """A public line names the class, before anything is charged."""
    release = ranking(small_release, classifier__class=kind)
    with pytest.raises(ConfigurationError, match=r"^classifier\.class: .*takes trees or stumps"):
        release.open()
    assert release.ledger().read_state().release is None


def rare_rows() -> PrivateRows:
    """Return rows of which one in 25 has the second label: one in 100 below, one in 14 above."""
    generator = np.random.default_rng(5)
    margins = generator.uniform(-50, 50, MANY)
    chance = np.where(margins < 0, RARE / 4, RARE * 7 / 4)
    labels = (generator.random(MANY) < chance).astype(np.int64)
    return PrivateRows(np.column_stack([margins, generator.integers(0, 2, MANY)]), labels)


def published_of(release: SmallRelease) -> PublishedClassifier:
    """Return what a release draws from many rows."""
    configuration, rows = release.configuration(), rare_rows()
    points = encode(configuration.schema, [(float(margin), "a") for margin in range(-50, 51)])
    draw = classifier_draw(configuration, points, row_count=MANY)
    return draw_published(configuration, draw, rows, seeded_noise(3))


def test_a_rare_label_that_no_row_gets_is_ranked(small_release: SmallRelease) -> None:
    """At epsilon .3 every row has the frequent label, and scores divide rows as chances do."""
    epsilon = {"privacy__epsilon": "1"}
    rows, schema = rare_rows(), small_release.configuration().schema
    asked = decode(schema, rows.values)
    plain = published_of(changed(small_release, **epsilon))
    assert set(plain.predict_many(asked)) == {"no"}
    ranked = published_of(ranking(small_release, **epsilon))
    scores = np.array(ranked.scores_many(asked))[:, 0]
    assert set(ranked.predict_many(asked)) == {"no"}
    best = roc_auc_score(rows.labels, rows.values[:, 0] >= 0)
    assert roc_auc_score(rows.labels, scores) > best - 0.02
    above, below = (scores[side].mean() for side in (rows.values[:, 0] > 5, rows.values[:, 0] < -5))
    assert above > below


def test_plan_and_audit_know_it(small_release: SmallRelease) -> None:
    """The plan names the learner; the audit shows most of the share, and not more."""
    settings = ranking(small_release).settings()
    planned = plan_settings(settings, ROW_COUNT)
    assert planned.request.learner == "scored-tree"
    assert summary(planned)
    found = audit_draws(settings)[-1]
    assert found.holds
    assert found.exact.epsilon > 0.95 * found.epsilon
