"""A learner's failure is a vote, not an event.

Whether a learner fails depends on private rows, so nobody may see it: no
exception, no warning, no message.  The caller puts the constant vote class 0
in its place.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

ResultT = TypeVar("ResultT")


def fitted_or_none(attempt: Callable[[], ResultT]) -> ResultT | None:
    """Return what ``attempt`` returns, or None if it raises; swallow its warnings."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return attempt()
    except Exception:  # noqa: BLE001 -- any failure is the constant vote, whatever its kind
        return None
