"""The switch: draw the semi-private classifier once, and publish it.

The share is charged in a commit of its own before the private rows are read.
A crash between charge and publication left no trace outside: the next start
draws again under the same charge; a commit that fails publishes the same draw
later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.accounting.composition import Mechanism
from app.data.vectors import decode_key, encode
from app.hypotheses.binary_tests import evaluate
from app.ledger.events import ClassifierPublished, ShareCharged
from app.mechanisms import semi_private
from app.service.draw_parameters import tree_draw
from app.service.open_release import share_event
from app.service.public_choices import published_class
from app.service.published_classifier import publish

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.noise.source import NoiseSource
    from app.service.published_classifier import PublishedClassifier
    from app.service.release import Release


def switch_phase(release: Release, noise: NoiseSource) -> None:
    """Charge, draw and publish; runs on the one writer's thread.

    Raises:
        LedgerUnavailableError: a commit was not taken; nothing was published.

    """
    _charge(release)
    if release.classifier is not None:
        return
    # Drawn once: that its publication fails may tell of its length, on a full disk.
    drawn = release.private_classifier or draw_classifier(release, noise)
    release.private_classifier = drawn
    with release.ledger.transaction() as transaction:
        if transaction.state.classifier is None:
            transaction.append(ClassifierPublished(classifier=drawn.json.decode()))
    release.adopt(transaction.state)


def _charge(release: Release) -> None:
    """Commit the classifier's share as charged, unless it is."""
    charge = release.configuration.charges[Mechanism.CLASSIFIER]
    with release.ledger.transaction() as transaction:
        if transaction.state.charge_of(Mechanism.CLASSIFIER) is None:
            transaction.append(share_event(ShareCharged, charge))
    release.adopt(transaction.state)


def draw_classifier(release: Release, noise: NoiseSource) -> PublishedClassifier:
    """Draw a tree over tests that the queries asked so far tell apart."""
    rows = release.rows_for_drawing()
    hypotheses = published_class(release.configuration.settings, public_points(release))
    parameters = tree_draw(
        release.configuration, Mechanism.CLASSIFIER, hypotheses, row_count=rows.count
    )
    private_bits = evaluate(hypotheses.tests, rows.values)
    tree = semi_private.draw(parameters, (private_bits, rows.labels), noise)
    return publish(release=release.name, schema=release.schema, tests=hypotheses.tests, tree=tree)


def public_points(release: Release) -> NDArray[np.float64]:
    """Return the queries answered so far, encoded, shape (answered, d)."""
    vectors = [decode_key(answer.vector) for answer in release.ledger.answers_after(0)]
    if not vectors:
        return np.empty((0, len(release.schema.features)))
    return encode(release.schema, vectors)
