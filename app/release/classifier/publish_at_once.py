"""Publishing a classifier at once, without answering queries first.

With public points this is the semi-private learner; without, the private PAC
learner over the finite public class of ``[classifier]``.  It spends the
classifier's share of a release, once.  A release that is not open yet begins
here: the shares of its opening are charged, and the first start of a server
draws the ensemble under them.
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

    from app.data.plane.streamed_rows import AnyRows
    from app.data.schema import Schema
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
    """Refuse invalid requests that can be recognised before a private row is read.

    Raises:
        ConfigurationError: the classifier has no share.
        ReleaseMismatchError: the ledger's release was opened with other settings.
        VerificationError: a classifier is published, the ledger is closed, or the learner
            uses delta and the ensemble is between its first answer and its last.

    """
    _require_share(configuration)
    found = found_state(configuration, ledger)
    if not classifier_of(configuration, ledger).is_due(found):
        raise VerificationError(PUBLISHED)


def check_first_classifier(
    configuration: Configuration, public_values: NDArray[np.float64], *, row_count: int
) -> None:
    """Refuse a classifier that a new release could not draw, before a ledger is created.

    Args:
        configuration: the release's.
        public_values: encoded public points, shape (m, d); m may be 0.
        row_count: the public n.

    Raises:
        ConfigurationError: the classifier has no share, or public numbers show that its draw
            is impossible.

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
        configuration: the release's.
        ledger: a release's, or an empty one.
        rows: the private rows.
        public_values: encoded public points, shape (m, d); m may be 0.
        noise: where every draw comes from.
        progress: shows stages.
        tell: told what the draw is worth, in public numbers.

    Raises:
        ConfigurationError: a draw is impossible, which public numbers show;
            nothing is charged.
        ReleaseMismatchError: data or parameters differ from the ledger's release.
        VerificationError: a classifier is published, by another process perhaps, or has
            to wait for the ensemble's last answer.
        LedgerCorruptError: a private piece of the release is missing or altered.
        InvariantError: the calibration of its answers does not hold.
        LedgerUnavailableError: the ledger took no commit, or another process draws; nothing
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

    What is published and the points are public, and nothing else enters.

    Args:
        published: the classifier.
        schema: the public schema.
        public_values: encoded public points, shape (m, d); the first of them are asked.

    """
    asked = decode(schema, public_values[:POINTS_ASKED_MAX])
    given = set(published.predict_many(asked))
    return tuple(label for label in schema.classes if asked and label not in given)


def _require_share(configuration: Configuration) -> None:
    """Refuse a classifier without a share."""
    if not configuration.has(Mechanism.CLASSIFIER):
        problem = "is 0, and learning spends this share; give it one in a new release"
        raise ConfigurationError("privacy.shares.classifier", problem)
