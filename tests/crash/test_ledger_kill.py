"""A writer that is killed loses nothing that it acknowledged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.ledger.store import open_ledger
from app.ledger.verify import verify
from tests.unit.ledger.releases import create, open_release, url_of

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.crash

ROOT = Path(__file__).parents[2]
KILLS = 4
BATCH_SIZES = (1, 3, 64)
WRITER = """
import sys
from tests.unit.ledger.releases import answer, create, record
from pathlib import Path

ledger = create(Path(sys.argv[1]))
while True:
    first = ledger.read_state().answered + 1
    record(ledger, [answer(ledger, first + index) for index in range(int(sys.argv[2]))])
    print(first + int(sys.argv[2]) - 1, flush=True)
"""


def acknowledged_before_kill(path: Path, *, batch_size: int, count: int) -> int:
    """Let a process commit batches, kill it after ``count`` replies, and return the last."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(batch_size)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    with writer, writer.stdout as replies:
        last = [next(replies) for _ in range(count)][-1]
        writer.send_signal(signal.SIGKILL)
        rest = list(whole_lines(replies))
    return int(rest[-1] if rest else last)


def whole_lines(replies: Iterator[str]) -> Iterator[str]:
    """Yield the lines that a killed process had finished."""
    return (line for line in replies if line.endswith("\n"))


def test_acknowledged_answers_outlive_a_kill(tmp_path: Path) -> None:
    """After each kill the ledger verifies and holds every answer that was acknowledged."""
    path = tmp_path / "killed.db"
    ledger = create(path)
    open_release(ledger, queries=None, cutoff=None)
    ledger.close()
    for kill in range(KILLS):
        acknowledged = acknowledged_before_kill(
            path, batch_size=BATCH_SIZES[kill % len(BATCH_SIZES)], count=5 + 7 * kill
        )
        reader = open_ledger(url_of(path), create=False)
        report = verify(reader)
        assert report.answered >= acknowledged
        assert [row.query_id for row in reader.answers_after(0)] == list(
            range(1, report.answered + 1)
        )
        reader.close()


def test_killed_opening_leaves_nothing_or_everything(tmp_path: Path) -> None:
    """A process killed while it creates a ledger leaves one that the next creates whole."""
    code = (
        "import os, signal, sys\n"
        "from app.ledger import opening\n"
        "from app.ledger.store import open_ledger\n"
        "migrated = opening._migrated\n"
        "def killed(*arguments):\n"
        "    migrated(*arguments)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "opening._migrated = killed\n"
        "open_ledger(sys.argv[1], create=True)\n"
    )
    path = tmp_path / "opening.db"
    ended = subprocess.run(
        [sys.executable, "-c", code, url_of(path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    ledger = create(path)
    verify(ledger)
    ledger.close()
