"""All of docs/utility.md, or the parts named: ``make bench-utility``.

    python -m benchmarks.utility [--quick] [PART ...]

Each part is a program of its own, ``benchmarks/utility/PART.py``, which keeps its results;
the page is printed from these.  A quick run, of some minutes, touches no page.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from benchmarks.measuring.circumstances import ROOT, circumstances
from benchmarks.utility.page import SECTIONS, write


def main() -> None:
    """Run the parts one after the other and print their sections."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="fewer draws; keeps no page")
    arguments = parser.parse_args()
    print(circumstances())
    failed = []
    for part in arguments.parts or SECTIONS:
        print(f"\n== {part}", flush=True)
        flags = ["--quick"] if arguments.quick else []
        command = [sys.executable, "-m", f"benchmarks.utility.{part}", *flags]
        failed += [part] if subprocess.run(command, cwd=ROOT, check=False).returncode else []
        if not arguments.quick:
            write(part)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
