"""Servers on one core, their load on the other."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.measuring.circumstances import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

CORES: Final = frozenset(os.sched_getaffinity(0))
"""What this process may use before it is kept to any: servers have the first, load the last."""

READY_SECONDS_MAX: Final = 120.0
POLL_SECONDS: Final = 0.02
FLOOR_MODULE: Final = "benchmarks.measuring.floor:application"
FLOOR_FILE: Final = Path(__file__).with_name("floor.py")
# As app/cli/web_server.py runs the release: the same loop, parser and headers.
FLOOR_OPTIONS: Final = (
    "--loop=uvloop",
    "--http=httptools",
    "--no-access-log",
    "--no-server-header",
    "--no-date-header",
    "--backlog=2048",
    "--log-level=warning",
)


class Server:
    """A server process on a port of loopback, and on another one for gRPC where it has that."""

    def __init__(self, port: int, process: int, grpc_port: int) -> None:
        """Know where it is."""
        self.port = port
        self.grpc_port = grpc_port
        self.process = process

    def processor_seconds(self) -> float:
        """Return what its process has used of the processor, its threads and the kernel's part."""
        stat = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        user, system = stat[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def floor() -> Iterator[Server]:
    """Serve the floor."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", FLOOR_MODULE, f"--port={port}", *FLOOR_OPTIONS]
    with _served(command, port, "/openapi.json") as server:
        yield server


@contextmanager
def release(config: Path, *, with_grpc: bool = False) -> Iterator[Server]:
    """Serve a release, as `conclave serve` does."""
    port, grpc_port = free_port(), free_port() if with_grpc else 0
    command = [sys.executable, "-m", "app", "serve", "--config", str(config)]
    ports = {"CONCLAVE_SERVER__PORT": str(port)}
    if with_grpc:
        ports["CONCLAVE_SERVER__GRPC_PORT"] = str(grpc_port)
    with _served(command, port, "/readyz", grpc_port=grpc_port, environ=ports) as server:
        yield server


@contextmanager
def peer(
    command: Sequence[str],
    port: int,
    probe: str,
    *,
    grpc_port: int = 0,
    folder: Path = ROOT,
    environ: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """Serve another program, which listens on ``port`` and is ready once ``probe`` is 200."""
    with _served(
        command, port, probe, grpc_port=grpc_port, folder=folder, environ=environ
    ) as server:
        yield server


@contextmanager
def load_on_its_core() -> Iterator[None]:
    """Keep this process, which makes the load, off the server's core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(CORES)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def on_the_servers_core() -> Iterator[None]:
    """Do here what the server does there, to compare with it."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(CORES)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


@contextmanager
def _served(
    command: Sequence[str],
    port: int,
    probe: str,
    *,
    grpc_port: int = 0,
    folder: Path = ROOT,
    environ: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(CORES)})  # the process below starts there, threads and all
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **(environ or {})},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    finally:
        os.sched_setaffinity(0, before)
    try:
        _wait_until_ready(process, port, probe)
        yield Server(port, process.pid, grpc_port)
    finally:
        process.terminate()
        process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, probe: str) -> None:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not _answers(port, probe):
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"{process.args!r} did not start")
        time.sleep(POLL_SECONDS)


def _answers(port: int, probe: str) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", probe)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
