"""The labellings that the class of ``[hypotheses]`` allows on the private points.

What is asked of the settings and the public number of rows comes first and refuses
what cannot be listed; the labellings themselves are as private as the points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.data.schema_columns import public_columns
from app.data.tests import public_tests
from app.learning.lists.enumerated_class import refuse_size
from app.learning.registry import FEWER_POINTS, dichotomy_class, dichotomy_count_bound
from app.release.terms.predictor_code import predictor_source

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.learning.lists.enumerated_class import EnumeratedClass
    from app.settings.settings import Settings


def dichotomy_bound(settings: Settings, row_count: int) -> int:
    """Bound the labellings of any so many rows, by public numbers only."""
    section = settings.hypotheses
    return dichotomy_count_bound(
        section.kind,
        row_count,
        public_columns(settings.data.public_schema()),
        depth=section.depth,
        class_count=len(settings.data.classes),
        features=_features(settings),
        predictors=predictor_source("hypotheses", section, settings.data.public_schema()),
    )


def refuse_bound(settings: Settings, row_count: int) -> int:
    """Return the bound of the labellings, once that many can be listed.

    Raises:
        ConfigurationError: too many; says the bound and what to change.

    """
    bound = dichotomy_bound(settings, row_count)
    what = f"labellings by {settings.hypotheses.kind} of {row_count} rows"
    refuse_size(bound, what, advice=FEWER_POINTS)
    return bound


def private_dichotomies(settings: Settings, values: NDArray[np.float64]) -> EnumeratedClass:
    """Return one hypothesis for every labelling of these rows; secret, its size too.

    Args:
        settings: the whole configuration.
        values: encoded private rows, shape (n', d), no more than their bound allows.

    """
    section = settings.hypotheses
    return dichotomy_class(
        section.kind,
        values,
        public_columns(settings.data.public_schema()),
        depth=section.depth,
        class_count=len(settings.data.classes),
        features=_features(settings),
        predictors=predictor_source("hypotheses", section, settings.data.public_schema()),
    )


def _features(settings: Settings) -> list[int]:
    """Return the features with a public test, which are the ones in use."""
    section = settings.hypotheses
    tests = public_tests(settings.data.public_schema(), bins=section.bins, listed=section.tests)
    return sorted({test.feature_index for test in tests})
