"""The plot of all ratios: how far each is from what is wanted, on one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.measuring.findings import Finding

REACHED_COLOUR: Final = "#2b6cb0"
MISSED_COLOUR: Final = "#c05621"
ROW_INCHES: Final = 0.42
LEAST_SHOWN: Final = 1e-6


def plot(findings: Sequence[Finding], path: Path) -> None:
    """Draw how many times as good as wanted each finding is, as SVG.

    Args:
        findings: those without a bound are left out.
        path: where the drawing goes.

    """
    from matplotlib.figure import Figure  # noqa: PLC0415 -- slow to import, and wanted last

    judged = [each for each in findings if each.wanted][::-1]
    figure = Figure(figsize=(9, 1.2 + ROW_INCHES * len(judged)), layout="constrained")
    axes = figure.add_subplot()
    colours = [REACHED_COLOUR if each.is_reached else MISSED_COLOUR for each in judged]
    axes.barh(range(len(judged)), [_goodness(each) for each in judged], color=colours)
    axes.set_yticks(range(len(judged)), [each.question for each in judged], fontsize=8)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("times as good as wanted; the line is what is wanted")
    axes.margins(y=0.02)
    # Without a date and with fixed names, the same figures give the same file.
    figure.savefig(path, format="svg", metadata={"Date": None})


def _goodness(finding: Finding) -> float:
    if finding.at_least is not None:
        return max(finding.ratio / finding.at_least, LEAST_SHOWN)
    return (finding.at_most or LEAST_SHOWN) / max(finding.ratio, LEAST_SHOWN)
