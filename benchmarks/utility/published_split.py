"""The split of benchmark A: private rows, test rows, and draws of public points among them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.schema import CategoricalFeature
from benchmarks.utility.online_data import loaded, private_rows, test_set

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.data.schema import Schema

POINT_COUNT: Final = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Adult as the app encodes it: codes of categories, NaN where a number is missing.

    Attributes:
        schema: public.
        train: float64 (n, d), the private rows.
        train_labels: int64 (n,).
        test: float64 (m, d), all test rows.
        test_labels: int64 (m,).

    """

    schema: Schema
    train: NDArray[np.float64]
    train_labels: NDArray[np.int64]
    test: NDArray[np.float64]
    test_labels: NDArray[np.int64]

    @property
    def is_categorical(self) -> NDArray[np.bool_]:
        """Tell of each feature whether its values are codes, shape (d,)."""
        kinds = [isinstance(each, CategoricalFeature) for each in self.schema.features]
        return np.array(kinds, dtype=np.bool_)

    @property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the public bounds of every feature: codes run from 0 to that of missing."""
        both = [
            (0.0, float(each.missing_code))
            if isinstance(each, CategoricalFeature)
            else (each.lower, each.upper)
            for each in self.schema.features
        ]
        lower, upper = zip(*both, strict=True)
        return np.array(lower), np.array(upper)

    def points(self, seed: int) -> NDArray[np.float64]:
        """Return the public points of a draw: test rows, features only, shape (1000, d)."""
        picked = random.Random(seed).sample(range(len(self.test)), POINT_COUNT)
        return self.test[picked]

    def accuracy(self, predicted: NDArray[np.int64]) -> float:
        """Return the share of all test rows, the points among them, that are labelled right."""
        return float((predicted == self.test_labels).mean())


def adult() -> Split:
    """Read Adult: the whole training file private, the whole test file to be labelled."""
    schema = loaded("adult", {}).data.public_schema()
    rows, tests = private_rows("adult"), test_set("adult")
    labels = _row_labels()
    return Split(schema, rows.values, rows.labels, tests.values[tests.place], labels)


def _row_labels() -> NDArray[np.int64]:
    return test_set("adult").labels
