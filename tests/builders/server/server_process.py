"""A real server in a process of its own, to be asked over loopback, killed and restarted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

ROOT = Path(__file__).parents[3]
ADDRESS = re.compile(r"^conclave: opening .* on (http://\S+)$", re.MULTILINE)
GRPC_ADDRESS = re.compile(r"^conclave: gRPC on (\S+)$", re.MULTILINE)
START_SECONDS_MAX = 120.0
SERVE = ("-m", "app", "serve")
POLL_SECONDS = 0.02


class RunningProcess(Protocol):
    """As much of a ``Popen`` as is used here."""

    @property
    def pid(self) -> int:
        """Its number."""

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""

    def send_signal(self, sig: int, /) -> None:
        """Send a signal."""

    def wait(self, timeout: float = ..., /) -> int:
        """Wait for the end, and return the exit code."""


class ServerProcess:
    """A process that serves one configuration.

    Attributes:
        address: its URL, once it listens.

    """

    def __init__(
        self,
        config: Path,
        *,
        script: Sequence[str] = SERVE,
        environ: Mapping[str, str] | None = None,
        log: Path | None = None,
    ) -> None:
        """Start ``python SCRIPT --config CONFIG``; what it says goes beside that, or to ``log``."""
        self.log = log or config.with_name("stderr.log")
        with self.log.open("wb") as said:
            self._process: RunningProcess = subprocess.Popen(
                [sys.executable, *script, "--config", str(config)],
                cwd=ROOT,
                env={**environment(), **(environ or {})},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        self.address = ""

    def wait_until_alive(self) -> Self:
        """Wait until the server has said where it listens, and answers there."""
        self._poll(lambda: ADDRESS.search(self.errors()) is not None)
        match = ADDRESS.search(self.errors())
        assert match is not None, f"exit code {self._process.poll()}: {self.errors()}"
        self.address = match[1]
        self._poll(lambda: self._probe("/healthz"))
        return self

    def wait_until_ready(self) -> Self:
        """Wait until the release is open, or until the process has ended."""
        self.wait_until_alive()
        self._poll(lambda: self._probe("/readyz"))
        return self

    @property
    def grpc_address(self) -> str:
        """Host and port of gRPC, once the server has said where it listens."""
        match = GRPC_ADDRESS.search(self.errors())
        assert match is not None, self.errors()
        return match[1]

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def errors(self) -> str:
        """Return what the process has written so far."""
        return self.log.read_text(encoding="utf-8")

    def is_running(self) -> bool:
        """Return whether the process has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process at once, wherever it is."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def signal(self, wish: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(wish)

    def terminate(self) -> None:
        """Ask the process to drain and end."""
        self._process.send_signal(signal.SIGTERM)

    def wait(self, timeout_seconds: float = START_SECONDS_MAX) -> int:
        """Wait for the end of the process, and return its exit code."""
        return self._process.wait(timeout_seconds)

    def _probe(self, path: str) -> bool:
        """Return whether a probe of the server succeeds."""
        connection = HTTPConnection(self.address.removeprefix("http://"), timeout=10)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == HTTPStatus.OK
        except (HTTPException, OSError):
            return False
        finally:
            connection.close()

    def _poll(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds or the process has ended."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while not holds() and self.is_running():
            assert time.monotonic() < deadline, self.errors()
            time.sleep(POLL_SECONDS)


@contextmanager
def serving(config: Path, **options: object) -> Iterator[ServerProcess]:
    """Serve a configuration while the block runs; a process left over is killed.

    ``options`` are those of ``tests.builders.server.nursery.started``.
    """
    from tests.builders.server.nursery import started

    process = started(config, **options)  # type: ignore[arg-type]  # its own arguments
    try:
        yield process.wait_until_ready()
    finally:
        if process.is_running():
            process.kill()


def environment() -> dict[str, str]:
    """Return this process's environment without a configuration of its own."""
    return {name: value for name, value in os.environ.items() if not name.startswith("CONCLAVE_")}
