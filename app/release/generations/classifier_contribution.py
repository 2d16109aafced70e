"""The contribution of one batch of rows to the published classifier.

A generation is one batch of rows. The classifier consists of scores: weighted sums of public inputs
(feature tests, values of features), of which the largest decides the label. Gradient descent on the
rows of a new generation starts at the weights that were published for the previous generation.
These weights are public, so using them costs nothing of an earlier generation's budget. The
published weights are a mean over all generations so far, in which later and larger generations have
larger weights. The contribution is drawn together with the generation's labels, and was charged
when the generation was added. It enters the ledger at the tick (scheduled update) at which the
generation's models join the vote, so the time at which training ends is not visible.
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
from app.privacy.noisy_gradient.descent_choices import choice_of
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
    """The classifier as improved by one batch of rows; secret until the next scheduled update.

    Attributes:
        start: the public weights at which the descent started, one list for each coordinate of the
            descent (a combination of inputs); None for zero.
        event: the ledger entry that will publish the new classifier.

    """

    start: list[list[int]] | None = field(repr=False)
    event: ClassifierPublished2 = field(repr=False)


def newest_weights(state: LedgerState) -> list[list[int]] | None:
    """Return the weights that were published last; None if none were published yet."""
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
    """Return a batch's improvement of the classifier; None if its budget has no share for one.

    A slot is the fixed place of one row, or of the rows of one person.

    Args:
        configuration: the release's public parameters.
        generation: the appended generation, which is not published yet.
        rows: the rows of this generation, at most one unit (row or person) per slot.
        ledger: the ledger of the release.
        before: the contribution of the previous generation, if it is not in the ledger yet;
            otherwise None.
        noise: the source of randomness.

    Raises:
        LedgerCorruptError: the stored public inputs are missing or altered.

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
    """Return the noisy gradient descent that a batch's share of the budget allows.

    Args:
        configuration: the release's public parameters.
        known: the public inputs of the scores.
        generation: a generation whose classifier has a share of epsilon.

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

    The weight of generation g is proportional to g times the square of (its number of records times
    its epsilon for the classifier). This square is inversely proportional to the variance of the
    generation's noise; the factor g gives later generations larger weights.

    Args:
        known: all generations, from the first to the newest, in which the classifier has a share of
            epsilon.

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
    """Improve public weights by descent on new rows; return the new mean over all generations.

    The mean weights are returned as integers, in multiples of 2^-20.

    Args:
        own: the gradient descent of the new generation.
        rows: the rows of the new generation, secret.
        noise: the source of randomness.
        start: the mean that was published last, shape (p, s), for p combinations of inputs and s
            scores; None for the first generation.
        share: the weight of the new generation in the mean.

    """
    found = own.descend(rows, noise, start).values
    invariant(found.shape[1] == score_count(own.parameters.class_count), "a weight a score")
    mean = found if start is None else (1 - share) * start + share * found
    return [[int(each) for each in row] for row in whole_weights(mean)]


def _real(weights: list[list[int]]) -> NDArray[np.float64]:
    return np.array(weights, dtype=np.float64) / WEIGHT_STEPS
