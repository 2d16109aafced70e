"""What does an answer cost the ledger as it grows: its commit, its look-up, its bytes on disk?

Expected: a commit of 64 answers takes the same among a million as among ten thousand, within
a fifth; a recorded answer is found in 8 microseconds, and a new vector's absence in as many.

Beside it stands the least that SQLite takes: a bare program that finds the answer's row by its
primary key. Each search reads a page that its connection has not read before, in both.

    python benchmarks/ledger_growth.py [--answers 10000 1000000] [--folder FOLDER]

Times are of the processor, and medians: other work on the machine changes them less.  The
ledger is written by its own transactions, 64 answers an entry; it is opened anew before
anything is timed, and the first transaction, which reads the keys into memory, is told apart.
``make bench`` takes a million; 10,000,000 take some minutes, and 2 GB.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from app.ledger.ledger import Ledger, open_ledger
from benchmarks.ledger_commits import open_release
from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.findings import Finding, tell
from benchmarks.measuring.long_ledger import lengthen, recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.ledger.ledger import Transaction

AN_ENTRY: Final = 64
COMMITS: Final = 300
SEARCHES: Final = 1000
VECTOR_BYTES: Final = 10
COMMIT_RATIO_MAX: Final = 1.2
LOOKUP_MICROSECONDS_MAX: Final = 8.0
ROW: Final = (
    "SELECT first_query_id, last_query_id, body FROM answer_groups "
    "WHERE release_number = 1 AND last_query_id >= ? ORDER BY last_query_id LIMIT 1"
)


def main() -> None:
    """Print the figures of each length, and what is judged."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--answers", type=int, nargs="+", default=[10_000, 1_000_000])
    arguments.add_argument("--folder", type=Path, help="on the disk to measure")
    chosen = arguments.parse_args()
    print(circumstances())
    measured = []
    for count in chosen.answers:
        with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
            measured.append(_measure(Path(folder) / "growth.db", count))
    _tell(chosen.answers, measured)


def _measure(path: Path, count: int) -> tuple[float, float]:
    """Print what a ledger of a length costs; return a commit of 64 and a look-up, in us."""
    ledger = open_release(path)
    used = time.process_time()
    lengthen(ledger, answer_count=count, answers_an_entry=AN_ENTRY)
    ledger.close()
    size = path.stat().st_size / count - VECTOR_BYTES
    print(f"\n{count:,} answers, written in {time.process_time() - used:.0f} s")
    print(f"  bytes on disk an answer, the vector's own excluded: {size:.0f}")
    ledger = open_ledger(f"sqlite:///{path}", create=True)
    used = time.process_time()
    with ledger.transaction() as transaction:
        transaction.known_answers([recorded(ledger.digests, 1).vector_digest])
    print(f"  first transaction: {(time.process_time() - used) * 1e3:.0f} ms")
    commits = {size: _commit_microseconds(ledger, size) for size in (8, AN_ENTRY)}
    for size, (middle, mean) in commits.items():
        print(f"  commit of {size:>2}: {middle:.0f} us, with the moves of keys {mean:.0f} us")
    alone = _search_microseconds(ledger, count)
    bare = _bare_microseconds(path, count)  # before the ledger's memory is given back
    print(f"  the row of a recorded answer, by bare sqlite3: {bare:.1f} us")
    ledger.close()
    return commits[AN_ENTRY][1], alone


def _commit_microseconds(ledger: Ledger, size: int) -> tuple[float, float]:
    """Return the median of commits of new vectors, each looked up before, and their mean."""
    times = []
    for _ in range(COMMITS):
        first = ledger.read_state().answered + 1
        rows = [recorded(ledger.digests, number) for number in range(first, first + size)]
        used = time.process_time()
        with ledger.transaction() as transaction:
            transaction.known_answers([row.vector_digest for row in rows])
            transaction.record_answers(rows)
        times.append((time.process_time() - used) * 1e6)
    return median(times), sum(times) / len(times)


def _search_microseconds(ledger: Ledger, count: int) -> float:
    """Print what a look-up costs; return that of a recorded answer alone."""
    numbers = random.SystemRandom().sample(range(1, count + 1), SEARCHES)
    known = [recorded(ledger.digests, number).vector_digest for number in numbers]
    new = [recorded(ledger.digests, 10 * count + number).vector_digest for number in numbers]
    alone = 0.0
    with ledger.transaction() as transaction:
        for name, digests in (("recorded", known), ("new", new)):
            for size in (1, AN_ENTRY):
                each = _median_of(_searches(transaction, digests, size)) / size
                print(f"  {name} vectors, {size:>2} together: {each:.1f} us each")
                alone = each if (name, size) == ("recorded", 1) else alone
    return alone


def _bare_microseconds(path: Path, count: int) -> float:
    """Return what it takes to find the row of an answer in the ledger's file, and no more."""
    numbers = random.SystemRandom().sample(range(1, count + 1), SEARCHES)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        return _median_of(
            [lambda at=at: connection.execute(ROW, (at,)).fetchall() for at in numbers]  # type: ignore[misc]  # bound now
        )


def _searches(
    transaction: Transaction, digests: Sequence[bytes], size: int
) -> list[Callable[[], object]]:
    """Return the searches for some digests at a time."""
    begins = range(0, len(digests) - size + 1, size)
    return [
        lambda some=digests[begin : begin + size]: transaction.known_answers(some)  # type: ignore[misc]  # bound now
        for begin in begins
    ]


def _median_of(actions: Sequence[Callable[[], object]]) -> float:
    times = []
    for action in actions:
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return median(times) * 1e6


def _tell(counts: Sequence[int], measured: Sequence[tuple[float, float]]) -> None:
    (first, _), (last, alone) = measured[0], measured[-1]
    tell(
        Finding(
            question=f"a commit of {AN_ENTRY} among {counts[-1]:,} answers",
            ours=f"{last:.0f} microseconds",
            peer=f"among {counts[0]:,}: {first:.0f} microseconds",
            ratio=last / first,
            at_most=COMMIT_RATIO_MAX,
        )
    )
    tell(
        Finding(
            question=f"a recorded answer of {counts[-1]:,}, in the ledger's transaction",
            ours=f"{alone:.1f} microseconds",
            peer=f"{LOOKUP_MICROSECONDS_MAX:.0f} microseconds",
            ratio=alone,
            at_most=LOOKUP_MICROSECONDS_MAX,
        )
    )


if __name__ == "__main__":
    main()
