"""A Dask cluster of processes on this machine, whose members speak by certificates.

Workers may be held to a share of a core by control groups of the kernel (version 1 or 2), which
takes the rights of root.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from benchmarks.measuring.circumstances import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

START_SECONDS_MAX: Final = 120
POLL_SECONDS: Final = 0.05
PERIOD_MICROSECONDS: Final = 20_000
SHARES_MAX: Final = 262_144
WEIGHT_MAX: Final = 10_000
"""Weight against whatever else runs: a quota is what holds a group, and nothing else."""
FIRST_TIMES_FIELD: Final = 11
"""Of ``/proc/PID/stat`` behind the name: user and system time of the process follow."""
_ENGINE: Final = """\
[engine]
name = "dask"
address = "{address}"
workers = {workers}
"""
QUIET: Final = {
    "WORKER__PROFILE__ENABLED": "false",
    "ADMIN__TICK__INTERVAL": "1s",
    "ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
    "ADMIN__SYSTEM_MONITOR__GIL__ENABLED": "false",
    "SCHEDULER__WORK_STEALING_INTERVAL": "1s",
}
"""What members watch of themselves is left out, as in the deployments of ``deploy/``."""
ENTER_GROUP: Final = 'echo $$ > "$0/cgroup.procs" && exec "$@"'


class LocalCluster:
    """A scheduler and workers of one thread, each a process; ended with the block.

    Attributes:
        address: of the scheduler.
        workers: the processes of the workers.
        certificates: the folder of the certificates.
        environment: variables by which a client finds them.

    """

    def __init__(self, folder: Path, workers: int, *, cores: float | None = None) -> None:
        """Start the processes and wait for the scheduler.

        Args:
            folder: a new one, for certificates and logs.
            workers: how many.
            cores: share of a core that each worker has; None for what there is.

        """
        folder.mkdir()
        self.certificates = folder / "certificates"
        self.environment = _certified(self.certificates)
        self._folder, self._groups = folder, list[Path]()
        self.scheduler = self._start("scheduler", ["--protocol", "tls", "--port", "0"])
        self.address = self._found_address()
        self.workers = [self._worker(number, cores) for number in range(workers)]

    def __enter__(self) -> Self:
        """Return the cluster."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill every process and remove every group."""
        for process in (*self.workers, self.scheduler):
            process.send_signal(signal.SIGKILL)
            process.wait()
        for group in self._groups:
            group.rmdir()

    def processor_seconds(self) -> list[float]:
        """Return the seconds of processors that scheduler and workers have used so far."""
        return [_used(process.pid) for process in (self.scheduler, *self.workers)]

    def peaks_bytes(self) -> list[int]:
        """Return the most memory that each worker has held."""
        return [_peak(process.pid) for process in self.workers]

    def section(self) -> str:
        """Return the section of a configuration by which an opening uses the cluster."""
        return _ENGINE.format(address=self.address, workers=len(self.workers))

    def _worker(self, number: int, cores: float | None) -> subprocess.Popen[bytes]:
        options = [self.address, "--nthreads", "1", "--memory-limit", "0", "--no-nanny"]
        name = f"worker-{number}"
        if cores is None:
            return self._start("worker", options, name=name)
        self._groups.append(_made_group(f"conclave-{os.getpid()}-{number}", cores))
        return self._start("worker", options, name=name, group=self._groups[-1])

    def _start(
        self, kind: str, options: Sequence[str], *, name: str = "", group: Path | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a member; what it says goes to a log in the folder."""
        command = [sys.executable, "-m", "dask", kind, *options, "--host", "127.0.0.1"]
        command += ["--no-dashboard"]
        if kind == "scheduler":
            command += ["--scheduler-file", str(self._folder / "scheduler.json")]
        if group is not None:
            command = ["sh", "-c", ENTER_GROUP, str(group), *command]
        with (self._folder / f"{name or kind}.log").open("wb") as said:
            return subprocess.Popen(
                command,
                cwd=ROOT,
                env=os.environ | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )

    def _found_address(self) -> str:
        """Wait for the scheduler, and return its address."""
        place, deadline = self._folder / "scheduler.json", time.monotonic() + START_SECONDS_MAX
        while self.scheduler.poll() is None and time.monotonic() < deadline:
            try:
                return str(json.loads(place.read_text(encoding="utf-8"))["address"])
            except (OSError, ValueError):
                time.sleep(POLL_SECONDS)
        raise RuntimeError((self._folder / "scheduler.log").read_text(encoding="utf-8"))


def _certified(made: Path) -> dict[str, str]:
    """Make certificates in a new folder, and return the variables that name them."""
    script = ROOT / "deploy" / "dask" / "make-certificates"
    subprocess.run(["sh", str(script), str(made)], check=True, capture_output=True)
    prefix = "DASK_DISTRIBUTED__COMM__"
    named = {f"{prefix}REQUIRE_ENCRYPTION": "true", f"{prefix}TLS__CA_FILE": str(made / "ca.pem")}
    for member in ("SCHEDULER", "WORKER", "CLIENT"):
        named[f"{prefix}TLS__{member}__CERT"] = str(made / "certificate.pem")
        named[f"{prefix}TLS__{member}__KEY"] = str(made / "key.pem")
    named |= {f"DASK_DISTRIBUTED__{name}": value for name, value in QUIET.items()}
    return {**named, "OPENBLAS_NUM_THREADS": "1", "DASK_TEMPORARY_DIRECTORY": str(made.parent)}


@contextmanager
def before_others() -> Iterator[None]:
    """Let this process and those it starts come before all that is outside of control groups."""
    group = _made_group(f"conclave-{os.getpid()}", None)
    (group / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield
    finally:
        (group.parent / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


def _made_group(name: str, cores: float | None) -> Path:
    """Make a control group that may use a share of a core, or as much as there is."""
    quota = "-1" if cores is None else str(round(cores * PERIOD_MICROSECONDS))
    first = Path("/sys/fs/cgroup/cpu")
    if first.is_dir():
        group = first / name
        group.mkdir()
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS))
        (group / "cpu.cfs_quota_us").write_text(quota)
        (group / "cpu.shares").write_text(str(SHARES_MAX))
        return group
    group = Path("/sys/fs/cgroup") / name
    group.mkdir()
    (group / "cpu.max").write_text(f"{'max' if cores is None else quota} {PERIOD_MICROSECONDS}")
    (group / "cpu.weight").write_text(str(WEIGHT_MAX))
    return group


def _used(pid: int) -> float:
    """Return seconds of processors that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = sum(map(int, fields[FIRST_TIMES_FIELD : FIRST_TIMES_FIELD + 2]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _peak(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
