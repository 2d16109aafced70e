"""Long work beside an event loop, which does not hold up the end of the process."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

ResultT = TypeVar("ResultT")


async def in_daemon_thread(function: Callable[[], ResultT]) -> ResultT:
    """Run ``function`` on a thread that does not keep a stopped process alive.

    What an interrupted opening charged and did not persist left no trace
    outside; the next start draws it again under the same charge.
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
