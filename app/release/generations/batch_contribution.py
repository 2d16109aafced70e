"""The contribution of one batch of rows to the published classifier, before it votes.

Descent goes on from the weights that the generation before has published: they are public, so
that nothing of an earlier generation's budget is touched.  What is published is a mean over all
generations so far, the later ones and the larger ones counting more.  It is drawn with the
labels, under the charge of the append, and enters the ledger at the tick that takes these up: when
a fit ends tells nobody anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant
from app.learning.linear.integer_vectors import score_count
from app.learning.linear.kernel_scores import KernelInputs
from app.ledger.entries.entry_kinds import ClassifierPublished2
from app.ledger.entries.generations import CLASSIFIER, generations_of
from app.privacy.noisy_gradient import calibration as accounting
from app.privacy.noisy_gradient import mechanism as noisy_gradient
from app.privacy.noisy_gradient.descent import choice_of
from app.privacy.noisy_gradient.mechanism import WEIGHT_STEPS, whole_weights
from app.release.classifier.linear import LinearDraw, written_scores
from app.release.classifier.published_classifier import published_document
from app.release.generations.score_inputs import read_inputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.data.rows import PrivateRows
    from app.ledger.entries.fold import LedgerState
    from app.ledger.entries.generations import Generation
    from app.ledger.ledger import Ledger
    from app.noise.source import NoiseSource
    from app.release.generations.score_inputs import PublicInputs
    from app.release.terms.configuration import Configuration


@dataclass(frozen=True, slots=True)
class Part:
    """The classifier as improved by one batch of rows; secret until the next update.

    Attributes:
        start: the public weights that it went on from, one list a coordinate; None for zero.
        event: its entry.

    """

    start: list[list[int]] | None = field(repr=False)
    event: ClassifierPublished2 = field(repr=False)


def newest_weights(state: LedgerState) -> list[list[int]] | None:
    """Return the weights that were published last; None before the first ones."""
    event = state.classifier
    return event.weights if isinstance(event, ClassifierPublished2) else None


def draw_part(
    configuration: Configuration,
    generation: Generation,
    rows: PrivateRows,
    *,
    ledger: Ledger,
    before: Part | None,
    noise: NoiseSource,
) -> Part | None:
    """Return a batch's improvement of the classifier, drawn with its own budget, or None.

    Args:
        configuration: the release's.
        generation: appended, and not published.
        rows: that its slots hold; at most as many as it has slots.
        ledger: of the release.
        before: the part of the generation before it, where that is not in the ledger yet.
        noise: where the noise comes from.

    Raises:
        LedgerCorruptError: the public map is missing or altered.

    """
    if CLASSIFIER not in generation.shares:
        return None
    state = ledger.read_state()
    start = newest_weights(state) if before is None else before.event.weights
    own = generation_draw(configuration, read_inputs(ledger), generation)
    mean = mean_weights(
        own,
        rows,
        noise,
        start=None if start is None else _real(start),
        share=mean_share(generations_of(state.generations).all[: generation.number]),
    )
    schema = configuration.schema
    document = published_document(
        configuration.name, schema, None, written_scores(own.scores(_real(mean)), schema)
    )
    event = ClassifierPublished2(
        number=generation.number, weights=mean, classifier=document.json.decode()
    )
    return Part(start, event)


def generation_draw(
    configuration: Configuration, known: PublicInputs, generation: Generation
) -> LinearDraw:
    """Return the noisy descent that a batch's share of the budget allows.

    Args:
        configuration: the release's.
        known: the public inputs.
        generation: with a share of the classifier.

    """
    epsilon, delta = map(Fraction, generation.shares[CLASSIFIER])
    choice = choice_of(
        row_count=generation.slots,
        epsilon=float(epsilon),
        has_waves=isinstance(known.inputs, KernelInputs),
    )
    parameters = noisy_gradient.Parameters(
        features=known.features,
        rate=choice.rate,
        class_count=len(configuration.schema.classes),
        row_count=generation.slots,
        calibration=accounting.calibrate(
            epsilon=epsilon, delta=delta, step_weights=(1,) * choice.step_count
        ),
        has_holes=True,
    )
    return LinearDraw(known.inputs, parameters, configuration.settings.data.unit)


def mean_share(known: Sequence[Generation]) -> float:
    """Return the weight of the newest batch of rows in the mean over all batches.

    A generation weighs its number times the square of its records times epsilon, by which its
    noise falls: the mean of the later ones, where they are alike.

    Args:
        known: from the first to the newest, which has a share of the classifier.

    """
    weights = [
        each.number * (each.slots * float(Fraction(each.shares[CLASSIFIER][0]))) ** 2
        for each in known
        if CLASSIFIER in each.shares
    ]
    return weights[-1] / sum(weights)


def mean_weights(
    own: LinearDraw,
    rows: PrivateRows,
    noise: NoiseSource,
    *,
    start: NDArray[np.float64] | None,
    share: float,
) -> list[list[int]]:
    """Improve public weights by descent on new rows; return the mean, in multiples of 2^-20.

    Args:
        own: the descent of a generation.
        rows: its rows, secret.
        noise: where the noise comes from.
        start: the mean that was published last, (p, s); None for the first generation.
        share: of the new weights in the mean.

    """
    found = own.descend(rows, noise, start).values
    invariant(found.shape[1] == score_count(own.parameters.class_count), "a weight a score")
    mean = found if start is None else (1 - share) * start + share * found
    return [[int(each) for each in row] for row in whole_weights(mean)]


def _real(weights: list[list[int]]) -> NDArray[np.float64]:
    return np.array(weights, dtype=np.float64) / WEIGHT_STEPS
