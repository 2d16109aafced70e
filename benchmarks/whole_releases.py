"""What does a whole release of an audit over HTTP take, and what can so many of them show?

Expected: 60 to 120 ms of a processor for a release with a restart, opening and migration
included, in which the first start has the larger part; and bounds that grow with the
logarithm of the runs.  The configuration is the default: epsilon 1, delta 1e-6, T = 5,
relabelling, answers and the classifier's share.

    python benchmarks/whole_releases.py [--runs 48]
"""

from __future__ import annotations

import argparse
import logging
import time
from fractions import Fraction

from app.auditing.transcripts.http_audit import Claim, plan_runs
from app.cli.audit.audited_releases import RUNS_LONG, RUNS_QUICK, audit_releases
from app.cli.audit.neighbours import audited_claim, neighbours
from app.cli.logs import configure_logs
from app.settings.settings import Settings
from app.settings.toml_and_environment import with_placeholders
from benchmarks.measuring.circumstances import circumstances

SIZES = (RUNS_QUICK, 960, 2400, RUNS_LONG)
EPSILONS = (Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(2))


def main() -> None:
    """Print milliseconds a release of each pair of neighbours, and what some sizes show."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=48, help="releases of each pair")
    runs = parser.parse_args().runs
    configure_logs(level=logging.ERROR)
    print(circumstances())
    settings = Settings.read(
        with_placeholders({"data": {"classes": ["a", "b"]}, "ledger": {"url": "sqlite:///no.db"}})
    )
    pairs = neighbours(settings)
    for pair in pairs:
        audit_releases(settings, runs=4, processes=1, pairs=[pair])  # what is made once a process
        started, spent = time.perf_counter(), time.process_time()
        audit_releases(settings, runs=runs, processes=1, pairs=[pair])
        seconds, processor = time.perf_counter() - started, time.process_time() - spent
        print(
            f"{pair.name}: {pair.votes} rows, {pair.questions} questions and a restart:"
            f" {1000 * processor / runs:.0f} ms of a processor, {1000 * seconds / runs:.0f} ms"
        )
    _print_sizes(audited_claim(settings), len(pairs))


def _print_sizes(claim: Claim, pair_count: int) -> None:
    """Print what releases can show at the most, and from which epsilon on, for some claims."""
    print(f"delta {float(claim.delta):g}, {pair_count} pairs")
    for size in SIZES:
        limits = []
        for epsilon in EPSILONS:
            promised = Claim(epsilon, claim.delta)
            trials = plan_runs(promised, runs=size, pair_count=pair_count).trials
            limits.append(f"{float(epsilon):g} from {trials.detection_limit:.3g}")
        print(
            f"{size} releases, {trials.runs} a pair and side: at most {trials.largest_shown:.2f};"
            f" a claim of {', '.join(limits)}"
        )


if __name__ == "__main__":
    main()
