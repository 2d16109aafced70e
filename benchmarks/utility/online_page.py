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
This part counts the answers that an ensemble of models gives before it ends. In all releases of
this part relabelling (which gives every row the label of one privately drawn rule) spends a tenth
of epsilon and answers spend nine tenths, with delta 1e-6. Every distinct feature vector of the test
rows is sent as a query once, in a random order: 15,032 vectors of Adult, and 11,247 of Skin. The
column *answers* has the number of stable answers before the T-th unstable answer ends the ensemble.
The column *E* has the expected number of stable answers if there were no end of new vectors:
`T (1 - u) / u`, where u is the mean probability that an answer is unstable. The column *accuracy*
is over all test rows whose vector got a stable answer. Every figure is a mean over 20 orders of the
queries in each of 3 releases with fixed seeds, and the number after ± is the standard deviation
over these 60 runs. The figures are from a simulation that decides many queries at once; for every T
the queries in one order are also decided by Conclave's own code, with the same result.

The learners (models) are of two kinds. *Cells* are the class `cells` of
[hypotheses.md](hypotheses.md#cells), which divides all vectors into public cells, with one model
for each private row; *cells of 0.02 (35)* are 35 cells, each with at least 0.02 of the public
points.
*Trees* are the hypothesis classes of the example configurations, with the training rules
`canonical` and `halving` and the shown number k of learners; with *few tests* they may use three
tests. The noise is that of three mechanisms: *profile* is calibration `profile`, *sparse vector* is
calibration `svt` (the mechanism of the papers, with constants for which the privacy promise is
proved), and *noisy vote* is the mechanism `noisy-vote`.

The next table shows, for each required accuracy, the setting of *cells* with the most answers, in
the columns from *reached* on. The column *no relabelling* has the largest number of answers without
relabelling, as it was when the targets were set (*before*) and as this benchmark measured it
(*now*). The columns *must show* and *goal* are the targets of this benchmark, and *verdict* says
which of these two targets was reached.
"""

PUBLIC: Final = f"""\
**The settings were chosen by the labels of test rows.** The cells were made from
{PUBLIC_ROWS["adult"]} test rows of Adult and {PUBLIC_ROWS["skin"]} of Skin, without their labels,
as public points. On Adult the cells follow tests of features in an order that was written down from
general knowledge about incomes; three orders were tried before this one was kept. On Skin each cell
is divided at the median of the numeric feature that varies most. Several sizes of cells, several
numbers of learners, depths and sets of tests for trees (`benchmarks/utility/online_settings.py`),
and limits of T = 1, 2, 5 and 20 unstable answers were tried for every method. The tables show each
method's best setting whose measured accuracy is at least the required accuracy. So these figures
are too favourable: the settings were chosen by the labels of the test rows, which must never be
done with private rows. A setting with few answers is measured on few rows, and may look accurate by
chance.
"""

CONSTANTS: Final = """\
**The limit T of unstable answers decides which mechanism needs fewer votes.** The distance of a
query is the number of votes that may change without a change of the label with the most votes. The
table has the distance at which one answer in 10,000 is unstable, if answers have 0.9 of epsilon 1.
If a release ends at one or two unstable answers (T), the sparse vector mechanism needs a smaller
distance, and if T is five or more, calibration `profile` does. The noise of `profile` depends on a
Renyi order and on a division of delta into two parts, which Conclave chooses by a rule; the third
and the fourth column show that the best order and the best division would be hardly better for T of
five or more:
"""
READING: Final = """\
**With cells, one row for each learner is best.** After relabelling, all rows of a cell have the
same label. If each learner has one row, a cell with r rows has r learners that vote for this label,
and the votes of all other learners cancel. So the label leads by about r votes; with larger chunks
there are fewer learners, and the lead is smaller. For a stable answer a cell needs about twice as
many rows as the required distance: at epsilon 1 and T = 5 some 490 rows, so that one answer in
10,000 is unstable. The votes of trees agree only if each chunk has enough rows to learn the whole
rule that relabelled the rows. If only one or two rows of a chunk reach some leaf of this rule, the
votes on queries in this leaf are split. So trees give as many answers as cells if few queries are
in small leaves, and far fewer answers otherwise.

**Publishing a classifier is better than online answers.** The rule that relabels the rows is itself
a classifier, as accurate as the answers of the ensemble, and costs a tenth of epsilon. The
classifiers of part A of this page spend all of epsilon and are more accurate.
"""

DECIDED: Final = """\
**Cells decided once.** New releases with the class `cells` decide each cell once, and repeat the
answer for every vector in the cell ([hypotheses.md](hypotheses.md#a-cell-is-decided-once)). One
record affects the decisions of at most two cells, so the noise only has to hide two decisions,
whatever the number of answers. So there is no limit T of unstable answers, and the expected number
E of stable answers is without bound. (The tables above are for releases that end at T unstable
answers.) In the next table every distinct vector is asked once, at epsilon 1. The column *relabel*
has the part of epsilon that relabelling gets. The column *unstable* has the mean probability that a
vector's cell gets no label; for the noisy vote it is the mean probability that the noise gives the
cell another label than the one with the most votes. For each data set and required accuracy the
table shows the division into cells that answers the most vectors with at least this accuracy. Finer
divisions than in the tables above were tried. On Adult another order of the feature tests that make
the cells was tried too; it was chosen among five orders by accuracy on these data. Relabelling with
0.3 of epsilon was also tried, because answers need less epsilon if the noise has to hide two
decisions only:
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
        "| data, required accuracy | epsilon | no relabelling: before, now | must show | goal | "
        "reached: answers | E | accuracy | setting | verdict |"
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
            "stable answers when every vector is asked once, and E, the expected number if there "
            "were no end of new vectors:\n"
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
        "**Whole releases**, run by the server and not simulated, were measured at epsilon 1, "
        "one for each of the following settings (cells that each have at least the given fraction "
        "of the public points, the calibration, and the limit T of unstable answers): "
        f"{'; '.join(each_said)}.\n"
    )


def _papers(document: Mapping[str, Json]) -> str:
    """Return what the printed constants would need."""
    heading = (
        "**The papers' own constants** ([Algorithm 3 of Nandi and Bassily](algorithms.md), with an "
        "error alpha of .1, a failure probability beta of .05, and one query for each distinct "
        "vector) give no answer on these data. With these constants the following numbers of rows "
        "would be needed, with a limit of T unstable answers and k learners:\n"
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
        (
            "| data, required accuracy | mechanism | reached | cells | relabel | answered "
            "| unstable | accuracy | E |"
        ),
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
