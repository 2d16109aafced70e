"""The division of n permuted rows into k chunks of public sizes, and failures of learners.

A learner trains one model on each chunk. Whether a learner fails depends on private rows, so a
failure must not show: it causes no exception, no warning and no message. A model whose learner
failed votes for class 0.

An error of the machine, such as too little memory or a dead process, is raised instead. Such errors
depend on all chunks together, so if they became votes, the rows of one chunk could change the votes
of others.
"""

from __future__ import annotations

import warnings
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final, TextIO, TypeVar, cast

import numpy as np

from app.errors import ConfigurationError, MachineError, invariant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray


def chunk_offsets(row_count: int, chunk_count: int) -> NDArray[np.int64]:
    """Return the index at which each chunk of rows starts, followed by the number of rows.

    The sizes of the chunks depend on ``row_count`` and ``chunk_count`` only, and differ by at most
    one.

    Args:
        row_count: the number of permuted rows.
        chunk_count: the number of chunks, at least 1.

    Returns:
        Indices from 0 to ``row_count``, shape ``(chunk_count + 1,)``: chunk i has the rows from
        index ``offsets[i]`` up to, and without, index ``offsets[i + 1]``.

    """
    invariant(row_count >= 0, "the number of rows is not negative")
    invariant(chunk_count >= 1, "there is at least one chunk")
    return np.arange(chunk_count + 1, dtype=np.int64) * row_count // chunk_count


def first_of_chunks(
    offsets: NDArray[np.int64], count_max: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the indices of the first units of each chunk, and where each chunk's indices start.

    A unit is a row, or a person with all rows. The indices depend only on the sizes of the chunks
    and on ``count_max``. If the units are in random order, the first units of a chunk are a random
    sample of the chunk.

    Args:
        offsets: the index at which each chunk starts, followed by the number of units, shape
            ``(chunks + 1,)``.
        count_max: the largest number of units of a chunk that are kept, at least 1.

    Returns:
        The indices of the kept units, ascending, shape ``(kept units,)``; and the position at which
        each chunk's indices start, followed by the number of kept units, shape ``(chunks + 1,)``.

    """
    invariant(count_max >= 1, "a unit of each chunk is kept")
    kept = np.minimum(np.diff(offsets), count_max)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(kept)])
    return np.arange(starts[-1]) + np.repeat(offsets[:-1] - starts[:-1], kept), starts


@dataclass(frozen=True, slots=True)
class ChunkNumbers:
    """The position of some consecutive chunks among all chunks of a release.

    Attributes:
        first: the index of the first of these chunks among all chunks of the release.
        all_count: the number of all chunks of the release.

    """

    first: int
    all_count: int


DEFAULT_RULE = "canonical"
RULES = (DEFAULT_RULE, "halving")
# What an empty chunk votes, and a chunk whose learner failed.
FALLBACK_LABEL = 0


def check_rule(rule: str) -> None:
    """Raise an error if no built-in learner has the given name.

    Raises:
        ConfigurationError: the name is unknown; the message lists the known names.

    """
    if rule not in RULES:
        raise ConfigurationError(
            "learner.rule", f"unknown rule {rule!r}: use one of {', '.join(RULES)}"
        )


def label_without_learning(labels: NDArray[np.int64]) -> int | None:
    """Return the label that all rows of a chunk have, or None if the chunk has several labels.

    An empty chunk gives label 0.
    """
    if not len(labels):
        return FALLBACK_LABEL
    return int(labels[0]) if (labels == labels[0]).all() else None


ResultT = TypeVar("ResultT")

MACHINE_ERRORS: Final = (
    MemoryError,
    OSError,
    BrokenExecutor,
    SystemError,  # as where compiled code was refused memory and did not say so
    MachineError,
)
MACHINE_WORDS: Final = (
    "can't start new thread",
    "memoryerror",
    "bad_alloc",
    "cannot allocate memory",
    "failed to map segment",
)
"""Texts, in small letters, of errors that the machine makes and that have no class of their own:
a thread that does not start, a library that cannot be loaded, and an error of compiled code, or
of a search over parameters, that quotes what failed in it."""


class _Silence:
    """A file that forgets what is written to it."""

    def write(self, text: str) -> int:
        """Discard the text."""
        return len(text)

    def flush(self) -> None:
        """Do nothing."""


class _Silenced:
    """The silence of a process, which lasts from the first learner that runs to the last."""

    def __init__(self) -> None:
        """Start with no running learner."""
        self._changing = Lock()
        self._running = 0
        self._before = ExitStack()

    def begin(self) -> None:
        """Count a learner as running."""
        with self._changing:
            self._running += 1
            if self._running == 1:
                self._before.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")
                self._before.enter_context(redirect_stdout(cast("TextIO", _Silence())))

    def end(self) -> None:
        """Count a learner as ended."""
        with self._changing:
            self._running -= 1
            if not self._running:
                self._before.close()


_SILENCED: Final = _Silenced()


@contextmanager
def silence() -> Iterator[None]:
    """Suppress the process's warnings and printed output, which could reveal private rows.

    The suppression covers the whole process, all threads included, and lasts while any learner
    runs.
    """
    _SILENCED.begin()
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _SILENCED.end()


def fitted_or_none(attempt: Callable[[], ResultT]) -> ResultT | None:
    """Return the result of ``attempt``, or None if the learner raises an error.

    Raises:
        MachineError: the machine caused the learner's error, for example by too little memory.

    """
    try:
        with silence():
            return attempt()
    except Exception as error:  # noqa: BLE001 -- any failure is the constant vote, whatever its kind
        failed = [error]
    raise_if_machine_failed(failed)
    return None


def raise_if_machine_failed(failed: list[Exception]) -> None:
    """Raise an error if a learner failed because of the machine, and not because of its data.

    Args:
        failed: a list of the one error that the learner raised. The error is removed from the list,
            because an error object keeps the learner's memory in use.

    Raises:
        MachineError: the machine caused the learner's error, for example by too little memory.

    """
    if made_by_machine(failed.pop(), handled=_being_handled()):
        raise MachineError


def _being_handled() -> BaseException | None:
    """Return the error that a caller is handling now."""
    try:
        raise _ProbeError  # noqa: TRY301 -- what it is raised in is asked for
    except _ProbeError as probe:
        return probe.__context__


class _ProbeError(Exception):
    """Raised to find the error that is being handled."""


def made_by_machine(error: BaseException, *, handled: BaseException | None = None) -> bool:
    """Return whether the machine caused an error, directly or through an earlier error.

    The machine's errors are, for example, too little memory, an unreadable file or a dead process.

    Args:
        error: the error that a learner, or the code that runs the learner, raised.
        handled: the error that the caller was already handling when it started the learner. This
            error and its causes are not examined.

    """
    waiting: list[BaseException | None] = [error]
    seen = {id(handled)}
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        if _is_of_machine(each):
            return True
        waiting += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
    return False


def _is_of_machine(error: BaseException) -> bool:
    """Return whether an error by itself is one that the machine makes."""
    if isinstance(error, TimeoutError) and error.errno is None:
        return False  # a limit of the learner's own, and no call of the system
    if isinstance(error, MACHINE_ERRORS):
        return True
    try:
        text = str(error).lower()
    except Exception as unsaid:  # noqa: BLE001 -- a learner's error may fail to say what it is
        return isinstance(unsaid, MACHINE_ERRORS)
    return any(words in text for words in MACHINE_WORDS)
