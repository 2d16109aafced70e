"""From settings to what a release is made of; everything here is public.

What this version cannot serve is refused here, by name, before a ledger is
touched or a private row is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from app.data.schema_columns import public_columns
from app.errors import ConfigurationError
from app.learning.fit import Learner, check_learner
from app.learning.student import check_student
from app.planning.from_settings import plan_request
from app.planning.plan import plan_answers
from app.release.terms.bound_settings import bound_parameters
from app.release.terms.public_choices import charges_by_mechanism, public_class, refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from app.data.schema import Schema
    from app.learning.hypothesis import HypothesisClass
    from app.privacy.budget.composition import Charge, Mechanism
    from app.settings.learning_sections import LearnerSettings
    from app.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class Configuration:
    """The public side of a release.

    Attributes:
        settings: what the operator wrote.
        schema: the public schema.
        hypotheses: the class that relabels and that the learners search.
        learner: what each chunk is given.
        student: what learns from the answers, where a student may follow them.
        charges: the share of every mechanism that has one.
        bound: what the ledger's first entry binds, by setting.
        even_if_hopeless: whether the operator opens it though it is hopeless.

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
        """The release's whole epsilon, exactly."""
        return Fraction(self.settings.privacy.epsilon)

    @property
    def delta(self) -> Fraction:
        """The release's whole delta, exactly."""
        return Fraction(self.settings.privacy.delta)

    def has(self, mechanism: Mechanism) -> bool:
        """Return whether a mechanism has a share."""
        return mechanism in self.charges


def configure(settings: Settings, *, even_if_hopeless: bool = False) -> Configuration:
    """Derive everything public, and refuse what this version does not serve.

    Args:
        settings: what the operator wrote.
        even_if_hopeless: whether a hopeless release is opened all the same, on record.

    Raises:
        ConfigurationError: names the setting.

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
    """Return what each chunk is given, ``hypotheses`` being the class of the rules."""
    chosen = _learner(settings.learner, settings.data.public_schema(), hypotheses)
    return replace(chosen, scored=settings.answers.output == "score")


def refuse_unserved(settings: Settings) -> None:
    """Refuse what is valid configuration but not served.

    Raises:
        ConfigurationError: names the setting and what serves instead.

    """
    refuse_unknown(settings)
    shares = settings.privacy.shares
    if shares.answers > 0:
        return
    if settings.answers.after == "student":
        problem = 'with 0 no answer would teach a student; set answers.after = "classifier"'
        raise ConfigurationError("privacy.shares.answers", problem)
    if shares.classifier > 0 and settings.answers.after != "classifier":
        problem = 'with 0 nothing would ever answer; set answers.after = "classifier"'
        raise ConfigurationError("privacy.shares.answers", problem)


def warn_of_relabelled_scores(settings: Settings, warn: Callable[[str], None]) -> None:
    """Tell of scores of rows whose labels one hypothesis gives: they are 0 or 1 in a leaf."""
    if settings.answers.output == "score" and settings.privacy.shares.relabel > 0:
        warn("relabelled rows have lost their shares of a class: set privacy.shares.relabel = 0")


def warn_if_infeasible(settings: Settings, row_count: int, warn: Callable[[str], None]) -> None:
    """Tell of a release that will serve and that planning calls infeasible; n is public."""
    reasons = plan_answers(plan_request(settings, row_count)).reasons
    if reasons:
        warn(f"this release is infeasible as planned: {'; '.join(reasons)}")


def _learner(chosen: LearnerSettings, schema: Schema, hypotheses: HypothesisClass) -> Learner:
    return Learner(
        hypothesis_class=hypotheses,
        rule=chosen.rule,
        estimator=chosen.estimator,
        params=chosen.params,
        packed=chosen.packed,
        jobs=chosen.jobs,
        columns=public_columns(schema),
    )
