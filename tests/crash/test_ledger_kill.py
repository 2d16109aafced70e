"""A process killed while it creates the tables of a ledger."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.ledger.verification import verify
from tests.builders.ledger.releases import create, url_of

pytestmark = pytest.mark.crash

ROOT = Path(__file__).parents[2]


def test_killed_opening_leaves_nothing_or_everything(tmp_path: Path) -> None:
    """A process killed while it creates a ledger leaves one that the next creates whole."""
    code = (
        "import os, signal, sys\n"
        "from app.ledger.database import open_database as opening\n"
        "from app.ledger.ledger import open_ledger\n"
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
