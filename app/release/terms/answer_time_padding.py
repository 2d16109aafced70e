"""Padding of answer times to multiples of a public constant, so that times reveal little.

The models of built-in learners do the same work for every query, whatever the private rows were. So
do those of scikit-learn estimators that answer with labels and whose models are all evaluated in
one computation. With any other learner the work may depend on the query and the private rows, so by
default its answer times are padded. The wait comes right after the evaluation, before anything that
is visible from outside: a commit, a log line, a counter of ``GET /budget``, a reply.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from app.learning.estimators.packing import packing_of

if TYPE_CHECKING:
    from app.settings.settings import Settings

ESTIMATOR_MILLISECONDS_PER_MODEL: Final = 0.5
NAP_SECONDS: Final = 2e-4
NAPS_MIN: Final = 10


def padding_seconds(settings: Settings, ensemble_size: int) -> float:
    """Return the time, in seconds, to whose multiples the evaluation of models is padded."""
    given = settings.answers.reply_padding_milliseconds
    if given is not None:
        return given / 1000
    if works_alike(settings):
        return 0.0
    return ESTIMATOR_MILLISECONDS_PER_MODEL * ensemble_size / 1000


def works_alike(settings: Settings) -> bool:
    """Return whether the models do the same work for every query, so that no padding is needed."""
    learner = settings.learner
    if learner.estimator is None:
        return True
    is_packed = packing_of(learner.estimator, learner.params) is not None
    return is_packed and settings.answers.output == "label"


def wait_for_multiple(padding_seconds: float, *, started: float) -> None:
    """Sleep until a whole multiple of the padding time has passed since ``started``.

    An evaluation that takes longer than the padding time is padded to the next multiple, so that
    its duration is visible in coarse steps only.

    The wait consists of several short sleeps. After one long sleep, a busy machine would resume the
    process sooner or later by some milliseconds, depending on how much the process computed before,
    and this would reveal the duration that padding hides.

    Args:
        padding_seconds: the padding time, in seconds; 0 for no wait.
        started: the start of the evaluation by :func:`time.monotonic`, in seconds.

    """
    if padding_seconds <= 0:
        return
    earliest = time.monotonic() + NAPS_MIN * NAP_SECONDS
    end = earliest + (started - earliest) % padding_seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, NAP_SECONDS))
