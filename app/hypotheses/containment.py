"""A learner's failure is a vote, not an event.

Whether a learner fails depends on private rows, so nobody may see it: no
exception, no warning, no message.  The caller puts the constant vote class 0
in its place.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, TextIO, TypeVar, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ResultT = TypeVar("ResultT")


class _Silence:
    """A file that forgets what is written to it."""

    def write(self, text: str) -> int:
        """Take any text."""
        return len(text)

    def flush(self) -> None:
        """Have nothing to write out."""


@contextmanager
def silence() -> Iterator[None]:
    """Swallow warnings, and what is printed to standard output.

    Of the process, not of a thread: while a release opens and after it has
    opened, one thread at a time runs learners and nothing else prints there.
    """
    forgetful = cast("TextIO", _Silence())
    with warnings.catch_warnings(), np.errstate(all="ignore"), redirect_stdout(forgetful):
        warnings.simplefilter("ignore")
        yield


def fitted_or_none(attempt: Callable[[], ResultT]) -> ResultT | None:
    """Return what ``attempt`` returns, or None if it raises; it is not heard."""
    try:
        with silence():
            return attempt()
    except Exception:  # noqa: BLE001 -- any failure is the constant vote, whatever its kind
        return None
