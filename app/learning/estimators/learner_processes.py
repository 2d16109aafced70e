"""Processes of joblib in which learners are fitted and vote side by side.

Each is a fresh interpreter, so that a server of many threads is never forked, and has a
number: what it is given to keep it alone keeps, in memory, and no model is sent again with
every query.  What passes between it and the serving process goes through pipes, never
through a file.  Nothing that runs in one is heard, and none outlives the serving process.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import threading
from collections import deque
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar, cast
from weakref import finalize

from app.errors import ConfigurationError, LearnerProcessError, MachineError, invariant
from app.learning.chunks import made_by_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Executor, Future

ResultT = TypeVar("ResultT")

# Fewer learners a process are hardly faster than all of them in the serving process.
LEARNERS_A_PROCESS_MIN: Final = 64
# Calls that each process has, so that it need not wait for the next.
CALLS_AHEAD: Final = 2
PARENT_SECONDS: Final = 0.5
# Side by side they take the processors, so that each gets along with a thread of its own.
THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
NOT_STARTED: Final = "no process can be started for learners here; set it to 1"

# In such a process: what it was given to keep.
_kept: list[object] = []


class _Process(Protocol):
    """What is used of a process of a pool."""

    pid: int

    def join(self) -> None:
        """Wait until it has ended."""
        ...


@dataclass(frozen=True, slots=True)
class _Call(Generic[ResultT]):
    """A call that a process was given."""

    index: int
    function: Callable[[], ResultT]
    pool: Executor
    answer: Future[ResultT]

    @property
    def has_lost_its_process(self) -> bool:
        """Wait until the answer is there, and tell whether it will never be."""
        return isinstance(self.answer.exception(), BrokenExecutor)


def process_count(jobs: int | None, learner_count: int) -> int:
    """Return how many processes learners run in; 1 stands for the serving process alone.

    Args:
        jobs: as configured; None, one for each processor that this process may use,
            where each has learners enough to be worth it.
        learner_count: k.

    """
    if jobs is not None:
        return min(jobs, learner_count)
    from joblib import cpu_count  # noqa: PLC0415 -- most releases have no use for it

    return max(1, min(int(cpu_count()), learner_count // LEARNERS_A_PROCESS_MIN))


class LearnerProcesses:
    """So many processes, each with a number; they end with this object.

    Where a process ends before it has answered, whatever ended it, its call is made once
    more in a fresh one: the answer is a function of what was sent.  It is never made in
    the serving process, which would end with it.
    """

    def __init__(self, count: int) -> None:
        """Start them, and wait until all run.

        Args:
            count: how many, at least 1.

        Raises:
            ConfigurationError: the system starts none.

        """
        invariant(count >= 1, "there is at least one process")
        self._pools: list[Executor] = []
        finalize(self, _end, self._pools)
        try:
            self._pools += [_started() for _ in range(count)]
            self.keep([None] * count)
        except (OSError, MemoryError, RuntimeError):
            raise ConfigurationError("learner.jobs", NOT_STARTED) from None

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._pools)

    def keep(self, parts: Sequence[object]) -> None:
        """Give every process something to keep, in place of what it kept.

        Args:
            parts: one a process, in their order.

        Raises:
            LearnerProcessError: a part ends every process that is given it.

        """
        invariant(len(parts) == self.count, "every process has its part")
        self._parts = tuple(parts)
        list(self.run(partial(_keep, part) for part in parts))

    def run(self, functions: Iterable[Callable[[], ResultT]]) -> Iterator[ResultT]:
        """Call each in a process, the first in the first and so on in turn.

        Args:
            functions: partial ones of importable ones, which may ask for what is :func:`kept`.

        Yields:
            What they return, in their order.

        Raises:
            LearnerProcessError: one raised, or ended two processes.
            MachineError: one was refused memory, a file or a thread.

        """
        under_way: deque[_Call[ResultT]] = deque()
        for number, function in enumerate(functions):
            under_way.append(self._call(number % self.count, function))
            if len(under_way) >= CALLS_AHEAD * self.count:
                yield self._result(under_way.popleft())
        while under_way:
            yield self._result(under_way.popleft())

    def _call(self, index: int, function: Callable[[], ResultT]) -> _Call[ResultT]:
        """Give a process a call, or a fresh one where it ended when it had none."""
        pool = self._pools[index]
        try:
            return _Call(index, function, pool, pool.submit(function))
        except BrokenExecutor as error:
            error.__traceback__ = None  # the pool keeps it, and with it this frame's objects
            return self._call_afresh(index, function, pool)

    def _call_afresh(
        self, index: int, function: Callable[[], ResultT], lost: Executor
    ) -> _Call[ResultT]:
        """Replace a process that ended, unless that is done, and give the fresh one a call."""
        if self._pools[index] is lost:
            lost.shutdown()
            self._pools[index] = _started()
            self._pools[index].submit(_keep, self._parts[index])
        pool = self._pools[index]
        return _Call(index, function, pool, pool.submit(function))

    def _result(self, call: _Call[ResultT]) -> ResultT:
        """Return what a call comes to; it is made once more where it lost its process."""
        if call.has_lost_its_process:
            call = self._call_afresh(call.index, call.function, call.pool)
        if call.has_lost_its_process:
            raise LearnerProcessError
        failure = call.answer.exception()
        if failure is not None:
            raise MachineError if made_by_machine(failure) else LearnerProcessError
        return call.answer.result()


def kept() -> object:  # pragma: no cover -- runs in processes of learners
    """Return what the process that this is called in was given to keep."""
    return _kept[0]


def _keep(part: object) -> None:  # pragma: no cover -- runs in processes of learners
    """Keep a part, and keep it from collections, which would look through it every second."""
    _kept[:] = [part]
    gc.collect()
    gc.freeze()


def _started() -> Executor:
    """Return a pool of one process, which runs until the pool is shut down."""
    from joblib.externals.loky import process_executor  # noqa: PLC0415 -- as above

    # The library looks for a lost process's own children by commands that an image may
    # lack; a pool has a single process, and nothing of it is left to look for.
    process_executor.kill_process_tree = _kill
    pool = process_executor.ProcessPoolExecutor(
        max_workers=1,
        initializer=_begin,
        initargs=(os.getpid(),),
        env={name: "1" for name in THREADS if name not in os.environ},
    )
    return cast("Executor", pool)


def _end(pools: list[Executor]) -> None:
    """End the processes, which have nothing to do any more."""
    for pool in pools:
        pool.shutdown()


def _kill(process: _Process) -> None:
    """End a process that may have ended already."""
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
    process.join()


def _begin(parent: int) -> None:  # pragma: no cover -- runs in processes of learners
    """Begin a process: what learners say in it goes nowhere, and it ends with its parent.

    Its descriptors are silenced, not Python's files alone, and it leaves no memory behind
    in a file where it is ended by force.  A drain asks its learners to the last: signals
    to end are for the serving process.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for heard in (1, 2):
        os.dup2(nowhere, heard)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for wish in (signal.SIGINT, signal.SIGTERM):
        signal.signal(wish, signal.SIG_IGN)
    from joblib.externals.loky import process_executor  # noqa: PLC0415 -- as above

    # Models are large, and the library would take what they take for a leak.
    process_executor._USE_PSUTIL = False  # noqa: SLF001 -- it has no other name
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:  # pragma: no cover -- runs in processes of learners
    """End this process soon after the one that started it, however that ended."""
    pause = threading.Event()
    while os.getppid() == parent:
        pause.wait(PARENT_SECONDS)
    os._exit(0)
