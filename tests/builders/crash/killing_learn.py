"""``conclave learn`` that ends itself by SIGKILL at a chosen point.

Run by the crash tests::

    python -m tests.builders.crash.killing_learn --at charged --config conclave.toml

Points: ``opened``, before the classifier's charge; ``charged``, before its
draw; ``drawn``, before its publication; ``published``, before its document is
written.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from app.main import learn_from_settings
from app.noise.system import SystemNoise
from app.release.classifier.publish_at_once import DRAWING
from app.settings.settings import load_settings
from tests.builders.crash.killing_server import die

EDGES = {"charged": 0, "drawn": 1}


def main() -> None:
    """Learn until the point is reached."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--at", required=True)
    parser.add_argument("--config", type=Path, required=True)
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

    learn_from_settings(
        load_settings(arguments.config, os.environ),
        public=None,
        noise=SystemNoise(),
        progress=progress,
        tell=tell,
    )
    if point == "published":
        die()


if __name__ == "__main__":
    main()
