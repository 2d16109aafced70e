"""The least time of a reply: a public constant, so that time tells nothing.

The built-in rules do the same work for every query, whatever the rows were;
a learner of somebody else's may not, and is padded by default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from app.settings import Settings

ESTIMATOR_MILLISECONDS_PER_MODEL: Final = 0.5


def padding_seconds(settings: Settings, ensemble_size: int) -> float:
    """Return the least time between taking a batch and replying to it, in seconds."""
    given = settings.answers.reply_padding_milliseconds
    if given is not None:
        return given / 1000
    if settings.learner.estimator is None:
        return 0.0
    return ESTIMATOR_MILLISECONDS_PER_MODEL * ensemble_size / 1000
