"""The demo, asked to end: it drains as the server does and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.crash

END_SECONDS_MAX = 60.0  # on a busy machine
START_SECONDS_MAX = 60.0


@pytest.mark.parametrize("wish", [signal.SIGTERM, signal.SIGINT])
def test_a_demo_that_is_ended_removes_its_folder(
    tmp_path: Path, repository: Path, wish: signal.Signals
) -> None:
    """Both signals end the opening in time, without a traceback, and its ledger is gone."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("CONCLAVE_")}
    demo = subprocess.Popen(
        [sys.executable, "-m", "app", "demo"],
        cwd=repository,
        env=own | {"TMPDIR": str(tmp_path), "CONCLAVE_SERVER__PORT": "0"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with demo as process:
        try:
            _wait_for_ledger(tmp_path, process)
            process.send_signal(wish)
            _, said = process.communicate(timeout=END_SECONDS_MAX)
        finally:
            process.kill()
    assert process.returncode == 128 + signal.SIGINT
    assert "Traceback" not in said
    assert list(tmp_path.glob("conclave-demo-*")) == []


INTERRUPTED = """\
import os
import signal
import sys
from pathlib import Path
from app.cli import background_server, main

rmdir, is_open, late = os.rmdir, background_server._is_open, []

def interrupted(server):
    if list(Path(os.environ["TMPDIR"]).glob("conclave-demo-*/*.db")):
        os.kill(os.getpid(), signal.SIGINT)
    return is_open(server)

def overtaken(path, **given):
    if "conclave-demo-" in os.fspath(path) and len(late) < 3:
        late.append(Path(path, f"demo.db-{len(late)}"))
        late[-1].touch()
    rmdir(path, **given)

background_server._is_open, os.rmdir = interrupted, overtaken
sys.argv = ["conclave", "demo"]
main()
"""


def test_a_demo_whose_opening_still_writes_ends_alike(tmp_path: Path, repository: Path) -> None:
    """The thread that opens the release may write a file while the folder is removed."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("CONCLAVE_")}
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        cwd=repository,
        env=own | {"TMPDIR": str(tmp_path), "CONCLAVE_SERVER__PORT": "0"},
        capture_output=True,
        text=True,
        timeout=START_SECONDS_MAX + END_SECONDS_MAX,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + signal.SIGINT, "", "")
    assert list(tmp_path.glob("conclave-demo-*")) == []


def _wait_for_ledger(folder: Path, process: subprocess.Popen[str]) -> None:
    """Wait until the demo has a ledger, which it has long before its release is open."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while not list(folder.glob("conclave-demo-*/*.db")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
