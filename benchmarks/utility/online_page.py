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
In all methods relabelling (which gives every row the label of one privately drawn rule) spends a
tenth of epsilon and answers spend nine tenths, at delta 1e-6, with privacy for the replacement of
one record. Every distinct test vector is sent as a query once, in a random order. The column
*answers* counts the stable answers until the T-th unstable answer ends the ensemble. The column *E*
is the expected number of stable answers if new vectors never ran out: `T (1 - u) / u`, with u the
mean probability over distinct vectors that an answer is unstable. The column *accuracy* is over all
test rows whose vector got a stable answer; each row is compared with its own label. Every figure is
a mean over 20 orders of the queries in each of 3 releases, which are drawn as Conclave draws them,
but from fixed seeds; the number after ± is the standard deviation over these passes. The figures
come from a simulation, which decides many queries at once. At every limit T one order of the
queries is also run by Conclave's own code, which must decide every query as the simulation does.

The method *cells* is the class of [hypotheses.md](hypotheses.md#cells), which divides all vectors
into public cells, with one row for each learner (`answers.ensemble` = n). In the cell of its own
row a learner votes for the row's label after relabelling. In every other cell the learner votes for
a label that depends only on the learner's number, so that such votes cancel. A vote depends on the
relabelled row alone, and not on the rule that relabelled it. The method *profile* is calibration
`profile`. The method *sparse vector* is calibration `svt`: the mechanism of the papers, with
constants that are proved to hold. The *trees* are those of the examples, by the rules `canonical`
and `halving`, with the number k of learners that is shown; with *few tests* they may use three
tests. The column *no relabelling* has the best of cells and trees without relabelling.
"""

PUBLIC: Final = f"""\
**Which settings were chosen, and from which data.** The cells were made from
{PUBLIC_ROWS["adult"]} test rows of Adult and {PUBLIC_ROWS["skin"]} of Skin, without their labels,
as public points. On Adult
the cells follow tests in an order written down from general knowledge about incomes; three orders
were tried on these data before this one was kept. On Skin each cell is divided at the median of the
number that spreads widest. Equal cuts, division by each number in turn, and 1,000 and 5,000 public
rows were tried as well. For every method alike, the size of cells, and the k, depth and tests of
trees, were tried in the steps of `benchmarks/utility/online_settings.py`, and T at 1, 2, 5 and 20.
The tables show each method's best setting whose measured accuracy is at least the required one. So
these figures, and those of the examples, are too favourable: the settings were chosen on these very
data with their labels, which must never be done with private rows. A setting with few answers is
measured on few rows, and may look accurate by chance.
"""

CONSTANTS: Final = """\
**Which constants.** The distance of a query is the number of votes that may change without a change
of its label. The table has the distance at which one answer in 10,000 is unstable, if answers have
0.9 of epsilon 1. If one or two unstable answers are allowed (T), the sparse vector mechanism needs
fewer votes; if five or more are allowed, `profile` does. A table of `profile` is built with a Renyi
order and a division of delta. The Renyi order and the division of delta are near the best that the
proof allows:
"""
READING: Final = """\
**Why one row per learner is best.** After relabelling, all rows of a cell have the same label. If
each learner has one row, the r learners with a row in the cell give their label a lead of about r
votes, and the votes of all others cancel. Larger chunks only mean fewer learners on the same rows.
For a stable answer a cell needs about twice as many rows as the required distance (the votes that
may change without a change of the label): at epsilon 1 and T = 5 some 490 rows, so that one answer
in 10,000 is unstable. The votes of all k trees may agree too, but only if each chunk has enough
rows to show the whole rule by which rows were relabelled. If a leaf of the relabelling rule has
only one or two rows in a chunk, the votes are split. So trees give as many answers as cells if few
leaves are so small, and far fewer otherwise. Cells without relabelling give as many answers if
nearly all rows of each cell have one label.

**Publishing a classifier is nevertheless better.** The rule that relabels the rows is itself a
classifier, as accurate as these answers except for the unstable ones, and costs a tenth of epsilon.
The classifiers of part A of this page spend all of epsilon and are more accurate.
"""

DECIDED: Final = """\
**Cells that are each decided once** ([hypotheses.md](hypotheses.md#a-cell-is-decided-once)), as in
new releases of class cells, have no limit T on unstable answers. One record affects at most two
cells, so the answers' share of epsilon pays for two decisions, in one account with relabelling, and
a recorded decision is repeated without limit, so that E, the expected number of stable answers, is
without bound. The tables above are for releases that end at T unstable answers, as older releases
still do. In the next table every distinct vector is asked at epsilon 1; the column *relabel* is the
part of epsilon that relabelling gets. The column *unstable* is the mean probability that a vector's
cell gets no label; with the noisy vote it is the mean probability that noise gives the cell a label
with fewer votes than another label has. For each data set and accuracy the table has one partition
into cells: of the partitions that reach the accuracy, the one that answers most vectors (of several
such partitions the most accurate one), and if no partition reaches the accuracy, the most accurate
of all. Partitions finer than those above were tried as well, and on Adult a second order of tests,
chosen among five on these very data. A share of 0.3 of epsilon for relabelling was tried too,
because answers need less of epsilon if the noise has to hide two decisions only:
"""
DECIDED_TARGETS: Final = (("adult", 0.845), ("adult", 0.85), ("skin", 0.98), ("skin", 0.985))
DECIDED_BY: Final = ("profile", "noisy vote")


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
        f"{measured_on(document)}\n",
        _decided(document),
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
            "For each method's best setting at the required accuracy, the table has the number of "
            "answers when every vector is asked once, and E, the expected number if vectors never "
            "ran out:\n"
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
        f"{each['cutoff']} ({each['stable']:,} stable answers, {each['unstable']} unstable, "
        f"accuracy {each['accuracy']:.4f})"
        for each in _records(document["served"])
    ]
    return (
        "**By the whole server**, without simulation, one release for each of these settings at "
        "epsilon 1 gave: "
        f"{'; '.join(each_said)}.\n"
    )


def _papers(document: Mapping[str, Json]) -> str:
    """Return what the printed constants would need."""
    heading = (
        "**The papers' own constants** (NB Algorithm 3, alpha .1, beta .05, one query for each "
        "distinct vector) give no answer on these data. They would need these numbers of rows:\n"
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


def _decided(document: Mapping[str, Json]) -> str:
    """Return the table of cells that are each decided once, and where it was measured."""
    lines = [
        DECIDED,
        "| data, accuracy | by | reached | cells | relabel | answered | unstable | accuracy | E |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for data, accuracy in DECIDED_TARGETS:
        for mechanism in DECIDED_BY:
            known = [
                each
                for each in _records(document["decided"])
                if (each["data"], each["mechanism"]) == (data, mechanism)
            ]
            reached = [each for each in known if each["right"] >= accuracy]
            found = max(reached, key=lambda each: (each["answered"], each["right"]), default=None)
            shown = found or max(known, key=lambda each: float(each["right"]))
            lines.append(
                f"| {data.capitalize()} {accuracy:g} | {mechanism} "
                f"| {'no' if found is None else 'yes'} | {shown['cell_count']} "
                f"| {shown['relabel']} | {shown['answered']:,} of {shown['asked']:,} "
                f"| {shown['unstable']:.1g} | {shown['right']:.4f} | without bound |"
            )
    return "\n".join([*lines, "", f"Measured at {document['decided_on']}."])


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
