"""The learner ``kernel``: noisy gradient descent over feature tests and random cosine features.

A linear score is a weighted sum of inputs. With two classes the sign of the only score decides the
label, and with more classes the largest score. A kernel score is a linear score whose inputs
include cosine features: cosines of random weighted sums of the values of numeric features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.schema import NumericFeature
from app.errors import ConfigurationError
from app.learning.halfspaces.lattice import whole_steps
from app.learning.linear.cosine_features import drawn_waves, spreads, wave_size
from app.learning.linear.kernel_scores import KernelInputs, KernelScores, kernel_features
from app.learning.trees.upper_level_weights import tell_nobody
from app.privacy.learner_properties import KERNEL
from app.privacy.noisy_gradient import mechanism as noisy_gradient
from app.privacy.noisy_gradient.descent_choices import KERNEL_BINS, WAVE_COUNT, kernel_choice
from app.release.classifier.learner_registration import (
    FIRST_INPUTS,
    ClassifierAsked,
    LearnerRegistration,
)
from app.release.classifier.linear import (
    descended,
    descent_calibration,
    descent_share,
    numbers_asked,
    shrinkage_for,
    terms_known,
)
from app.release.classifier.published_scores import kernel_document
from app.release.classifier.written_hypotheses import Written

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.data.schema import Schema
    from app.data.streaming.streamed_rows import AnyRows
    from app.learning.linear.conjunctions import Terms
    from app.learning.linear.whitening import PublicMap, Shrinkage
    from app.learning.trees.upper_level_weights import Told
    from app.noise.source import NoiseSource
    from app.privacy.noisy_gradient.calibration import NoisyGradientCalibration
    from app.release.terms.privacy_unit import Unit

NO_NUMBER: Final = '"kernel" needs a feature that is a number, and there is none'


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KernelDraw:
    """A noisy gradient descent over public tests and random cosine features of numbers.

    The random weights of the cosine features are public: they are drawn before a private row is
    read, and published with the classifier. All other parameters follow from the settings, the
    public points and the public number of rows.

    Attributes:
        terms: the public feature tests, and conjunctions of them, that are inputs of the score.
        of_terms: the public linear map of these inputs to uncorrelated coordinates.
        feature_indices: the indices of the numeric features, in schema order.
        bounds: the lower and upper bound of each numeric feature.
        public_values: m public feature vectors (public points), encoded, shape (m, d); m may be 0.
        shrinkage: how much to shrink combinations of inputs that the noise would dominate.
        rate: the length of a step of the descent, as a multiple of the mean gradient.
        class_count: the number L of labels.
        row_count: the public number n of rows, or of persons.
        calibration: the variance of the noise in every step of the descent.
        wave_size: the size of cosine features relative to that of feature tests.
        unit: the unit of privacy, a row or a person.

    """

    terms: Terms
    of_terms: PublicMap
    feature_indices: tuple[int, ...]
    bounds: tuple[tuple[float, float], ...]
    public_values: NDArray[np.float64]
    shrinkage: Shrinkage
    rate: float
    class_count: int
    row_count: int
    calibration: NoisyGradientCalibration
    wave_size: float
    unit: Unit = "row"

    def worth(self, source: str) -> str:
        """Return a text for the operator on the inputs of the scores and the size of the noise.

        Args:
            source: words to insert into the text, which say what determines the inputs, for example
                ``that the schema fixes``.

        """
        calibration = self.calibration
        label_count = min(self.class_count - 1, 2)  # a residual's length, where labels are more
        noise = math.sqrt(calibration.variance_ratio * label_count) / self.row_count
        return (
            f"descending in {len(calibration.step_weights)} steps over {len(self.terms)} tests and "
            f"pairs {source} and {WAVE_COUNT} waves of numbers, at epsilon "
            f"{float(calibration.epsilon):g} and delta {float(calibration.delta):.3g} on "
            f"{self.row_count} {self.unit}s: noise of {noise:.2g} of the longest row in every mean "
            "gradient"
        )

    def inputs(self, noise: NoiseSource) -> KernelInputs:
        """Return the inputs of the descent, after drawing the public cosine features."""
        steps = [
            whole_steps(self.public_values[:, index], bounds)
            for index, bounds in zip(self.feature_indices, self.bounds, strict=True)
        ]
        waves = drawn_waves(
            self.feature_indices,
            self.bounds,
            spreads(np.stack(steps, axis=1)),
            count=WAVE_COUNT,
            noise=noise,
        )
        return KernelInputs(self.terms, waves)

    def parameters(self, inputs: KernelInputs) -> noisy_gradient.Parameters:
        """Return the parameters of the noisy gradient descent over the given inputs."""
        return noisy_gradient.Parameters(
            features=kernel_features(
                inputs,
                self.of_terms,
                self.public_values,
                self.shrinkage,
                wave_size=self.wave_size,
            ),
            rate=self.rate,
            class_count=self.class_count,
            row_count=self.row_count,
            calibration=self.calibration,
        )

    def draw(self, rows: AnyRows, noise: NoiseSource) -> KernelScores:
        """Return a kernel score, after drawing cosine features and running the noisy descent."""
        inputs = self.inputs(noise)
        parameters = self.parameters(inputs)
        weights = descended(parameters, inputs.encode, rows, noise).values
        features = parameters.features
        scale = features.grid * features.unit  # a coordinate of 1.0, as the map writes it
        return KernelScores.rounded(
            inputs,
            features.matrix @ weights / scale,
            features.offset @ weights / scale,
            class_count=self.class_count,
        )

    def written(
        self, schema: Schema, rows: AnyRows, noise: NoiseSource, told: Told = tell_nobody
    ) -> Written:
        """Return a kernel score in its published form; its budget was charged before."""
        del told
        return Written(scores=kernel_document(self.draw(rows, noise), schema))


def kernel_draw(asked: ClassifierAsked) -> KernelDraw:
    """Return a prepared noisy gradient descent, whose random cosine features are drawn later.

    Raises:
        ConfigurationError: there is no numeric feature, or summing the gradients over all rows
            would take hours; the message names what to change.

    """
    settings, charge, row_count = asked.settings, asked.charge, asked.row_count
    is_first, kept = asked.inputs == FIRST_INPUTS, numbers_asked(asked)
    numbers = {
        index: (feature.lower, feature.upper)
        for index, feature in enumerate(settings.data.public_schema().features)
        if isinstance(feature, NumericFeature) and (is_first or index in kept)
    }
    if not numbers:
        raise ConfigurationError("classifier.learner", NO_NUMBER)
    choice = kernel_choice(row_count=row_count, epsilon=float(charge.epsilon))
    terms, of_terms = terms_known(
        asked, bins=KERNEL_BINS, step_count=choice.step_count, other_count=WAVE_COUNT
    )
    calibration = descent_calibration(asked, step_count=choice.step_count)
    return KernelDraw(
        terms=terms,
        of_terms=of_terms,
        feature_indices=tuple(numbers),
        bounds=tuple(numbers.values()),
        public_values=asked.public_values,
        shrinkage=shrinkage_for(choice, calibration, row_count),
        rate=choice.rate,
        class_count=len(settings.data.classes),
        row_count=row_count,
        calibration=calibration,
        wave_size=1.0 if is_first else wave_size(len(numbers)),
        unit=settings.data.unit,
    )


def kernel_share(asked: ClassifierAsked) -> float:
    """Return the fraction of rows that must have a label so that it is learned despite noise."""
    choice = kernel_choice(row_count=asked.row_count, epsilon=float(asked.charge.epsilon))
    return descent_share(asked, step_count=choice.step_count)


WAVED: Final = LearnerRegistration(learner=KERNEL, prepare=kernel_draw, smallest_share=kernel_share)
