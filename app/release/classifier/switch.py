"""The end of answering by vote: a classifier is drawn, or trained on the answers (a student).

If a commit fails, the same draw is published later. Of several servers one draws, and the others
wait for its publication (:mod:`app.release.charged_draw`). The queries answered so far are the
public points of the classifier.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.vectors import decode_key, encode
from app.errors import VerificationError
from app.ledger.entries.entry_kinds import ClassifierPublished
from app.privacy.budget.composition import Mechanism
from app.privacy.voting.query_decision import Sequel
from app.release.charged_draw import Publication
from app.release.classifier.drawn_student import publish_student
from app.release.classifier.learner_table import classifier_draw
from app.release.classifier.published_classifier import draw_published
from app.release.release import ending_where_closed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.data.schema import Schema
    from app.ledger.entries.fold import LedgerState
    from app.ledger.ledger import Ledger
    from app.noise.source import NoiseSource
    from app.release.classifier.published_classifier import PublishedClassifier
    from app.release.release import Release
    from app.release.terms.configuration import Configuration


def answered_points(ledger: Ledger, schema: Schema) -> NDArray[np.float64]:
    """Return the encoded vectors of all answered queries, once for each answer.

    If all vectors in a public cell get one recorded answer, every vector that was asked in the cell
    is included.
    """
    vectors = [decode_key(asked.vector) for asked in ledger.asked_vectors()]
    if not vectors:
        return np.empty((0, len(schema.features)))
    return encode(schema, vectors)


BETWEEN: Final = (
    "a classifier whose learner uses delta is drawn before the ensemble's first answer or after "
    "its last, and {answered} answers are given: wait for the last one"
)
BY_CERTIFICATE: Final = (
    'by one account with calibration = "certified" the classifier comes after the ensemble\'s last '
    "answer, and {answered} answers are given: wait for the last one"
)


def switch_phase(release: Release, noise: NoiseSource) -> None:
    """Draw or train the classifier, charge and publish it; called on the ledger's thread.

    If the ledger was closed meanwhile, the release halts.

    Raises:
        LedgerUnavailableError: the ledger refused a commit; nothing was published.

    """
    with ending_where_closed(release):
        if release.sequel is Sequel.STUDENT:
            publish_student(release)
        else:
            publication = classifier_of(release.configuration, release.ledger)
            replace(publication, keep=release.keep_classifier, adopt=release.adopt).draw_once(
                lambda: release.private_classifier or draw_classifier(release, noise)
            )


def draw_classifier(release: Release, noise: NoiseSource) -> PublishedClassifier:
    """Return a newly drawn classifier, whose hypothesis class depends on the answered queries."""
    rows = release.rows_for_drawing()
    points = answered_points(release.ledger, release.schema)
    prepared = classifier_draw(
        release.configuration, points, row_count=rows.count, opened=release.state.release
    )
    return draw_published(release.configuration, prepared, rows, noise)


def classifier_of(configuration: Configuration, ledger: Ledger) -> Publication[PublishedClassifier]:
    """Return the steps that charge and publish the release's one classifier."""
    return Publication(
        ledger=ledger,
        is_published=lambda state: state.classifier is not None,
        append=lambda transaction, drawn: transaction.append(
            ClassifierPublished(classifier=drawn.json.decode())
        ),
        share=configuration.charges[Mechanism.CLASSIFIER],
        refuse=_refuse_waiting,
    )


def _refuse_waiting(state: LedgerState) -> None:
    """Refuse a classifier between the first answer and the last, where its delta would cost more.

    Raises:
        VerificationError: the ensemble is between its first answer and its last.

    """
    if state.classifier_waits:
        words = BY_CERTIFICATE if state.is_joint else BETWEEN
        raise VerificationError(words.format(answered=state.answered))
