"""A small kernel descent: two tests and some waves of four numbers, one of them far away."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from app.learning.encoding.binary_tests import BinaryTest
from app.learning.linear.conjunctions import Terms
from app.learning.linear.cosine_features import drawn_waves, spreads
from app.learning.linear.kernel_scores import KernelInputs, kernel_features
from app.learning.linear.whitening import PublicMap, Shrinkage
from app.noise.scripted import ScriptedNoise, seeded_words
from tests.builders.mechanisms.descending import descent_parameters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.privacy.noisy_gradient.mechanism import Parameters

BOUNDS: Final = ((0.0, 1.0), (-5.0, 5.0), (0.0, 255.0), (1e6, 1e6 + 1))
WAVE_COUNT: Final = 24
POINT_COUNT: Final = 200
SHRINKAGE: Final = Shrinkage(noise=1e-3, ridge=400.0, length=1.0)
TESTS: Final = tuple(
    BinaryTest(feature_index=feature, cut=cut, category_code=None, public_frequency=0.5)
    for feature, cut in ((0, 0.5), (2, 100.0))
)


def numbers(count: int, *, seed: int = 1) -> NDArray[np.float64]:
    """Return encoded rows (count, 4), within the bounds; one number in ten is missing."""
    generator = np.random.default_rng(seed)
    lower, upper = np.array(BOUNDS).T
    values = lower + generator.random((count, len(BOUNDS))) * (upper - lower)
    return np.where(generator.random(values.shape) < 0.1, np.nan, values)


def kernel_inputs(*, seed: int = 2) -> KernelInputs:
    """Return two terms and 24 waves, whose coins a seed fixes."""
    features = tuple(range(len(BOUNDS)))
    spread = spreads(np.empty((0, len(BOUNDS)), dtype=np.int64))
    noise = ScriptedNoise(seeded_words(seed))
    waves = drawn_waves(features, BOUNDS, spread, count=WAVE_COUNT, noise=noise)
    return KernelInputs(Terms.single(TESTS), waves)


def kernel_parameters(
    *, points: NDArray[np.float64] | None = None, class_count: int = 2
) -> Parameters:
    """Return the parameters of three steps over these features, on 60 rows."""
    inputs = kernel_inputs()
    points = numbers(POINT_COUNT, seed=9) if points is None else points
    of_terms = PublicMap.of_shares(TESTS)
    features = kernel_features(inputs, of_terms, points, SHRINKAGE)
    return replace(descent_parameters(class_count=class_count), features=features)
