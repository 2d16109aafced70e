"""A write-ahead log that was cut or damaged anywhere opens to what was committed before that place.

A kill leaves the system's cache, and a power cut does not: what the disk has of the log
may end anywhere.  Each frame of it has a checksum that goes on from the one before.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.cli import run
from app.errors import ConfigurationError
from app.ledger.ledger import Ledger, Transaction, open_ledger
from app.ledger.verification import verify
from tests.builders.crash.clients import Clients, connect
from tests.builders.crash.faulting import set_pragma
from tests.builders.crash.killing import start_to_kill_at
from tests.builders.crash.killing_server import NOWHERE
from tests.builders.ledger.releases import (
    answer,
    create,
    open_release,
    publish,
    record,
    refresh,
    url_of,
)
from tests.builders.server.http_release import SmallRelease, agreed
from tests.builders.server.nursery import started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from app.ledger.entries.fold import LedgerState

pytestmark = pytest.mark.crash

HEADER_BYTES = 32
FRAME_BYTES = 24 + 4096
SEED = 20240229
ANSWERS_OF_AN_ENTRY = (1, 3, 60, 1, 200, 2, 1, 40)
ANSWER_COUNT = 12
NOTED_SECONDS_MAX = 60.0
# `make audit` cuts and damages every frame.
FRAMES_APART = pytest.mark.parametrize(
    "apart",
    [pytest.param(4, id="some"), pytest.param(1, id="every frame", marks=pytest.mark.long)],
)


@dataclass(frozen=True)
class Committed:
    """What a commit left: how long the log was by then, the state, and the keys beside it."""

    log_bytes: int
    state: LedgerState
    key_count: int


@dataclass(frozen=True)
class Life:
    """A ledger whose every commit is in its log, and the history of these commits."""

    folder: Path
    history: tuple[Committed, ...]

    @property
    def log(self) -> bytes:
        """The whole log."""
        return (self.folder / "life.db-wal").read_bytes()

    def by(self, log_bytes: int) -> Committed | None:
        """Return what was committed in the first bytes of the log; None where nothing was."""
        before = [each for each in self.history if each.log_bytes <= log_bytes]
        return before[-1] if before else None


class RememberingLedger(Ledger):
    """A ledger that notes after every commit what there is.

    Attributes:
        history: one item a commit.

    """

    def __init__(self, path: Path) -> None:
        """Create a ledger whose log is never brought into its database."""
        super().__init__(create(path)._database)
        self._log = path.with_name(f"{path.name}-wal")
        with super().transaction():  # after which its connection stays
            pass
        set_pragma(self, "wal_autocheckpoint", 0)
        self.history: list[Committed] = []
        self._remember()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Commit, and note it."""
        with super().transaction() as transaction:
            yield transaction
        self._remember()

    def _remember(self) -> None:
        key_count = len(list(self.keys()))
        self.history.append(Committed(self._log.stat().st_size, self.read_state(), key_count))


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Commit entries of many kinds, answers, keys and private pieces; keep all in the log."""
    folder = tmp_path_factory.mktemp("life")
    ledger = RememberingLedger(folder / "living.db")
    open_release(ledger, cutoff=20, further={"threshold-noise-0": b"noise"})
    for count in ANSWERS_OF_AN_ENTRY:
        first = ledger.read_state().answered + 1
        rows = [answer(ledger, first + index) for index in range(count)]
        record(ledger, rows)
        record_key(ledger, rows[0].vector_digest)
        refresh(ledger, [answer(ledger, first + count, label=None, stable=False)])
    publish(ledger)
    for suffix in ("", "-wal"):
        shutil.copy(folder / f"living.db{suffix}", folder / f"life.db{suffix}")
    ledger.close()
    return Life(folder, tuple(ledger.history))


def record_key(ledger: Ledger, vector_digest: bytes) -> None:
    """Keep a key beside an answer, without an entry."""
    with ledger.transaction() as transaction:
        key = ledger.digests.of_key(f"key of {transaction.state.answered}")
        transaction.record_key(key, vector_digest)


@contextmanager
def damaged(life: Life, folder: Path, log: bytes) -> Iterator[Path]:
    """Put the database beside another log."""
    path = folder / "damaged.db"
    shutil.copy(life.folder / "life.db", path)
    path.with_name("damaged.db-wal").write_bytes(log)
    yield path
    for each in folder.iterdir():
        each.unlink()


def check_opens(path: Path, expected: Committed | None, *, goes_on: bool = False) -> None:
    """Check that a database opens to what was committed, verifies, and may go on from there."""
    if expected is None:
        with pytest.raises(ConfigurationError, match="there is no ledger"):
            open_ledger(url_of(path), create=False)
        return
    reader = open_ledger(url_of(path), create=False)
    assert reader.read_state() == expected.state
    assert len(list(reader.keys())) == expected.key_count
    verify(reader)
    reader.close()
    if not goes_on:
        return
    writer = create(path)
    assert writer.read_state() == expected.state
    if expected.state.ensemble is not None and expected.state.classifier is None:
        record(writer, [answer(writer, expected.state.answered + 1)])
    verify(writer)
    writer.close()


@FRAMES_APART
@pytest.mark.timeout(600)
def test_a_log_cut_anywhere_opens_to_a_prefix(life: Life, tmp_path: Path, apart: int) -> None:
    """At every boundary of a frame and inside each, exactly the commits before are there."""
    log, sequences = life.log, [0]
    frame_count = (len(log) - HEADER_BYTES) // FRAME_BYTES
    assert frame_count > 3 * len(life.history)
    inside = np.random.default_rng(SEED).integers(1, FRAME_BYTES, frame_count)
    for frame in range(0, frame_count, apart):
        boundary = HEADER_BYTES + frame * FRAME_BYTES
        for size in (boundary, boundary + int(inside[frame])):
            with damaged(life, tmp_path, log[:size]) as path:
                expected = life.by(boundary)
                check_opens(path, expected, goes_on=size == boundary)
                sequences.append(0 if expected is None else expected.state.head.sequence)
    with damaged(life, tmp_path, log) as path:
        check_opens(path, life.history[-1])
    assert sequences == sorted(sequences)


@FRAMES_APART
@pytest.mark.timeout(600)
def test_a_log_damaged_anywhere_opens_to_a_prefix(life: Life, tmp_path: Path, apart: int) -> None:
    """One byte flipped in any frame, and the commits before that frame are there, and no other."""
    log = life.log
    frame_count = (len(log) - HEADER_BYTES) // FRAME_BYTES
    offsets = np.random.default_rng(SEED + 1).integers(0, FRAME_BYTES, frame_count)
    for frame in range(0, frame_count, apart):
        boundary = HEADER_BYTES + frame * FRAME_BYTES
        flipped = bytearray(log)
        flipped[boundary + int(offsets[frame])] ^= 1 << (frame % 8)
        with damaged(life, tmp_path, bytes(flipped)) as path:
            check_opens(path, life.by(boundary))


def test_a_cut_log_is_refused_by_what_the_head_file_notes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A release that was served and cut anywhere is refused, with the number of missing answers."""
    release = SmallRelease(tmp_path / "release")
    release.folder.mkdir()
    serve_until_noted(release.write())
    log = (release.folder / "conclave.db-wal").read_bytes()
    frame_count = (len(log) - HEADER_BYTES) // FRAME_BYTES
    missing = []
    for frame in range(frame_count):
        cut = cut_copy(release, tmp_path / "cut", log[: HEADER_BYTES + frame * FRAME_BYTES])
        assert run(["learn", "--config", str(cut.config)]) == 2
        missing.append(missing_answers(capsys.readouterr().err))
    assert missing == sorted(missing, reverse=True)
    assert set(missing) == set(range(1, ANSWER_COUNT + 1))
    process = started(cut.config)
    assert process.wait() == 2
    assert missing_answers(process.errors()) == 1
    assert "Traceback" not in process.errors()


def serve_until_noted(release: SmallRelease) -> None:
    """Answer query by query, and kill the server when its head file notes the last answer."""
    process = start_to_kill_at(release, NOWHERE).wait_until_ready()
    clients = Clients()
    with connect(process.address) as http:
        for _ in range(ANSWER_COUNT):
            assert clients.ask_new(http, agreed) is not None
    file = release.folder / "conclave.db.head"
    deadline = time.monotonic() + NOTED_SECONDS_MAX
    while not file.exists() or noted_answers(file) < ANSWER_COUNT:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()


def noted_answers(file: Path) -> int:
    """Return the number of answers that a head file notes."""
    (head,) = json.loads(file.read_bytes())["releases"]
    return int(head["answered"])


def cut_copy(release: SmallRelease, folder: Path, log: bytes) -> SmallRelease:
    """Copy a release, with its head file, and cut its log."""
    shutil.rmtree(folder, ignore_errors=True)
    copy = release.copy_to(folder)
    (folder / "conclave.db-wal").write_bytes(log)
    (folder / "conclave.db-shm").unlink()
    return copy


def missing_answers(said: str) -> int:
    """Return the number of answers that a refusal says are missing."""
    assert "ledger.head_file" in said
    found = re.search(r"with (\d+) answers? (?:is|are) missing|notes (\d+) answers? of", said)
    assert found is not None, said
    return int(found[1] or found[2])
