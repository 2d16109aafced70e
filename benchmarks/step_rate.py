"""How many steps a second does the mechanism that serves make?

Expected: some hundred thousand, with `conclave simulate`'s own loop: every step is
a 64-bit word and a comparison.
"""

from __future__ import annotations

import time

from app.noise.system import SystemNoise
from app.release.simulation import simulate
from app.settings.settings import demo_settings
from benchmarks.measuring.circumstances import circumstances

QUERIES = 20
TRIALS = 10_000
UNANIMOUS = (800, 0)


def main() -> None:
    """Print steps a second on unanimous votes, which never halt a run."""
    calibration_seconds = _seconds(trials=1)
    seconds = _seconds(trials=TRIALS) - calibration_seconds
    print(circumstances())
    print(f"{QUERIES * TRIALS / seconds:,.0f} steps a processor second")
    print(f"{calibration_seconds:.2f} processor seconds to calibrate, once a start")


def _seconds(*, trials: int) -> float:
    """Return the processor's time for a simulation, calibration included."""
    started = time.process_time()
    simulate(demo_settings({}), [UNANIMOUS] * QUERIES, trials=trials, noise=SystemNoise())
    return time.process_time() - started


if __name__ == "__main__":
    main()
