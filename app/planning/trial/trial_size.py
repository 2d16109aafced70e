"""The size of planning's trials, fixed by public numbers so that plans are repeatable.

In a trial, made-up rules label made-up records, and models are trained on these records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from app.learning.estimators.packed_fit import block_fit_of
from app.learning.registry import row_of
from app.planning.trial.agreement import try_out, votes_by_cell
from app.planning.trial.made_up_records import MadeUpRules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.learning.ensemble import Learner
    from app.planning.request import PlanRequest
    from app.planning.trial.agreement import Agreement
    from app.planning.trial.made_up_records import Population

HYPOTHESES: Final = 32
HYPOTHESES_MIN: Final = 8
# Cells take no time.
HYPOTHESES_OF_CELLS: Final = 32
EVERY_LEARNER: Final = 1 << 40
LEARNERS: Final = 96
# What a hypothesis wants for its rates, and the fewest, of a slow learner.
LEARNERS_WANTED: Final = 64
LEARNERS_MIN: Final = 24
# What trying out one size may take, as estimated: the release's own, and each that is
# compared with it.  The fewest take longer than that where a learner is slow.
SECONDS_OWN: Final = 1.0
SECONDS_COMPARED: Final = 0.5
SECONDS_REFUSED: Final = 4.0
# A learner that is fitted at once with others, and one that searches a list.
BLOCK_SECONDS: Final = 1e-3
LISTED_SECONDS: Final = 3e-4
LISTED_ROW_SECONDS: Final = 2e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The release and the made-up population that a trial of planning simulates.

    Attributes:
        population: the distribution of rows and queries.
        learner: the release's learning method.
        tests: the names of the feature tests (yes-or-no questions such as age >= 40) of the class
            of rules, each with the public fraction of people with the rarer answer; empty for a
            class without feature tests.
        hypothesis_count: the number of made-up rules to try; None for as many as there is time for.

    """

    population: Population
    learner: Learner
    tests: Sequence[tuple[str, float]] = ()
    hypothesis_count: int | None = None

    def rules(self, request: PlanRequest) -> MadeUpRules | None:
        """Return made-up labelling rules in place of the rule whose labels the rows will get.

        The result is None if the rows keep their own labels.
        """
        budget, rows = request.budget, request.sampled_row_count
        if budget is None or budget.relabel_epsilon is None or not rows:
            return None
        return MadeUpRules(
            self.learner.hypothesis_class, self.population, float(budget.relabel_epsilon), rows
        )


@dataclass(frozen=True, slots=True)
class Extent:
    """The size of a trial: how many labelling rules are made up, and models trained for each."""

    hypothesis_count: int
    learner_count: int


def agreement_of(
    trial: Trial, rules: MadeUpRules, *, chunk_row_count: int, ensemble_size: int
) -> Agreement | None:
    """Return how well models agree on made-up rows; None if training would take too long.

    Args:
        trial: the population and the learning method to try.
        rules: the made-up labelling rules, with the distribution of rows and queries.
        chunk_row_count: the number of rows of a chunk, at least 1.
        ensemble_size: the number k of models.

    """
    extent = extent_of(trial, chunk_row_count=chunk_row_count)
    if extent is None:
        return None
    return try_out(
        rules,
        trial.learner,
        chunk_row_count=chunk_row_count,
        learner_count=min(ensemble_size, extent.learner_count),
        hypothesis_count=extent.hypothesis_count,
    )


def extent_of(
    trial: Trial, *, chunk_row_count: int, seconds_max: float = SECONDS_OWN
) -> Extent | None:
    """Return the size of a trial with chunks of one size; None if it would take too long.

    A number of rules that the operator asked for is tried however long it takes.

    Args:
        trial: the population and the learning method to try.
        chunk_row_count: the number of rows of a chunk, at least 1.
        seconds_max: the longest time that a trial is allowed to take by estimate, in seconds.

    """
    asked = trial.hypothesis_count
    if votes_by_cell(trial.learner):
        return Extent(HYPOTHESES_OF_CELLS if asked is None else asked, EVERY_LEARNER)
    each = _seconds_each(trial.learner, chunk_row_count)
    hypotheses = HYPOTHESES if asked is None else asked
    affordable = int(seconds_max / each)
    learners = max(LEARNERS_WANTED, min(LEARNERS, affordable // hypotheses))
    if asked is not None:
        return Extent(asked, learners)
    hypotheses = max(HYPOTHESES_MIN, min(hypotheses, affordable // learners))
    learners = max(LEARNERS_MIN, min(learners, affordable // hypotheses))
    too_long = hypotheses * learners * each > SECONDS_REFUSED
    return None if too_long else Extent(hypotheses, learners)


def is_quick(learner: Learner) -> bool:
    """Return whether a learning method is known to train models quickly."""
    if learner.estimator is None:
        return row_of(learner.hypothesis_class).is_quick
    return learner.packed and block_fit_of(learner.estimator, learner.params) is not None


def _seconds_each(learner: Learner, chunk_row_count: int) -> float:
    """Estimate the seconds that one learner takes."""
    if learner.estimator is not None:
        return BLOCK_SECONDS
    searched = learner.hypothesis_class
    seconds = row_of(searched).search_seconds
    if seconds is None:
        return LISTED_SECONDS + LISTED_ROW_SECONDS * searched.size * learner.chunk_rows(
            chunk_row_count
        )
    return seconds(learner.rule, searched, chunk_row_count)
