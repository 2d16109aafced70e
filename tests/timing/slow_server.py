"""``conclave serve`` whose step takes fifty milliseconds longer where an answer is unstable.

Run by the timing tests::

    python -m tests.timing.slow_server --config conclave.toml
"""

from __future__ import annotations

import sys

from app.cli import main
from app.privacy.voting import query_decision
from tests.timing.planted_times import slow_step

SLOW_SECONDS = 5e-2

if __name__ == "__main__":
    query_decision.step = slow_step(lambda _, outcome: SLOW_SECONDS * (not outcome.stable))
    sys.argv[1:1] = ["serve"]
    main()
