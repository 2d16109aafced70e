"""The section of docs/utility.md on online answers, and its plot, from the kept results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.measuring.circumstances import ROOT
from benchmarks.utility.online_settings import PUBLIC_ROWS, TARGETS
from benchmarks.utility.results import measured_on

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from benchmarks.utility.online_settings import Target
    from benchmarks.utility.results import Json

PLOT: Final = ROOT / "docs" / "utility-online.svg"
LARGEST_SHOWN: Final = 1e12
# Name in the table, methods of the settings, mechanisms.
SERIES: Final = {
    "cells, profile": (("cells",), ("profile",)),
    "cells, sparse vector": (("cells",), ("svt",)),
    "cells, noisy vote": (("cells",), ("noisy vote",)),
    "trees, profile": (("trees",), ("profile",)),
    "trees, sparse vector": (("trees",), ("svt",)),
    "trees, noisy vote": (("trees",), ("noisy vote",)),
    "no relabelling": (
        ("cells unrelabelled", "trees unrelabelled"),
        ("profile", "svt"),
    ),
}
OURS: Final = ("cells",)
MARKERS: Final = "o^sovs*"
COLOURS: Final = ("#2b6cb0", "#2f855a", "#805ad5", "#c05621", "#d69e2e", "#718096", "#000000")

INTRODUCTION: Final = """\
In all methods rows are relabelled at a tenth of epsilon and answers spend nine tenths, at delta
1e-6, with one record replaced. Every distinct test vector is asked once, in a random order. The
column *answers* counts the stable answers before the T-th unstable answer, which is not counted.
The column *E* is `T (1 - u) / u`, with u the mean probability over distinct vectors that an
answer is unstable: the number of stable answers if vectors never ran out. The column *accuracy*
is over all test rows whose vector got a stable answer, each with its own label. The figures are
means over 20 orders of each of 3 releases, drawn as the app draws them, from seeds; ± is the
standard deviation over these passes. At every cutoff the app's own step is also run over a pass,
and has to decide every query as the simulation by arrays does.

The method *cells* is the class of [hypotheses.md](hypotheses.md#cells) with one row a learner
(`answers.ensemble` = n): a learner votes for the label of its own relabelled row in the row's
cell, and elsewhere for one label or another by its number, so that such votes cancel. A vote
uses the relabelled row alone, and not the labelling itself. The method *profile* is the
calibration of Theorem A, and *sparse vector* is calibration `svt`, the papers' mechanism with
constants that hold. The *trees* are those of the examples, canonical and halving, with the k
shown; with *few tests* they may use three tests. The column *no relabelling* has the best of both
without relabelling.
"""

PUBLIC: Final = f"""\
**What was chosen, and from what.** Cells come from {PUBLIC_ROWS["adult"]} test rows of Adult and
{PUBLIC_ROWS["skin"]} of Skin, without their labels, as public points. On Adult the cells follow
tests in an order written down from general knowledge about incomes; three orders were tried on
these data before this one was kept. On Skin the cells are divided at medians of the number that
spreads widest; equal cuts, the numbers in turn, and 1,000 and 5,000 public rows were tried as
well. The size of cells, like k, depth and tests of the trees, was tried in the steps of
`benchmarks/utility/online_settings.py`, and T at 1, 2, 5 and 20, for every method alike; the
tables take each method's best setting whose measured accuracy is at least the required one. So
the figures are too favourable, as those of the examples are, because of choices made on these
very data with their labels, which must never be done with private rows. A setting with few
answers is measured on few rows, and may look accurate by chance.
"""

CONSTANTS: Final = """\
**Which constants.** The table has the distance to instability, in votes, at which one answer in
10,000 is unstable, with 0.9 of epsilon 1 for answers. If one or two unstable answers are allowed,
the sparse vector needs fewer votes, and with five or more the profile does. The order and the
split of delta with which the profile is built are near the best that Theorem A allows:
"""
READING: Final = """\
**Why one row a learner.** Relabelled rows of one cell agree, so learners of one row in a cell of
r rows give their label a lead of about r votes, and the votes of the others cancel; larger chunks
only make fewer learners of the same rows. A cell needs twice as many rows as the distance at
which unstable answers are rare: at epsilon 1 and T = 5 some 490 rows for one unstable answer in
10,000. The votes of all k trees may agree, but only if a chunk is enough to determine the
labelling; a leaf with one or two rows a chunk splits the votes. So trees are as good as cells
where few leaves are so small, and much worse otherwise. Cells without relabelling give as many
answers if nearly all rows of each cell have one label.

**Publishing is nevertheless better.** The labelling that relabels cells is itself a classifier,
as accurate as these answers except for the unstable ones, for the tenth of epsilon that it costs.
Part A of this page spends all of epsilon on a better classifier.
"""


@dataclass(frozen=True, slots=True)
class Found:
    """A setting under a mechanism."""

    setting: Mapping[str, Any]
    cell: Mapping[str, Any]

    @property
    def answers(self) -> float:
        """Mean number of answers of a pass."""
        return float(self.cell["answered"])

    @property
    def expected(self) -> float:
        """E, no more than is shown."""
        return min(LARGEST_SHOWN, float(self.cell["expected"]))


def section(document: Mapping[str, Json]) -> str:
    """Return the Markdown of part B."""
    parts = [
        INTRODUCTION,
        _goals(document),
        PUBLIC,
        _methods(document),
        "![Answers before the cutoff by method](utility-online.svg)\n",
        READING,
        _constants(document),
        _served(document),
        _papers(document),
        measured_on(document),
    ]
    return "\n".join(parts)


def draw_plot(document: Mapping[str, Json]) -> None:
    """Draw answers of a pass and E of every method at every target, as SVG."""
    from matplotlib.figure import Figure  # noqa: PLC0415 -- slow to import, and wanted last

    figure = Figure(figsize=(11, 7), layout="constrained")
    passes, expected = figure.subplots(1, 2, sharey=True)
    for number, (name, series) in enumerate(SERIES.items()):
        best = [best_of(document, target, *series) for target in TARGETS]
        rows = [row + (number - 3) * 0.11 for row, each in enumerate(best) if each is not None]
        found = [each for each in best if each is not None]
        style = {"marker": MARKERS[number], "color": COLOURS[number], "label": name}
        answers = [each.answers for each in found]
        # A bar on a logarithmic axis ends above nothing.
        bars = [min(0.9 * each.answers, each.cell["answered_deviation"]) for each in found]
        passes.errorbar(answers, rows, xerr=bars, linestyle="", capsize=2, **style)
        expected.plot([each.expected for each in found], rows, linestyle="", **style)
    for axes, place in ((passes, 0), (expected, 1)):
        _draw_wanted(axes, place)
    passes.set_yticks(range(len(TARGETS)), [_row_name(document, target) for target in TARGETS])
    passes.invert_yaxis()
    passes.set_xlabel("answers of a pass, one standard deviation; lines: most that is asked")
    expected.set_xlabel("E (m of a noisy vote); lines: most that is asked")
    handles, labels = expected.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=8)
    # Without a date and with fixed names, the same figures give the same file.
    figure.savefig(PLOT, format="svg", metadata={"Date": None})


def _draw_wanted(axes: Axes, place: int) -> None:
    """Draw a line at the most that each target asks of answers, place 0, or of E, place 1."""
    axes.set_xscale("log")
    axes.tick_params(labelsize=8)
    for row, target in enumerate(TARGETS):
        wanted = max(target.must[place] or 0, target.goal[place] or 0)
        if wanted:
            axes.plot([wanted, wanted], [row - 0.42, row + 0.42], color="black", linewidth=1)


def _row_name(document: Mapping[str, Json], target: Target) -> str:
    """Return a target's name, and the rows that the papers' constants would need for it."""
    (needed,) = [
        each["rows"]
        for each in _records(document["papers"])
        if (each["data"], each["epsilon"]) == (target.data, target.epsilon)
    ]
    return f"{_target(target)}, epsilon {target.epsilon}\npapers: n = {needed:.1e}"


def _goals(document: Mapping[str, Json]) -> str:
    """Return the table of targets: what was asked, and what the cells reach."""
    heading = (
        "| data, accuracy at least | epsilon | no relabelling: before, here | must show | goal | "
        "reached: answers | E | accuracy | by | verdict |"
    )
    lines = [
        heading,
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for target in TARGETS:
        best = best_of(document, target, OURS, ("profile", "svt"), cutoff=target.goal_cutoff)
        without = best_of(document, target, *SERIES["no relabelling"])
        before = "-" if target.without is None else f"{target.without:,}"
        here = "-" if without is None else f"{without.answers:,.0f}"
        reached = "- | - | - | -" if best is None else _reached(best)
        lines.append(
            f"| {_target(target)} | {target.epsilon} | {before}, {here} | {_wanted(target.must)} "
            f"| {_wanted(target.goal, target.goal_cutoff)} | {reached} | {_verdict(target, best)} |"
        )
    return "\n".join(lines) + "\n"


def _reached(best: Found) -> str:
    cell = best.cell
    return (
        f"{best.answers:,.0f} ± {cell['answered_deviation']:,.0f} | {_large(best.expected)} | "
        f"{cell['accuracy']:.4f} ± {cell['accuracy_deviation']:.4f} | {_by(best)}"
    )


def _by(found: Found) -> str:
    name = str(found.setting["setting"])
    if name.startswith("cells"):
        name += f" ({found.setting['cell_count']})"
    return f"{name}; {found.cell['mechanism']}, T = {found.cell['cutoff']}"


def _verdict(target: Target, best: Found | None) -> str:
    if not any((*target.must, *target.goal)):
        return ""
    if best is None:
        return "missed"
    for name, (answers, expected) in (("goal", target.goal), ("must", target.must)):
        # What is asked of passes may be all that there is, less chance hits of a few.
        enough = answers is None or best.answers >= answers
        if (answers or expected) and enough and best.expected >= (expected or 0):
            return name
    return "missed" if any(target.must) else "below the goal"


def _methods(document: Mapping[str, Json]) -> str:
    """Return the table of all methods, answers of a pass and E at every target."""
    lines = [
        (
            "The table has the answers of a pass, and E, of each method's best setting at the "
            "required accuracy:\n"
        ),
        f"| data, accuracy, epsilon | {' | '.join(SERIES)} |",
        f"| --- |{' --- |' * len(SERIES)}",
    ]
    for target in TARGETS:
        found = [best_of(document, target, *series) for series in SERIES.values()]
        cells = [
            "-" if each is None else f"{each.answers:,.0f}, {_large(each.expected)}"
            for each in found
        ]
        lines.append(f"| {_target(target)}, {target.epsilon} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _constants(document: Mapping[str, Json]) -> str:
    """Return the table of distances by cutoff and calibration."""
    heading = CONSTANTS
    lines = [
        heading,
        "| T | profile | at the best order | at the best split of delta | sparse vector |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {each['cutoff']} | {each['profile']} | {each['best_order']} | {each['best_split']} "
        f"| {each['svt']} |"
        for each in _records(document["constants"])
    ]
    return "\n".join(lines) + "\n"


def _served(document: Mapping[str, Json]) -> str:
    """Return what whole releases of the app gave."""
    each_said = [
        f"{each['data'].capitalize()}, {each['setting']}, {each['mechanism']} at T = "
        f"{each['cutoff']}: {each['stable']:,} stable answers, {each['unstable']} unstable, "
        f"{each['accuracy']:.4f} right"
        for each in _records(document["served"])
    ]
    return (
        f"**Through the whole app**, one release each at epsilon 1 gave: {'; '.join(each_said)}.\n"
    )


def _papers(document: Mapping[str, Json]) -> str:
    """Return what the printed constants would need."""
    heading = (
        "**The papers' own constants** (NB Algorithm 3, alpha .1, beta .05, one query a distinct "
        "vector) give no answer on these data. These constants would need:\n"
    )
    lines = [
        heading,
        "| data | epsilon | T | k | rows |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {each['data'].capitalize()} | {each['epsilon']} | {_large(each['cutoff'])} "
        f"| {_large(each['ensemble'])} | {_large(each['rows'])} |"
        for each in _records(document["papers"])
    ]
    return "\n".join(lines) + "\n"


def best_of(
    document: Mapping[str, Json],
    target: Target,
    methods: Sequence[str],
    mechanisms: Sequence[str],
    *,
    cutoff: int | None = None,
) -> Found | None:
    """Return what answers most, then has the largest E, among what is accurate enough."""
    found = [
        Found(setting, cell)
        for setting in _records(document["settings"])
        if setting["data"] == target.data and setting["epsilon"] == target.epsilon
        if setting["method"] in methods
        for cell in setting["cells"]
        if cell["mechanism"] in mechanisms and cutoff in (None, cell["cutoff"])
        if cell["accuracy"] >= target.accuracy
    ]
    return max(found, key=lambda each: (round(each.answers), each.expected), default=None)


def _records(listed: Json) -> list[Mapping[str, Any]]:
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _target(target: Target) -> str:
    return f"{target.data.capitalize()} {target.accuracy:g}".replace("0.", ".")


def _wanted(wanted: tuple[float | None, float | None], cutoff: int | None = None) -> str:
    answers, expected = wanted
    parts = [f"{answers:,.0f} answers"] if answers else []
    if expected:
        parts.append(f"E {_large(expected)}" + (f" at T = {cutoff}" if cutoff else ""))
    return ", ".join(parts) or "-"


def _large(number: float) -> str:
    if number >= LARGEST_SHOWN:
        return "above 10^12"
    return (
        f"{number:,.0f}" if number < 1e5 else f"{number:.1e}".replace("e+0", "e").replace("e+", "e")
    )
