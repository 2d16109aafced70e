"""Publishing a classifier at once, without answering queries first.

With public points, these points restrict the hypothesis class from which the classifier is drawn
(semi-private learning); without public points the class is the whole finite public class of
``[classifier]`` (private PAC learning). The draw spends the classifier's share of a release's
epsilon, once. If the release is not open yet, :func:`learn` opens it and charges the shares that an
opening charges; the first start of a server then draws the models under these charges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.data.vectors import decode
from app.errors import ConfigurationError, VerificationError
from app.privacy.budget.composition import Mechanism
from app.release.classifier.learner_table import chosen_learner, classifier_draw
from app.release.classifier.published_classifier import draw_published
from app.release.classifier.switch import classifier_of
from app.release.opening import begin_release, found_state
from app.release.terms.accounting import as_opened
from app.release.terms.answer_terms import check_pieces

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from app.data.schema import Schema
    from app.data.streaming.streamed_rows import AnyRows
    from app.ledger.ledger import Ledger
    from app.noise.source import NoiseSource
    from app.release.classifier.published_classifier import PublishedClassifier
    from app.release.progress import Progress
    from app.release.terms.configuration import Configuration

POINTS_ASKED_MAX: Final = 10_000
GIVEN_TO_NOBODY: Final = (
    "no public point gets the label {labels} by the published classifier: rows of it may be too "
    "few for the noise, or look like others"
)
DRAWING: Final = "drawing the classifier"
LEARNS_BY_ITSELF: Final = (
    "needs no `conclave learn`: the server draws each generation's part in the classifier, and "
    "publishes it before the generation joins"
)
PUBLISHED: Final = (
    "the classifier of this release is published already, and is drawn once; "
    "`conclave export --format json` writes it"
)


def check_learnable(configuration: Configuration, ledger: Ledger) -> None:
    """Raise an error if a classifier may not be published at once, before a row is read.

    Raises:
        ConfigurationError: the classifier has no share of epsilon.
        ReleaseMismatchError: the ledger's release was opened with other settings.
        VerificationError: a classifier is already published, the ledger is closed, or the learner
            uses delta and the models have given their first answer but not their last.

    """
    _require_share(configuration)
    found = found_state(configuration, ledger)
    if not classifier_of(configuration, ledger).is_due(found):
        raise VerificationError(PUBLISHED)


def check_first_classifier(
    configuration: Configuration, public_values: NDArray[np.float64], *, row_count: int
) -> None:
    """Raise an error for a classifier that a new release could not draw, before its ledger exists.

    Args:
        configuration: the release's public parameters.
        public_values: m public feature vectors (public points), encoded, shape (m, d); m may be 0.
        row_count: the public number n of rows, or of persons.

    Raises:
        ConfigurationError: the classifier has no share of epsilon, or its draw is impossible with
            these settings and this number of rows.

    """
    _require_share(configuration)
    classifier_draw(as_opened(configuration, None), public_values, row_count=row_count, opened=None)


def learn(
    configuration: Configuration,
    *,
    ledger: Ledger,
    rows: AnyRows,
    public_values: NDArray[np.float64],
    noise: NoiseSource,
    progress: Progress,
    tell: Callable[[str], None],
) -> PublishedClassifier:
    """Charge the classifier's share, draw the classifier once, and publish it.

    Args:
        configuration: the release's public parameters.
        ledger: the release's ledger, or an empty one for a new release.
        rows: the private rows.
        public_values: m public feature vectors (public points), encoded, shape (m, d); m may be 0.
        noise: the source of randomness.
        progress: the display of the stages of the work.
        tell: a function that is given a text on the accuracy to expect, which reveals nothing
            private.

    Raises:
        ConfigurationError: a draw is impossible with these settings and this number of rows;
            nothing is charged.
        ReleaseMismatchError: the data or parameters differ from those of the ledger's release.
        VerificationError: a classifier is already published, perhaps by another process, or may
            only be drawn after the models' last answer.
        LedgerCorruptError: a private value of the release is missing or altered.
        InvariantError: the noise parameters of the answers do not satisfy the privacy claim.
        LedgerUnavailableError: the ledger refused a commit, or another process is drawing; nothing
            is published.

    """
    opened = ledger.read_state().release
    configuration = as_opened(configuration, opened)
    prepared = classifier_draw(configuration, public_values, row_count=rows.count, opened=opened)
    reason = chosen_learner(configuration.settings, row_count=rows.count, opened=opened).reason
    begin_release(
        configuration,
        ledger=ledger,
        rows=rows,
        noise=noise,
        progress=progress,
        public_values=public_values,
    )
    check_pieces(configuration.settings, ledger)
    points = f"{len(public_values)} public points fix" if len(public_values) else "the schema fixes"
    if reason:
        tell(reason)
    tell(prepared.worth(f"that {points}"))

    def draw() -> PublishedClassifier:
        progress(DRAWING, 0, 1)
        drawn = draw_published(
            configuration,
            prepared,
            rows,
            noise,
            lambda done, total: progress(DRAWING, done, total),
        )
        progress(DRAWING, 1, 1)
        return drawn

    published = classifier_of(configuration, ledger).draw_once(draw)
    if published is None:  # another process was first; what was drawn here is forgotten
        raise VerificationError(PUBLISHED)
    left_out = labels_given_to_nobody(published, configuration.schema, public_values)
    if left_out:
        tell(GIVEN_TO_NOBODY.format(labels=", ".join(map(repr, left_out))))
    return published


def labels_given_to_nobody(
    published: PublishedClassifier, schema: Schema, public_values: NDArray[np.float64]
) -> tuple[str, ...]:
    """Return the labels that the classifier gives to no public point.

    Only public values are used: the published classifier and the points.

    Args:
        published: the published classifier.
        schema: the public schema.
        public_values: the public points, encoded, shape (m, d); the first :data:`POINTS_ASKED_MAX`
            of them are used.

    """
    asked = decode(schema, public_values[:POINTS_ASKED_MAX])
    given = set(published.predict_many(asked))
    return tuple(label for label in schema.classes if asked and label not in given)


def _require_share(configuration: Configuration) -> None:
    """Refuse a classifier without a share."""
    if not configuration.has(Mechanism.CLASSIFIER):
        problem = "is 0, and learning spends this share; give it one in a new release"
        raise ConfigurationError("privacy.shares.classifier", problem)
