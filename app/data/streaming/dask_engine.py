"""The engine ``dask``: workers of a Dask cluster read parts of the rows and count them.

A part is a file of the source, or a section of a file. Functions are sent to the workers, and rows
stay there. The server receives only summaries, counts that are already added up, feature tests and
trained models. A worker computes a pure function of the source. Therefore, if a worker is lost, the
cluster computes its results again on another worker.

A task costs the scheduler about a millisecond, even if it does little. Therefore one message
requests all parts, and one task counts the rows of all parts that a worker's thread has in memory.

A worker must run the code of the server, or its counts and models may be others. So each worker is
asked for its version before anything is read, and compares it with the server's before each task,
since a worker may join later.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache, reduce
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, cast

from distributed import Client

from app.data.streaming.engine import Held
from app.errors import ConclaveError, ConfigurationError, DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from distributed import Future

    from app.data.streaming.engine import Counting, CountsT, GivenT, Item, JoinedT, PartT, ResultT

ADDRESS: Final = "engine.address"
CONNECT_SECONDS: Final = 20
LOOK_SECONDS: Final = 2.0
TO_COME: Final = ("pending", "lost")
"""Of a result that is computed, or computed again since its worker ended."""
LOOKS_WITHOUT_WORKERS_MAX: Final = 15
DISTRIBUTION: Final = "conclave"
DIGEST_DIGITS: Final = 12
_CODE: Final = Path(__file__).parents[2]
SAME_CHARGE: Final = "what was charged stays charged once, and the next start goes on under it"


class DaskEngine:
    """An engine that keeps parts of the rows in the memory of a Dask cluster's workers.

    Args:
        address: the address of the Dask scheduler.
        workers: the number of workers that must be connected before anything is read; None for one.

    """

    def __init__(self, address: str, workers: int | None = None) -> None:
        """Connect to the Dask scheduler, wait for its workers, and compare their versions.

        Raises:
            ConfigurationError: no scheduler answers at the address, too few workers connect, or one
                of them runs another version of Conclave.

        """
        self._address = address
        try:
            self._client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
            self._client.wait_for_workers(workers or 1, timeout=CONNECT_SECONDS)
        except (OSError, TimeoutError, ValueError) as error:
            problem = f"no scheduler with {workers or 1} workers at {address}: {error}"
            raise ConfigurationError(ADDRESS, " ".join(problem.split())) from None
        self._version = code_version()
        try:
            self._refuse_other_versions()
        except ConfigurationError:
            self.close()
            raise

    def read(
        self, read: Callable[[Item], PartT], items: Sequence[Item], done: Callable[[Item], None]
    ) -> Held[PartT]:
        """Read every part of the rows on the workers.

        If parts have invalid rows, the error is that of the first such part in the given order, not
        of the one that was read first. Parts after it are not read to the end.

        Args:
            read: a pure function that returns a part, given its item.
            items: one item per part, for example the part's number and file.
            done: a function that is called with each item whose part is read, in any order.

        """
        futures = self._map(read, items)
        try:
            for place in self._completed(futures):
                done(items[place])
        except DataError:
            self._refuse_first(futures)
            raise
        return Held(cast("list[PartT]", futures))

    def joined(self, join: Callable[[list[PartT]], JoinedT], held: Held[PartT]) -> Held[JoinedT]:
        """Join, on each worker, the parts of the rows in its memory, so that it has one part.

        Args:
            join: a function that joins several parts.
            held: the parts in memory.

        """
        by_worker = self._by_worker(cast("list[Future]", held.parts))
        joined = [self._submit(join, parts, near=worker) for worker, parts in by_worker.items()]
        for _ in self._completed(joined):
            pass
        held.parts.clear()
        return Held(cast("list[JoinedT]", joined))

    def completed(
        self,
        complete: Callable[[PartT, GivenT], PartT],
        held: Held[PartT],
        given: Sequence[GivenT],
    ) -> Held[PartT]:
        """Add to each part of the rows, on its worker, a value that was computed from all parts.

        Args:
            complete: a pure function that returns a part with its value.
            held: the parts in memory, which are freed.
            given: the value for each part, for example the numbers of the part's persons.

        """
        futures = cast("list[Future]", held.parts)
        workers = self._holders(futures)
        completed = [
            self._submit(complete, future, known, near=worker)
            for future, known, worker in zip(futures, given, workers, strict=True)
        ]
        for _ in self._completed(completed):
            pass
        held.parts.clear()
        return Held(cast("list[PartT]", completed))

    def counted(
        self,
        countings: Sequence[Counting[PartT, CountsT, ResultT]],
        held: Held[PartT],
        done: Callable[[int], None],
    ) -> list[ResultT]:
        """Return counts of the rows; the workers make and add them up, and send no row.

        Args:
            countings: the counts to make, one per result.
            held: the parts of the rows in memory.
            done: a function that is called with the number of results so far.

        """
        counts = [
            self._map(_counted, countings, [parts] * len(countings), near=worker)
            for worker, parts in self._by_thread(cast("list[Future]", held.parts))
        ]
        while len(counts) > 1:
            odd = counts[-1:] if len(counts) % 2 else []
            pairs = zip(counts[::2], counts[1::2], strict=False)
            counts = [self._map(_merged, countings, *pair) for pair in pairs] + odd
        for count, _ in enumerate(self._completed(counts[0]), start=1):
            done(count)
        totals = cast("list[CountsT]", self._asked(lambda: self._client.gather(counts[0])))
        return [each.finished(total) for each, total in zip(countings, totals, strict=True)]

    def divided(
        self,
        cut: Callable[[PartT, slice], PartT],
        join: Callable[[list[PartT]], PartT],
        held: Held[PartT],
        size: int,
    ) -> tuple[Held[PartT], list[slice]]:
        """Move rows between workers, once, so that all rows of a chunk are on one worker.

        Args:
            cut: a function that returns some chunks of a part.
            join: a function that joins the same chunks of several parts.
            held: the parts in memory, which are freed if there are several.
            size: the number of chunks.

        Returns:
            The new parts, and the consecutive chunks of each.

        """
        futures = cast("list[Future]", held.parts)
        ends = [size * place // len(futures) for place in range(len(futures) + 1)]
        ranges = [slice(*pair) for pair in pairwise(ends)]
        if len(futures) == 1:
            return held, ranges
        workers = self._holders(futures)
        pieces = [
            self._map(cut, [future] * len(ranges), ranges, near=worker)
            for future, worker in zip(futures, workers, strict=True)
        ]
        joined = [
            self._submit(join, list(some), near=worker)
            for some, worker in zip(zip(*pieces, strict=True), workers, strict=True)
        ]
        pieces.clear()
        for _ in self._completed(joined):
            pass
        held.parts.clear()
        return Held(cast("list[PartT]", joined)), ranges

    def mapped(
        self,
        functions: Sequence[tuple[int, Callable[[PartT], ResultT]]],
        held: Held[PartT],
        done: Callable[[int], None],
    ) -> list[ResultT]:
        """Run each function on the worker that has its part of the rows, and return the results.

        Args:
            functions: each function with the index of its part.
            held: the parts in memory.
            done: a function that is called with the index of each finished function.

        """
        runs, parts = [run for _, run in functions], [held.parts[place] for place, _ in functions]
        futures = self._map(_run, runs, parts)
        for place in self._completed(futures):
            done(place)
        return cast("list[ResultT]", self._asked(lambda: self._client.gather(futures)))

    def close(self) -> None:
        """Delete the rows of this engine from the cluster's memory.

        If the cluster ended, there is nothing to delete. Errors of the library are ignored, so that
        they do not hide the reason why the opening of the release ended.
        """
        with suppress(Exception):
            self._client.close(timeout=CONNECT_SECONDS)

    def _refuse_other_versions(self) -> None:
        """Compare the version of each worker with that of this process.

        Raises:
            ConfigurationError: a worker runs another version, or the scheduler is lost.

        """
        told = self._asked(lambda: self._client.run(code_version, on_error="return"))
        for worker, version in sorted(told.items()):
            if isinstance(version, OSError):
                continue  # it has ended
            if version != self._version:
                other = version if isinstance(version, str) else self._release_of(worker)
                raise _other_version(f"the worker at {worker}", other, self._version)

    def _release_of(self, worker: str) -> str:
        """Return what is installed on a worker whose code does not tell its version."""
        asked = {"workers": [worker], "on_error": "return"}
        told = self._asked(lambda: self._client.run(metadata.version, DISTRIBUTION, **asked))
        version = told.get(worker)
        return f"{version} (other sources)" if isinstance(version, str) else "of no known version"

    def _holders(self, futures: Sequence[Future]) -> list[str]:
        """Return the address of a worker that holds each result; empty where none does."""
        holders = self._asked(lambda: self._client.who_has(list(futures)))
        return [min(holders.get(future.key) or [""]) for future in futures]

    def _by_worker(self, futures: Sequence[Future]) -> dict[str, list[Future]]:
        """Return the results that each worker holds, by its address."""
        held: dict[str, list[Future]] = {}
        for future, worker in zip(futures, self._holders(futures), strict=True):
            held.setdefault(worker, []).append(future)
        return dict(sorted(held.items()))

    def _by_thread(self, futures: Sequence[Future]) -> list[tuple[str, list[Future]]]:
        """Return results in groups, as many for each worker as it has threads."""
        threads = self._asked(self._client.nthreads)
        return [
            (worker, parts[first :: threads.get(worker, 1)])
            for worker, parts in self._by_worker(futures).items()
            for first in range(min(threads.get(worker, 1), len(parts)))
        ]

    def _map(
        self, function: Callable[..., object], *given: Sequence[object], near: str = ""
    ) -> list[Future]:
        """Let workers run a function on the elements of sequences, asked for in one message."""
        return self._asked(
            lambda: self._client.map(
                _Checked(function, self._version),
                *given,
                pure=False,
                workers=[near] if near else None,
                allow_other_workers=bool(near),
            )
        )

    def _submit(self, function: Callable[..., object], *given: object, near: str = "") -> Future:
        """Let a worker run a function, near a worker where one is named."""
        return self._asked(
            lambda: self._client.submit(
                _Checked(function, self._version),
                *given,
                pure=False,
                workers=[near] if near else None,
                allow_other_workers=bool(near),
            )
        )

    def _completed(self, futures: Sequence[Future]) -> Iterator[int]:
        """Yield the place of each result that is done, as they come.

        Raises:
            ConclaveError: what a function raised.
            ConfigurationError: the scheduler is lost, or all workers are.

        """
        ended: SimpleQueue[int] = SimpleQueue()
        _watch(futures, range(len(futures)), ended)
        pending, lost, looks = len(futures), list[int](), 0
        while pending:
            place = _next(ended)
            if place is None:
                looks = 0 if self._has_workers() else looks + 1
                if looks > LOOKS_WITHOUT_WORKERS_MAX:
                    raise self._lost("has no worker any more")
                _watch(futures, lost, ended)
                lost = []
            elif futures[place].status in TO_COME:
                lost.append(place)
            else:
                self._refuse_failed(futures[place])
                pending -= 1
                yield place

    def _refuse_first(self, futures: list[Future]) -> None:
        """Raise the error of the first failed result, in the order of the results.

        Results after a failed one are let go. Those before it are waited for: they may fail too.

        Args:
            futures: the results, of which one failed.

        Raises:
            ConclaveError: what the function raised, or that the cluster is lost.

        """
        are_done = False
        while not are_done:
            first = next(place for place, each in enumerate(futures) if each.status == "error")
            failed = futures[first]
            del futures[first:]
            are_done = self._are_accepted(futures)
        self._refuse_failed(failed)

    def _are_accepted(self, futures: Sequence[Future]) -> bool:
        """Wait for results, and return whether no row was refused meanwhile."""
        try:
            for _ in self._completed(futures):
                pass
        except DataError:
            return False
        return True

    def _has_workers(self) -> bool:
        """Return whether the cluster has a worker.

        Raises:
            ConfigurationError: the scheduler is lost.

        """
        if self._client.status != "running":
            raise self._lost("is gone")
        return bool(self._asked(self._client.nthreads))

    def _refuse_failed(self, future: Future) -> None:
        """Raise what a function raised; anything but our own errors is the cluster's failure."""
        status = future.status
        if status == "finished":
            return
        if status == "cancelled" or self._client.status != "running":
            raise self._lost("is gone")
        error = future.exception(timeout=CONNECT_SECONDS) if status == "error" else None
        if isinstance(error, ConclaveError):
            raise error
        kind = "" if error is None else f" ({type(error).__name__})"
        raise self._lost(f"did not finish its work{kind}")

    def _asked(self, ask: Callable[[], ResultT]) -> ResultT:
        """Return what the cluster replies.

        Raises:
            ConfigurationError: it does not.

        """
        try:
            return ask()
        except Exception:  # noqa: BLE001 -- whatever the library says of a lost connection
            raise self._lost("is gone") from None

    def _lost(self, problem: str) -> ConfigurationError:
        """Return the error of a cluster that ended before the opening did."""
        return ConfigurationError(
            ADDRESS, f"the cluster at {self._address} {problem}; {SAME_CHARGE}"
        )


@cache
def code_version() -> str:
    """Return the version of Conclave that this process runs, with a digest of its sources."""
    digest = hashlib.sha256()
    for path in sorted(_CODE.rglob("*.py")):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(_CODE).as_posix()} {len(text)}\n".encode() + text)
    return f"{metadata.version(DISTRIBUTION)} (sources {digest.hexdigest()[:DIGEST_DIGITS]})"


class _Checked:
    """A function that a worker runs only if its version of Conclave is the server's."""

    def __init__(self, function: Callable[..., object], version: str) -> None:
        self._function: Final = function
        self._version: Final = version
        # By its name, which is in a task's key, the scheduler tells tasks apart.
        named = getattr(function, "func", function)  # of a partial
        self.__name__ = getattr(named, "__name__", type(named).__name__)

    def __call__(self, *given: object) -> object:
        if code_version() != self._version:
            raise _other_version("a worker", code_version(), self._version)
        return self._function(*given)


def _other_version(worker: str, other: str, own: str) -> ConfigurationError:
    return ConfigurationError(
        ADDRESS,
        f"{worker} runs Conclave {other}, and this server Conclave {own}; run both from one image",
    )


def _watch(futures: Sequence[Future], places: Iterable[int], ended: SimpleQueue[int]) -> None:
    """Let the places of results come into a queue once they are done, failed or lost."""
    for place in places:
        futures[place].add_done_callback(lambda _, place=place: ended.put(place))


def _next(ended: SimpleQueue[int]) -> int | None:
    """Return what comes next out of a queue; None where nothing does for a while."""
    try:
        return ended.get(timeout=LOOK_SECONDS)
    except Empty:
        return None


def _counted(counting: Counting[PartT, CountsT, ResultT], parts: list[PartT]) -> CountsT:
    """Return the sum of the counts of some parts."""
    return reduce(counting.merged, map(counting.of, parts))


def _merged(
    counting: Counting[PartT, CountsT, ResultT], first: CountsT, second: CountsT
) -> CountsT:
    """Return the sum of two counts."""
    return counting.merged(first, second)


def _run(function: Callable[[PartT], ResultT], part: PartT) -> ResultT:
    """Return the result of a function on a part."""
    return function(part)
