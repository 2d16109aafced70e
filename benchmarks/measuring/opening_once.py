"""Open one release in a process of its own, and print what that took as JSON.

python -m benchmarks.measuring.opening_once CONFIG
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from app.main import open_from_settings
from app.noise.system import SystemNoise
from app.settings.settings import load_settings
from benchmarks.measuring.circumstances import ROOT


@dataclass(frozen=True, slots=True)
class Opening:
    """What an opening took, importing modules left out.

    Attributes:
        seconds: by the clock.
        processor_seconds: of the process.
        peak_bytes: most memory that the process held, its modules included.
        stages: seconds by the clock until the end of each stage that came to an end.

    """

    seconds: float
    processor_seconds: float
    peak_bytes: int
    stages: dict[str, float]


def opened_alone(config: Path) -> Opening:
    """Return what an opening took in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.measuring.opening_once", str(config)]
    # As the command does: threads that wait for one another would count as work.
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    ended = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    return Opening(**json.loads(ended.stdout.splitlines()[-1]))


def main() -> None:
    """Open, and print."""
    settings = load_settings(Path(sys.argv[1]), {})
    # Libraries that only an opening needs belong to it as its own modules do not.
    started, used = time.perf_counter(), time.process_time()
    stages: dict[str, float] = {}

    def note(stage: str, done: int, total: int | None) -> None:
        del done, total
        stages[stage] = time.perf_counter() - started

    open_from_settings(settings, noise=SystemNoise(), progress=note)
    opening = Opening(
        time.perf_counter() - started, time.process_time() - used, _peak_bytes(), stages
    )
    print(json.dumps(asdict(opening)))


def _peak_bytes() -> int:
    """Ask the kernel; ``ru_maxrss`` would begin with what the process was forked from."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


if __name__ == "__main__":
    main()
