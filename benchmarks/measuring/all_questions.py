"""Every question, one after the other, and one table of what was found: ``make bench``.

    python -m benchmarks.measuring.all_questions [NAME ...]

NAMEs are programs of ``benchmarks/`` without their ending; none means all that judge a figure,
``JUDGED``.  What each prints is passed on; what it finds goes into the table, and into
``benchmarks/results/`` with machine, load and commit.  Where all ran, the table and the plot of
``docs/performance.md`` are those of this run.  Half an hour on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from benchmarks.measuring.circumstances import ROOT, circumstances, commit
from benchmarks.measuring.findings import PREFIX, Finding, read_findings
from benchmarks.measuring.ratio_plot import plot

if TYPE_CHECKING:
    from collections.abc import Sequence

RESULTS: Final = ROOT / "benchmarks" / "results"
PAGE: Final = ROOT / "docs" / "performance.md"
PLOT: Final = ROOT / "docs" / "performance.svg"
JUDGED: Final = (
    "http_answers",
    "http_classifier",
    "http_stream",
    "v2_infer",
    "replicas",
    "capped_replicas",
    "large_ledger",
    "ledger_growth",
    "tree_votes",
    "linear_votes",
    "linear_fits",
    "tree_fits",
    "exact_trees",
    "source_reading",
    "opening",
    "opening_persons",
    "latency_by_rows",
    "erasures",
    "forgotten_person",
    "files_on_the_way",
)
"""The programs that compare a figure with what is wanted, in the order of the table."""

BEGIN: Final = "<!-- `make bench` writes from here -->\n"
END: Final = "<!-- to here -->\n"


def main() -> None:
    """Run the programs, print the table, and keep what was found."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("names", nargs="*", metavar="NAME")
    chosen = tuple(arguments.parse_args().names) or JUDGED
    findings, failed = [], []
    for name in chosen:
        print(f"\n== {name}", flush=True)
        found, exit_code = _run(name)
        findings += found
        failed += [name] if exit_code else []
    print(f"\n{circumstances()}\n\n{table(findings)}")
    if findings:
        _keep(findings)
        if chosen == JUDGED:
            _publish(findings)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


def _run(name: str) -> tuple[list[Finding], int]:
    """Run one program; pass on what it prints, and return what it found."""
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    lines = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as program:
        for line in program.stdout or ():
            lines.append(line)
            if not line.startswith(PREFIX):
                print(line, end="", flush=True)
    return read_findings(lines), program.returncode


def table(findings: Sequence[Finding]) -> str:
    """Return a table in Markdown, a finding a line."""
    head = "| question | ours | floor or peer | ratio | wanted | reached |"
    rows = [
        f"| {each.question} | {each.ours} | {each.peer} | {each.ratio:.3g} | {each.wanted} "
        f"| {_told(each)} |"
        for each in findings
    ]
    return "\n".join([head, "| --- | --- | --- | --- | --- | --- |", *rows])


def _told(finding: Finding) -> str:
    if not finding.wanted:
        return ""
    return "yes" if finding.is_reached else "NO"


def _keep(findings: Sequence[Finding]) -> None:
    """Write what was found, a file a run."""
    now = datetime.now(UTC)
    document = {
        "commit": commit(),
        "at": now.isoformat(timespec="seconds"),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "findings": [asdict(each) | {"reached": each.is_reached} for each in findings],
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{now:%Y-%m-%d}-{document['commit']}.json"
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(f"\nkept in {path.relative_to(ROOT)}")


def _publish(findings: Sequence[Finding]) -> None:
    """Put the table into the page, and draw it."""
    plot(findings, PLOT)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    table_of_all = f"{circumstances()}\n\n{table(findings)}\n"
    PAGE.write_text(f"{before}{BEGIN}{table_of_all}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
