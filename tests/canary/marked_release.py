"""A small release whose private values are all unlike anything public, and their marks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from app.data.vectors import encode, parse_features
from app.learning.trees.tree import Tree
from app.ledger.ledger import open_ledger
from app.planning.from_settings import plan_settings
from app.planning.output.plan_document import plan_document
from app.privacy.voting.votes import tally
from app.release.classifier.published_classifier import publish_drawn, read_published
from app.release.drawing import read_ensemble
from app.release.private_state import HYPOTHESIS, read_piece
from app.release.terms.configuration import configure
from tests.builders.server.http_release import SmallRelease, agreed, private_rows, split
from tests.canary.marks import Mark, encodings, number_mark, text_mark

if TYPE_CHECKING:
    from pathlib import Path

    from app.ledger.ledger import Ledger
    from app.release.classifier.published_classifier import PublishedClassifier
    from app.release.terms.configuration import Configuration

# A category that no schema names, and a number that no other row and no query has.
MARKED_GROUP = "canary-group-51ab"
MARKED_AGE = 73.918273
MARKED_ROWS = (text_mark("a private category", MARKED_GROUP), number_mark("a number", MARKED_AGE))
# A query's own values belong to its client: in no log and in nobody else's reply.
MARKED_QUERY = (73.102938, "canary-query-88cd")
MARKED_KEY = "canary-key-77ef"
MARKED_REQUEST = (
    text_mark("a query's category", MARKED_QUERY[1]),
    number_mark("a query's number", MARKED_QUERY[0]),
    text_mark("an idempotency key", MARKED_KEY),
)
QUERIES = (MARKED_QUERY, *(each(n) for n in range(1, 6) for each in (agreed, split)))
SHARES = {"relabel": "0.2", "answers": "0.4", "classifier": "0.1", "statistics": "0.3"}
# So many learners of two rows each that votes, gaps and distances have three digits
# and more; so many rows that a count of those labelled rightly is no round share.
ENSEMBLE_SIZE = 5003
ROW_COUNT = 11_519
FLIPPED_SHARE = 0.07
NUMBER_MIN = 200
# All surfaces together ask 12 vectors, of which the last two of QUERIES are none: what
# fails or leaks in a vote still finds one to cast, and asking all reaches the limit.
ANSWER_COUNT = 14


def marked_release(folder: Path) -> SmallRelease:
    """Write rows, a marked one among them, and a configuration with every share."""
    answers = {"ensemble": str(ENSEMBLE_SIZE), "queries": str(ANSWER_COUNT)}
    # Of another depth than what relabels, so that the one is never the other.
    changes = {"shares": SHARES, "answers": answers, "classifier": {"depth": "1"}}
    release = SmallRelease(folder, changes)
    folder.mkdir()
    generator = np.random.default_rng(3)
    rows = private_rows(count=ROW_COUNT - 1)
    flips = generator.random(len(rows)) < FLIPPED_SHARE
    other = {"yes": "no", "no": "yes"}
    noisy = [
        (age, group, other[label] if flip else label)
        for (age, group, label), flip in zip(rows, flips.tolist(), strict=True)
    ]
    release.write([(str(MARKED_AGE), MARKED_GROUP, "yes"), *noisy])
    return release


def secret_marks(release: SmallRelease) -> tuple[Mark, ...]:
    """Return the marks of everything that the release came to know of its rows."""
    configuration = configure(release.settings())
    public = public_numbers(release)
    ledger = open_ledger(release.settings().ledger_url, create=False)
    try:
        published = ledger.read_state().classifier
        accuracy = () if published is None else _accuracy(release, read_published(published))
        return (
            *_hypothesis(configuration, ledger),
            *_votes(configuration, ledger, public),
            *accuracy,
        )
    finally:
        ledger.close()


def public_numbers(release: SmallRelease) -> frozenset[int]:
    """Return the whole numbers that the plan of the public configuration prints.

    Votes are drawn anew in every run, and now and then one is such a number: it is
    public already, and whoever prints it prints no vote.
    """
    plan = msgspec.json.encode(plan_document(plan_settings(release.settings(), None)))
    return frozenset(map(int, re.findall(rb"[0-9]+", plan)))


def _votes(configuration: Configuration, ledger: Ledger, public: frozenset[int]) -> list[Mark]:
    """Mark the votes, the gap and the distance of every query, unless they are public."""
    ensemble = read_ensemble(configuration, ledger).private_ensemble
    assert ensemble is not None
    vectors = [parse_features(configuration.schema, list(query)) for query in QUERIES]
    values = encode(configuration.schema, vectors)
    marks = []
    for query, each in enumerate(tally(ensemble.vote_counts(values))):
        counts = each.counts
        numbers = {"votes": counts, "gap": (abs(counts[0] - counts[1]),), "d": (each.distance,)}
        marks += [
            Mark(
                f"{name} of query {query}",
                numbers=tuple(n for n in of if n >= NUMBER_MIN and n not in public),
            )
            for name, of in numbers.items()
        ]
    return marks


def _hypothesis(configuration: Configuration, ledger: Ledger) -> list[Mark]:
    """Mark the hypothesis that relabels: as it is stored, and as a document's tree."""
    stored = read_piece(ledger, HYPOTHESIS)
    body = msgspec.json.decode(stored)
    document = publish_drawn(
        release=configuration.name,
        schema=configuration.schema,
        hypotheses=configuration.hypotheses,
        drawn=Tree.from_dict(body),
    )
    tree = msgspec.json.encode(document.document.tree)
    forms = (*encodings(stored), *encodings(tree), repr(body).encode(), b"test_indices")
    return [Mark("h-hat", forms)]


def _accuracy(release: SmallRelease, published: PublishedClassifier) -> list[Mark]:
    """Mark how many rows the published classifier labels rightly, and their share."""
    lines = release.source.read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split(",") for line in lines]
    labels = published.predict_many([(float(age), group) for age, group, _ in rows])
    right = sum(label == row[2] for label, row in zip(labels, rows, strict=True))
    wrong = len(rows) - right
    shares = [number_mark("private accuracy", count / len(rows)) for count in (right, wrong)]
    return [*shares, Mark("rows labelled rightly", numbers=(right, wrong))]
