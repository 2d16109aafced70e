"""The public inputs of a published score, fixed when the release opens.

A score is a weighted sum of inputs by which the published classifier chooses a label; the weights
are found by noisy gradient descent.

The inputs are feature tests, pairs of tests, numbers (values of numeric features), and cosine
features (cosines of random weighted sums of numbers). The public points, or without points the
public schema, determine the inputs and the linear map that makes them uncorrelated. Only the random
weights in the cosine features are drawn; they are drawn once and are public. The integers of the
map are stored, since floating-point results may differ between machines, and the weights of its
coordinates must have the same meaning for every generation. Nothing here is private; it is stored
with the private state, and its digest is in the first ledger entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from app.data.checks.public_overlap import refuse_source_rows
from app.errors import ConfigurationError, LedgerCorruptError, invariant
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.linear.conjunctions import Terms
from app.learning.linear.cosine_features import Waves
from app.learning.linear.integer_vectors import IntegerFeatures
from app.learning.linear.kernel_scores import KernelInputs, NumberedTerms
from app.learning.linear.quantile_steps import Numbers
from app.privacy.budget.composition import Mechanism
from app.privacy.learner_properties import KERNEL
from app.release.classifier.kernel import KernelDraw, kernel_draw
from app.release.classifier.learner_registration import ClassifierAsked
from app.release.classifier.linear import linear_draw
from app.release.drawing import read_points
from app.release.private_state import read_piece

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from app.data.rows import PrivateRows
    from app.ledger.ledger import Ledger
    from app.noise.source import NoiseSource
    from app.release.classifier.linear import LinearDraw
    from app.release.terms.configuration import Configuration

PUBLIC_MAP: Final = "classifier-map"
POINTS_KEY: Final = "classifier.public"
_WHOLE: Final = np.dtype("<i8")


class _KeptWaves(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The stored form of random cosine features: phases as bytes, little-endian."""

    features: list[int]
    bounds: list[tuple[float, float]]
    frequencies: bytes
    shifts: bytes


class _Kept(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """The stored form: plain lists, and integer arrays as bytes, little-endian."""

    tests: list[tuple[int, float | None, int | None, float]]
    terms: list[list[tuple[int, bool]]]
    numbers: list[tuple[int, float, float]]
    matrix: bytes
    offset: bytes
    grid: int
    unit: int
    norm_bound: int
    magnitude: int
    waves: _KeptWaves | None = None


@dataclass(frozen=True, eq=False, slots=True)
class PublicInputs:
    """The public inputs of a score, and the linear map that decorrelates them.

    Attributes:
        inputs: the feature tests and conjunctions of them, perhaps with numbers, or with random
            cosine features of numbers.
        features: the map from these inputs to p coordinates, in integers.

    """

    inputs: Terms | NumberedTerms | KernelInputs
    features: IntegerFeatures

    def to_bytes(self) -> bytes:
        """Return the public inputs and their map as bytes."""
        numbers = self.inputs.numbers if isinstance(self.inputs, NumberedTerms) else Numbers()
        waves = self.inputs.waves if isinstance(self.inputs, KernelInputs) else None
        terms = self.inputs if isinstance(self.inputs, Terms) else self.inputs.terms
        features = self.features
        return msgspec.msgpack.encode(
            _Kept(
                tests=[
                    (each.feature_index, each.cut, each.category_code, each.public_frequency)
                    for each in terms.tests
                ],
                terms=[list(term) for term in terms.terms],
                numbers=[
                    (index, *bounds)
                    for index, bounds in zip(numbers.feature_indices, numbers.bounds, strict=True)
                ],
                matrix=features.matrix.astype(_WHOLE).tobytes(),
                offset=features.offset.astype(_WHOLE).tobytes(),
                grid=features.grid,
                unit=features.unit,
                norm_bound=features.norm_bound,
                magnitude=features.magnitude,
                waves=None if waves is None else _kept(waves),
            )
        )

    @classmethod
    def from_bytes(cls, body: bytes) -> PublicInputs:
        """Return the public inputs and their map that :meth:`to_bytes` wrote.

        Raises:
            LedgerCorruptError: the bytes were not written by :meth:`to_bytes`.

        """
        try:
            kept = msgspec.msgpack.decode(body, type=_Kept)
            offset = np.frombuffer(kept.offset, dtype=_WHOLE).astype(np.float64)
            matrix = np.frombuffer(kept.matrix, dtype=_WHOLE).reshape(-1, len(offset))
            waves = None if kept.waves is None else _read_waves(kept.waves)
        except (msgspec.DecodeError, ValueError):
            raise LedgerCorruptError("the public map of the classifier is none") from None
        terms = Terms(
            tuple(
                BinaryTest(feature_index=index, cut=cut, category_code=code, public_frequency=share)
                for index, cut, code, share in kept.tests
            ),
            tuple(tuple(term) for term in kept.terms),
        )
        numbers = Numbers(
            tuple(index for index, _, _ in kept.numbers),
            tuple((lower, upper) for _, lower, upper in kept.numbers),
        )
        features = IntegerFeatures(
            matrix=matrix.astype(np.float64),
            offset=offset,
            grid=kept.grid,
            unit=kept.unit,
            norm_bound=kept.norm_bound,
            magnitude=kept.magnitude,
        )
        inputs: Terms | NumberedTerms | KernelInputs
        inputs = NumberedTerms(terms, numbers) if len(numbers) else terms
        if waves is not None:
            inputs = KernelInputs(terms, waves)
        invariant(len(inputs) == len(features.matrix), "the map is of the inputs")
        return cls(inputs, features)


def _kept(waves: Waves) -> _KeptWaves:
    return _KeptWaves(
        features=list(waves.feature_indices),
        bounds=list(waves.bounds),
        frequencies=waves.frequencies.astype(_WHOLE).tobytes(),
        shifts=waves.shifts.astype(_WHOLE).tobytes(),
    )


def _read_waves(kept: _KeptWaves) -> Waves:
    shifts = np.frombuffer(kept.shifts, dtype=_WHOLE).astype(np.int64)
    frequencies = np.frombuffer(kept.frequencies, dtype=_WHOLE).astype(np.int64)
    return Waves(
        tuple(kept.features), tuple(kept.bounds), frequencies.reshape(-1, len(shifts)), shifts
    )


def descent_known(
    configuration: Configuration, points: NDArray[np.float64], *, row_count: int
) -> LinearDraw | KernelDraw:
    """Return the noisy gradient descent that public points and the first batch's size determine.

    A slot is the fixed place of one row, or of the rows of one person.

    Args:
        configuration: the release's public parameters, in which the classifier has a share of
            epsilon.
        points: the public points, encoded, float64 (m, d); m may be 0.
        row_count: the public number of slots of the first generation.

    Raises:
        ConfigurationError: summing the gradients over all rows would not be exact, or would take
            hours.

    """
    charge, settings = configuration.charges[Mechanism.CLASSIFIER], configuration.settings
    asked = ClassifierAsked(settings, charge, points, row_count)
    if settings.classifier.learner == KERNEL.name:
        return kernel_draw(asked)
    return linear_draw(asked)


def known_inputs(prepared: LinearDraw | KernelDraw, noise: NoiseSource) -> PublicInputs:
    """Return a score's inputs and map, after drawing the public weights of cosine features.

    Args:
        prepared: the gradient descent of the first generation.
        noise: the source of randomness.

    """
    if isinstance(prepared, KernelDraw):
        inputs = prepared.inputs(noise)
        return PublicInputs(inputs, prepared.parameters(inputs).features)
    return PublicInputs(prepared.inputs, prepared.parameters.features)


def opened_descent(
    configuration: Configuration, rows: PrivateRows, warn: Callable[[str], None]
) -> LinearDraw | KernelDraw | None:
    """Return the noisy descent for the first classifier; None if the classifier has no budget.

    Args:
        configuration: the release's public parameters.
        rows: the rows of the first generation, with which the public points are compared.
        warn: a function that is given a text on how many public points equal a private row, for the
            operator's terminal only.

    Raises:
        ConfigurationError: the public points are the private rows, or do not fit the schema; or
            summing the gradients over all rows would take hours.

    """
    if not configuration.has(Mechanism.CLASSIFIER):
        return None
    settings = configuration.settings
    try:
        points = read_points(settings, settings.classifier.public)
        refuse_source_rows(points, rows.values, warn)
    except ConfigurationError as error:
        raise ConfigurationError(POINTS_KEY, error.problem) from None
    return descent_known(configuration, points, row_count=rows.count)


def read_inputs(ledger: Ledger) -> PublicInputs:
    """Return the public inputs of the score, as stored by an open release.

    Raises:
        LedgerCorruptError: the stored inputs are missing or altered.

    """
    return PublicInputs.from_bytes(read_piece(ledger, PUBLIC_MAP))
