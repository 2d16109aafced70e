"""Conversion of settings to a planning request; no private row is read."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError
from app.learning.ensemble import cells_of, votes_by_cell
from app.ledger.entries.fold import JOINT
from app.planning.plan import Plan, cell_notes, plan_answers, plan_release
from app.planning.request import PlanRequest
from app.privacy.budget.composition import Charge, Mechanism
from app.privacy.learner_properties import AUTO, learner_of
from app.privacy.mechanisms import MECHANISMS
from app.release.classifier.learner_registration import ClassifierAsked
from app.release.classifier.learner_table import (
    chosen_learner,
    public_numbers,
    rare_in_words,
    smallest_share,
)
from app.release.statistics.statistics_table import check_statistics_draw, statistics_forecasts
from app.release.terms.answer_terms import answers_asked, counts_decisions, release_budget
from app.release.terms.configuration import (
    charges_by_mechanism,
    no_points,
    public_class,
    published_class,
    refuse_unknown,
)
from app.release.terms.draw_parameters import dichotomy_bound
from app.release.terms.hopeless_release import HopelessError, refusal
from app.release.terms.work_limits import (
    PUBLISHED,
    SEARCHED,
    refuse_long_draw,
    refuse_long_fit,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from app.learning.hypothesis import HypothesisClass
    from app.privacy.budget.composition import Charge
    from app.privacy.budget.sampled_budget import PipelineBudget
    from app.release.classifier.learner_table import ChosenLearner
    from app.settings.settings import Settings


def plan_settings(settings: Settings, rows: int | None) -> Plan:
    """Return the plan of a configuration, after checking that its computations are feasible.

    Args:
        settings: the whole configuration.
        rows: the number n of rows or persons; None for the value of ``data.rows`` or
            ``data.persons``.

    Raises:
        ConfigurationError: :func:`plan_request` refuses the configuration, or training its models
            would take hours.

    """
    request = plan_request(settings, rows)
    if request.row_count is not None:
        forecasts = statistics_forecasts(settings, row_count=request.row_count)
        request = replace(request, statistics=forecasts)
    planned = plan_release(request)
    refuse_long_fit(
        settings,
        public_class(settings),
        row_count=planned.request.sampled_row_count,
        chunk_count=planned.answers.ensemble_size,
    )
    return planned


def plan_request(settings: Settings, rows: int | None) -> PlanRequest:
    """Return the planning request that a configuration describes.

    Args:
        settings: the whole configuration.
        rows: the number n of rows or persons; None for the value of ``data.rows`` or
            ``data.persons``.

    Raises:
        ConfigurationError: this version cannot plan a setting, which the error names; the budget
            does not suffice; or the random draw of a rule would be impossible.

    """
    refuse_unknown(settings)
    answers, privacy, budget = settings.answers, settings.privacy, release_budget(settings)
    row_count = settings.data.unit_count if rows is None else rows
    charged, searched = charges_by_mechanism(settings), public_class(settings)
    _refuse_draws(settings, searched, budget, row_count)
    chosen, learner, published = _classifier(settings, charged, row_count=row_count)
    return PlanRequest(
        calibration=privacy.calibration,
        mechanism=answers.mechanism,
        row_count=row_count,
        unit=settings.data.unit,
        epsilon=Fraction(privacy.epsilon),
        delta=Fraction(privacy.delta),
        charges=tuple(charged.values()),
        budget=budget,
        targets=answers_asked(settings).targets,
        cutoff=answers.cutoff,
        ensemble_size=answers.ensemble if isinstance(answers.ensemble, int) else None,
        class_count=len(settings.data.classes),
        hypothesis_count=searched.size,
        relabel_hypothesis_count=_relabel_count(settings, budget, row_count) or searched.size,
        classifier_hypothesis_count=None if published is None else published.size,
        dimension=searched.dimension,
        classifier_dimension=(searched if published is None else published).dimension,
        universal=answers.after == "classifier",
        with_student="student" in (answers.after, answers.on_cutoff),
        with_scores=answers.output == "score",
        with_estimator=settings.learner.estimator is not None,
        after=answers.after,
        on_cutoff=answers.on_cutoff,
        learner=learner,
        learner_asked=settings.classifier.learner,
        learner_at_once=_at_once(settings, row_count=row_count),
        classifier_words=_classifier_words(settings, charged, chosen, row_count=row_count),
        rare_share=_rare_share(settings, charged, chosen, row_count=row_count),
        cell_count=_cell_count(settings, searched),
        counts_decisions=counts_decisions(settings),
        is_growing=settings.generations is not None,
        joint_rows=_joint_rows(settings),
    )


def _joint_rows(settings: Settings) -> frozenset[str]:
    """Return the names of mechanisms whose new releases would have one account with the draws."""
    by_row = {
        row.name: settings.model_copy(
            update={
                "answers": settings.answers.model_copy(update={"mechanism": row.mechanism}),
                "privacy": settings.privacy.model_copy(
                    update={"calibration": row.calibration or settings.privacy.calibration}
                ),
            }
        )
        for row in MECHANISMS.values()
    }
    return frozenset(
        name for name, each in by_row.items() if each.accounting == JOINT and not each.why_sum
    )


def _cell_count(settings: Settings, searched: HypothesisClass) -> int | None:
    """Return how many public cells learners vote by; None where they do not."""
    by_cell = votes_by_cell(searched, settings.learner.estimator)
    return cells_of(searched).cell_count if by_cell else None


def _refuse_draws(
    settings: Settings,
    searched: HypothesisClass,
    budget: PipelineBudget | None,
    row_count: int | None,
) -> None:
    """Refuse a draw from a public class that would take hours, and one of impossible statistics."""
    if budget is not None and budget.relabel_epsilon and not budget.relabel_is_private:
        sampled = None if row_count is None else budget.sampled_row_count(row_count)
        refuse_long_draw(SEARCHED, searched, row_count=sampled, unit=settings.data.unit)
    check_statistics_draw(settings, row_count=row_count)


def _at_once(settings: Settings, *, row_count: int | None) -> str:
    """Name what ``auto`` would take for a classifier with all of epsilon."""
    epsilon = Fraction(settings.privacy.epsilon)
    return learner_of(AUTO, public_numbers(settings, row_count=row_count, epsilon=epsilon))


def _classifier_words(
    settings: Settings,
    charged: Mapping[Mechanism, Charge],
    chosen: ChosenLearner,
    *,
    row_count: int | None,
) -> tuple[str, ...]:
    """Say why ``auto`` takes its learner, and which labels that may not see."""
    charge = charged.get(Mechanism.CLASSIFIER)
    if charge is None:
        return ()
    reason = (f"{chosen.reason}.",) if chosen.reason else ()
    share = _rare_share(settings, charged, chosen, row_count=row_count)
    if row_count is None or share is None:
        return reason
    return (*reason, rare_in_words(share, count=row_count, unit=settings.data.unit))


def _rare_share(
    settings: Settings,
    charged: Mapping[Mechanism, Charge],
    chosen: ChosenLearner,
    *,
    row_count: int | None,
) -> float | None:
    """Return the share of the rows that a label must have, lest the classifier hides it."""
    charge = charged.get(Mechanism.CLASSIFIER)
    if charge is None or row_count is None:
        return None
    return smallest_share(settings, chosen.row, charge, row_count)


def _classifier(
    settings: Settings,
    charged: Mapping[Mechanism, Charge],
    *,
    row_count: int | None,
) -> tuple[ChosenLearner, str | None, HypothesisClass | None]:
    """Return the choice of the classifier's learner, its name, and the class that it is drawn from.

    Raises:
        ConfigurationError: a draw that could not be made.

    """
    charge = charged.get(Mechanism.CLASSIFIER)
    chosen = chosen_learner(settings, row_count=row_count, opened=None)
    row = chosen.row
    if charge is None:
        return chosen, None, published_class(settings, no_points(settings))
    if row.drawn_class is not None:
        hypotheses = row.drawn_class(settings, no_points(settings))
        refuse_long_draw(PUBLISHED, hypotheses, row_count=row_count, unit=settings.data.unit)
        return chosen, row.learner.name, hypotheses
    if row_count is not None:
        row.prepare(ClassifierAsked(settings, charge, no_points(settings), row_count))
    return chosen, row.learner.name, None


def _relabel_count(
    settings: Settings, budget: PipelineBudget | None, row_count: int | None
) -> int | None:
    """Bound the labellings among which relabelling draws, on a private grid of known rows."""
    if budget is None or row_count is None or not budget.relabel_is_private:
        return None
    return dichotomy_bound(settings, budget.sampled_row_count(row_count))


def warn_of_relabelled_scores(settings: Settings, warn: Callable[[str], None]) -> None:
    """Warn that scores are only 0 or 1 if a drawn rule replaces the labels of the rows."""
    if settings.answers.output == "score" and settings.privacy.shares.relabel > 0:
        warn("relabelled rows have lost their shares of a class: set privacy.shares.relabel = 0")


def warn_if_infeasible(settings: Settings, row_count: int, warn: Callable[[str], None]) -> None:
    """Warn if a release opens although its plan, by public numbers, advises against it."""
    reasons = plan_answers(plan_request(settings, row_count)).reasons
    if reasons:
        warn(f"this release is infeasible as planned: {'; '.join(reasons)}")


UNUSED_CUTOFF: Final = (
    "{keys} {has} no effect: each cell is decided once, and no number of unstable answers ends the"
    " ensemble"
)


def warn_of_cells(settings: Settings, row_count: int, warn: Callable[[str], None]) -> None:
    """Warn about settings that have no effect if each public cell gets only one answer."""
    request = plan_request(settings, row_count)
    if request.budget is None or not request.row.counts_decisions:
        return
    for note in cell_notes(request):
        warn(note)
    given = [key for key in ("cutoff", "on_cutoff") if key in settings.answers.model_fields_set]
    if given:
        keys = " and ".join(f"answers.{key}" for key in given)
        warn(UNUSED_CUTOFF.format(keys=keys, has="has" if len(given) == 1 else "have"))


@contextmanager
def advising(settings: Settings) -> Iterator[None]:
    """Add a plan's advice to the error that refuses a release with almost no answers.

    Raises:
        ConfigurationError: the refusal, followed by the advice of a plan.

    """
    try:
        yield
    except HopelessError as refused:
        advice = plan_answers(plan_request(settings, refused.row_count)).advice
        raise ConfigurationError(refused.key, refusal(refused.reasons, advice)) from None
