"""How much sooner do learners that cannot vote together answer, and fit, in processes?

200 of scikit-learn's estimators, each fitted on 100 rows of 14 numbers, are asked one query,
64 and 1000, in a loop and in one process for each processor, by turns and by the clock; the
votes must be equal.  Expected on two processors: a forest's in 0.5 to 0.6 of the loop's time,
others' in 0.5 to 0.8, and none in more than the loop's but for a cheap one on a busy machine.
A process takes a second or two to start and about 100 MB.  Three minutes.

    python -m benchmarks.learner_processes
"""

from __future__ import annotations

import os

# As the server does: one thread a product.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import joblib
import numpy as np

from app.learning.chunks import chunk_offsets
from app.learning.estimators.estimator_choice import estimator_factory
from app.learning.estimators.estimator_fitting import fit_estimators
from app.learning.estimators.estimators import EstimatorEnsemble
from app.learning.estimators.learner_processes import LearnerProcesses
from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.findings import Finding, median_ratio, tell
from benchmarks.measuring.learners import CHUNK_ROWS, COLUMNS, Chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.learning.estimators.estimators import Model

SIZE: Final = 200
PAIRS: Final = 7
BATCHES: Final = (1, 64, 1000)
JUDGED: Final = "RandomForestClassifier"
AT_LEAST: Final = 1.0
ESTIMATORS: Final[dict[str, dict[str, object]]] = {
    "sklearn.naive_bayes.GaussianNB": {},
    "sklearn.neighbors.KNeighborsClassifier": {},
    "sklearn.svm.SVC": {},
    "sklearn.neural_network.MLPClassifier": {"max_iter": 20},
    "sklearn.ensemble.HistGradientBoostingClassifier": {"max_iter": 20},
    "sklearn.ensemble.RandomForestClassifier": {"n_estimators": 20},
}


def main() -> None:
    """Print what processes take to start, and every estimator's times."""
    print(circumstances())
    count = int(joblib.cpu_count())
    started = time.perf_counter()
    processes = LearnerProcesses(count)
    print(f"{count} processes started in {time.perf_counter() - started:.2f} s")
    chunks = Chunks.draw()
    for path, params in ESTIMATORS.items():
        _compare(path, params, chunks, processes)
    for pid in processes.run([os.getpid] * count):
        print(f"a process holds {_megabytes(pid):.0f} MB, models of one estimator among them")


def _compare(
    path: str, params: dict[str, object], chunks: Chunks, processes: LearnerProcesses
) -> None:
    """Fit and ask by turns, and print the ratios."""
    name, fit = path.rpartition(".")[2], partial(_fit, path, params, chunks)
    fit(processes)  # the processes import what they need
    _say(name, f"fits of {CHUNK_ROWS} rows", _by_turns(fit, partial(fit, processes), pairs=1))
    here, there = _ensemble(fit()), _ensemble(fit()).side_by_side(processes)
    for batch in BATCHES:
        queries = chunks.queries[:batch]
        if not np.array_equal(here.vote_counts(queries), there.vote_counts(queries)):
            raise SystemExit(f"{name}: votes differ")
        pairs = _by_turns(partial(here.vote_counts, queries), partial(there.vote_counts, queries))
        _say(name, f"votes on {batch}", pairs)
        _say_work(
            partial(here.vote_counts, queries), partial(there.vote_counts, queries), processes
        )
        if name == JUDGED and batch == 1:
            _tell(pairs, processes.count)


def _tell(pairs: list[tuple[float, float]], count: int) -> None:
    loop, ours = (1000 * median(side) for side in zip(*pairs, strict=True))
    tell(
        Finding(
            question=f"votes of {SIZE} forests of 20 trees on a query, {count} processes",
            ours=f"{ours:.0f} ms, the same votes",
            peer=f"the same in a loop {loop:.0f} ms",
            ratio=median_ratio(pairs),
            at_least=AT_LEAST,
        )
    )


def _say(name: str, what: str, pairs: list[tuple[float, float]]) -> None:
    loop, ours = (1000 * median(side) for side in zip(*pairs, strict=True))
    ratio = median(first / second for first, second in pairs)
    print(f"{name}, {what}: loop {loop:.1f} ms, processes {ours:.1f} ms, {ratio:.2f}", flush=True)


def _say_work(
    loop: Callable[[], object], shared: Callable[[], object], processes: LearnerProcesses
) -> None:
    """Print the processor's time of both, which other work on the machine hardly moves."""

    def taken() -> float:
        there = processes.run([time.process_time] * processes.count)
        return time.process_time() + sum(there)

    sides = []
    for call in (loop, shared):
        before = taken()
        for _ in range(PAIRS):
            call()
        sides.append(1000 * (taken() - before) / PAIRS)
    print(f"  of the processor: loop {sides[0]:.1f} ms, processes {sides[1]:.1f} ms in all")


def _by_turns(
    loop: Callable[[], object], shared: Callable[[], object], *, pairs: int = PAIRS
) -> list[tuple[float, float]]:
    """Time both by turns, by the clock: what is measured are processors side by side."""
    return [(_seconds(loop), _seconds(shared)) for _ in range(pairs)]


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _fit(
    path: str,
    params: dict[str, object],
    chunks: Chunks,
    processes: LearnerProcesses | None = None,
) -> Sequence[Model]:
    """Fit on the first chunks."""
    row_count = SIZE * CHUNK_ROWS
    return fit_estimators(
        estimator_factory(path, params),
        columns=COLUMNS,
        values=chunks.values[:row_count],
        labels=chunks.labels[:row_count],
        offsets=chunk_offsets(row_count, SIZE),
        secret=b"benchmark",
        processes=processes,
    )


def _ensemble(models: Sequence[Model]) -> EstimatorEnsemble:
    return EstimatorEnsemble(COLUMNS, models, class_count=2)


def _megabytes(pid: int) -> float:
    """Return the memory of a process that is in use and not a file's."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    (kilobytes,) = (line.split()[1] for line in status.splitlines() if line.startswith("RssAnon"))
    return int(kilobytes) / 1024


if __name__ == "__main__":
    main()
