"""SQLite's log cut off at every page: a whole prefix opens, and the head file tells the rest."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.errors import ConfigurationError, HeadFileError
from app.ledger.head_file import HeadFile, noted_head
from app.ledger.rollback import check_head_file
from app.ledger.store import open_ledger
from app.ledger.verify import verify
from tests.unit.ledger.releases import answer, create, open_release, record, url_of

if TYPE_CHECKING:
    from app.ledger.store import Ledger

pytestmark = pytest.mark.crash

ANSWERS = 12
# https://www.sqlite.org/fileformat2.html#the_write_ahead_log: a header with the size of a
# page at its byte 8, then frames of a header and a page each.
LOG_HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24


def write_release(path: Path) -> Ledger:
    """Open a release and answer, an entry an answer, all of it still in the log."""
    ledger = create(path)
    open_release(ledger)
    for query_id in range(1, ANSWERS + 1):
        record(ledger, [answer(ledger, query_id, stable=query_id != 3, label=0)])
    return ledger


def boundaries(log: bytes) -> list[int]:
    """Return every length at which a log ends with a whole page, the shortest first."""
    (page_bytes,) = struct.unpack(">I", log[8:12])
    step = FRAME_HEADER_BYTES + page_bytes
    assert (len(log) - LOG_HEADER_BYTES) % step == 0
    return list(range(LOG_HEADER_BYTES, len(log) + 1, step))


def log_of(path: Path) -> Path:
    """Return the log beside a database."""
    return Path(f"{path}-wal")


def test_every_shorter_log_is_a_prefix_and_is_refused_by_name(tmp_path: Path) -> None:
    """Each verifies by itself, and beside the head file all but the whole one are refused."""
    path, cut = tmp_path / "ledger.db", tmp_path / "cut.db"
    ledger = write_release(path)
    whole = noted_head(ledger.read_state())
    assert whole is not None
    file = HeadFile(tmp_path / "head")
    file.note(whole)
    log = log_of(path).read_bytes()
    lengths = boundaries(log)
    seen: list[int] = []
    for length in lengths:
        shutil.copy(path, cut)
        log_of(cut).write_bytes(log[:length])
        answered = check_cut(cut, file, is_whole=length == len(log))
        seen += [] if answered is None else [answered]
        for left in tmp_path.glob("cut.db*"):
            left.unlink()
    ledger.close()
    assert seen == sorted(seen)
    assert set(seen) == set(range(ANSWERS + 1))  # every commit is one of the prefixes
    assert len(lengths) > 2 * ANSWERS  # a commit writes several pages


def check_cut(path: Path, file: HeadFile, *, is_whole: bool) -> int | None:
    """Return how many answers a cut ledger has; None where it has no tables yet."""
    try:
        ledger = open_ledger(url_of(path), create=False)
    except ConfigurationError:
        return None  # the log ends before the tables do
    try:
        state = ledger.read_state()
        if state.release is not None:
            verify(ledger)
        if is_whole:
            assert check_head_file(ledger, file) == ([], [])
        else:
            with pytest.raises(HeadFileError) as refused:
                check_head_file(ledger, file)
            missing = ANSWERS - state.answered
            told = f"with {missing} answer{'s' if missing != 1 else ''} are missing"
            lost = f"notes {ANSWERS} answers of 'test' (release"
            assert (lost if state.release is None else told) in str(refused.value)
        return state.answered
    finally:
        ledger.close()
