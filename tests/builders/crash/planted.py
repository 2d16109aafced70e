"""Faults that are planted in a server of the nursery before it starts, by their names.

``early replies`` is what the campaign of kills must find; the others are what a disk
or a log does to a server, and a record of what it draws meanwhile.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

from app.answering.answer_query import QueryAnswerer
from app.answering.batch_decisions import Batch
from app.answering.writer import Writer
from app.ledger.database import sqlite
from tests.builders.crash.faulting import connecting, observed, refuse_on_disk
from tests.builders.crash.planted_replicas import PLANTING

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from app.answering.queries import Fresh, IdentifiedQueries
    from app.answering.queue import Waiting
    from app.ledger.ledger import Transaction
    from app.privacy.soft_labels.mechanism import PrivateBins
    from app.privacy.voting.votes import Tally
    from tests.builders.crash.marks import Marks

EARLY_REPLIES = "early replies"
DATABASE_FAULTS = "database faults"
FAULT_AT_START = "a fault from the start"
FULL_LOG = "full log"
DRAWS = "draws"
CHECKPOINTS = "checkpoints"

# Faults of the database, by the number in the marks.
NONE, FULL, READ_ONLY, FAILED_COMMIT, LOST_COMMIT = range(5)
PAGES_MAX = 2**30
# The log is brought into the database at almost every commit, not after a thousand pages.
LOG_OPTION = "wal_autocheckpoint"
LOG_PAGES = 8
# A locked database is refused after this long, not after three seconds.
BUSY_SECONDS = 0.2
# Long enough that a reply is on its way before the commit begins.
REPLY_SECONDS = 0.1


def plant(faults: Sequence[str], marks: Marks, folder: Path) -> None:
    """Plant faults by their names; ``folder`` is where a record of draws goes."""
    planting: dict[str, Callable[[int], None]] = {
        EARLY_REPLIES: lambda _: _reply_before_commit(),
        DATABASE_FAULTS: lambda _: _let_the_database_fail(marks),
        FAULT_AT_START: lambda number: _fail_from_the_start(marks, number),
        FULL_LOG: lambda _: _fill_the_log(),
        DRAWS: lambda _: _record_draws(folder / DRAWS),
        CHECKPOINTS: lambda _: _checkpoint_often(),
    }
    for fault in faults:
        name, _, number = fault.partition(":")
        if name in PLANTING:
            PLANTING[name]()
        else:
            planting[name](int(number or 0))


def draws(folder: Path) -> list[tuple[bytes, int | None, bool]]:
    """Return every draw of a server: digest of the vector, label and stable flag."""
    lines = (folder / DRAWS).read_text(encoding="utf-8").splitlines()
    return [(bytes.fromhex(digest), *rest) for digest, *rest in map(json.loads, lines)]


def _reply_before_commit() -> None:
    """Give fresh answers to callers of one query before the transaction has committed."""
    callers: dict[bytes, Waiting] = {}
    take_in, append = Writer._take_in, QueryAnswerer._append

    def take_in_and_remember(self: Writer, waiting: Sequence[Waiting]) -> None:
        for each in waiting:
            if len(each) == 1:
                callers[each.queries.vector_digests[0]] = each
        take_in(self, waiting)

    def reply_and_append(self: QueryAnswerer, transaction: Transaction, batch: Batch) -> None:
        append(self, transaction, batch)
        for fresh in batch.fresh:
            each = callers.get(fresh.vector_digest)
            if each is not None:
                each.future.get_loop().call_soon_threadsafe(each.settle, [fresh])
        time.sleep(REPLY_SECONDS)

    Writer._take_in = take_in_and_remember  # type: ignore[method-assign]  # the fault
    QueryAnswerer._append = reply_and_append  # type: ignore[method-assign]  # as above


def _let_the_database_fail(marks: Marks) -> None:
    """Let the connection that writes fail as the marks say, transaction by transaction.

    A full disk is SQLite's own error at a page beyond the last one, and a file that
    may not be written its own refusal: both are what the system's errors become.
    """
    sqlite.BUSY_TIMEOUT_SECONDS = BUSY_SECONDS  # type: ignore[misc]  # a constant elsewhere

    def before(connection: sqlite3.Connection, statement: str) -> None:
        if statement == sqlite.BEGIN_WRITING:
            connection.execute(f"PRAGMA max_page_count={1 if marks.fault == FULL else PAGES_MAX}")
            connection.execute(f"PRAGMA query_only={int(marks.fault == READ_ONLY)}")
        if statement == "COMMIT" and marks.fault == FAILED_COMMIT:
            refuse_on_disk()

    def after(_: sqlite3.Connection, statement: str) -> None:
        if statement == "COMMIT" and marks.fault == LOST_COMMIT:
            refuse_on_disk()

    sqlite._connect = connecting(observed(before, after))  # the fault


def _checkpoint_often() -> None:
    """Let commits bring the log into the database, so that kills come in the middle of it."""
    options = sqlite.WRITER_OPTIONS
    rare = [each for each in options if not each.startswith(LOG_OPTION)]
    often = (*rare, f"{LOG_OPTION}={LOG_PAGES}")
    sqlite.WRITER_OPTIONS = often  # type: ignore[misc, assignment]  # a constant elsewhere


def _fail_from_the_start(marks: Marks, fault: int) -> None:
    """Have a fault of the database from the moment on that the release is open."""
    start = Writer.start

    def failing_start(self: Writer) -> None:
        marks.fault = fault
        start(self)

    Writer.start = failing_start  # type: ignore[method-assign]  # the fault


def _fill_the_log() -> None:
    """Put the log on a full disk once the release is open."""
    start = Writer.start

    def full_start(self: Writer) -> None:
        os.dup2(os.open("/dev/full", os.O_WRONLY), 2)
        start(self)

    Writer.start = full_start  # type: ignore[method-assign]  # the fault


def _record_draws(path: Path) -> None:
    """Write down every answer that is drawn, whatever becomes of it."""
    answer = Batch._answer

    def recorded_answer(
        self: Batch, queries: IdentifiedQueries, place: int, private_value: Tally | PrivateBins
    ) -> Fresh:
        fresh = answer(self, queries, place, private_value)
        drawn = (fresh.vector_digest.hex(), fresh.recorded.label, fresh.recorded.stable)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(drawn) + "\n")
        return fresh

    Batch._answer = recorded_answer  # type: ignore[method-assign]  # a witness
