"""Trials of a planned release on made-up records; no private row is read.

In a trial, made-up rules label made-up records, and models are trained on these records.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from app.learning.ensemble import check_learner
from app.learning.registry import row_of
from app.planning.trial.agreement import splits_of
from app.planning.trial.made_up_records import Population, column_laws
from app.planning.trial.run_trial import predict
from app.planning.trial.trial_size import Trial, is_quick
from app.privacy.budget.composition import Mechanism
from app.release.terms.answer_time import AnswerTime, measure_answer_time
from app.release.terms.configuration import public_class, release_learner

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.data.schema import Schema
    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.ensemble import Learner
    from app.learning.hypothesis import HypothesisClass
    from app.planning.plan import Plan
    from app.settings.settings import Settings


SIZES_UNKNOWN: Final = (
    "how many people are in a cell of several features no shares of single ones say: give public"
    " points with --public"
)
UNLABELLED: Final = (
    "rows keep labels of their own (relabel has no share), and how widely learners agree on"
    " those no public number says"
)


def with_prediction(
    settings: Settings,
    planned: Plan,
    *,
    points: NDArray[np.float64] | None = None,
    hypothesis_count: int | None = None,
) -> Plan:
    """Return a plan with its expected answers, or with the reason why there are none.

    Args:
        settings: the whole configuration.
        planned: the plan of this configuration.
        points: encoded public points that serve as made-up people; None to draw people by public
            frequencies.
        hypothesis_count: the number of made-up rules to try; 0 for no prediction; None for as many
            as there is time for.

    Raises:
        ConfigurationError: models of the configured kind cannot be trained.

    """
    if hypothesis_count == 0:
        return planned
    trial = planned_trial(settings, planned, points=points, hypothesis_count=hypothesis_count)
    if isinstance(trial, str):
        return replace(planned, unpredicted=trial)
    found = predict(planned, trial)
    if found is None:
        return replace(planned, unpredicted="its learners take too long to be tried out")
    return replace(planned, prediction=found)


def planned_trial(
    settings: Settings,
    planned: Plan,
    *,
    points: NDArray[np.float64] | None = None,
    hypothesis_count: int | None = None,
) -> Trial | str:
    """Return the trial of a plan, or the reason why there is none.

    Args:
        settings: the whole configuration.
        planned: the plan of this configuration.
        points: encoded public points that serve as made-up people; None to draw people by public
            frequencies.
        hypothesis_count: the number of made-up rules to try; None for as many as there is time for.

    """
    learner = release_learner(settings, public_class(settings))
    reason = _unpredictable(planned)
    if not reason and points is None and parts_several_features(learner):
        reason = SIZES_UNKNOWN
    if not reason and not is_quick(learner):
        slow = learner.estimator or "a class of predictors of your own"
        reason = f"{slow} is not tried out, as nobody knows how long it takes"
    if reason:
        return reason
    check_learner(learner)
    schema = settings.data.public_schema()
    return Trial(
        population=Population(column_laws(schema), points),
        learner=learner,
        tests=asked_by_tests(schema, learner.hypothesis_class),
        hypothesis_count=hypothesis_count,
    )


def parts_several_features(learner: Learner) -> bool:
    """Return whether models label public cells that depend on more than one feature."""
    splits = splits_of(learner)
    return splits is not None and len({test.feature_index for test in splits.tests}) > 1


def _unpredictable(planned: Plan) -> str:
    """Say why a release is not tried out; nothing where it can be."""
    request, answers = planned.request, planned.answers
    if answers.calibration is None or request.budget is None:
        return "answers have no share"
    if request.row_count is None:
        return f"the number of {request.unit}s is not given"
    if not answers.chunk_row_count:
        return f"there are more learners than {request.unit}s"
    if request.charge(Mechanism.RELABEL) is None:
        return UNLABELLED
    if request.budget.relabel_is_private:
        return "labels come from a private grid, which learners do not search"
    return "scores are not predicted, only labels" if request.with_scores else ""


def asked_by_tests(schema: Schema, searched: HypothesisClass) -> tuple[tuple[str, float], ...]:
    """Return the name of each feature test with the public frequency of its rarer answer.

    A feature test is a yes-or-no question, such as age >= 40.

    Args:
        schema: the features, with their names.
        searched: the public class of rules whose feature tests are returned.

    """
    return tuple(
        (_asked(schema, test), min(test.public_frequency, 1 - test.public_frequency))
        for test in row_of(searched).tests(searched)
    )


def _asked(schema: Schema, test: BinaryTest) -> str:
    feature = schema.features[test.feature_index]
    if test.cut is not None:
        return f"{feature.name} >= {test.cut:g}"
    categories = getattr(feature, "categories", ())
    code = test.category_code or 0
    named = categories[code] if code < len(categories) else "another"
    return f"{feature.name} = {named}"


def planned_answer_time(settings: Settings, planned: Plan) -> AnswerTime | None:
    """Return the measured time of one answer with models of the planned number and size.

    Returns:
        The measured time; None if the number of models or rows is not known, if there are fewer
        rows than models, or if the release gives no answers by vote.

    Raises:
        ConfigurationError: models of the configured kind cannot be trained.

    """
    size, row_count = planned.answers.ensemble_size, planned.request.sampled_row_count
    if size is None or row_count is None or not 1 <= size <= row_count:
        return None
    learner = release_learner(settings, public_class(settings))
    check_learner(learner)
    return measure_answer_time(settings, learner, row_count=row_count, ensemble_size=size)
