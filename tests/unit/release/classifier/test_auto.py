"""The rule behind ``classifier.learner = "auto"``: its versions, and where its choice is said."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec import structs
from structlog.testing import capture_logs

from app.data.vectors import decode, encode
from app.errors import ConfigurationError, ReleaseMismatchError
from app.learning.linear.kernel_scores import NumberedTerms
from app.ledger.verification import verify
from app.planning.from_settings import plan_settings
from app.planning.output.plan_sentences import summary
from app.privacy.budget.composition import Mechanism
from app.privacy.learner_properties import LEARNERS, PublicNumbers, learner_of
from app.privacy.noisy_gradient.descent_choices import score_bins
from app.release.classifier.kernel import kernel_draw
from app.release.classifier.learner_registration import FIRST_INPUTS, NEWEST_INPUTS, ClassifierAsked
from app.release.classifier.learner_table import (
    AUTO_RULE_KEY,
    DIVISION_KEY,
    INPUTS_KEY,
    auto_rule,
    chosen_learner,
    division_rule,
    inputs_rule,
)
from app.release.classifier.linear import linear_draw, numbers_asked
from app.release.classifier.publish_at_once import labels_given_to_nobody
from app.release.classifier.switch import switch_phase
from app.release.terms.configuration import charges_by_mechanism
from app.release.views.parameters_in_words import explained
from app.release.views.stated_release import read_stated
from app.release.views.statement import statement
from app.settings.settings import Settings
from tests.builders.release.learning import learned
from tests.builders.release.opened_release import changed
from tests.builders.release.small_release import (
    ROW_COUNT,
    STABLE,
    SmallRelease,
    ask,
    seeded_noise,
)

if TYPE_CHECKING:
    from app.data.vectors import Vector

PEOPLE: tuple[Vector, ...] = tuple((float(margin), "a") for margin in range(-50, 51, 10))
MARGINS = (-30, -1, 1, 30)
NUMBER_COUNT = 20


def auto(release: SmallRelease, **changes: str) -> SmallRelease:
    """Return the release with ``auto``, and the category left out, so that all is a number."""
    listed = {"classifier__tests": '{"group": []}', **changes}
    return changed(release, classifier__learner="auto", **listed)


@pytest.fixture
def few_rows_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sixty rows at epsilon 6 be many."""
    monkeypatch.setattr("app.privacy.noisy_gradient.descent_choices.LINEAR_FROM", 100)


@pytest.mark.parametrize(
    ("numbers", "others", "product", "expected"),
    [
        (3, 0, 999, "exponential"),
        (3, 0, 1000, "kernel"),
        (3, 0, None, "kernel"),
        (3, 1, 10**6, "linear"),
        (0, 9, 10**6, "linear"),
        (5, 0, 7499, "linear"),
        (5, 0, 7500, "kernel"),
        (8, 0, 12_000, "kernel"),
        (9, 0, 10**6, "linear"),
        (9, 0, 999, "exponential"),
    ],
)
def test_the_rule_goes_by_public_numbers(
    numbers: int, others: int, product: int | None, expected: str
) -> None:
    """A few numbers alone take waves, others the linear score, and few rows a tree."""
    given = PublicNumbers(
        row_count=product, epsilon=Fraction(1), number_count=numbers, other_count=others
    )
    assert learner_of("auto", given) == expected
    first = "linear" if product is None or product >= 1000 else "exponential"
    assert learner_of("auto", given, rule=1) == first
    wanted = for_ranking(given)
    assert LEARNERS[learner_of("auto", wanted)].has_scores
    assert learner_of("grid", wanted) == "grid"


def for_ranking(given: PublicNumbers) -> PublicNumbers:
    """Return the same numbers, wanted for ranking."""
    return PublicNumbers(
        row_count=given.row_count,
        epsilon=given.epsilon,
        number_count=given.number_count,
        other_count=given.other_count,
        wants_ranking=True,
    )


@pytest.mark.parametrize(
    ("tests", "expected"),
    [('{"group": []}', "kernel"), ("{}", "linear"), ('{"margin": []}', "linear")],
)
def test_what_is_left_out_counts(
    small_release: SmallRelease, few_rows_will_do: None, tests: str, expected: str
) -> None:
    """A category without tests is no obstacle to waves; a number that is left out is one."""
    del few_rows_will_do
    settings = auto(small_release, classifier__tests=tests).settings()
    chosen = chosen_learner(settings, row_count=ROW_COUNT, opened=None)
    assert chosen.row.learner.name == expected


@pytest.mark.parametrize("many", [True, False])
@pytest.mark.parametrize("has_version", [True, False])
def test_a_ledger_keeps_the_rule_that_it_was_opened_by(
    small_release: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    *,
    many: bool,
    has_version: bool,
) -> None:
    """One without a version switches by the first rule, whichever learner that comes to."""
    monkeypatch.setattr(
        "app.privacy.noisy_gradient.descent_choices.LINEAR_FROM", 100 if many else 1_000_000
    )
    release = auto(small_release)
    with monkeypatch.context() as earlier:
        if not has_version:  # as every earlier commit wrote its first entry
            earlier.setattr("app.release.opening.rule_parameters", lambda _: {})
        release.open()
    answerer = release.answerer([STABLE] * 4)
    answerer.answer_batch([ask(margin) for margin in MARGINS])
    opened = answerer.release.state.release
    assert opened is not None
    assert (AUTO_RULE_KEY in opened.parameters) == has_version
    switch_phase(answerer.release, seeded_noise())
    published = answerer.release.classifier
    assert published is not None
    scores = published.document.scores
    kind = "exponential" if scores is None else "linear" if scores.waves is None else "kernel"
    later = "kernel" if has_version else "linear"
    assert kind == (later if many else "exponential")
    verify(release.ledger())
    [told] = [each for each in explained(answerer.release) if each.name.startswith("learner of")]
    assert told.value == kind


@pytest.mark.parametrize("has_version", [True, False])
@pytest.mark.parametrize("learner", ["linear", "kernel"])
def test_a_ledger_keeps_the_inputs_that_it_was_opened_by(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch, learner: str, *, has_version: bool
) -> None:
    """One without a version switches by tests of bins as configured, and has no number in it."""
    release = changed(small_release, classifier__learner=learner)
    with monkeypatch.context() as earlier:
        if not has_version:  # as every earlier commit wrote its first entry
            earlier.setattr("app.release.opening.rule_parameters", lambda _: {})
        release.open()
    answerer = release.answerer([STABLE] * 4)
    answerer.answer_batch([ask(margin) for margin in MARGINS])
    opened = answerer.release.state.release
    assert opened is not None
    assert inputs_rule(opened) == (NEWEST_INPUTS if has_version else FIRST_INPUTS)
    switch_phase(answerer.release, seeded_noise())
    published = answerer.release.classifier
    assert published is not None
    assert published.document.scores is not None
    has_numbers = published.document.scores.numbers is not None
    assert has_numbers == (has_version and learner == "linear")
    verify(release.ledger())


@pytest.mark.parametrize(
    ("row_count", "number_count", "bins"),
    [(1000, 5, 11), (1000, 20, 4), (20_000, 9, 13), (10**6, 2, 24), (10**6, 0, 24)],
)
def test_bins_follow_public_numbers(row_count: int, number_count: int, bins: int) -> None:
    """More rows times epsilon give each number more cuts, and more numbers fewer."""
    assert score_bins(row_count=row_count, epsilon=1.0, number_count=number_count) == bins


@pytest.mark.parametrize(
    ("classifier", "hypotheses", "cuts"), [({}, {}, 4), ({"bins": 3}, {}, 2), ({}, {"bins": 8}, 7)]
)
def test_bins_that_are_configured_stand(
    classifier: dict[str, int], hypotheses: dict[str, int], cuts: int
) -> None:
    """In either section; where neither has them, they are the rule's: 5 intervals here."""
    settings = Settings.read(
        {
            "release": {"name": "numbers"},
            "data": {
                "source": "unused.csv",
                "label": "label",
                "classes": ["no", "yes"],
                "features": [
                    {"name": f"x{index}", "kind": "numeric", "bounds": [0, 1]}
                    for index in range(NUMBER_COUNT)
                ],
            },
            "hypotheses": {"class": "trees", **hypotheses},
            "classifier": {"learner": "linear", **classifier},
            "privacy": {"epsilon": 1, "shares": {"relabel": 0, "answers": 0, "classifier": 1}},
            "ledger": {"url": "sqlite:///unused.db"},
        }
    )
    charge = charges_by_mechanism(settings)[Mechanism.CLASSIFIER]
    points = np.random.default_rng(0).random((200, NUMBER_COUNT))
    draw = linear_draw(ClassifierAsked(settings, charge, points, 10_000))
    assert isinstance(draw.inputs, NumberedTerms)
    assert len(draw.inputs.terms.tests) == NUMBER_COUNT * cuts


def test_numbers_that_are_left_out_are_no_inputs(small_release: SmallRelease) -> None:
    """An empty list takes a number out of waves too, by the newer rule of inputs."""
    settings = changed(
        small_release, classifier__learner="kernel", classifier__tests='{"margin": []}'
    ).settings()
    charge = charges_by_mechanism(settings)[Mechanism.CLASSIFIER]
    asked = ClassifierAsked(settings, charge, np.empty((0, 2)), ROW_COUNT)
    with pytest.raises(ConfigurationError, match="needs a feature that is a number"):
        kernel_draw(asked)
    assert kernel_draw(replace(asked, inputs=FIRST_INPUTS)).feature_indices == (0,)
    assert numbers_asked(asked) == ()


def test_a_rule_that_is_not_known_is_refused(small_release: SmallRelease) -> None:
    """A ledger of a later version opens nowhere else, and the line names the entry's key."""
    release = auto(small_release)
    opened = release.open().state.release
    assert opened is not None
    for key, rule in (
        (AUTO_RULE_KEY, auto_rule),
        (INPUTS_KEY, inputs_rule),
        (DIVISION_KEY, division_rule),
    ):
        later = structs.replace(opened, parameters={**opened.parameters, key: "9"})
        with pytest.raises(ReleaseMismatchError, match=rf"^{re.escape(key)}: .*rule 9"):
            rule(later)


def test_a_learner_that_is_named_has_no_rule(small_release: SmallRelease) -> None:
    """Nothing is written of a rule that chooses nothing."""
    opened = changed(small_release, classifier__learner="kernel").open().state.release
    assert opened is not None
    assert AUTO_RULE_KEY not in opened.parameters


def test_every_surface_says_what_auto_takes(
    small_release: SmallRelease, few_rows_will_do: None
) -> None:
    """The plan, the command, the log, and the statement with its value; a named one is silent."""
    del few_rows_will_do
    release, said = auto(small_release), list[str]()
    taken = (
        '"auto" takes "kernel" by its rule 2: 60 rows at epsilon 6; numbers: 1, other features: 0'
    )
    planned = plan_settings(release.settings(), ROW_COUNT)
    assert planned.request.learner == "kernel"
    assert any(line.startswith(taken) for line in summary(planned))
    learned(release, PEOPLE, told=said)
    assert said[0].startswith(taken)
    stated = read_stated(release.configuration(), release.ledger(), audit=None, version="0")
    [line] = [each for each in statement(stated) if each.place == "classifier.learner"]
    assert line.value == "kernel"
    assert line.words.startswith(taken)
    named = changed(small_release, classifier__learner="kernel").settings()
    assert not any('"auto"' in line for line in summary(plan_settings(named, ROW_COUNT)))


def test_a_start_logs_the_learner(small_release: SmallRelease) -> None:
    """Until a classifier is published, every start has the line, and no other field."""
    with capture_logs() as lines:
        auto(small_release).open()
    [line] = [each for each in lines if each["event"] == "learner_chosen"]
    assert line["learner"] == "exponential"


def test_ranking_takes_a_learner_with_scores(small_release: SmallRelease) -> None:
    """It is bound where it is not the default, and refused for what has no scores."""
    release = auto(small_release, classifier__wanted="ranking")
    assert release.configuration().bound["classifier.wanted"] == '"ranking"'
    assert "classifier.wanted" not in auto(small_release).configuration().bound
    assert learned(release, PEOPLE).document.scores is not None
    with pytest.raises(ReleaseMismatchError, match=r"^classifier\.wanted: "):
        auto(small_release).open()
    with pytest.raises(ConfigurationError, match=r"^classifier\.wanted: .*scores"):
        changed(small_release, classifier__learner="grid", classifier__wanted="ranking").settings()


@pytest.mark.parametrize("learner", LEARNERS)
def test_plan_and_statement_say_which_labels_are_too_rare(
    small_release: SmallRelease, learner: str
) -> None:
    """A share that is less the more rows there are; a hundred times as many, a hundredth."""
    release = changed(small_release, classifier__learner=learner, classifier__tests='{"group": []}')
    settings = release.settings()
    row = chosen_learner(settings, row_count=ROW_COUNT, opened=None).row
    stated = read_stated(release.configuration(), None, audit=None, version="0")
    assert not any(line.place == "classifier.smallest_share" for line in statement(stated))
    release.open()
    stated = read_stated(release.configuration(), release.ledger(), audit=None, version="0")
    [line] = [each for each in statement(stated) if each.place == "classifier.smallest_share"]
    assert line.words in summary(plan_settings(settings, ROW_COUNT))
    assert row.learner.name == learner
    words = summary(plan_settings(settings, 100 * ROW_COUNT))
    assert any("may be given to nobody" in each for each in words)
    assert 0 < float(str(line.value)) <= 1


def test_a_label_that_no_public_point_gets_is_named(small_release: SmallRelease) -> None:
    """The line is made of what is published and of the points; without points there is none."""
    release, said = changed(small_release, data__classes='["no", "yes", "never"]'), list[str]()
    published = learned(release, PEOPLE, told=said)
    assert said[-1].startswith("no public point gets the label 'never' by the published")
    schema = release.configuration().schema
    values = encode(schema, PEOPLE)
    assert labels_given_to_nobody(published, schema, values) == ("never",)
    assert labels_given_to_nobody(published, schema, values[:1]) == ("yes", "never")
    assert labels_given_to_nobody(published, schema, values[:0]) == ()


def test_a_vector_that_is_decoded_encodes_to_the_same(small_release: SmallRelease) -> None:
    """Numbers, missing ones, categories, others and missing ones, whatever they are called."""
    schema = small_release.configuration().schema
    vectors: list[Vector] = [(1.5, "a"), (None, "b"), (-7.0, "nobody's"), (0.0, None)]
    values = encode(schema, vectors)
    np.testing.assert_array_equal(encode(schema, decode(schema, values)), values)
