"""Conversion of settings to a release's public parts: hypothesis classes, shares, learners.

Settings that this version does not support are refused here, by name, before a ledger is changed or
a private row is read.

A binary test is a yes-or-no question about one feature. A linear or kernel score of the published
classifier is a weighted sum of inputs, and decides the label. Some of these inputs are binary
tests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.cell_tests import read_splits
from app.data.feature_tests import classifier_tests, public_tests, with_shared_values
from app.data.schema_columns import public_columns
from app.errors import ConfigurationError, invariant
from app.learning.ensemble import Learner, check_learner
from app.learning.hypothesis import ClassAsked
from app.learning.predictors.predictor_classes import is_predictor_kind
from app.learning.registry import CLASSES, class_registration, hypothesis_class
from app.learning.student import check_student
from app.privacy.budget.composition import Charge, Mechanism, Shares, charges
from app.release.terms.bound_settings import bound_parameters, predictor_source
from app.release.terms.privacy_unit import refuse_unserved_persons
from app.release.terms.work_limits import naming_section

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from app.data.schema import Schema
    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.hypothesis import HypothesisClass
    from app.privacy.budget.composition import Charge, Mechanism
    from app.settings.learning_sections import HypothesesSettings, LearnerSettings
    from app.settings.settings import Settings


ROWS_MAX: Final = "learner.rows_max"


def charges_by_mechanism(settings: Settings) -> dict[Mechanism, Charge]:
    """Return the exact epsilon and delta that each mechanism spends."""
    privacy = settings.privacy
    shares = {name: Fraction(share) for name, share in privacy.shares.model_dump().items()}
    if not shares["answers"]:
        shares["relabel"] = Fraction(0)  # only the ensemble's rows are relabelled
    divided = charges(
        epsilon=Fraction(privacy.epsilon),
        delta=Fraction(privacy.delta),
        shares=Shares(**shares),
        delta_shares=Shares(
            answers=settings.delta_share("answers"),
            classifier=settings.delta_share("classifier"),
            statistics=settings.delta_share("statistics"),
        ),
    )
    return {charge.mechanism: charge for charge in divided}


def public_class(settings: Settings) -> HypothesisClass:
    """Return the hypothesis class that section ``[hypotheses]`` of the settings configures."""
    section = settings.hypotheses
    schema = settings.data.public_schema()
    tests = public_tests(schema, bins=section.bins, listed=section.tests)
    return _class_over(settings, "hypotheses", section, tests)


def no_points(settings: Settings) -> NDArray[np.float64]:
    """Return an empty array of public points, shape (0, d)."""
    return np.empty((0, len(settings.data.features)))


def published_class(settings: Settings, public_values: NDArray[np.float64]) -> HypothesisClass:
    """Return the hypothesis class of section ``[classifier]``, made smaller by public points.

    Hypotheses that give all public points the same labels count as one; a class of trees keeps one
    feature test for each way in which a test divides the points. Without points it is the whole
    class.

    Args:
        settings: the whole configuration.
        public_values: m public feature vectors (public points), encoded, shape (m, d); m may be 0.

    """
    section = settings.published
    tests = published_tests(
        settings, public_values, for_trees=class_registration(section.kind).takes_tests
    )
    hypotheses = _class_over(settings, "classifier", section, tests, public_values=public_values)
    return hypotheses.restricted_to(hypotheses.encode(public_values))


def published_tests(
    settings: Settings, public_values: NDArray[np.float64], *, for_trees: bool
) -> tuple[BinaryTest, ...]:
    """Return the binary tests that ``[classifier]`` and the public points determine.

    Args:
        settings: the whole configuration.
        public_values: m public feature vectors (public points), encoded, shape (m, d); m may be 0.
        for_trees: whether to choose the tests as for trees: rare categories get no test, and a
            feature gets additional thresholds if most public points have the same value of it.

    """
    section = settings.published
    return classifier_tests(
        settings.data.public_schema(),
        bins=section.bins,
        listed=section.tests,
        public_values=public_values,
        for_trees=for_trees,
    )


def tests_of_scores(
    settings: Settings, public_values: NDArray[np.float64], *, bins: int
) -> tuple[BinaryTest, ...]:
    """Return the binary tests that are inputs of a linear or kernel score.

    Args:
        settings: the whole configuration.
        public_values: m public feature vectors (public points), encoded, shape (m, d); m may be 0.
        bins: the number of intervals for each numeric feature without a list of tests.

    """
    schema = settings.data.public_schema()
    lists = with_shared_values(
        schema, bins=bins, listed=settings.published.tests, public_values=public_values
    )
    return classifier_tests(
        schema, bins=bins, listed=lists, public_values=public_values, for_trees=True
    )


def refuse_unknown(settings: Settings) -> None:
    """Raise an error for a configuration with a class or unit of privacy that is not supported.

    Args:
        settings: the whole configuration.

    Raises:
        ConfigurationError: the message names the setting and the supported values.

    """
    refuse_unserved_persons(settings)
    for key, value, known in (
        ("hypotheses.class", settings.hypotheses.kind, CLASSES),
        ("classifier.class", settings.published.kind, CLASSES),
    ):
        if value not in known and not is_predictor_kind(value):
            choices = ", ".join(f'"{name}"' for name in known)
            problem = f'"{value}" is not served by this version; it serves {choices}'
            raise ConfigurationError(key, problem)


def _class_over(
    settings: Settings,
    name: str,
    section: HypothesesSettings,
    tests: Sequence[BinaryTest],
    *,
    public_values: NDArray[np.float64] | None = None,
) -> HypothesisClass:
    """Return the class of a section, by its name, over public tests and points."""
    schema = settings.data.public_schema()
    by_cell = class_registration(section.kind).splits is not None
    with naming_section(name):
        return hypothesis_class(
            ClassAsked(
                kind=section.kind,
                tests=tests,
                depth=section.depth,
                class_count=len(settings.data.classes),
                columns=public_columns(schema),
                predictors=predictor_source(name, section, schema),
                splits=read_splits(schema, section.cells, section=name) if by_cell else None,
                public_values=public_values,
            )
        )


@dataclass(frozen=True, slots=True)
class Configuration:
    """The public parts of a release's configuration, derived from its settings.

    Attributes:
        settings: the settings as the operator wrote them.
        schema: the public schema.
        hypotheses: the hypothesis class from which a rule for relabelling is drawn, and in which
            the learners search.
        learner: the learner that is trained on each chunk.
        student: the learner for a student, a classifier that is trained on the answers; used only
            if the settings ask for a student.
        charges: the epsilon and delta of every mechanism that has a share.
        bound: the permanent settings that the ledger's first entry records, by name.
        even_if_hopeless: whether the operator opens the release although it would answer almost
            nothing.

    """

    settings: Settings
    schema: Schema
    hypotheses: HypothesisClass
    learner: Learner
    student: Learner
    charges: Mapping[Mechanism, Charge]
    bound: Mapping[str, str]
    even_if_hopeless: bool = False

    @property
    def name(self) -> str:
        """The release's name."""
        return self.settings.release.name

    @property
    def epsilon(self) -> Fraction:
        """The release's whole epsilon, as an exact fraction."""
        return Fraction(self.settings.privacy.epsilon)

    @property
    def delta(self) -> Fraction:
        """The release's whole delta, as an exact fraction."""
        return Fraction(self.settings.privacy.delta)

    def has(self, mechanism: Mechanism) -> bool:
        """Return whether a mechanism has a share of the budget."""
        return mechanism in self.charges

    def with_budget(self, epsilon: Fraction, delta: Fraction) -> Configuration:
        """Return a configuration with another total budget, divided in the same proportions.

        Args:
            epsilon: the epsilon of a generation's records, a finite decimal.
            delta: the delta of a generation's records, a finite decimal.

        """
        if (epsilon, delta) == (self.epsilon, self.delta):
            return self
        settings = self.settings.with_budget(_decimal(epsilon), _decimal(delta))
        return replace(self, settings=settings, charges=charges_by_mechanism(settings))


def _decimal(exact: Fraction) -> Decimal:
    """Return a rational as the decimal that it is."""
    found = Decimal(exact.numerator) / Decimal(exact.denominator)
    invariant(Fraction(found) == exact, "a budget is a finite decimal")
    return found


def configure(settings: Settings, *, even_if_hopeless: bool = False) -> Configuration:
    """Return the public parts of a release that settings determine.

    Args:
        settings: the settings as the operator wrote them.
        even_if_hopeless: whether to open a release that would answer almost nothing; the first
            ledger entry then records this.

    Raises:
        ConfigurationError: a setting is not supported; the message names it.

    """
    refuse_unserved(settings)
    schema, hypotheses = settings.data.public_schema(), public_class(settings)
    learner = release_learner(settings, hypotheses)
    check_learner(learner)
    student = _learner(settings.taught, schema, hypotheses)
    if settings.student_may_follow:
        check_student(student)
    return Configuration(
        settings=settings,
        schema=schema,
        hypotheses=hypotheses,
        learner=learner,
        student=student,
        charges=charges_by_mechanism(settings),
        bound=bound_parameters(settings),
        even_if_hopeless=even_if_hopeless,
    )


def release_learner(settings: Settings, hypotheses: HypothesisClass) -> Learner:
    """Return the learner that is trained on each chunk of rows."""
    chosen = _learner(settings.learner, settings.data.public_schema(), hypotheses)
    return replace(chosen, scored=settings.answers.output == "score")


def refuse_unserved(settings: Settings) -> None:
    """Raise an error for a configuration that is not supported, or that could not answer.

    Raises:
        ConfigurationError: the message names the setting and what is supported instead.

    """
    refuse_unknown(settings)
    _refuse_rows_max(settings)
    shares = settings.privacy.shares
    if shares.answers > 0:
        return
    if settings.answers.after == "student":
        problem = 'with 0 no answer would teach a student; set answers.after = "classifier"'
        raise ConfigurationError("privacy.shares.answers", problem)
    if shares.classifier > 0 and settings.answers.after != "classifier":
        problem = 'with 0 nothing would ever answer; set answers.after = "classifier"'
        raise ConfigurationError("privacy.shares.answers", problem)


def _refuse_rows_max(settings: Settings) -> None:
    """Refuse a largest number of rows of a chunk where no learner would follow it.

    Raises:
        ConfigurationError: names ``learner.rows_max``.

    """
    learner, kind = settings.learner, settings.hypotheses.kind
    if learner.rows_max is None:
        return
    if learner.estimator is None and not is_predictor_kind(kind):
        problem = (
            f'is for learner.estimator and predictors of your own: the rule "{learner.rule}" over '
            f"{kind} takes all rows of a chunk, packed into bytes; leave it out"
        )
        raise ConfigurationError(ROWS_MAX, problem)
    if settings.generations is not None:
        problem = "is for releases whose rows are fixed; leave it out, or [generations]"
        raise ConfigurationError(ROWS_MAX, problem)
    if learner.estimator is None and settings.engine.name == "dask":
        problem = (
            "cannot be set for predictors of your own, whose code workers do not have, with "
            '[engine] name = "dask"; leave out one of the two'
        )
        raise ConfigurationError(ROWS_MAX, problem)


def _learner(chosen: LearnerSettings, schema: Schema, hypotheses: HypothesisClass) -> Learner:
    return Learner(
        hypothesis_class=hypotheses,
        rule=chosen.rule,
        estimator=chosen.estimator,
        params=chosen.params,
        packed=chosen.packed,
        columns=public_columns(schema),
        rows_max=chosen.rows_max,
    )
