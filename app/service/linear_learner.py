"""The learner ``linear``: what public points and public numbers make of a noisy descent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.accounting import noisy_gradient as accounting
from app.errors import ConfigurationError
from app.hypotheses.binary_tests import distinct_cuts, evaluate
from app.hypotheses.encoded_rows import RowsByPart
from app.hypotheses.integer_residuals import WHOLE
from app.hypotheses.linear_scores import LinearScores
from app.hypotheses.terms import Terms
from app.hypotheses.whitening import PublicMoments, whitened
from app.mechanisms import noisy_gradient
from app.planning.descent import descent_choice
from app.service.public_choices import published_tests
from app.service.work import PUBLISHED, naming_section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.accounting.composition import Charge
    from app.data.rows import PrivateRows
    from app.hypotheses.binary_tests import BinaryTest
    from app.noise.source import NoiseSource
    from app.settings import Settings

# An hour or so of one core, ...
PRODUCTS_MAX: Final = 10**13
# ... and what the covariance of public points takes seconds and megabytes for.
TERMS_MAX: Final = 4000


@dataclass(frozen=True, slots=True)
class LinearDraw:
    """A descent and the public terms whose weights it finds.

    Attributes:
        terms: the public terms.
        parameters: of the mechanism.

    """

    terms: Terms
    parameters: noisy_gradient.Parameters

    @property
    def row_count(self) -> int:
        """The public n."""
        return self.parameters.row_count

    def summary(self, source: str) -> str:
        """Say what is about to be spent on what; ``source`` says what fixes the terms."""
        parameters = self.parameters
        calibration = parameters.calibration
        start = np.zeros((parameters.features.width, 1))
        scale = parameters.row_count * parameters.features.unit * WHOLE
        noise = math.sqrt(noisy_gradient.step_variance(parameters, start)) / scale
        return (
            f"descending in {calibration.step_count} steps over {len(self.terms)} tests {source}, "
            f"at epsilon {float(calibration.epsilon):g} and delta {float(calibration.delta):.3g} "
            f"on {parameters.row_count} rows: noise of {noise:.2g} in the first mean gradient"
        )

    def draw(self, rows: PrivateRows, noise: NoiseSource) -> LinearScores:
        """Descend under a charge that is committed, and return scores of the terms."""
        encoded = RowsByPart(self.terms.encode, rows.values)
        weights = noisy_gradient.draw(self.parameters, (encoded, rows.labels), noise).values
        features = self.parameters.features
        return LinearScores.rounded(
            self.terms,
            features.matrix @ weights,
            features.offset @ weights,
            class_count=self.parameters.class_count,
        )


def linear_draw(
    settings: Settings, charge: Charge, public_values: NDArray[np.float64], *, row_count: int
) -> LinearDraw:
    """Return the descent that public points and the public n fix.

    Args:
        settings: the whole configuration.
        charge: of the classifier.
        public_values: encoded public points, shape (m, d); m may be 0.
        row_count: the public n.

    Raises:
        ConfigurationError: names what to change, where sums would not be exact, or
            would take hours.

    """
    tests = published_tests(settings, public_values, for_trees=True)
    terms, moments = _known_terms(tests, public_values)
    choice = descent_choice(row_count=row_count, epsilon=float(charge.epsilon))
    _refuse_long_descent(len(terms), row_count, choice.descent.step_count)
    with naming_section(PUBLISHED):
        features = whitened(moments, ridge=choice.ridge, norm=choice.norm, constant=choice.constant)
    calibration = accounting.calibrate(
        epsilon=charge.epsilon,
        delta=charge.delta,
        step_count=choice.descent.step_count,
    )
    parameters = noisy_gradient.Parameters(
        features=features,
        class_count=len(settings.data.classes),
        row_count=row_count,
        calibration=calibration,
        descent=choice.descent,
    )
    return LinearDraw(terms, parameters)


def _refuse_long_descent(term_count: int, row_count: int, step_count: int) -> None:
    """Refuse, by public numbers, sums that take longer than an hour."""
    products = row_count * (term_count + 1) * (term_count + 2 * step_count)
    if products > PRODUCTS_MAX or term_count > TERMS_MAX:
        problem = (
            f"gives {term_count} tests, on {row_count} rows about {products:.0e} products, and at "
            f"most {TERMS_MAX} tests and {PRODUCTS_MAX:.0e} are taken: lower it or list fewer tests"
        )
        raise ConfigurationError("classifier.bins", problem)


def _known_terms(
    tests: Sequence[BinaryTest], public_values: NDArray[np.float64]
) -> tuple[Terms, PublicMoments]:
    """Return the tests that public points tell apart, and what is known of them."""
    if not len(public_values):
        return Terms.single(tests), PublicMoments.of_shares(tests)
    bits = evaluate(tests, public_values)
    varying = [
        column
        for column in distinct_cuts(bits, complements=True)
        if 0 < int(bits[:, column].sum()) < len(bits)
    ]
    terms = Terms.single([tests[column] for column in varying])
    return terms, PublicMoments.of_points(bits[:, varying])
