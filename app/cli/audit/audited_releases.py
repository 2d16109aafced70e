"""Many runs of whole releases on two neighbouring data sets, for ``conclave audit``.

Some runs serve to choose events: values in the replies that seem likelier on one of the data sets.
The other runs count how often these events occur, which gives a lower bound on epsilon. Each run is
also compared with the public promises: epsilon and delta, the cutoff T, and whether unstable
answers have labels.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
from collections import Counter, deque
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import uvloop

from app.auditing.transcripts.http_audit import (
    Heard,
    Plan,
    Promised,
    Seen,
    ServedReport,
    plan_runs,
    suspicion_of,
    told_of,
)
from app.cli.audit.audited_release import hear
from app.cli.audit.neighbours import (
    ROWS_FILE,
    Neighbours,
    audited_claim,
    neighbours,
    rows_text,
    served_settings,
)
from app.cli.logs import configure_logs
from app.errors import ConfigurationError
from app.noise.system import SystemNoise
from app.release.terms.answer_terms import answering_registration
from app.settings.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence

    from app.auditing.event_bounds import Bound
    from app.auditing.transcripts.transcripts import Suspicion

    RunPart: TypeAlias = Callable[["Sequence[Part]"], "Iterator[list[Kept]]"]

RUNS_QUICK: Final = 432
RUNS_LONG: Final = 6000
RUNS_AT_ONCE: Final = 8
"""Releases that are alive at a time: a server that is told to end takes a tenth of a second."""
RUNS_OF_A_PART: Final = 24
RUNS_OF_ONE_PROCESS: Final = 100
"""Fewer runs than it takes as long to do as another process takes to start."""
SIDES: Final = (0, 1)
MEMORY: Final = Path("/dev", "shm")


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the audit runs on one pair of neighbouring data sets.

    Attributes:
        settings: the settings of the release that the operator configured.
        pair: the two neighbouring data sets.
        sides: the data set of each run, 0 or 1, in the order of the runs.
        promised: the public promises with which each run is compared.
        suspicion: the events whose occurrences these runs count; None if these runs serve to choose
            the events.

    """

    settings: Settings
    pair: Neighbours
    sides: tuple[int, ...]
    promised: Promised
    suspicion: Suspicion | None


@dataclass(frozen=True, slots=True)
class Kept:
    """The outcome of one audit run.

    Attributes:
        side: the data set of the run, 0 or 1.
        heard: all replies of the run's release, if the run serves to choose events; else None.
        seen: the chosen events that occurred in the replies, and the promises that the release
            broke.

    """

    side: int
    heard: Heard | None
    seen: Seen


def audit_releases(
    settings: Settings,
    *,
    runs: int,
    processes: int | None = None,
    pairs: Sequence[Neighbours] | None = None,
) -> ServedReport | None:
    """Return a report that compares the HTTP replies of whole releases with their promises.

    Args:
        settings: the settings of the release that the operator configured; its rows are replaced by
            generated ones.
        runs: the number of whole releases to run, divided equally among all data sets.
        processes: the number of processes that run releases at the same time; None for as many as
            there are processors.
        pairs: the pairs of neighbouring data sets; None for all pairs that fit the mechanism.

    Returns:
        The report; None for calibration ``paper`` (noise by published formulas), which would need
        too many rows.

    Raises:
        ConclaveError: the reason why a release could not open.

    """
    pairs = neighbours(settings) if pairs is None else pairs
    if not pairs:
        return None
    answers, claim = settings.answers, audited_claim(settings)
    row = answering_registration(settings)
    is_cut_off = row.test is not None and not row.counts_decisions
    cutoff = answers.cutoff if is_cut_off else None
    promised = Promised(claim, cutoff, abstains=answers.unstable == "abstain")
    plan = plan_runs(claim, runs=runs, pair_count=len(pairs))
    told: dict[str, Bound] = {}
    broken: Counter[str] = Counter()
    with _workers(2 * len(pairs) * plan.runs, processes) as run_parts:
        for pair in pairs:
            told[pair.name] = _audit_pair(settings, pair, promised, plan, run_parts, broken)
    return ServedReport(
        epsilon=float(claim.epsilon),
        delta=float(claim.delta),
        told=told,
        broken=dict(sorted(broken.items())),
        plan=plan,
    )


def _audit_pair(
    settings: Settings,
    pair: Neighbours,
    promised: Promised,
    plan: Plan,
    run_parts: RunPart,
    broken: Counter[str],
) -> Bound:
    """Divide the runs: some choose the events, the others test them; count broken promises."""

    def kept_of(count: int, suspicion: Suspicion | None) -> tuple[list[Kept], list[Kept]]:
        drawn = _drawn_sides(count)
        parts = [
            Part(settings, pair, drawn[done : done + RUNS_OF_A_PART], promised, suspicion)
            for done in range(0, len(drawn), RUNS_OF_A_PART)
        ]
        sides: tuple[list[Kept], list[Kept]] = ([], [])
        for run in chain.from_iterable(run_parts(parts)):
            sides[run.side].append(run)
            broken.update(run.seen.broken)
        return sides

    one, other = kept_of(plan.choosing, None)
    chosen = [[run.heard for run in side if run.heard is not None] for side in (one, other)]
    suspicion = suspicion_of((chosen[0], chosen[1]), plan)
    one, other = kept_of(plan.trials.runs, suspicion)
    return told_of(suspicion, ([run.seen for run in one], [run.seen for run in other]), plan)


def _drawn_sides(count: int) -> tuple[int, ...]:
    """Return so many runs of either side in random order, so that no clock tells the sides."""
    return tuple(int(place) % len(SIDES) for place in SystemNoise().permutation(len(SIDES) * count))


@contextmanager
def _workers(runs: int, processes: int | None) -> Iterator[RunPart]:
    """Yield what runs parts, in order: processes, or this one where there is little to do."""
    count = min(processes or os.cpu_count() or 1, runs // RUNS_OF_ONE_PROCESS)
    if count < 2:  # noqa: PLR2004 -- one of them is this process
        yield lambda parts: map(run_part, parts)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_begin_worker)
    try:
        yield lambda parts: map(_kept_or_raised, pool.map(_run_part_far_away, parts))
    finally:
        pool.shutdown(cancel_futures=True)  # an interrupt waits for no part that has not begun


def _run_part_far_away(part: Part) -> list[Kept] | tuple[str, str]:
    """Run some releases, or return why one is refused, which is no error between processes."""
    try:
        return run_part(part)
    except ConfigurationError as error:
        return error.key, error.problem


def _kept_or_raised(result: list[Kept] | tuple[str, str]) -> list[Kept]:
    """Return what is kept, or raise what another process could not."""
    if isinstance(result, tuple):
        raise ConfigurationError(*result)
    return result


def _begin_worker() -> None:
    """Leave an interrupt to the process that is waited for, and log failures alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    configure_logs(level=logging.ERROR)


def run_part(part: Part) -> list[Kept]:
    """Return the outcomes of some runs on another thread; the main thread keeps handling signals.

    Args:
        part: the runs.

    Raises:
        ConclaveError: the reason why a release could not open.

    """
    memory = MEMORY if os.access(MEMORY, os.W_OK | os.X_OK) else None
    with tempfile.TemporaryDirectory(dir=memory, ignore_cleanup_errors=True) as folder:
        return _on_a_thread(_Runs(part, Path(folder)).all)


def _on_a_thread(work: Callable[[], Coroutine[None, None, list[Kept]]]) -> list[Kept]:
    """Run on an event loop of its own, and return the result or raise the first failure."""
    results: list[list[Kept]] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(uvloop.run(work()))
        except BaseException as error:  # noqa: BLE001 -- raised again where it is waited for
            failures.append(error)

    thread = threading.Thread(target=run, name="conclave-audit", daemon=True)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


@dataclass
class _Runs:
    """The runs of a part, some at a time on one event loop."""

    part: Part
    folder: Path
    _waiting: deque[int] = field(default_factory=deque)
    _kept: dict[int, Kept] = field(default_factory=dict)

    async def all(self) -> list[Kept]:
        """Return the recorded outcome of every run."""
        self._waiting.extend(range(len(self.part.sides)))
        opening = asyncio.Lock()
        running = (self._run_on(opening) for _ in range(RUNS_AT_ONCE))
        for failure in filter(None, await asyncio.gather(*running, return_exceptions=True)):
            raise failure
        return [self._kept[number] for number in range(len(self.part.sides))]

    async def _run_on(self, opening: asyncio.Lock) -> None:
        """Run what waits; after a failure nothing begins, and what has begun comes to its end."""
        while self._waiting:
            number = self._waiting.popleft()
            try:
                self._kept[number] = await self._run(number, opening)
            except BaseException:
                self._waiting.clear()
                raise

    async def _run(self, number: int, opening: asyncio.Lock) -> Kept:
        part, folder = self.part, self.folder / str(number)
        folder.mkdir()
        settings = served_settings(part.settings, part.pair, folder)
        text = rows_text(part.pair, part.sides[number], settings.data.classes)
        (folder / ROWS_FILE).write_text(text, encoding="utf-8")
        heard = await hear(settings, questions=part.pair.questions, opening=opening)
        # A server gives up on a head file that a busy machine is slow to note; noted late, in a
        # folder that is being removed, it stays for the end of the part.
        shutil.rmtree(folder, ignore_errors=True)
        return _kept(part, number, heard)


def _kept(part: Part, number: int, heard: Heard) -> Kept:
    """Keep all of a run that chooses, and of another what is looked for."""
    broken = heard.broken(part.promised)
    if part.suspicion is None:
        return Kept(part.sides[number], heard, Seen((), broken))
    return Kept(part.sides[number], None, Seen(part.suspicion.seen_in(heard.transcript), broken))
