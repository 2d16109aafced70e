r"""``conclave statistics`` that ends itself by SIGKILL at a chosen point.

Run by the crash tests::

    python -m tests.builders.crash.killing_statistics --at charged \\
        --config conclave.toml --public CSV FILE

Points: ``opened``, before the share's charge; ``charged``, before the draw;
``drawn``, before the publication; ``published``, before the values are written.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from app.main import statistics_from_settings
from app.noise.system import SystemNoise
from app.release.statistics.opening_table import DRAWING
from app.settings.settings import load_settings
from tests.builders.crash.killing_server import die

EDGES = {"charged": 0, "drawn": 1}


def main() -> None:
    """Open the table until the point is reached."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--at", required=True)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--public", type=Path)
    parser.add_argument("hypotheses", type=Path)
    arguments = parser.parse_args()
    point = arguments.at

    def progress(stage: str, done: int, total: int | None) -> None:
        del total
        if stage == DRAWING and EDGES.get(point) == done:
            die()

    def tell(line: str) -> None:
        del line
        if point == "opened":
            die()

    statistics_from_settings(
        load_settings(arguments.config, os.environ),
        json.loads(arguments.hypotheses.read_bytes())["hypotheses"],
        public=arguments.public,
        noise=SystemNoise(),
        progress=progress,
        tell=tell,
    )
    if point == "published":
        die()


if __name__ == "__main__":
    main()
