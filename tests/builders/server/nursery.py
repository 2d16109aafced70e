"""A process that has imported everything and forks one command after another.

What a start costs is its imports and its calibration; a module forked here is run as
``python -m`` runs it, in a process of its own that reads configuration, rows and ledger
as every other does, opens its own connections, and is there in a tenth of a second.
Run by the tests::

    python -m tests.builders.server.nursery

It reads one JSON order a line, and answers each by one line::

    {"module": MODULE, "arguments": ARGUMENTS, "environ": VARIABLES, "out": FILE, "log": FILE}
        -> the process number of ``python -m MODULE ARGUMENTS``
    {"serve": CONFIG, "at": POINT, "marks": FILE, "log": FILE, "plant": FAULTS}
        -> that of a server which dies at a point of ``tests.builders.crash.killing_server``
    {"ended": PROCESS}
        -> its exit code, or null
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from app.http.openapi.openapi_document import build_document
from tests.builders.server.server_process import (
    ROOT,
    SERVE,
    START_SECONDS_MAX,
    ServerProcess,
    environment,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

POLL_SECONDS = 0.005


class Nursery:
    """The forking process, seen from a test."""

    def __init__(self) -> None:
        """Start it; it ends when its orders do, which is when this process ends."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.builders.server.nursery"],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ordering = threading.Lock()

    def order(self, order: Mapping[str, object]) -> Any:
        """Send an order, and return its answer."""
        orders, answers = self._process.stdin, self._process.stdout
        assert orders is not None
        assert answers is not None
        with self._ordering:
            orders.write(json.dumps(order) + "\n")
            orders.flush()
            return json.loads(answers.readline())

    def close(self) -> None:
        """Give no order any more; it kills what it left running, and ends."""
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()


@cache
def nursery() -> Nursery:
    """Return the one nursery of this process."""
    opened = Nursery()
    atexit.register(opened.close)
    return opened


class _Forked:
    """A forked server, with as much of a ``Popen`` as a test of servers uses."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        if self._code is None:
            self._code = nursery().order({"ended": self.pid})
        return self._code

    def send_signal(self, wish: int) -> None:
        """Send a signal to a process that runs; its parent alone can let go of its number."""
        if self.poll() is None:
            os.kill(self.pid, wish)

    def wait(self, timeout: float = START_SECONDS_MAX) -> int:
        """Wait for the end, and return the exit code."""
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            assert time.monotonic() < deadline, "the server does not end"
            time.sleep(POLL_SECONDS)
        return code


class ForkedServer(ServerProcess):
    """A module that serves out of the nursery, or what the nursery was ordered instead."""

    def __init__(
        self,
        config: Path,
        *,
        script: Sequence[str] = SERVE,
        environ: Mapping[str, str] | None = None,
        log: Path | None = None,
        order: Mapping[str, object] | None = None,
    ) -> None:
        """Fork it; what it says goes beside ``config``, or to ``log``."""
        self.log = log or config.with_name("stderr.log")
        self.log.write_bytes(b"")
        option, module, *arguments = script
        assert option == "-m"
        serve = {
            "module": module,
            "arguments": [*arguments, "--config", str(config)],
            "environ": {**environment(), **(environ or {})},
            "out": str(self.log),
        }
        self._process = _Forked(nursery().order({**(order or serve), "log": str(self.log)}))
        self.address = ""


def started(
    config: Path,
    *,
    script: Sequence[str] = SERVE,
    environ: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> ServerProcess:
    """Start ``python SCRIPT --config CONFIG``, which begins with ``-m``, out of the nursery."""
    return ForkedServer(config, script=script, environ=environ, log=log)


def run_forked(
    script: Sequence[str], environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run ``python SCRIPT``, which begins with ``-m`` and a module, to its end.

    What it says goes through pipes, as to ``subprocess``: a process whose files are limited
    can say so.
    """
    option, module, *arguments = script
    assert option == "-m"
    with TemporaryDirectory() as folder, ThreadPoolExecutor(2) as reading:
        pipes = Path(folder, "stdout"), Path(folder, "stderr")
        for pipe in pipes:
            os.mkfifo(pipe)
        order = {
            "module": module,
            "arguments": arguments,
            "environ": {**environment(), **(environ or {})},
            "out": str(pipes[0]),
            "log": str(pipes[1]),
        }
        process = _Forked(nursery().order(order))
        said = reading.map(Path.read_bytes, pipes)
        return subprocess.CompletedProcess([*script], process.wait(), *said)


def main() -> None:
    """Carry out orders until there are no more, and leave no server behind."""
    for late in ("alembic.command", "sklearn.ensemble", "scipy.special"):
        import_module(late)  # what the first ledger and the first student ask for
    import_module("tests.builders.crash.killing_server")  # everything else a server imports
    for with_keys in (False, True):
        build_document(with_keys=with_keys)  # which every server has
    gc.freeze()  # else every forked process goes through all that is imported, and copies it

    children: set[int] = set()
    for line in sys.stdin:
        order = json.loads(line)
        if "ended" not in order:
            answer: int | None = _fork(order)
            children.add(answer or 0)
        else:
            answer = _ended(order["ended"])
            if answer is not None:
                children.discard(order["ended"])
        print(answer if answer is not None else "null", flush=True)  # noqa: T201 -- the answer
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _calibrate(order: dict[str, Any]) -> None:
    """Calibrate the answers of a configuration and check it, once for every process with it.

    Both are kept by the process that they are done in.  What is wrong with a configuration
    is for the forked process to say.
    """
    from app.privacy.mechanisms import row_of
    from app.release.terms.answer_terms import calibrate_answers, release_budget
    from app.settings.settings import load_settings

    arguments = order.get("arguments", ["--config", order.get("serve")])
    with suppress(Exception):
        config = Path(arguments[arguments.index("--config") + 1])
        settings = load_settings(config, order.get("environ", os.environ))
        calibration = calibrate_answers(settings, release_budget(settings))
        if calibration is not None:
            row_of(calibration).check(calibration)


def _fork(order: dict[str, Any]) -> int:
    """Fork a command, and return its process number."""
    _calibrate(order)
    child = os.fork()
    if child:
        return child
    code: object = 0
    try:
        _take_files(order)
        if "module" in order:
            _run(order)
        else:
            _serve(order)
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001 -- it may not return into the nursery
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0)


def _take_files(order: dict[str, Any]) -> None:
    """Give the forked process files of its own in the place of the nursery's."""
    for place, path in ((1, order.get("out", order["log"])), (2, order["log"])):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, place)
        os.close(file)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _run(order: dict[str, Any]) -> None:
    """Run a module in the forked process, as ``python -m`` does."""
    os.environ.clear()
    os.environ.update(order["environ"])
    sys.argv = [order["module"], *order["arguments"]]
    runpy.run_module(order["module"], run_name="__main__", alter_sys=True)


def _serve(order: dict[str, Any]) -> None:
    """Serve in the forked process until a point is reached."""
    from tests.builders.crash.killing_server import Killer, serve
    from tests.builders.crash.marks import Marks
    from tests.builders.crash.planted import plant

    config, marks = Path(order["serve"]), Marks(Path(order["marks"]))
    plant(order["plant"], marks, config.parent)
    serve(config, Killer(order["at"].split(":"), marks))


def _ended(process: int) -> int | None:
    """Return the exit code of a server, negative for a signal; None while it runs."""
    ended, status = os.waitpid(process, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


if __name__ == "__main__":
    main()
