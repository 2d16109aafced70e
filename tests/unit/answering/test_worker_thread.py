"""The thread of the writer: in order, one at a time, and told to the loop that waits."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial

import pytest

from app.answering.worker_thread import WorkThread


def test_everything_is_done_in_order_on_one_thread() -> None:
    """What several tasks give is called as it came, never two at a time, and each has its own."""
    seen: list[tuple[int, int]] = []

    def work(number: int) -> int:
        seen.append((number, threading.get_ident()))
        return number * number

    async def test() -> None:
        thread = WorkThread("under-test")
        results = await asyncio.gather(*(thread.run(partial(work, each)) for each in range(20)))
        assert results == [each * each for each in range(20)]
        await asyncio.to_thread(thread.close)

    asyncio.run(test())
    assert [number for number, _ in seen] == list(range(20))
    assert len({ident for _, ident in seen}) == 1
    assert threading.get_ident() not in {ident for _, ident in seen}


@pytest.mark.parametrize("kind", [ValueError, RuntimeError, KeyboardInterrupt])
def test_what_is_raised_reaches_the_caller(kind: type[BaseException]) -> None:
    """An error of any class is raised where it was waited for, and the thread goes on."""

    def fail() -> None:
        raise kind("as it was")

    async def test() -> None:
        thread = WorkThread("under-test")
        with pytest.raises(kind, match="as it was"):
            await thread.run(fail)
        assert await thread.run(lambda: 1) == 1
        thread.close()

    asyncio.run(test())


def test_a_caller_that_gives_up_changes_nothing() -> None:
    """Its function is called all the same, and the next one's result is its own."""
    called: list[int] = []

    async def test() -> None:
        thread, gate = WorkThread("under-test"), threading.Event()

        def slow() -> None:
            gate.wait()
            called.append(1)

        waiting = asyncio.create_task(thread.run(slow))
        await asyncio.sleep(0.01)
        waiting.cancel()
        gate.set()
        assert await thread.run(lambda: 2) == 2
        thread.close()

    asyncio.run(test())
    assert called == [1]


def test_closing_waits_for_what_was_given() -> None:
    """Whatever was given before is done when the close returns, though its loop has ended."""
    done: list[int] = []
    thread = WorkThread("under-test")

    def slow() -> None:
        time.sleep(0.05)
        done.append(1)

    async def give() -> None:
        waiting = asyncio.create_task(thread.run(slow))
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(give())
    thread.close()
    assert done == [1]


def test_a_thread_that_was_never_needed_ends() -> None:
    """Closing one that was given nothing waits for nobody."""
    WorkThread("under-test").close()
