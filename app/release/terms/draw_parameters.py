"""The public parameters of every random draw, computed before any budget is charged.

Whether a draw is possible depends on the configuration and the public number n of rows only. An
impossible draw is refused here, before the ledger changes.

The module also computes the labellings of the private rows (the ways in which rules of the class of
``[hypotheses]`` label all of them). Their largest possible number is public, and a number that is
too large is refused; the labellings themselves are private.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.data.feature_tests import public_tests
from app.data.schema_columns import public_columns
from app.errors import ConfigurationError, InvariantError
from app.learning.ensemble import votes_by_cell
from app.learning.enumerated.enumerated_class import refuse_size
from app.learning.hypothesis import ClassAsked
from app.learning.registry import FEWER_POINTS, dichotomy_class, dichotomy_count_bound
from app.privacy.budget.composition import Mechanism
from app.privacy.budget.ensemble_size import ensemble_size_auto
from app.privacy.exponential import mechanism as exponential
from app.privacy.exponential.relabel import DichotomyParameters
from app.privacy.mechanisms import size_wanted
from app.release.terms.answer_terms import (
    answering_registration,
    answers_asked,
    calibrate_answers,
    check_calibration,
    release_budget,
)
from app.release.terms.bound_settings import predictor_source
from app.release.terms.work_limits import SEARCHED, refuse_long_draw, refuse_long_fit

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from app.learning.enumerated.enumerated_class import EnumeratedClass
    from app.ledger.entries.entry_kinds import ReleaseOpened
    from app.privacy.budget.sampled_budget import PipelineBudget
    from app.privacy.mechanism_registration import Calibration
    from app.release.progress import Progress
    from app.release.terms.configuration import Configuration
    from app.settings.settings import Settings


def dichotomy_bound(settings: Settings, row_count: int) -> int:
    """Return an upper bound on the number of labellings of the rows that a class allows."""
    return dichotomy_count_bound(_asked(settings), row_count)


def refuse_bound(settings: Settings, row_count: int) -> int:
    """Return a bound on the number of labellings; raise an error if they cannot be listed.

    Raises:
        ConfigurationError: there may be too many labellings; the message has the bound and what to
            change.

    """
    bound = dichotomy_bound(settings, row_count)
    what = f"labellings by {settings.hypotheses.kind} of {row_count} rows"
    refuse_size(bound, what, advice=FEWER_POINTS)
    return bound


def private_dichotomies(settings: Settings, values: NDArray[np.float64]) -> EnumeratedClass:
    """Return one hypothesis for each labelling that a class allows on these rows; secret.

    Args:
        settings: the whole configuration.
        values: the private rows, encoded, shape (n', d), for which :func:`refuse_bound` raised no
            error.

    """
    return dichotomy_class(_asked(settings), values)


def _asked(settings: Settings) -> ClassAsked:
    """Return what ``[hypotheses]`` asks, of the features with a public test."""
    section, schema = settings.hypotheses, settings.data.public_schema()
    tests = public_tests(schema, bins=section.bins, listed=section.tests)
    return ClassAsked(
        kind=section.kind,
        columns=public_columns(schema),
        depth=section.depth,
        class_count=len(schema.classes),
        features=sorted({test.feature_index for test in tests}),
        predictors=predictor_source("hypotheses", section, schema),
    )


CALIBRATING = "calibrating the answers"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleParameters:
    """The public parameters for drawing chunks and training their models.

    Attributes:
        calibration: the noise parameters of the answers.
        sampled_row_count: n', the number of rows, or persons, that are relabelled and divided into
            chunks.
        with_replacement: whether the rows of chunks are drawn from the n' rows with replacement.
        size: the number k of models.
        relabel: the parameters for drawing the rule that relabels; None if there is no relabelling.

    """

    calibration: Calibration
    sampled_row_count: int
    with_replacement: bool
    size: int
    relabel: exponential.Parameters | DichotomyParameters | None


def ensemble_parameters(
    configuration: Configuration,
    *,
    row_count: int,
    progress: Progress,
    opened: ReleaseOpened | None = None,
) -> EnsembleParameters | None:
    """Return the parameters of the models; None if answers have no share of the budget.

    Args:
        configuration: the release's public parameters.
        row_count: the public number n of rows, or of persons.
        progress: the display of the stages of the work.
        opened: the release's first ledger entry, if it was committed before a crash; otherwise
            None.

    Raises:
        ConfigurationError: no noise parameters exist for the budget, or the sample has no row; the
            message names the setting.
        InvariantError: the noise parameters do not satisfy the privacy claim.

    """
    progress(CALIBRATING, 0, 1)
    budget = release_budget(configuration.settings)
    calibration = calibrate_answers(configuration.settings, budget, opened)
    progress(CALIBRATING, 1, 1)
    if budget is None or calibration is None:
        return None
    check_calibration(configuration.settings, budget, calibration)  # before anything is charged
    sampled = budget.sampled_row_count(row_count)
    size = ensemble_size(
        configuration, row_count=row_count, sampled_row_count=sampled, calibration=calibration
    )
    refuse_long_fit(
        configuration.settings, configuration.hypotheses, row_count=sampled, chunk_count=size
    )
    return EnsembleParameters(
        calibration=calibration,
        sampled_row_count=sampled,
        with_replacement=budget.is_with_replacement,
        size=size,
        relabel=relabel_draw(configuration, budget, sampled_row_count=sampled),
    )


def ensemble_size(
    configuration: Configuration,
    *,
    row_count: int,
    sampled_row_count: int,
    calibration: Calibration,
) -> int:
    """Return the number of models, k, from the configuration and the public number of rows n.

    Raises:
        ConfigurationError: there is no row, or with calibration ``paper`` there are fewer rows than
            models.

    """
    settings = configuration.settings
    given = settings.answers.ensemble
    row, asked = answering_registration(settings), answers_asked(settings)
    if row.own_size is not None:
        size = given if isinstance(given, int) else row.own_size(asked)
        row.refuse_size(asked, (size, row_count, sampled_row_count))
        return size
    if sampled_row_count < 1:
        problem = f"leaves no {settings.data.unit} of {row_count}"
        raise ConfigurationError("privacy.sampling", problem)
    hypotheses, estimator = configuration.hypotheses, settings.learner.estimator
    if not isinstance(given, int) and votes_by_cell(hypotheses, estimator):
        return sampled_row_count
    if not isinstance(given, int):
        return ensemble_size_auto(
            row_count=sampled_row_count,
            wanted=size_wanted(table=calibration, query_count=settings.answers.queries),
            hypothesis_count=hypotheses.size,
        )
    return given


def relabel_draw(
    configuration: Configuration, budget: PipelineBudget, *, sampled_row_count: int
) -> exponential.Parameters | DichotomyParameters | None:
    """Return the parameters of the draw that relabels the rows; None without relabelling.

    Relabelling gives each private row the label that a privately drawn rule predicts, before the
    models are trained.

    Raises:
        ConfigurationError: numerical error would exceed the budget, or the labellings of the rows
            are too many to be listed.

    """
    if budget.relabel_epsilon is None:
        return None
    if budget.relabel_is_private:
        with naming_share(Mechanism.RELABEL):
            return DichotomyParameters(
                epsilon=budget.relabel_epsilon,
                composed_epsilon=budget.inner_epsilon,
                delta_truncation=budget.relabel_delta,
                row_count=sampled_row_count,
                class_count=configuration.hypotheses.class_count,
                dichotomy_count_max=refuse_bound(configuration.settings, sampled_row_count),
            )
    refuse_long_draw(
        SEARCHED,
        configuration.hypotheses,
        row_count=sampled_row_count,
        unit=configuration.settings.data.unit,
    )
    with naming_share(Mechanism.RELABEL):
        return exponential.Parameters(
            epsilon=budget.relabel_epsilon,
            delta_truncation=budget.relabel_delta,
            row_count=sampled_row_count,
            hypotheses=configuration.hypotheses,
            account_epsilon=None if budget.account is None else budget.account.epsilon,
        )


@contextmanager
def naming_share(mechanism: Mechanism) -> Iterator[None]:
    """Convert an error about parameters to one that names the setting to change."""
    try:
        yield
    except InvariantError as broken:
        problem = f"allows no exact draw, for which {broken}; change it, epsilon or delta"
        raise ConfigurationError(f"privacy.shares.{mechanism.value}", problem) from None
