"""The switch: draw the semi-private classifier once, or train a student, and publish it.

A commit that fails publishes the same draw later; of several servers one draws, and the
others wait for what it publishes (:mod:`app.release.publication`).

The queries answered so far, as the public points of what is drawn after them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.vectors import decode_key, encode
from app.errors import VerificationError
from app.learning.encoding.encoded_rows import RowsByPart
from app.ledger.entries.entry_kinds import ClassifierPublished
from app.privacy.budget.composition import Mechanism
from app.privacy.exponential import semi_private
from app.privacy.voting.universal import Sequel
from app.release.classifier.drawn_student import publish_student
from app.release.classifier.linear import LinearDraw, is_linear, linear_draw
from app.release.classifier.published import publish_drawn, publish_scores
from app.release.publication import Publication
from app.release.release import ending_where_closed
from app.release.terms.configuration import published_class
from app.release.terms.draw_parameters import tree_draw

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.data.rows import PrivateRows
    from app.data.schema import Schema
    from app.ledger.entries.fold import LedgerState
    from app.ledger.ledger import Ledger
    from app.noise.source import NoiseSource
    from app.release.classifier.published import PublishedClassifier
    from app.release.release import Release
    from app.release.terms.configuration import Configuration


def answered_points(ledger: Ledger, schema: Schema) -> NDArray[np.float64]:
    """Return the vectors of all fresh answers, encoded, shape (answered, d)."""
    vectors = [decode_key(answer.vector) for answer in ledger.answers_after(0)]
    if not vectors:
        return np.empty((0, len(schema.features)))
    return encode(schema, vectors)


BETWEEN: Final = (
    "a classifier whose learner uses delta is drawn before the ensemble's first answer or after "
    "its last, and {answered} answers are given: wait for the last one"
)


def switch_phase(release: Release, noise: NoiseSource) -> None:
    """Charge, draw and publish, or train and publish; runs on the one writer's thread.

    Where the ledger is closed by then, a halt follows.

    Raises:
        LedgerUnavailableError: a commit was not taken; nothing was published.

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
    """Draw from a class that the queries asked so far fix."""
    rows = release.rows_for_drawing()
    parameters = classifier_parameters(
        release.configuration, public_points(release), row_count=rows.count
    )
    return draw_published(release.configuration, parameters, rows, noise)


def classifier_of(configuration: Configuration, ledger: Ledger) -> Publication[PublishedClassifier]:
    """Return the one publication of a release's classifier, which waits where its delta says so."""
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
        raise VerificationError(BETWEEN.format(answered=state.answered))


def classifier_parameters(
    configuration: Configuration, public_values: NDArray[np.float64], *, row_count: int
) -> semi_private.Parameters | LinearDraw:
    """Return the draw that public points fix: from a class, or by a noisy descent.

    Args:
        configuration: the release's.
        public_values: encoded public points, shape (m, d); m may be 0.
        row_count: the public n.

    Raises:
        ConfigurationError: names what to change, where no such draw is exact.

    """
    if is_linear(configuration.settings, row_count=row_count):
        charge = configuration.charges[Mechanism.CLASSIFIER]
        return linear_draw(configuration.settings, charge, public_values, row_count=row_count)
    hypotheses = published_class(configuration.settings, public_values)
    return tree_draw(configuration, Mechanism.CLASSIFIER, hypotheses, row_count=row_count)


def draw_published(
    configuration: Configuration,
    parameters: semi_private.Parameters | LinearDraw,
    rows: PrivateRows,
    noise: NoiseSource,
) -> PublishedClassifier:
    """Draw under a charge that is committed, and write what was drawn as a document."""
    if isinstance(parameters, LinearDraw):
        scores = parameters.draw(rows, noise)
        return publish_scores(
            release=configuration.name, schema=configuration.schema, scores=scores
        )
    private_encoded = RowsByPart(parameters.hypotheses.encode, rows.values)
    return publish_drawn(
        release=configuration.name,
        schema=configuration.schema,
        hypotheses=parameters.hypotheses,
        drawn=semi_private.draw(parameters, (private_encoded, rows.labels), noise),
    )


def public_points(release: Release) -> NDArray[np.float64]:
    """Return the queries answered so far, encoded, shape (answered, d)."""
    return answered_points(release.ledger, release.schema)
