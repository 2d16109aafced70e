"""The section ``[generations]`` (releases that accept further rows), and its restrictions.

A generation is one batch of rows; a tick is a scheduled update, at which batches join the vote and
changes of rows take effect.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

from pydantic import AfterValidator, Field

from app.errors import ConfigurationError
from app.learning.registry import class_registration
from app.privacy.learner_properties import KERNEL, LINEAR
from app.settings.field_types import Section, Text, Unit, Whole, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.settings.data_section import DataSettings
    from app.settings.learning_sections import ClassifierSettings, HypothesesSettings
    from app.settings.release_sections import AnswersSettings, PrivacySettings

SECONDS: Final = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
DURATION: Final = re.compile(r"([1-9][0-9]{0,5})(s|min|h|d)")
CALIBRATIONS: Final = ("profile", "certified")
PUBLISH_IN_TURN: Final = (LINEAR.name, KERNEL.name)
"""Learners whose next steps go on from public weights, so that every generation adds to them."""
IN_TURN_WORDS: Final = " or ".join(f'"{name}"' for name in PUBLISH_IN_TURN)


def seconds_of(duration: str) -> int:
    """Return a duration such as ``1d``, ``6h``, ``30min`` or ``10s`` in seconds."""
    found = DURATION.fullmatch(duration)
    return 0 if found is None else int(found[1]) * SECONDS[found[2]]


def _duration(value: str) -> str:
    """Accept a duration."""
    if not seconds_of(value):
        raise refusal('must be a whole number and s, min, h or d, such as "1d" or "30min"')
    return value


class GenerationsSettings(Section):
    """``[generations]``: batches of rows (generations) that ``conclave append`` adds later."""

    quorum: Annotated[
        Whole,
        Unit("generations"),
        Field(
            ge=1,
            le=1000,
            description="Smallest number of generations that must vote; with fewer, new queries get"
            " 503 `waiting` and nothing is charged.",
        ),
    ] = 1
    active_max: Annotated[
        Whole | None,
        Unit("generations"),
        Field(
            ge=1,
            le=1000,
            description="Largest number of generations that vote together; further generations "
            "wait, with their whole budgets. If unset, all generations vote.",
        ),
    ] = None
    tick: Annotated[
        Text,
        AfterValidator(_duration),
        Field(
            description="How often generations join and erasures take effect, by the clock in UTC: "
            "a number and s, min, h or d. It must be longer than the training of a "
            "generation's models."
        ),
    ] = "1d"
    labelling: Annotated[
        Literal["own", "inherit", "pooled", "cohort"],
        Field(
            description="How the rows of a generation are relabelled: by a rule that is drawn for "
            "this generation (`own`), by the rule of the first generation (`inherit`), "
            "by one rule from the sums of noisy counts of all generations, with class "
            "`cells` only (`pooled`), or by one rule that is drawn from the rows of the"
            " first generations, as many as the quorum, and used for later ones "
            "(`cohort`)."
        ),
    ] = "own"

    @property
    def tick_seconds(self) -> int:
        """Return the time between scheduled updates of rows (ticks), in seconds."""
        return seconds_of(self.tick)


class ErasureSettings(Section):
    """``[erasure]``: whether the number of erased records is published."""

    count: Annotated[
        Literal["secret", "public"],
        Field(
            description="Whether the number of records that were erased is published at every tick."
            " If it is, the fact that a record was erased, and when, is no longer "
            "protected; everything else still is."
        ),
    ] = "secret"


class Grown(NamedTuple):
    """The settings that the checks of ``[generations]`` need."""

    generations: GenerationsSettings | None
    privacy: PrivacySettings
    answers: AnswersSettings
    data: DataSettings
    hypotheses: HypothesesSettings
    classifier: ClassifierSettings
    erasure: ErasureSettings


def _is_pooled(given: Grown) -> bool:
    """Return whether one labelling for all comes from the sums of noisy counts."""
    return given.generations is not None and given.generations.labelling == "pooled"


def _is_cohort(given: Grown) -> bool:
    """Return whether one labelling is drawn from the first generations together."""
    return given.generations is not None and given.generations.labelling == "cohort"


def check_generations(given: Grown) -> None:
    """Refuse settings that ``[generations]`` does not allow.

    They are settings that are not supported in a release with generations, or with which its
    privacy is not proved.

    Raises:
        ConfigurationError: a setting is not allowed; the error is one line that names it.

    """
    chosen = given.generations
    if chosen is None:
        if given.data.id is not None:
            problem = "is for a release with [generations]: a fixed one can erase no row"
            raise ConfigurationError("data.id", problem)
        if given.classifier.public is not None:
            problem = "is for a release with [generations]: give `conclave learn` --public"
            raise ConfigurationError("classifier.public", problem)
        if given.privacy.table is not None:
            problem = "is for a release with [generations]: a fixed one has one class"
            raise ConfigurationError("privacy.table", problem)
        if given.erasure.count == "public":
            problem = '"public" is for a release with [generations]: a fixed one can erase no row'
            raise ConfigurationError("erasure.count", problem)
        return
    if chosen.active_max is not None and chosen.active_max < chosen.quorum:
        raise ConfigurationError("generations.active_max", "must be at least generations.quorum")
    _check_table(given)
    for key, problem, holds in _RULES:
        if not holds(given):
            raise ConfigurationError(key, f"{problem} with [generations]")


def _check_table(given: Grown) -> None:
    """Check the class for which the table is made, where it is not the release's own."""
    table, privacy = given.privacy.table, given.privacy
    if table is None:
        return
    if privacy.calibration != "profile":
        problem = 'is for privacy.calibration = "profile": a certificate is of one class'
        raise ConfigurationError("privacy.table", problem)
    if table.epsilon > privacy.epsilon:
        raise ConfigurationError("privacy.table.epsilon", "is above privacy.epsilon")
    if table.hits_max < given.answers.cutoff:
        problem = "is below answers.cutoff, which that class buys"
        raise ConfigurationError("privacy.table.hits_max", problem)


_RULES: Final[tuple[tuple[str, str, Callable[[Grown], bool]], ...]] = (
    (
        "privacy.calibration",
        'must be "profile" or "certified"',
        lambda given: given.privacy.calibration in CALIBRATIONS,
    ),
    (
        "answers.mechanism",
        'must be "stability"',
        lambda given: given.answers.mechanism == "stability",
    ),
    ("answers.output", 'must be "label"', lambda given: given.answers.output == "label"),
    ("privacy.shares.answers", "must be above 0", lambda given: given.privacy.shares.answers > 0),
    (
        "classifier.learner",
        f"must be {IN_TURN_WORDS} where privacy.shares.classifier is above 0,",
        lambda given: (
            given.privacy.shares.classifier == 0 or given.classifier.learner in PUBLISH_IN_TURN
        ),
    ),
    (
        "privacy.shares.statistics",
        "must be 0: no table opens",
        lambda given: given.privacy.shares.statistics == 0,
    ),
    ("privacy.sampling", "must be 1", lambda given: given.privacy.sampling == 1),
    (
        "privacy.accounting",
        'must be "sum" or absent',
        lambda given: given.privacy.accounting != "joint",
    ),
    (
        "hypotheses.class",
        'must be "cells" where generations.labelling is "pooled"',
        lambda given: (
            not _is_pooled(given) or class_registration(given.hypotheses.kind).splits is not None
        ),
    ),
    (
        "privacy.shares.relabel",
        'must be above 0 where generations.labelling is "pooled"',
        lambda given: not _is_pooled(given) or given.privacy.shares.relabel > 0,
    ),
    (
        "privacy.shares.relabel",
        'must be above 0 where generations.labelling is "cohort"',
        lambda given: not _is_cohort(given) or given.privacy.shares.relabel > 0,
    ),
    ("hypotheses.grid", 'must be "public"', lambda given: given.hypotheses.grid == "public"),
    (
        "data.id",
        "must be absent where data.person names persons, who are forgotten as a whole,",
        lambda given: given.data.id is None or given.data.person is None,
    ),
    (
        "answers.after",
        'must be "halt": generations follow one another',
        lambda given: set(given.answers.sequels.values()) == {"halt"},
    ),
)
