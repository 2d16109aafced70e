"""The engine ``local``: threads of this process, one per core, read rows and count in them.

Reading, decoding and adding are done by libraries that let other threads run meanwhile.  Parts
are held as codes, a byte a feature and one for the label, whatever the source takes.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial, reduce
from typing import TYPE_CHECKING

from app.data.plane.engine import Held

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.data.plane.engine import Counting, CountsT, GivenT, Item, JoinedT, PartT, ResultT


class LocalEngine:
    """An engine that holds parts of the rows in this process's memory.

    Args:
        workers: threads; as many as cores where it is None.

    """

    def __init__(self, workers: int | None = None) -> None:
        """Prepare the engine without starting a thread."""
        self._pool = ThreadPoolExecutor(workers or os.cpu_count() or 1, "conclave-engine")

    def read(
        self, read: Callable[[Item], PartT], items: Sequence[Item], done: Callable[[Item], None]
    ) -> Held[PartT]:
        """Return parts of the rows, read by threads; the first invalid row ends the reading."""
        begun = [self._pool.submit(read, item) for item in items]
        places = {future: place for place, future in enumerate(begun)}
        try:
            for future in as_completed(begun):
                future.result()
                done(items[places[future]])
        finally:
            for future in begun:
                future.cancel()
        return Held([future.result() for future in begun])

    def joined(self, join: Callable[[list[PartT]], JoinedT], held: Held[PartT]) -> Held[JoinedT]:
        """Return all parts of the rows joined into one."""
        return Held([join(held.parts)])

    def completed(
        self,
        complete: Callable[[PartT, GivenT], PartT],
        held: Held[PartT],
        given: Sequence[GivenT],
    ) -> Held[PartT]:
        """Return the parts, after adding to each a value computed from all parts."""
        found = Held([complete(*pair) for pair in zip(held.parts, given, strict=True)])
        held.parts.clear()
        return found

    def counted(
        self,
        countings: Sequence[Counting[PartT, CountsT, ResultT]],
        held: Held[PartT],
        done: Callable[[int], None],
    ) -> list[ResultT]:
        """Return the result of each count over all parts of the rows, by several threads."""
        if len(countings) == 1:
            counting = countings[0]
            total = reduce(counting.merged, self._pool.map(counting.of, held.parts))
            found = iter([counting.finished(total)])
        else:
            found = self._pool.map(partial(_counted, parts=held.parts), countings)
        results: list[ResultT] = []
        for result in found:
            results.append(result)
            done(len(results))
        return results

    def divided(
        self,
        cut: Callable[[PartT, slice], PartT],
        join: Callable[[list[PartT]], PartT],
        held: Held[PartT],
        size: int,
    ) -> tuple[Held[PartT], list[slice]]:
        """Return the single part unchanged, since it holds the rows of all chunks."""
        del cut, join
        return held, [slice(0, size)]

    def mapped(
        self,
        functions: Sequence[tuple[int, Callable[[PartT], ResultT]]],
        held: Held[PartT],
        done: Callable[[int], None],
    ) -> list[ResultT]:
        """Return each function's result on its part of the rows, one function per thread."""
        begun = [self._pool.submit(run, held.parts[place]) for place, run in functions]
        results: list[ResultT] = []
        try:
            for number, future in enumerate(begun):
                results.append(future.result())
                done(number)
        finally:
            for future in begun:
                future.cancel()
        return results

    def close(self) -> None:
        """End the engine's threads."""
        self._pool.shutdown(cancel_futures=True)


def _counted(counting: Counting[PartT, CountsT, ResultT], parts: Sequence[PartT]) -> ResultT:
    """Return what follows from one count over all parts."""
    return counting.finished(reduce(counting.merged, map(counting.of, parts)))
