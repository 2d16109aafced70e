"""The public side of every draw, derived before anything is charged.

What would make a draw impossible is a function of the configuration and the
public n.  It is refused here, while the ledger is as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.accounting.composition import Mechanism
from app.errors import ConfigurationError, InvariantError
from app.mechanisms import exponential
from app.planning.ensemble_size import ensemble_size_auto
from app.service.mechanism import calibrate_answers
from app.service.pipeline import release_budget
from app.service.public_choices import published_class

if TYPE_CHECKING:
    from app.accounting.calibration import Calibration
    from app.hypotheses.hypothesis_class import HypothesisClass
    from app.service.configure import Configuration
    from app.service.progress import Progress

CALIBRATING = "calibrating the answers"


@dataclass(frozen=True, slots=True)
class EnsembleParameters:
    """What the draw of an ensemble needs besides rows and noise.

    Attributes:
        calibration: of the answers' share.
        size: k.
        relabel: the draw that relabels; None where that has no share.

    """

    calibration: Calibration
    size: int
    relabel: exponential.Parameters | None


def ensemble_parameters(
    configuration: Configuration, *, row_count: int, progress: Progress
) -> EnsembleParameters | None:
    """Return the parameters of the ensemble; None where answers have no share.

    Raises:
        ConfigurationError: names what leaves no calibration, or fewer rows than learners.

    """
    progress(CALIBRATING, 0, 1)
    settings = configuration.settings
    calibration = calibrate_answers(settings, release_budget(settings))
    progress(CALIBRATING, 1, 1)
    if calibration is None:
        return None
    size = ensemble_size(configuration, row_count=row_count, calibration=calibration)
    relabel = None
    if configuration.has(Mechanism.RELABEL):
        relabel = tree_draw(
            configuration, Mechanism.RELABEL, configuration.hypotheses, row_count=row_count
        )
    return EnsembleParameters(calibration, size, relabel)


def check_classifier_draw(configuration: Configuration, *, row_count: int) -> None:
    """Refuse a classifier that could not be drawn when its turn comes.

    Without public points its class is at its largest.

    Raises:
        ConfigurationError: names what to change.

    """
    if configuration.has(Mechanism.CLASSIFIER):
        no_points = np.empty((0, len(configuration.schema.features)))
        largest = published_class(configuration.settings, no_points)
        tree_draw(configuration, Mechanism.CLASSIFIER, largest, row_count=row_count)


def ensemble_size(configuration: Configuration, *, row_count: int, calibration: Calibration) -> int:
    """Return k, from the configuration and the public n only.

    Raises:
        ConfigurationError: there are fewer rows than learners.

    """
    given = configuration.settings.answers.ensemble
    if not isinstance(given, int):
        return ensemble_size_auto(
            row_count=row_count,
            table=calibration,
            query_count=configuration.settings.answers.queries,
            hypothesis_count=configuration.hypotheses.size,
        )
    if given > row_count:
        problem = f"{given} learners need at least as many rows; there are {row_count}"
        raise ConfigurationError("answers.ensemble", problem)
    return given


def tree_draw(
    configuration: Configuration,
    mechanism: Mechanism,
    hypotheses: HypothesisClass,
    *,
    row_count: int,
) -> exponential.Parameters:
    """Return the parameters of an exponential mechanism under its share.

    Raises:
        ConfigurationError: numerical error would not stay within the share.

    """
    charge = configuration.charges[mechanism]
    try:
        return exponential.Parameters(
            epsilon=charge.epsilon,
            delta_truncation=charge.delta,
            row_count=row_count,
            hypotheses=hypotheses,
        )
    except InvariantError as broken:
        problem = f"allows no exact draw, for which {broken}; change it, epsilon or delta"
        raise ConfigurationError(f"privacy.shares.{mechanism.value}", problem) from None
