"""The page that evaluates a published classifier predicts as the server, with the network off."""

from __future__ import annotations

import json
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import FilePayload

from app.data.vectors import parse_features
from app.errors import InvalidFeaturesError
from tests.browser.chromium import PATIENCE_MILLISECONDS, Dashboard, dashboard
from tests.builders.release.every_learner import (
    LEARNERS,
    asked_rows,
    classifier_of,
    schema_of,
    scores_of,
)
from tests.docs.pages import ROOT, examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playwright.sync_api import Browser

    from app.data.vectors import Vector

pytestmark = pytest.mark.browser

PAGE = ROOT / "examples" / "classifier.html"
ASKED = 3_000
# JSON has no infinite number; the page is handed one by its name.
READ = "rows.map((row) => row.map((v) => v === '+inf' ? Infinity : v === '-inf' ? -Infinity : v))"
PREDICT = f"(rows) => {READ}.map((row) => predict(published, row))"
SCORE = f"(rows) => {READ}.map((row) => scoresOf(published, present(published, row)).map(String))"


@contextmanager
def offline(browser: Browser, document: bytes) -> Iterator[Dashboard]:
    """Open the page from its file without a network, and give it a document."""
    with dashboard(browser, offline=True) as opened:
        opened.page.goto(PAGE.as_uri())
        give(opened, document)
        yield opened
        assert opened.asked == [PAGE.as_uri()]
        assert opened.said == []


def give(opened: Dashboard, document: bytes) -> None:
    """Choose a document by the page's file input."""
    file = FilePayload(name="classifier.json", mimeType="application/json", buffer=document)
    opened.find("#file").set_input_files(file)


def written(rows: Sequence[Vector]) -> list[list[float | str | None]]:
    """Return rows as the page is handed them."""
    names = {math.inf: "+inf", -math.inf: "-inf"}
    return [
        [names.get(value, value) if isinstance(value, float) else value for value in row]
        for row in rows
    ]


@pytest.mark.parametrize("name", LEARNERS)
def test_the_page_predicts_as_the_server(browser: Browser, name: str) -> None:
    """Three thousand rows of each learner get the server's labels, and its scores to the unit."""
    classifier, rows = classifier_of(name), asked_rows(name, ASKED)
    with offline(browser, classifier.json) as opened:
        opened.find("#form").wait_for(timeout=PATIENCE_MILLISECONDS)
        found = opened.page.evaluate(PREDICT, written(rows))
        assert found == classifier.predict_many(rows)
        if classifier.document.has_scores:
            scores = opened.page.evaluate(SCORE, written(rows))
            assert [[int(score) for score in row] for row in scores] == scores_of(classifier, rows)


def test_the_two_functions_are_called_as_documented(browser: Browser) -> None:
    """The lines of docs/embed.md give the label of a row from the text of a document."""
    classifier = classifier_of("trees")
    (lines,) = examples(ROOT / "docs" / "embed.md", "js")
    with offline(browser, classifier.json) as opened:
        label = opened.page.evaluate(f"(text) => {{{lines}return label}}", classifier.json.decode())
        assert label == classifier.predict((39.0, 0.2, None, "Private"))


def test_a_row_is_typed_into_the_form(browser: Browser) -> None:
    """A field a feature; an empty one is missing, a word in place of a number is refused."""
    classifier = classifier_of("trees")
    with offline(browser, classifier.json) as opened:
        for row, typed in (
            ((80.0, 0.25, 1e6, "Private"), ("80", " .25", "1e6", "Private")),
            ((None, 0.0, None, None), ("", "0", "?", "")),
            ((None, -7.0, 0.0, "other"), ("45", "-7", "0", "other")),
        ):
            for index, text in enumerate(typed):
                opened.find(f"#feature-{index}").fill(text)
            opened.find("button").click()
            opened.shows("#answer", classifier.predict(row))
        opened.find("#feature-0").fill("old")
        opened.find("button").click()
        opened.shows("#problem", "age: write a number, or leave it empty.")
        assert not opened.text("#answer")


def test_booleans_and_dates_are_typed_into_the_form(browser: Browser) -> None:
    """Both are typed as a source has them; what is neither is refused by its name."""
    name = "trees-of-kinds"
    classifier = classifier_of(name)
    with offline(browser, classifier.json) as opened:
        assert opened.text("label:has(#feature-5)") == "born (1969-12-01 to 1970-03-01)"
        for member in ("true", "F", "1", ""):
            for born in ("1969-12-24", "1970-01-02", "2100-01-01", ""):
                opened.find("#feature-4").fill(member)
                opened.find("#feature-5").fill(born)
                opened.find("button").click()
                row = parse_features(schema_of(name), [None, None, None, None, member, born])
                opened.shows("#answer", classifier.predict(row))
        for feature, text, needed in (
            (5, "1970-02-30", "born: write a date such as 2026-12-31"),
            (4, "yes", "member: write true or false"),
        ):
            opened.find(f"#feature-{feature}").fill(text)
            opened.find("button").click()
            opened.shows("#problem", f"{needed}, or leave it empty.")


def test_booleans_and_dates_are_taken_as_they_are_asked(browser: Browser) -> None:
    """A page of one's own may hand over true and a date, or their texts and days."""
    classifier = classifier_of("trees-of-kinds")
    rows: list[list[object]] = [
        [None, None, None, None, member, born]
        for member in (True, False, None)
        for born in ("1969-12-24", "1970-01-01", "1970-01-02", None)
    ]
    vectors = [parse_features(schema_of("trees-of-kinds"), row) for row in rows]
    with offline(browser, classifier.json) as opened:
        opened.find("#form").wait_for(timeout=PATIENCE_MILLISECONDS)
        assert opened.page.evaluate(PREDICT, rows) == classifier.predict_many(vectors)


def test_numbers_and_booleans_are_categories_as_on_the_server(browser: Browser) -> None:
    """A row is handed over as a query has it: 7.5 is the category 7.5, and 1 is true."""
    classifier, schema = classifier_of("trees-of-kinds"), schema_of("trees-of-kinds")
    features = json.loads(classifier.json)["features"]
    features[3]["categories"] = ["True", "7.50", "1e3"]
    rows: list[list[object]] = [
        [None, None, None, None, member, "1970-01-02"] for member in (1, 0, "T", " FALSE", "1.0")
    ]
    vectors = [parse_features(schema, row) for row in rows]
    named = "(values) => values.map((value) => present(published, [0, 0, 0, value, null, 0])[3])"
    document = json.loads(classifier.json) | {"features": features}
    with offline(browser, json.dumps(document).encode()) as opened:
        opened.find("#form").wait_for(timeout=PATIENCE_MILLISECONDS)
        assert opened.page.evaluate(PREDICT, rows) == classifier.predict_many(vectors)
        given = [True, False, 7.5, 1000, 45, 3]
        wanted = ["True", "false", "7.50", "1e3", "45.0", "3"]
        assert opened.page.evaluate(named, given) == wanted


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        (4, "yes", "member: write true or false, or leave it empty."),
        (4, 2, "member: write true or false, or leave it empty."),
        (5, "1970-02-30", "born: write a date such as 2026-12-31, or leave it empty."),
    ],
)
def test_a_row_that_the_server_refuses_is_refused(
    browser: Browser, place: int, value: object, problem: str
) -> None:
    """What is neither true nor false, and what is no date, gets no label by any function."""
    classifier, schema = classifier_of("trees-of-kinds"), schema_of("trees-of-kinds")
    row: list[object] = [None, None, None, None, "true", "1970-01-02"]
    row[place] = value
    with pytest.raises(InvalidFeaturesError):
        parse_features(schema, row)
    asked = "{ try { return predict(published, row); } catch (error) { return error.message; } }"
    with offline(browser, classifier.json) as opened:
        opened.find("#form").wait_for(timeout=PATIENCE_MILLISECONDS)
        assert opened.page.evaluate(f"(row) => {asked}", row) == problem


def test_a_boolean_that_is_a_token_is_missing(browser: Browser) -> None:
    """A text or a number that stands for no boolean, in any spelling of the number."""
    classifier = classifier_of("trees-of-kinds")
    document = json.loads(classifier.json) | {"missing": ["?", "9"]}
    given: list[object] = ["?", "", 9, "9.0", None]
    rows = [[None, None, None, None, value, "1970-01-02"] for value in given]
    with offline(browser, json.dumps(document).encode()) as opened:
        opened.find("#form").wait_for(timeout=PATIENCE_MILLISECONDS)
        present = "(rows) => rows.map((row) => present(published, row)[4])"
        assert opened.page.evaluate(present, rows) == [None] * len(given)


def test_a_date_that_is_a_token_is_missing(browser: Browser) -> None:
    """A date that stands for no date is not a late one, typed or handed over."""
    classifier = classifier_of("trees-of-kinds")
    document = json.loads(classifier.json) | {"missing": ["9999-12-31"]}
    row: list[object] = [None, None, None, None, "true"]
    none, late = (classifier.predict((None, None, None, None, "true", day)) for day in (None, 1e6))
    assert none != late
    with offline(browser, json.dumps(document).encode()) as opened:
        rows = [[*row, "9999-12-31"], [*row, "9999-12-30"]]
        assert opened.page.evaluate(PREDICT, rows) == [none, late]
        opened.find("#feature-4").fill("true")
        for born, label in ((" 9999-12-31", none), ("9999-12-30", late)):
            opened.find("#feature-5").fill(born)
            opened.find("button").click()
            opened.shows("#answer", label)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (b"[1, ", "This file is no JSON."),
        (b'{"format": "other"}', "This is no published classifier."),
        (
            b'{"format": "conclave-classifier", "version": 2, "predictor": {}}',
            "A document of version 2 that predicts in this way is not read here",
        ),
        (
            b'{"format": "conclave-classifier", "version": 99, "tree": {}}',
            "A document of version 99 that predicts in this way is not read here",
        ),
    ],
)
def test_what_it_cannot_read_it_refuses(browser: Browser, document: bytes, problem: str) -> None:
    """A line says why, and there is nothing to fill in."""
    with offline(browser, document) as opened:
        opened.shows("#problem", problem)
        assert not opened.find("#form").is_visible()


def test_integers_beyond_doubles_are_read_exactly(browser: Browser) -> None:
    """JSON.parse alone would round what differs in the last of 17 digits; floats stay floats."""
    document = (
        '{"format": "conclave-classifier", "version": 4, "missing": [], "classes": ["n", "y"], '
        '"label": "12345678901234567", "features": [{"name": "a", "bounds": [0, '
        '0.12345678901234567]}], "scores": {"unit": 1, "intercepts": [-9007199254740992], '
        '"terms": [{"tests": [{"feature": 0, "at_least": 0.0}], "weights": [9007199254740993]}]}}'
    )
    with offline(browser, document.encode()) as opened:
        opened.find("#feature-0").fill("0.1")
        opened.find("button").click()
        opened.shows("#answer", "y")
        opened.shows("#asked", "12345678901234567:")
        assert opened.evaluate("published.features[0].bounds[1] === 0.12345678901234567")


def test_halves_are_rounded_to_the_even_step(browser: Browser) -> None:
    """Half a step is none, which lies outside; one and a half are two."""
    document = (
        b'{"format": "conclave-classifier", "version": 2, "missing": [], "classes": ["n", "y"], '
        b'"label": "l", "features": [{"name": "a", "bounds": [0, 10]}], "halfspace": {"features": '
        b'[0], "bounds": [[0, 10]], "steps": 10, "levels": [{"weights": [1], "offset": 0}]}}'
    )
    with offline(browser, document) as opened:
        opened.find("#form").wait_for(timeout=PATIENCE_MILLISECONDS)
        assert opened.page.evaluate(PREDICT, [[0.5], [0.51], [1.5]]) == ["n", "y", "y"]


def test_the_page_may_reach_nothing(browser: Browser) -> None:
    """Its own policy refuses a connection, were the network there."""
    with dashboard(browser) as opened:
        opened.page.goto(PAGE.as_uri())
        refused = opened.evaluate("fetch('data:,x').then(() => 'sent', () => 'refused')")
        assert refused == "refused"
        assert any("Content Security Policy" in line for line in opened.said)
