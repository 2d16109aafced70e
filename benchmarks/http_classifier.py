"""What does an answer of the published classifier cost over HTTP beside a route that does nothing?

Expected: as much as the floor's or less: nothing is voted on and nothing is written.

    python -m benchmarks.http_classifier [--folder FOLDER]

The floor and the release are those of ``http_answers``, after the release's switch.  About
a minute and a half.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import pinned
from benchmarks.measuring.alternating import pairs, told_processor, told_rate
from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.findings import Finding, median_ratio, tell
from benchmarks.measuring.linear_release import bodies, open_linear_release
from benchmarks.measuring.load import measure

ANSWERS_BEFORE = 300
CLIENTS = 64
REQUESTS = 12_000
PUBLISHED = b'"phase":"classifier"'
SWITCH_SECONDS = 5.0


def main() -> None:
    """Print the floor's code and the finding."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--folder", type=Path, help="on the disk to measure")
    chosen = arguments.parse_args().folder
    print(circumstances())
    print(f"\nthe floor:\n\n{pinned.FLOOR_FILE.read_text()}")
    with tempfile.TemporaryDirectory(dir=chosen) as folder:
        config = open_linear_release(Path(folder), queries=ANSWERS_BEFORE, after="classifier")
        with pinned.floor() as floor, pinned.release(config) as ours, pinned.load_on_its_core():
            measure(ours.port, bodies(ANSWERS_BEFORE, part=0), clients=8, expected=b'"ensemble"')
            time.sleep(SWITCH_SECONDS)
            found = list(
                pairs(
                    floor,
                    ours,
                    clients=CLIENTS,
                    requests=REQUESTS,
                    expected=PUBLISHED,
                    first_part=1,
                )
            )
    our_rate = told_rate([each.ours for each in found])
    floor_rate = told_rate([each.floor for each in found])
    tell(
        Finding(
            question=f"classifier phase, /query, {CLIENTS} clients",
            ours=f"{our_rate}, {told_processor([each.ours_processor for each in found])}",
            peer=f"floor {floor_rate}, {told_processor([each.floor_processor for each in found])}",
            ratio=median_ratio((each.ours.rate, each.floor.rate) for each in found),
            at_least=1.0,
        )
    )


if __name__ == "__main__":
    main()
