"""The entry of user-written predictors in the table of hypothesis classes.

The class is called ``finite``, or by its import path.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from app.learning.enumerated.class_registration import INTERVALS
from app.learning.predictors.own_predictors import Predictors
from app.learning.predictors.predictor_classes import FINITE, predictor_class

OWN_PREDICTORS: Final = replace(
    INTERVALS,
    kind=FINITE,
    listed=Predictors,
    drawn="one of the class's predictors",
    numbers=None,
    covers=False,
    make=lambda asked: predictor_class(asked.source, asked.public_values),
    dichotomies=lambda asked, values: predictor_class(asked.source).restricted_to(values),
    dichotomy_bound=lambda asked, _: predictor_class(asked.source).size,
    is_quick=False,
)
