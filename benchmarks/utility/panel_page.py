"""The section of docs/panel.md, and its picture, from what the panel kept."""

from __future__ import annotations

import math
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any, Final

from benchmarks.measuring.circumstances import ROOT
from benchmarks.utility.results import measured_on

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.utility.results import Json

PLOT: Final = ROOT / "docs" / "panel.svg"
EPSILONS: Final = (0.1, 0.5, 1.0, 2.0)
NAMES: Final = {
    "descent": "noisy descent",
    "forest": "forest, public splits",
    "LogisticRegression": "diffprivlib, logistic",
    "GaussianNB": "diffprivlib, naive Bayes",
    "RandomForest": "diffprivlib, forest",
    "DP-EBM": "DP-EBM",
    "guessing": "guessing",
}
NAMED: Final = {"accuracy": "accuracy", "AUC": "the area under the curve (AUC)"}
MEASURES: Final = {"accuracies": ("auto", "accuracy"), "areas": ("auto for ranking", "AUC")}
QUICK: Final = """\
**This was a quick run**: at most 5,000 rows of each table, two runs for each entry, and three
settings for each rival. A quick run shows that the benchmark works, and where `auto` is far behind.
A quick run does not compare the methods fairly: with two runs the measured differences are mostly
chance, and rivals had few settings to choose from.
"""


def section(document: Mapping[str, Json]) -> str:
    """Return the section as Markdown."""
    cells: Any = document["cells"]
    parts = [measured_on(document), ""]
    if document["quick"]:
        parts.append(QUICK)
    if document["quick"] or not _is_whole(cells):
        parts += [
            f"The number of tables on which each method was measured: {_measured(cells)}.",
            "",
        ]
    for measure, (ours, word) in MEASURES.items():
        parts += [_standing(cells, measure, ours, word), "", _table(cells, measure, ours, word), ""]
    aside = document["aside"]
    named = ", ".join(str(each) for each in aside) if isinstance(aside, list) else ""
    parts += [
        (
            "Conclave was not tuned on four tables, which were first read when the program that"
            f" measures accuracy was already committed: {named}."
        ),
        "",
    ]
    return "\n".join(parts)


def _is_whole(cells: Mapping[str, Any]) -> bool:
    """Return whether every rival was measured, or tried, on every set at every epsilon."""
    return all(
        f"{name}/{method}/{epsilon:g}" in cells
        for name in sets_of(cells)
        for method in NAMES
        for epsilon in (EPSILONS[:1] if method == "guessing" else EPSILONS)
    )


def _measured(cells: Mapping[str, Any]) -> str:
    """Say on how many sets each method was measured."""
    found: dict[str, set[str]] = {}
    for cell, reached in cells.items():
        name, method, _ = cell.split("/")
        if reached is not None:
            found.setdefault(method, set()).add(name)
    return ", ".join(f"{NAMES.get(each, each)} {len(names)}" for each, names in found.items())


def sets_of(cells: Mapping[str, Any]) -> list[str]:
    """Return the names of the sets that were measured, in order."""
    return list(dict.fromkeys(cell.split("/")[0] for cell in cells))


def standing(
    cells: Mapping[str, Any], name: str, epsilon: float, measure: str, ours: str
) -> tuple[float, float, str] | None:
    """Return by how much ours is ahead of the best rival, the error of that, and the rival.

    Args:
        cells: what was kept.
        name: of the set.
        epsilon: of the cell.
        measure: ``accuracies`` or ``areas``.
        ours: the method that stands for this project.

    """
    found = {}
    for method in (ours, *NAMES):
        key = f"{name}/{method}/{EPSILONS[0] if method == 'guessing' else epsilon:g}"
        runs = (cells.get(key) or {}).get(measure)
        if runs:
            found[method] = runs
    if ours not in found or len(found) == 1:
        return None
    best = max((each for each in found if each != ours), key=lambda each: mean(found[each]))
    error = math.sqrt(_squared_error(found[ours]) + _squared_error(found[best]))
    return mean(found[ours]) - mean(found[best]), error, best


def _squared_error(runs: Sequence[float]) -> float:
    return stdev(runs) ** 2 / len(runs) if len(runs) > 1 else 0.0


def _standing(cells: Mapping[str, Any], measure: str, ours: str, word: str) -> str:
    """Say on how many sets ours is first, or level, at each epsilon."""
    parts = []
    for epsilon in EPSILONS:
        found = [standing(cells, name, epsilon, measure, ours) for name in sets_of(cells)]
        known = [each for each in found if each is not None]
        reached = sum(lead >= -2 * error for lead, error, _ in known)
        parts.append(f"{reached} of {len(known)} tables at epsilon {epsilon:g}")
    return (
        f"By {NAMED[word]}, `auto` is the best method, or within two standard errors of the best, "
        f"on {', '.join(parts)}."
    )


def _table(cells: Mapping[str, Any], measure: str, ours: str, word: str) -> str:
    """List what ours reached beside the best rival, and the reference without privacy."""
    head = " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS)
    lines = [f"| {word} | learner chosen | {head} | no privacy |", "| --- |" + " --- |" * 6]
    for name in sets_of(cells):
        taken = [
            (cells.get(f"{name}/{ours}/{epsilon:g}") or {}).get("setting", {}).get("learner", "-")
            for epsilon in EPSILONS
        ]
        texts = [_cell(cells, name, epsilon, measure, ours) for epsilon in EPSILONS]
        if set(texts) == {"-"}:
            continue
        most = (cells.get(f"{name}/boosting/{EPSILONS[0]:g}") or {}).get(measure)
        bound = _short(mean(most)) if most else "-"
        learners = ", ".join(dict.fromkeys(taken))
        lines.append(f"| {name} | {learners} | {' | '.join(texts)} | {bound} |")
    return "\n".join(lines)


def _cell(cells: Mapping[str, Any], name: str, epsilon: float, measure: str, ours: str) -> str:
    """Write what ours reached, its lead or lag in thousandths, and the rival that is best."""
    found = standing(cells, name, epsilon, measure, ours)
    if found is None:
        return "-"
    lead, error, rival = found
    reached = mean(cells[f"{name}/{ours}/{epsilon:g}"][measure])
    mark = "**" if lead < -2 * error else ""
    return f"{_short(reached)}, {mark}{1000 * lead:+.0f} ± {1000 * error:.0f}{mark} {NAMES[rival]}"


def _short(share: float) -> str:
    return f"{share:.3f}".removeprefix("0")


def draw_plot(document: Mapping[str, Json]) -> None:
    """Draw the lead over the best rival, a row a set and a column an epsilon."""
    import matplotlib as mpl  # noqa: PLC0415 -- slow to import, and wanted last
    from matplotlib.figure import Figure  # noqa: PLC0415 -- as above

    cells: Any = document["cells"]
    names = sets_of(cells)
    figure = Figure(figsize=(10, 0.32 * len(names) + 1.4), layout="constrained")
    for place, epsilon in enumerate(EPSILONS):
        axes = figure.add_subplot(1, len(EPSILONS), place + 1)
        for (measure, (ours, word)), colour, shift in zip(
            MEASURES.items(), ("#2b6cb0", "#c05621"), (0.12, -0.12), strict=True
        ):
            for height, name in enumerate(reversed(names)):
                found = standing(cells, name, epsilon, measure, ours)
                if found is not None:
                    axes.errorbar(
                        found[0],
                        height + shift,
                        xerr=2 * found[1],
                        fmt="o",
                        markersize=3.5,
                        color=colour,
                        label=word if height == 0 else None,
                    )
        axes.axvline(0, color="#4a5568", linewidth=0.8)
        axes.set_yticks(range(len(names)), reversed(names) if not place else [""] * len(names))
        axes.set_xscale("symlog", linthresh=0.01)
        axes.set_title(f"epsilon {epsilon:g}", fontsize=9)
        axes.tick_params(labelsize=7)
    figure.axes[0].legend(fontsize=7, loc="lower left")
    figure.supxlabel("lead of auto over the best private rival, two standard errors", fontsize=8)
    with mpl.rc_context({"svg.hashsalt": "panel"}):
        figure.savefig(PLOT, format="svg", metadata={"Date": None})
