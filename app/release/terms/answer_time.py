"""The time of one answer, measured before any budget is spent.

The time of the release's own models might reveal something about its private rows, and so would a
refusal that depends on this time. Therefore k models like the release's are measured on rows that
are made up from the public schema. Only a few models are trained, each on as many made-up rows as a
chunk has, and they are used repeatedly in place of all k.

No private row is used for the made-up rows: numbers are uniform within their public bounds,
categories uniform, and labels uniform. With labels that depend on no feature, models grow as large
as the number of rows allows.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import ConfigurationError
from app.learning.encoding.public_columns import EXTRA_CODES
from app.learning.ensemble import fit_ensemble, votes_by_cell
from app.learning.learner_seeds import generator
from app.privacy.voting.tallies import private_tallies
from app.release.terms.answer_time_padding import padding_seconds, works_alike

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt
    from numpy.typing import NDArray

    from app.learning.encoding.public_columns import PublicColumn
    from app.learning.ensemble import Learner
    from app.learning.hypothesis import Ensemble, FittedEnsemble
    from app.settings.settings import Settings

# Public: the same rows every time.
_SEED = b"conclave synthetic rows"


def synthetic_rows(
    columns: Sequence[PublicColumn], *, row_count: int, class_count: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return made-up rows that fit the public schema.

    Args:
        columns: the public encoding of each feature.
        row_count: the number n of rows.
        class_count: the number of labels.

    Returns:
        Encoded values, shape ``(n, d)``, and class indices, shape ``(n,)``.

    """
    drawn = generator(_SEED)
    values = np.empty((row_count, len(columns)))
    for index, column in enumerate(columns):
        if column.bounds is None:
            codes = (column.category_count or 0) + EXTRA_CODES
            values[:, index] = drawn.integers(0, codes, row_count)
        else:
            lower, upper = column.bounds
            # Halves first: the distance of two bounds may be no double.
            shares = drawn.random(row_count)
            values[:, index] = lower * (1.0 - shares) + upper * shares
    return values, drawn.integers(0, class_count, row_count)


LIMIT: Final = "answers.query_seconds_max"
LEARNERS_FITTED: Final = 8
# Chunks beyond it are measured as if they had so many rows.
ROWS_FITTED_MAX: Final = 1 << 16
# More are no more than so many, again and again.
LEARNERS_EVALUATED_MAX: Final = 1 << 14
EVALUATIONS: Final = 5
EVALUATIONS_MIN: Final = 2
# From here on all k are taken to be as slow as the few that were fitted.
SECONDS_MEASURED_MAX: Final = 0.5
_SECRET: Final = b"conclave answer time"


@dataclass(frozen=True, slots=True)
class AnswerTime:
    """The time of one new answer as measured on this machine; it depends on public values only.

    Attributes:
        seconds: the time from the start of the evaluation until its result may be used. If answers
            are padded, this is a multiple of the padding time.
        evaluation_seconds: the time of all votes, or scores, on one query: the shortest of a few
            measurements.
        ensemble_size: the number k of models.
        together: whether all k models are evaluated at once, and not one after the other.

    """

    seconds: float
    evaluation_seconds: float
    ensemble_size: int
    together: bool

    def __str__(self) -> str:
        """Return the answer time as a text of one line."""
        way = "worked out together" if self.together else "one learner after the other"
        padded = (
            "" if self.seconds == self.evaluation_seconds else f", padded {_told(self.seconds)}"
        )
        return (
            f"the {self.ensemble_size} votes on a query take about "
            f"{_told(self.evaluation_seconds)} on this machine, {way}{padded}"
        )

    def document(self, settings: Settings) -> dict[str, object]:
        """Return the answer time and its limit as JSON, for ``conclave plan``."""
        return {
            "evaluation_seconds": self.evaluation_seconds,
            "seconds": self.seconds,
            "together": self.together,
            "seconds_max": settings.answers.query_seconds_max,
            "opens": self.seconds <= settings.answers.query_seconds_max,
        }

    def refuse_above(self, seconds_max: float) -> None:
        """Raise an error for a release whose answers would take longer than the limit.

        Raises:
            ConfigurationError: the message names the limit, and what to change.

        """
        if self.seconds > seconds_max:
            learners = "" if self.together else ", a learner whose votes are worked out together"
            problem = (
                f"is {_told(seconds_max)}, and {self}: raise it, or choose a smaller "
                f"answers.ensemble{learners} or a shorter padding (docs/learners.md)"
            )
            raise ConfigurationError(LIMIT, problem)


def measure_answer_time(
    settings: Settings,
    learner: Learner,
    *,
    row_count: int,
    ensemble_size: int,
    clock: Callable[[], float] = time.perf_counter,
) -> AnswerTime:
    """Return the measured time of one answer.

    Args:
        settings: the whole configuration.
        learner: the learner that is trained on each chunk.
        row_count: the public number of rows in all chunks together.
        ensemble_size: the number k of models.
        clock: a function that returns seconds.

    """
    few = _fitted(settings, learner, row_count, ensemble_size)
    evaluation = _evaluation_seconds(
        settings, learner, few, ensemble_size=ensemble_size, clock=clock
    )
    padding, seconds = padding_seconds(settings, ensemble_size), evaluation
    if padding > 0:
        seconds = padding * max(1, math.ceil(evaluation / padding))
    return AnswerTime(seconds, evaluation, ensemble_size, works_alike(settings))


def _evaluation_seconds(
    settings: Settings,
    learner: Learner,
    few: FittedEnsemble,
    *,
    ensemble_size: int,
    clock: Callable[[], float],
) -> float:
    """Return the least time of a few evaluations of one query, scaled to all k models."""
    query, _ = synthetic_rows(learner.columns, row_count=1, class_count=few.class_count)
    scored = settings.answers.output == "score"
    precision = settings.answers.precision if scored else None

    def least(ensemble: Ensemble) -> float:
        """Return the shortest time of one query over several runs."""
        times: list[float] = []
        while len(times) < EVALUATIONS_MIN or (
            len(times) < EVALUATIONS and sum(times) < SECONDS_MEASURED_MAX
        ):
            started = clock()
            private_tallies(ensemble, query, [precision])
            times.append(clock() - started)
        return min(times) * ensemble_size / ensemble.size

    if votes_by_cell(
        learner.hypothesis_class, learner.estimator
    ):  # as fast however many learners there are
        return least(few.repeated(math.ceil(ensemble_size / few.size)))
    scaled = least(few)
    if scaled > SECONDS_MEASURED_MAX or few.size == ensemble_size:
        return scaled
    evaluated = min(ensemble_size, LEARNERS_EVALUATED_MAX)
    return least(few.repeated(math.ceil(evaluated / few.size)))


def _fitted(
    settings: Settings, learner: Learner, row_count: int, ensemble_size: int
) -> FittedEnsemble:
    """Fit a few learners on made-up rows, as many each as a chunk has."""
    count = min(ensemble_size, LEARNERS_FITTED)
    chunk_rows = learner.chunk_rows(min(math.ceil(row_count / ensemble_size), ROWS_FITTED_MAX))
    values, labels = synthetic_rows(
        learner.columns,
        row_count=count * chunk_rows,
        class_count=len(settings.data.classes),
    )
    places: npt.NDArray[np.int64] = np.arange(len(values), dtype=np.int64)
    return fit_ensemble(
        learner,
        values,
        labels,
        permutation=places,
        offsets=np.arange(count + 1, dtype=np.int64) * chunk_rows,
        secret=_SECRET,
    )


def _told(seconds: float) -> str:
    """Write a time for people."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
