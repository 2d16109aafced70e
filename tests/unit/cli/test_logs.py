"""What the process writes to its log: fields that are allowed, and no text of a library."""

from __future__ import annotations

import json
import subprocess
import sys

MARK = "canary-1234"
# A process of its own: logs are configured once, for the whole of it.
SCRIPT = f"""
import asyncio, gc, logging, threading
import structlog
from app.cli.logs import configure_logs

class Learner:
    def __del__(self):
        raise ValueError("{MARK}")

async def fail():
    raise ValueError("{MARK}")

async def forget_a_task():
    task = asyncio.get_running_loop().create_task(fail())
    await asyncio.sleep(0)
    del task
    gc.collect()

configure_logs()
configure_logs()
structlog.get_logger("conclave.service").info("told", count=3, features="{MARK}")
logging.getLogger("uvicorn.error").warning("said %s", "{MARK}")
logging.getLogger("somebody").log(35, "{MARK}")
asyncio.run(forget_a_task())
thread = threading.Thread(target=lambda: int("{MARK}"))
thread.start()
thread.join()
Learner()
"""


def test_a_log_line_holds_no_text_of_a_library() -> None:
    """Exceptions that libraries log, threads raise or destructors drop are named by class only."""
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=60
    )
    assert MARK not in ended.stdout + ended.stderr
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    for line in lines:
        del line["timestamp"]
    assert lines == [
        {"event": "told", "level": "info", "count": 3},
        {"event": "library_message", "level": "warning", "library": "uvicorn.error"},
        {"event": "library_message", "level": "warning", "library": "somebody"},
        {"event": "library_message", "level": "error", "library": "asyncio"},
        {"event": "exception_ignored", "level": "error", "error": "ValueError"},
        {"event": "exception_ignored", "level": "error", "error": "ValueError"},
    ]


def test_a_log_on_a_full_disk_stops_nothing() -> None:
    """A line that cannot be written is lost; who told it goes on, and later lines come."""
    script = """
import os
import structlog
from app.cli.logs import configure_logs

configure_logs()
log = structlog.get_logger("conclave.service")
kept = os.dup(2)
os.dup2(os.open("/dev/full", os.O_WRONLY), 2)
log.error("lost")
os.dup2(kept, 2)
log.info("told")
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert [json.loads(line)["event"] for line in ended.stderr.splitlines()] == ["told"]


def test_lines_for_people_have_no_other_fields() -> None:
    """The console's text names the event and what is allowed, without colours in a pipe."""
    script = f"""
import structlog
from app.cli.logs import configure_logs, level_of

configure_logs(level=level_of("warning"), console=True)
log = structlog.get_logger("conclave.service")
log.info("unheard")
try:
    raise ValueError("{MARK}")
except ValueError:
    log.warning("told", count=3, features="{MARK}", exc_info=True)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    (line,) = ended.stderr.splitlines()
    assert "warning" in line
    assert "told" in line
    assert line.rstrip().endswith("count=3")
    assert MARK not in line
    assert "\x1b" not in line
