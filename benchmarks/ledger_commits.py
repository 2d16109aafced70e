"""How many answers a second does the ledger commit, and how long is verifying?

Expected: tens of thousands in batches of 64; one at a time, a few times what the
bare flush of one SQLite row takes.  A hundred thousand entries verify in seconds.

    python benchmarks/ledger_commits.py [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from app.ledger.entries.entry_kinds import EnsembleFitted, ReleaseOpened, ShareCharged
from app.ledger.ledger import RELEASE_SECRET, AnswerRow, Ledger, RecordedAnswer, open_ledger
from app.ledger.verification import verify
from benchmarks.measuring.circumstances import circumstances

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH_SIZES = (1, 8, 64, 512)
SECONDS_EACH = 2.0
ENTRY_COUNT = 100_000
VECTOR_BYTES = 100


def main() -> None:
    """Print rates by batch size beside the bare flush, and the time of verifying."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--folder", type=Path, help="on the disk to measure")
    chosen = arguments.parse_args().folder
    print(circumstances())
    with tempfile.TemporaryDirectory(dir=chosen) as folder:
        print(f"bare SQLite commits of a row: {_rate(_bare_commit(Path(folder))):,.0f} a second")
        for batch_size in BATCH_SIZES:
            ledger = open_release(Path(folder) / f"batches-of-{batch_size}.db")
            commits = _rate(lambda: _commit(ledger, batch_size))  # noqa: B023 -- called at once
            print(f"batches of {batch_size:>3}: {commits * batch_size:>8,.0f} answers a second")
            ledger.close()
        _measure_verifying(Path(folder) / "verify.db")


def _rate(action: Callable[[], None]) -> float:
    """Return how often an action is done in a second."""
    started, count = time.perf_counter(), 0
    while time.perf_counter() - started < SECONDS_EACH:
        action()
        count += 1
    return count / (time.perf_counter() - started)


def _bare_commit(folder: Path) -> Callable[[], None]:
    """Return the least that is durable: one row in one transaction."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE rows (body BLOB)")

    def commit() -> None:
        connection.execute("INSERT INTO rows VALUES (?)", (bytes(VECTOR_BYTES),))

    return commit


def open_release(path: Path) -> Ledger:
    """Open a release that answers without limit."""
    ledger = open_ledger(f"sqlite:///{path}", create=True)
    opened = ReleaseOpened(
        release_id="0" * 32,
        name="benchmark",
        epsilon="1",
        delta="1e-6",
        queries=None,
        cutoff=None,
        parameters={},
        fingerprint="",
    )
    with ledger.transaction() as transaction:
        digests = {RELEASE_SECRET: transaction.put_private(RELEASE_SECRET, bytes(32))}
        transaction.append(replace(opened, private_digests=digests))
        transaction.append(ShareCharged(mechanism="answers", epsilon="1", delta="1e-6"))
        transaction.append(EnsembleFitted(size=800, private_digests={}))
    return ledger


def _commit(ledger: Ledger, batch_size: int) -> None:
    with ledger.transaction() as transaction:
        first = transaction.state.answered + 1
        transaction.record_answers(
            [_answer(ledger, query_id) for query_id in range(first, first + batch_size)]
        )


def _answer(ledger: Ledger, query_id: int) -> AnswerRow:
    vector = b"%0*d" % (VECTOR_BYTES, query_id)
    digest = ledger.digests.of_vector(vector)
    return AnswerRow(digest, vector, RecordedAnswer(query_id, 0, stable=True))


def _measure_verifying(path: Path) -> None:
    ledger = open_release(path)
    with ledger.transaction() as transaction:
        for query_id in range(1, ENTRY_COUNT + 1):
            transaction.record_answers([_answer(ledger, query_id)])
    started = time.perf_counter()
    verify(ledger)
    print(f"{ENTRY_COUNT:,} entries: verified in {time.perf_counter() - started:.2f} s")
    ledger.close()


if __name__ == "__main__":
    main()
