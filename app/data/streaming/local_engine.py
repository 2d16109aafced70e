"""The engine ``local``: threads of this process, one per core, read rows and count them.

A part is a file of the source, or a section of a file. The libraries that read, decode and add let
other threads run in the meantime. In memory, a row takes one byte per feature and one for the
label, for any kind of source.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial, reduce
from typing import TYPE_CHECKING

from app.data.streaming.engine import Held
from app.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.data.streaming.engine import Counting, CountsT, GivenT, Item, JoinedT, PartT, ResultT


class LocalEngine:
    """An engine that keeps parts of the rows in the memory of this process.

    Args:
        workers: the number of threads; None for one per core.

    """

    def __init__(self, workers: int | None = None) -> None:
        """Prepare the engine without starting a thread."""
        self._pool = ThreadPoolExecutor(workers or os.cpu_count() or 1, "conclave-engine")

    def read(
        self, read: Callable[[Item], PartT], items: Sequence[Item], done: Callable[[Item], None]
    ) -> Held[PartT]:
        """Read parts of the rows by several threads.

        If parts have invalid rows, the error is that of the first such part in the given order, not
        of the one that was read first. Parts after it are not read to the end.

        Args:
            read: a pure function that returns a part, given its item.
            items: one item per part, for example the part's number and file.
            done: a function that is called with each item whose part is read, in any order.

        """
        begun = [self._pool.submit(read, item) for item in items]
        places = {future: place for place, future in enumerate(begun)}
        try:
            for future in as_completed(begun):
                if isinstance(future.exception(), DataError):
                    break
                future.result()
                done(items[places[future]])
            # In their order, so that of several parts with invalid rows the first is named.
            return Held([future.result() for future in begun])
        finally:
            for future in begun:
                future.cancel()

    def joined(self, join: Callable[[list[PartT]], JoinedT], held: Held[PartT]) -> Held[JoinedT]:
        """Return all parts of the rows joined into one.

        Args:
            join: a function that joins several parts.
            held: the parts in memory.

        """
        return Held([join(held.parts)])

    def completed(
        self,
        complete: Callable[[PartT, GivenT], PartT],
        held: Held[PartT],
        given: Sequence[GivenT],
    ) -> Held[PartT]:
        """Return the parts of the rows, each with a value that was computed from all parts.

        Args:
            complete: a pure function that returns a part with its value.
            held: the parts in memory, which are freed.
            given: the value for each part, for example the numbers of the part's persons.

        """
        found = Held([complete(*pair) for pair in zip(held.parts, given, strict=True)])
        held.parts.clear()
        return found

    def counted(
        self,
        countings: Sequence[Counting[PartT, CountsT, ResultT]],
        held: Held[PartT],
        done: Callable[[int], None],
    ) -> list[ResultT]:
        """Return the result of each count over all parts of the rows, by several threads.

        Args:
            countings: the counts to make, one per result.
            held: the parts in memory.
            done: a function that is called with the number of results so far.

        """
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
        """Return the only part unchanged, since it has all rows of every chunk.

        Args:
            cut: not used.
            join: not used.
            held: the only part.
            size: the number of chunks.

        Returns:
            The part, and its chunks.

        """
        del cut, join
        return held, [slice(0, size)]

    def mapped(
        self,
        functions: Sequence[tuple[int, Callable[[PartT], ResultT]]],
        held: Held[PartT],
        done: Callable[[int], None],
    ) -> list[ResultT]:
        """Return each function's result on its part of the rows; several threads run the functions.

        Args:
            functions: each function with the index of its part.
            held: the parts in memory.
            done: a function that is called with the index of each finished function.

        """
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
