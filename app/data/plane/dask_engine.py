"""The engine ``dask``: workers of a Dask cluster read parts of the rows and count them.

Functions go to the workers, and rows stay there: this process is sent summaries, counts that are
merged already, tests and trees.  What a worker computes is a pure function of the source, so
that the cluster computes what a lost worker held once more, on another.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, cast

from distributed import Client, wait

from app.data.plane.engine import Held
from app.errors import ConclaveError, ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from distributed import Future

    from app.data.plane.engine import Counting, CountsT, GivenT, Item, JoinedT, PartT, ResultT

ADDRESS: Final = "engine.address"
CONNECT_SECONDS: Final = 20
LOOK_SECONDS: Final = 2.0
TO_COME: Final = ("pending", "lost")
"""Of a result that is computed, or is computed again since its worker ended."""
LOOKS_WITHOUT_WORKERS_MAX: Final = 15
SAME_CHARGE: Final = "what was charged stays charged once, and the next start goes on under it"


class DaskEngine:
    """An engine that holds parts of the rows in the memory of a Dask cluster's workers.

    Args:
        address: of the scheduler.
        workers: that must be there before anything is read; None for one.

    """

    def __init__(self, address: str, workers: int | None = None) -> None:
        """Connect to the Dask scheduler, and wait for its workers.

        Raises:
            ConfigurationError: nobody answers there, or too few workers come.

        """
        self._address = address
        try:
            self._client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
            self._client.wait_for_workers(workers or 1, timeout=CONNECT_SECONDS)
        except (OSError, TimeoutError, ValueError) as error:
            problem = f"no scheduler with {workers or 1} workers at {address}: {error}"
            raise ConfigurationError(ADDRESS, " ".join(problem.split())) from None

    def read(
        self, read: Callable[[Item], PartT], items: Sequence[Item], done: Callable[[Item], None]
    ) -> Held[PartT]:
        """Read every part of the rows on the workers; the first invalid row ends the reading."""
        futures = [self._submit(read, item) for item in items]
        places = {future.key: place for place, future in enumerate(futures)}
        for future in self._completed(futures):
            done(items[places[future.key]])
        return Held(cast("list[PartT]", futures))

    def joined(self, join: Callable[[list[PartT]], JoinedT], held: Held[PartT]) -> Held[JoinedT]:
        """Join the parts of the rows that each worker holds."""
        by_worker: dict[str, list[Future]] = {}
        futures = cast("list[Future]", held.parts)
        for future, worker in zip(futures, self._holders(futures), strict=True):
            by_worker.setdefault(worker, []).append(future)
        joined = [
            self._submit(join, parts, near=worker) for worker, parts in sorted(by_worker.items())
        ]
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
        """Complete each part on the worker that holds it."""
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
        """Return counts made and added up on the workers; no row is transferred."""
        finished = [self._finished(counting, held.parts) for counting in countings]
        for count, _ in enumerate(self._completed(finished), start=1):
            done(count)
        return cast("list[ResultT]", self._asked(lambda: self._client.gather(finished)))

    def divided(
        self,
        cut: Callable[[PartT, slice], PartT],
        join: Callable[[list[PartT]], PartT],
        held: Held[PartT],
        size: int,
    ) -> tuple[Held[PartT], list[slice]]:
        """Move packed rows between workers, once, so that each worker holds whole chunks."""
        futures = cast("list[Future]", held.parts)
        ends = [size * place // len(futures) for place in range(len(futures) + 1)]
        ranges = [slice(*pair) for pair in pairwise(ends)]
        if len(futures) == 1:
            return held, ranges
        workers = self._holders(futures)
        joined = [
            self._submit(
                join,
                [
                    self._submit(cut, future, chunks, near=at)
                    for future, at in zip(futures, workers, strict=True)
                ],
                near=worker,
            )
            for chunks, worker in zip(ranges, workers, strict=True)
        ]
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
        """Run each function on the worker that holds its part of the rows; return only results."""
        futures = [self._submit(run, held.parts[place]) for place, run in functions]
        places = {future.key: place for place, future in enumerate(futures)}
        for future in self._completed(futures):
            done(places[future.key])
        return cast("list[ResultT]", self._asked(lambda: self._client.gather(futures)))

    def close(self) -> None:
        """Delete all rows of this opening from the cluster."""
        self._client.close(timeout=CONNECT_SECONDS)

    def _holders(self, futures: Sequence[Future]) -> list[str]:
        """Return the address of a worker that holds each result; empty where none does."""
        holders = self._asked(lambda: self._client.who_has(list(futures)))
        return [min(holders.get(future.key) or [""]) for future in futures]

    def _finished(
        self, counting: Counting[PartT, CountsT, ResultT], parts: Sequence[PartT]
    ) -> Future:
        """Return what stands for the result of one count."""
        counts = [self._submit(counting.of, part) for part in parts]
        while len(counts) > 1:
            pairs = zip(counts[::2], counts[1::2], strict=False)
            odd = counts[-1:] if len(counts) % 2 else []
            counts = [self._submit(counting.merged, *pair) for pair in pairs] + odd
        return self._submit(counting.finished, counts[0])

    def _submit(self, function: Callable[..., object], *given: object, near: str = "") -> Future:
        """Let a worker run a function, near a worker where one is named."""
        return self._asked(
            lambda: self._client.submit(
                function,
                *given,
                pure=False,
                workers=[near] if near else None,
                allow_other_workers=bool(near),
            )
        )

    def _completed(self, futures: Sequence[Future]) -> Iterator[Future]:
        """Yield what is done, as it comes.

        Raises:
            ConclaveError: what a function raised.
            ConfigurationError: the scheduler is lost, or all workers are.

        """
        pending, looks = set(futures), 0
        while pending:
            ended = self._ended(pending)
            looks = 0 if ended or self._asked(self._client.nthreads) else looks + 1
            if looks > LOOKS_WITHOUT_WORKERS_MAX:
                raise self._lost("has no worker any more")
            for future in ended:
                status = future.status
                if status in TO_COME:
                    continue
                self._refuse_failed(future, status)
                pending.discard(future)
                yield future

    def _ended(self, pending: set[Future]) -> list[Future]:
        """Return what has ended, after a while at most."""
        try:
            with self._client.as_current():
                wait(list(pending), timeout=LOOK_SECONDS, return_when="FIRST_COMPLETED")
        except TimeoutError:
            pass
        except Exception:  # noqa: BLE001 -- whatever the library says of a lost connection
            raise self._lost("is gone") from None
        if self._client.status != "running":
            raise self._lost("is gone")
        return [future for future in pending if future.status not in TO_COME]

    def _refuse_failed(self, future: Future, status: str) -> None:
        """Raise what a function raised; anything but our own errors is the cluster's failure."""
        if status == "finished":
            return
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
