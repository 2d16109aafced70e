"""The learner ``linear``: noisy gradient descent over inputs that public points determine.

The inputs are feature tests, conjunctions of them, and numbers (values of numeric features). A
linear score is a weighted sum of inputs. With two classes the sign of the only score decides the
label, and with more classes the largest score. The descent finds the weights of coordinates, which
are uncorrelated combinations of the inputs. A kernel score is a linear score whose inputs include
random cosine features of the numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.schema import NumericFeature
from app.data.streaming.streamed_rows import StreamedRows
from app.errors import ConfigurationError
from app.learning.encoding.binary_tests import distinct_cuts, evaluate
from app.learning.encoding.encoded_rows import RowsByPart
from app.learning.linear.conjunctions import PAIRS_MAX, Terms, paired
from app.learning.linear.kernel_scores import (
    KernelInputs,
    KernelScores,
    NumberedTerms,
    numbered_features,
)
from app.learning.linear.linear_scores import LinearScores
from app.learning.linear.quantile_steps import NO_NUMBERS, Numbers
from app.learning.linear.whitening import PublicMap, Shrinkage, whitened
from app.learning.trees.upper_level_weights import tell_nobody
from app.privacy.learner_properties import LINEAR
from app.privacy.mechanism_registration import own
from app.privacy.noisy_gradient import calibration as accounting
from app.privacy.noisy_gradient import mechanism as noisy_gradient
from app.privacy.noisy_gradient.descent_choices import descent_choice, score_bins
from app.release.classifier.learner_registration import (
    FIRST_INPUTS,
    ClassifierAsked,
    LearnerRegistration,
)
from app.release.classifier.published_scores import kernel_document, scores_document
from app.release.classifier.written_hypotheses import Written
from app.release.terms.accounting import account
from app.release.terms.configuration import published_tests, tests_of_scores
from app.release.terms.work_limits import PUBLISHED, naming_section

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from app.data.schema import Schema
    from app.data.streaming.streamed_rows import AnyRows
    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.enumerated.hypothesis_list import Encoded
    from app.learning.linear.integer_vectors import IntegerFeatures
    from app.learning.trees.upper_level_weights import Told
    from app.noise.source import NoiseSource
    from app.privacy.noisy_gradient.calibration import NoisyGradientCalibration
    from app.privacy.noisy_gradient.descent_choices import DescentChoice
    from app.release.terms.privacy_unit import Unit

    Encode = Callable[[NDArray[np.float64]], Encoded]

# An hour or so of one core, ...
PRODUCTS_MAX: Final = 10**13
# ... and what the covariance of public points takes seconds and megabytes for.
TESTS_MAX: Final = 4000
# A record moves this many residuals at most, ...
RESIDUALS_MAX: Final = 2
# ... each by half its length.
HALVES: Final = 2


@dataclass(frozen=True, slots=True)
class RowVectors:
    """A public map from encoded rows to integer vectors, applied row by row.

    Attributes:
        encode: the public map of an encoded row to the inputs of the score.
        features: the public map of these inputs to integer vectors.

    """

    encode: Encode
    features: IntegerFeatures

    def of(self, values: NDArray[np.float64]) -> NDArray[np.int16]:
        """Return one integer vector for each encoded row, shape (rows, coordinates)."""
        return self.features.coordinates(self.encode(values).astype(np.int16, copy=False))


def gradient_at(
    features: IntegerFeatures,
    weights: NDArray[np.float64],
    vectors: NDArray[np.int16],
    labels: NDArray[np.int64],
    person_row_counts: NDArray[np.int64] | None,
) -> NDArray[np.int64]:
    """Return the loss's gradient, summed over some rows, shape (coordinates, scores); secret."""
    return noisy_gradient.gradient_sum(features, vectors, labels, weights, person_row_counts)


def descended(
    parameters: noisy_gradient.Parameters,
    encode: Encode,
    rows: AnyRows,
    noise: NoiseSource,
    start: NDArray[np.float64] | None = None,
) -> noisy_gradient.Weights:
    """Return weights found by noisy gradient descent; their budget was charged before.

    Args:
        parameters: the public parameters of the descent.
        encode: the public map of an encoded row to the inputs of the score.
        rows: all private rows.
        noise: the source of randomness.
        start: the first iterate, public, shape ``(p, s)`` for p coordinates and s scores; None for
            zero.

    """
    if not isinstance(rows, StreamedRows):
        value = RowsByPart(encode, rows.values), rows.labels
        return noisy_gradient.draw(parameters, value, noise, rows.person_row_counts, start)
    features = parameters.features
    with rows.as_vectors(RowVectors(encode, features).of) as summed:
        return noisy_gradient.draw_summed(
            parameters,
            lambda weights: summed(partial(gradient_at, features, weights)),
            noise,
            start,
        )


@dataclass(frozen=True, slots=True)
class LinearDraw:
    """A noisy gradient descent whose parameters follow from public values, and its inputs.

    Attributes:
        inputs: the public inputs of the score: feature tests and conjunctions of them, perhaps with
            numbers, or with cosine features that were drawn before.
        parameters: the public parameters of the descent.
        unit: the unit of privacy, a row or a person.

    """

    inputs: Terms | NumberedTerms | KernelInputs
    parameters: noisy_gradient.Parameters
    unit: Unit = "row"

    def worth(self, source: str) -> str:
        """Return a text for the operator on the inputs of the scores and the size of the noise.

        Args:
            source: words to insert into the text, which say what determines the inputs, for example
                ``that the schema fixes``.

        """
        parameters = self.parameters
        calibration = parameters.calibration
        noise = parameters.step_deviation(0)
        has_numbers = isinstance(self.inputs, NumberedTerms)
        kinds = "tests, pairs and numbers" if has_numbers else "tests and pairs"
        return (
            f"descending in {parameters.step_count} steps over {len(self.inputs)} {kinds} "
            f"{source}, at epsilon {float(calibration.epsilon):g} and delta "
            f"{float(calibration.delta):.3g} on {parameters.row_count} {self.unit}s: "
            f"noise of {noise:.2g} in every mean gradient"
        )

    def descend(
        self, rows: AnyRows, noise: NoiseSource, start: NDArray[np.float64] | None = None
    ) -> noisy_gradient.Weights:
        """Return the weights of all coordinates, found by noisy gradient descent on the rows.

        Args:
            rows: the private rows, as many as the public n says.
            noise: the source of randomness.
            start: the first iterate, public, shape ``(p, s)`` for p coordinates and s scores; None
                for zero.

        """
        return descended(self.parameters, self.inputs.encode, rows, noise, start)

    def draw(self, rows: AnyRows, noise: NoiseSource) -> LinearScores | KernelScores:
        """Return scores of the inputs, found by noisy gradient descent."""
        return self.scores(self.descend(rows, noise).values)

    def scores(self, weights: NDArray[np.float64]) -> LinearScores | KernelScores:
        """Return the scores that ``weights``, of shape (coordinates, scores), define.

        The scores rank the labels of a row.
        """
        features = self.parameters.features
        scale = features.grid * features.unit  # a coordinate of 1.0, as the map writes it
        of_inputs, intercepts = features.matrix @ weights / scale, features.offset @ weights / scale
        count = self.parameters.class_count
        if isinstance(self.inputs, Terms):
            return LinearScores.rounded(self.inputs, of_inputs, intercepts, class_count=count)
        return KernelScores.rounded(self.inputs, of_inputs, intercepts, class_count=count)

    def written(
        self, schema: Schema, rows: AnyRows, noise: NoiseSource, told: Told = tell_nobody
    ) -> Written:
        """Return the linear score in its published form; its budget was charged before."""
        del told
        return written_scores(self.draw(rows, noise), schema)


def written_scores(drawn: LinearScores | KernelScores, schema: Schema) -> Written:
    """Return linear or kernel scores in their published form."""
    if isinstance(drawn, KernelScores):
        return Written(scores=kernel_document(drawn, schema))
    return Written(scores=scores_document(drawn, schema))


def linear_draw(asked: ClassifierAsked) -> LinearDraw:
    """Return the noisy gradient descent that public points and the public number of rows fix.

    Raises:
        ConfigurationError: summing the gradients over all rows would not be exact, or would take
            hours; the message names what to change.

    """
    settings, charge, row_count = asked.settings, asked.charge, asked.row_count
    choice = descent_choice(row_count=row_count, epsilon=float(charge.epsilon))
    terms, public_map = terms_known(
        asked,
        bins=_bins(asked),
        step_count=choice.step_count,
        other_count=0 if asked.inputs == FIRST_INPUTS else len(numbers_asked(asked)),
    )
    calibration = descent_calibration(asked, step_count=choice.step_count)
    shrinkage = shrinkage_for(choice, calibration, row_count)
    numbers = numbers_known(asked)
    inputs: Terms | NumberedTerms
    if len(numbers):
        inputs = NumberedTerms(terms, numbers)
        features = numbered_features(inputs, public_map, asked.public_values, shrinkage)
    else:
        inputs = terms
        with naming_section(PUBLISHED):
            features = whitened(public_map, shrinkage).features
    parameters = noisy_gradient.Parameters(
        features=features,
        rate=choice.rate,
        class_count=len(settings.data.classes),
        row_count=row_count,
        calibration=calibration,
    )
    return LinearDraw(inputs, parameters, settings.data.unit)


def descent_calibration(asked: ClassifierAsked, *, step_count: int) -> NoisyGradientCalibration:
    """Return the noise of the descent that keeps the classifier's share of the budget.

    Args:
        asked: the public values that fix the draw.
        step_count: the number of steps, all with the same noise.

    Raises:
        InvariantError: the descent and the answers have one joint privacy budget, and the noise is
            smaller than this budget assumes.

    """
    charge = asked.charge
    calibration = accounting.calibrate(
        epsilon=charge.epsilon, delta=charge.delta, step_weights=(1,) * step_count
    )
    joint = account(asked.settings)
    if joint is not None:
        bound = joint.draws[-1].squared_separation
        accounting.check_separation(calibration, own(bound, Fraction))
    return calibration


def numbers_asked(asked: ClassifierAsked) -> tuple[int, ...]:
    """Return the indices of the numeric features whose values may be inputs of a score.

    These are all numeric features except those for which the configuration has an empty list of
    tests.
    """
    listed = asked.settings.published.tests
    return tuple(
        index
        for index, feature in enumerate(asked.settings.data.public_schema().features)
        if isinstance(feature, NumericFeature) and listed.get(feature.name) != ()
    )


def numbers_known(asked: ClassifierAsked) -> Numbers:
    """Return the numeric features whose values are inputs of scores.

    There are none if the release uses the first version of the rule that selects inputs.
    """
    if asked.inputs == FIRST_INPUTS:
        return NO_NUMBERS
    return Numbers.known(asked.public_values, numbers_asked(asked))


def _bins(asked: ClassifierAsked) -> int:
    """Return how many intervals numbers are cut into, where the configuration does not say."""
    listed, features = asked.settings.published.tests, asked.settings.data.public_schema().features
    free = [index for index in numbers_asked(asked) if features[index].name not in listed]
    return score_bins(
        row_count=asked.row_count, epsilon=float(asked.charge.epsilon), number_count=len(free)
    )


def _tests_known(asked: ClassifierAsked, bins: int) -> tuple[BinaryTest, ...]:
    """Return the tests of a score, by the release's rule of inputs."""
    settings = asked.settings
    if asked.inputs == FIRST_INPUTS:
        return published_tests(settings, asked.public_values, for_trees=True)
    bins = settings.published.bins if settings.names_bins else bins
    return tests_of_scores(settings, asked.public_values, bins=bins)


def terms_known(
    asked: ClassifierAsked, *, bins: int, step_count: int, other_count: int = 0
) -> tuple[Terms, PublicMap]:
    """Return the score's inputs (tests, pairs of tests) and a map that decorrelates them.

    Args:
        asked: the public values that fix the draw.
        bins: the number of intervals into which the range of each numeric feature is divided,
            unless the configuration sets it.
        step_count: the number of steps of the descent.
        other_count: the number of inputs of the score besides tests and pairs, for example of
            cosine features.

    Raises:
        ConfigurationError: summing the gradients over all rows would take hours.

    """
    tests = _tests_known(asked, bins)
    bits = evaluate(tests, asked.public_values)
    told = _told_apart(bits) if len(bits) else list(range(len(tests)))
    _refuse_long_descent(len(told), asked, step_count, other_count)
    return _known_terms([tests[column] for column in told], bits[:, told].astype(np.uint8))


def shrinkage_for(
    choice: DescentChoice, calibration: NoisyGradientCalibration, row_count: int
) -> Shrinkage:
    """Return how much to shrink combinations of inputs that the noise would dominate."""
    whole = math.sqrt(calibration.variance_ratio / sum(calibration.step_weights))
    return Shrinkage(noise=whole / row_count, ridge=choice.ridge, length=choice.length)


def _refuse_long_descent(
    test_count: int, asked: ClassifierAsked, step_count: int, other_count: int
) -> None:
    """Refuse, by public numbers, sums that take longer than an hour."""
    # The most that pairs of tests add is counted before they are looked for.
    term_count = test_count + PAIRS_MAX + other_count
    products = asked.row_count * (term_count + 1) * (term_count + 2 * step_count)
    if products > PRODUCTS_MAX or test_count > TESTS_MAX:
        unit = asked.settings.data.unit
        problem = (
            f"gives {test_count} tests, on {asked.row_count} {unit}s about {products:.0e} "
            f"products, and at most {TESTS_MAX} tests and {PRODUCTS_MAX:.0e} are taken: lower it "
            "or list fewer tests"
        )
        raise ConfigurationError("classifier.bins", problem)


def _told_apart(bits: NDArray[np.uint8]) -> list[int]:
    """Return the tests that tell public points apart, none twice."""
    return [
        column
        for column in distinct_cuts(bits, complements=True)
        if 0 < int(bits[:, column].sum()) < len(bits)
    ]


def _known_terms(
    tests: Sequence[BinaryTest], public_bits: NDArray[np.uint8]
) -> tuple[Terms, PublicMap]:
    """Return the tests, with pairs of them where there are public points, and their map."""
    single = Terms.single(tests)
    if not len(public_bits):
        return single, PublicMap.of_shares(tests)
    found = paired(public_bits, [test.feature_index for test in tests])
    if found is None:
        return single, PublicMap.of_points(public_bits)
    pairs = tuple(((one, True), (other, True)) for one, other in found.pairs)
    return Terms(single.tests, single.terms + pairs), found.public_map


def linear_share(asked: ClassifierAsked) -> float:
    """Return the fraction of rows that must have a label so that it is learned despite noise."""
    choice = descent_choice(row_count=asked.row_count, epsilon=float(asked.charge.epsilon))
    return descent_share(asked, step_count=choice.step_count)


def descent_share(asked: ClassifierAsked, *, step_count: int) -> float:
    """Return the fraction of rows that must have a label so that it is learned despite noise.

    At this fraction the gradients of all rows with the label, added up over all steps, are as long
    as one standard deviation of the noise that all steps add. The estimate assumes that these
    gradients have the same direction, and that each is half as long as the row's vector of inputs.

    Args:
        asked: the public values that fix the draw.
        step_count: the number of steps of the descent.

    """
    charge, class_count = asked.charge, len(asked.settings.data.classes)
    calibration = accounting.calibrate(
        epsilon=charge.epsilon, delta=charge.delta, step_weights=(1,) * step_count
    )
    residuals = min(class_count - 1, RESIDUALS_MAX)
    variance = calibration.variance_ratio * residuals / step_count
    return HALVES * math.sqrt(variance) / asked.row_count


DESCENDED: Final = LearnerRegistration(
    learner=LINEAR, prepare=linear_draw, smallest_share=linear_share
)
