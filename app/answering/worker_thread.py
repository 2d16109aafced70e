"""A worker thread for one kind of work, whose results an event loop awaits.

The module also runs a function on a daemon thread, which does not delay the end of the process.
"""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    Then: TypeAlias = Callable[[object, BaseException | None], object]
    Task: TypeAlias = tuple[Callable[[], object], asyncio.AbstractEventLoop, Then]

ResultT = TypeVar("ResultT")


class WorkThread:
    """A thread that runs given functions one after another; it starts with the first one.

    A result is passed to the waiting task by one call of its event loop, which is faster than a
    future of an executor. The thread does not keep a process alive that ends without closing it.
    """

    def __init__(self, name: str) -> None:
        """Name the worker thread, which starts with its first function."""
        self._name = name
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def run(self, function: Callable[[], ResultT]) -> ResultT:
        """Call ``function`` on the worker thread; return its result or raise its error.

        The function is called even if the caller is cancelled meanwhile.
        """
        done: asyncio.Future[ResultT] = asyncio.get_running_loop().create_future()
        self.give(function, partial(_settle, done))
        return await done

    def give(self, function: Callable[[], object], then: Then) -> None:
        """Call ``function`` on the worker thread, then ``then`` with its result on the event loop.

        Args:
            function: the function to call on the worker thread.
            then: a function of two arguments: the result and None, or None and the exception that
                ``function`` raised.

        """
        self._tasks.put((function, asyncio.get_running_loop(), then))
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Wait until all given functions have run, and end the worker thread."""
        self._tasks.put(None)
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            function, loop, then = task
            del task
            _tell(function, loop, then)
            del function, loop, then  # nothing is held on to while there is nothing to do


def _tell(
    function: Callable[[], object],
    loop: asyncio.AbstractEventLoop,
    then: Then,
) -> None:
    """Call a function, and post its result to the loop, unless that loop has ended."""
    try:
        result, error = function(), None
    except BaseException as raised:  # noqa: BLE001 -- handed to the waiting task whole
        result, error = None, raised
    try:  # noqa: SIM105 -- suppress() makes and enters an object, for every batch
        loop.call_soon_threadsafe(then, result, error)
    except RuntimeError:
        pass


def _settle(done: asyncio.Future[ResultT], result: object, error: BaseException | None) -> None:
    if done.cancelled():
        return
    if error is None:
        done.set_result(result)  # type: ignore[arg-type]  # its own function's
    else:
        done.set_exception(error)


async def in_daemon_thread(function: Callable[[], ResultT]) -> ResultT:
    """Run ``function`` on a daemon thread, which cannot keep a stopped process alive.

    The function opens a release. If the process ends during the opening, nothing that was drawn has
    left the process, and the next start draws again without a further charge.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[ResultT] = loop.create_future()

    def settle(result: ResultT | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # one of both is given

    def work() -> None:
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 -- handed to the waiting task whole
            loop.call_soon_threadsafe(settle, None, error)
        else:
            loop.call_soon_threadsafe(settle, result, None)

    threading.Thread(target=work, name="conclave-opening", daemon=True).start()
    return await done
