"""``[hypotheses]``, ``[learner]``, ``[classifier]``: which rules are learned, and how.

The module also declares ``[student]``, for a model that is trained on released answers, and
``[statistics]``, for the statistics table. This table is published, and each rule in it gives every
row one of two outcomes. For each rule it has the number of private rows that get the second
outcome, with noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from app.learning.registry import CLASSES
from app.privacy.learner_properties import AUTO, EXPONENTIAL, LEARNERS, RANKING, SCORED_TREE
from app.settings.field_types import (
    Exact,
    FilePath,
    OneOf,
    Parameter,
    Section,
    TestValue,
    Unit,
    Whole,
)

Tests = Annotated[Mapping[str, tuple[TestValue, ...]], Unit("cuts, categories")]

PREDICTOR_PATTERN = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"
ESTIMATOR_PATTERN = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*[.:][A-Za-z_]\w*$"


def _class_name(value: object, read: ValidatorFunctionWrapHandler) -> object:
    """Accept the name of a row, or the import path of a class of one's own."""
    return value if isinstance(value, str) and value in CLASSES else read(value)


ClassName = Annotated[str, Field(pattern=PREDICTOR_PATTERN), WrapValidator(_class_name)]
Predictors = Annotated[
    tuple[Annotated[str, Field(pattern=PREDICTOR_PATTERN, max_length=200)], ...],
    Field(max_length=10_000),
]
Cells = Annotated[
    tuple[Annotated[str, Field(max_length=1000)], ...], Unit("tests"), Field(max_length=10_000)
]


class HypothesesSettings(Section):
    """``[hypotheses]``: the public class of rules for relabelling rows and for learners; optional.

    The section may be left out if no ensemble answers, there are no statistics, and no classifier
    is drawn from a class of rules that only this section names.
    """

    kind: Annotated[
        ClassName,
        Field(
            alias="class",
            description="Name of the hypothesis class: thresholds, stumps, intervals, "
            "rectangles, halfspaces, trees, cells, finite, or the import path "
            '"package.module:Class" of a class of your own.',
        ),
    ]
    path: Annotated[
        FilePath | None,
        Field(
            description="Folder in which the modules of user-written predictors are searched "
            "for last, for `[classifier]` too."
        ),
    ] = None
    depth: Annotated[
        Whole,
        Unit("tests on a path"),
        Field(
            ge=1,
            le=16,
            description="Depth of the trees: 8 at most, and less if drawing or searching them "
            "would take hours.",
        ),
    ] = 2
    bins: Annotated[
        Whole,
        Unit("intervals"),
        Field(
            ge=2,
            le=65536,
            description="Number of equal intervals of a numeric feature, with `bins` - 1 cut "
            "points.",
        ),
    ] = 16
    tests: Annotated[
        Tests,
        Field(
            description="For each named feature, the cut points or categories that feature tests "
            "use, in place of all."
        ),
    ] = {}
    grid: Annotated[
        Literal["public", "private"],
        Field(
            description="Whether rows are relabelled by rules over these public feature tests, or "
            "by any labelling that the class allows on the rows themselves, which costs"
            " more privacy (Lemma L)."
        ),
    ] = "public"
    predictors: Annotated[
        Predictors,
        Field(
            description='Import paths "package.module:function" of the functions that make up the '
            "class `finite`; each function maps a row to a label."
        ),
    ] = ()
    cells: Annotated[
        Cells,
        Field(
            description="Feature tests that divide all vectors into the cells of the class `cells`:"
            " each feature test is followed by its false side, then its true side; an "
            "empty side is a cell (docs/hypotheses.md)."
        ),
    ] = ()


class ClassifierSettings(Section):
    """``[classifier]``: the class of rules and the learner of the published classifier."""

    learner: Annotated[
        str,
        OneOf(lambda: [*LEARNERS, AUTO]),
        Field(
            description="How the classifier is learned: by a random draw from the class "
            "(`exponential`); as a weighted sum of feature tests, by noisy gradient "
            "descent, which uses delta (`linear`); in the same way, with random cosine "
            "waves of the numeric features in addition (`kernel`); by noisy counts on "
            "public grids of up to four numeric features (`grid`); as a tree with noisy"
            " counts of labels in its leaves, which give scores (`scored-tree`); or by "
            "one of the first three, chosen from public numbers (`auto`)."
        ),
    ] = "exponential"
    wanted: Annotated[
        Literal["labels", "ranking"],
        Field(
            description="What the classifier is for: correct labels, or scores by which rows are "
            "ranked; for `ranking` the learner `auto` always chooses a learner with "
            "scores, and `exponential` stands for `scored-tree`."
        ),
    ] = "labels"
    public: Annotated[
        FilePath | None,
        Field(
            description="With `[generations]`: CSV file of public points, from which the feature "
            "tests of the score are chosen once, when the release opens. A release with"
            " fixed rows gets public points from `conclave learn --public` or from the "
            "queries."
        ),
    ] = None
    kind: Annotated[ClassName | None, Field(alias="class", description="Hypothesis class.")] = None
    depth: Annotated[
        Whole | None,
        Unit("tests on a path"),
        Field(
            ge=1,
            le=16,
            description="Depth of the trees: 8 at most, and less if drawing them would take "
            "longer than minutes.",
        ),
    ] = None
    bins: Annotated[
        Whole | None,
        Unit("intervals"),
        Field(
            ge=2,
            le=65536,
            description="Number of intervals of a numeric feature, with cut points at quantiles of "
            "the public points; trees get further cut points next to a value that over "
            "half of the points have (docs/algorithms.md). If given here, it also "
            "replaces the `thresholds` of features.",
        ),
    ] = None
    tests: Annotated[
        Tests | None,
        Field(
            description="For each named feature, the cut points or categories that feature tests "
            "use; {} for no lists."
        ),
    ] = None
    predictors: Annotated[
        Predictors | None,
        Field(
            description="Import paths of the functions that make up the class `finite`; each "
            "function maps a row to a label."
        ),
    ] = None
    cells: Annotated[
        Cells | None,
        Field(
            description="Feature tests that divide all vectors into the cells of the class `cells`."
        ),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _rank_by_a_tree(cls, given: object) -> object:
        """Take the tree with scores in place of the one without, where scores are wanted."""
        if not isinstance(given, Mapping) or given.get("wanted") != RANKING:
            return given
        if given.get("learner", EXPONENTIAL.name) != EXPONENTIAL.name:
            return given
        return {**given, "learner": SCORED_TREE.name}

    def inherit(
        self, hypotheses: HypothesesSettings, *, grids: Mapping[str, tuple[float, ...]]
    ) -> HypothesesSettings:
        """Return the section, with absent keys taken from ``[hypotheses]``.

        Args:
            hypotheses: the section that gives the absent keys.
            grids: the public thresholds of features, by feature name; they are used as lists of
                thresholds if this section does not set ``bins`` (the number of intervals into which
                a feature is divided), and ignored if it does.

        """
        tests: Mapping[str, tuple[float | str, ...]] = (
            hypotheses.tests if self.tests is None else self.tests
        )
        return hypotheses.model_copy(
            update={
                "kind": self.kind or hypotheses.kind,
                "depth": self.depth or hypotheses.depth,
                "bins": self.bins or hypotheses.bins,
                "tests": {**grids, **tests} if self.bins is None else tests,
                "predictors": (
                    hypotheses.predictors if self.predictors is None else self.predictors
                ),
                "cells": hypotheses.cells if self.cells is None else self.cells,
            }
        )


JOBS_UNUSED: Final = (
    "learner.jobs has no effect any more: learners run in the server's own process; leave it out"
)


EstimatorPath: TypeAlias = Annotated[
    str | None,
    Field(
        pattern=ESTIMATOR_PATTERN,
        max_length=200,
        description="Import path of a scikit-learn classifier, in place of the built-in learner.",
    ),
]
EstimatorParameters: TypeAlias = Annotated[
    Mapping[str, Parameter], Field(description="Keyword arguments of the estimator.")
]


class LearnerSettings(Section):
    """``[learner]``: the non-private learner that is trained on each chunk of the rows."""

    rule: Annotated[
        Literal["canonical", "halving"],
        Field(description="Built-in learner; without effect if an `estimator` is given."),
    ] = "canonical"
    estimator: EstimatorPath = None
    params: EstimatorParameters = {}
    packed: Annotated[
        bool,
        Field(
            description="Whether an `estimator` that supports it is fitted on all chunks at "
            "once; otherwise its own `fit` runs chunk by chunk."
        ),
    ] = True
    rows_max: Annotated[
        Whole | None,
        Unit("rows, or persons"),
        Field(
            ge=1,
            le=10_000_000,
            description="Largest number of rows (of persons, if they are named) of its chunk that "
            "an `estimator`, or a rule over predictors of your own, is trained on: those "
            "with the first slots, a random sample. Unset, all of the chunk.",
        ),
    ] = None
    jobs: Annotated[
        Whole | None,
        Unit("processes"),
        Field(
            ge=1,
            le=256,
            description="Has no effect any more and should not be set: learners run in the "
            "server's own process.",
        ),
    ] = None


class StudentSettings(Section):
    """``[student]``: the learner of a model trained on released answers; default `[learner]`."""

    rule: Annotated[
        Literal["canonical"] | None,
        Field(
            description="Built-in learner: the hypothesis of the class of `[hypotheses]` with the "
            "fewest errors."
        ),
    ] = None
    estimator: EstimatorPath = None
    params: EstimatorParameters = {}

    def inherit(self, learner: LearnerSettings) -> LearnerSettings:
        """Return the section, with the estimator of ``[learner]`` if none is set here.

        Without an estimator, the student model is the rule of the class of ``[hypotheses]`` that
        has the fewest errors, whatever learner ``[learner]`` sets for the chunks.
        """
        if self.rule is None and self.estimator is None and learner.estimator is not None:
            return learner.model_copy(update={"packed": True, "rows_max": None})
        return LearnerSettings(estimator=self.estimator, params=self.params)


STATISTICS_CLASS_PATTERN: Final = "^(thresholds|stumps|intervals|rectangles|trees)$"
DEPTH_MAX: Final = 4
DEPTH_DEFAULT_MAX: Final = 2


class StatisticsSettings(Section):
    """``[statistics]``: the rules for which the statistics table counts rows, and its accuracy."""

    kind: Annotated[
        str | None,
        Field(
            alias="class",
            pattern=STATISTICS_CLASS_PATTERN,
            description="thresholds, stumps, intervals, rectangles or trees; if unset, the class of"
            " `[hypotheses]`.",
        ),
    ] = None
    depth: Annotated[
        Whole | None,
        Unit("tests on a path"),
        Field(
            ge=1,
            le=DEPTH_MAX,
            description="Depth of the trees; if unset, that of `[hypotheses]`, but 2 at most.",
        ),
    ] = None
    tests: Annotated[
        Tests,
        Field(
            description="For each named feature, the cut points or categories that feature tests "
            "use. Of a feature that is not named, only so many feature tests of "
            "`[hypotheses]` are used that the table stays small."
        ),
    ] = {}
    updates: Annotated[
        Whole | None,
        Unit("answers"),
        Field(
            ge=1,
            le=1024,
            description="Largest number U of hypotheses whose counts get noise of their own; if "
            "unset, it is computed from the number of rows, the share of epsilon and "
            "the size of the table.",
        ),
    ] = None
    accuracy: Annotated[
        Exact | None,
        Unit("alpha"),
        Field(
            gt=0,
            le=2,
            description="Error bound alpha to be promised, in place of `updates`: the smallest "
            "number of updates that reaches it is used.",
        ),
    ] = None

    def inherit(self, hypotheses: HypothesesSettings) -> HypothesesSettings:
        """Return the section, with absent keys taken from ``[hypotheses]``."""
        depth = self.depth or min(hypotheses.depth, DEPTH_DEFAULT_MAX)
        update = {
            "kind": self.kind or hypotheses.kind,
            "depth": depth,
            "tests": {**hypotheses.tests, **self.tests},
        }
        return hypotheses.model_copy(update=update)
