"""Open one release in a process of its own, and print what that took as JSON.

python -m benchmarks.measuring.opening_once CONFIG [SEED]

With a seed, noise is scripted: two openings of the same rows draw the same then.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from app.main import open_from_settings
from app.noise.scripted import ScriptedNoise, seeded_words
from app.noise.system import SystemNoise
from app.release.private_state import ENSEMBLE, HYPOTHESIS, PERMUTATION
from app.settings.settings import load_settings
from benchmarks.measuring.circumstances import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.release.release import Release


@dataclass(frozen=True, slots=True)
class Opening:
    """What an opening took, importing modules left out.

    Attributes:
        seconds: by the clock.
        processor_seconds: of the process.
        peak_bytes: most memory that the process held, its modules included.
        stages: seconds by the clock until the end of each stage that came to an end.
        digest: of what was drawn and of the fingerprint.
        load: of the machine at the end.

    """

    seconds: float
    processor_seconds: float
    peak_bytes: int
    stages: dict[str, float]
    digest: str
    load: float


def opened_alone(
    config: Path, *, seed: int | None = None, environ: Mapping[str, str] | None = None
) -> Opening:
    """Return what an opening took in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.measuring.opening_once", str(config)]
    command += [] if seed is None else [str(seed)]
    # As the command does: threads that wait for one another would count as work.
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"} | dict(environ or {})
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

    seed = sys.argv[2:]
    noise = ScriptedNoise(seeded_words(int(seed[0]))) if seed else SystemNoise()
    release = open_from_settings(settings, noise=noise, progress=note)
    seconds, processor_seconds = time.perf_counter() - started, time.process_time() - used
    opening = Opening(
        seconds, processor_seconds, _peak_bytes(), stages, _digest(release), os.getloadavg()[0]
    )
    print(json.dumps(asdict(opening)))


def _digest(release: Release) -> str:
    """Return a digest of what was drawn and of the rows' fingerprint."""
    digest = sha256((release.state.release.fingerprint if release.state.release else "").encode())
    for name in (PERMUTATION, HYPOTHESIS, ENSEMBLE):
        digest.update(release.ledger.private(name) or b"none")
    return digest.hexdigest()


def _peak_bytes() -> int:
    """Ask the kernel; ``ru_maxrss`` would begin with what the process was forked from."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


if __name__ == "__main__":
    main()
