"""What plan recommends, followed, for docs/utility.md; and that publishing is better."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from benchmarks.utility.results import read

if TYPE_CHECKING:
    from benchmarks.utility.planning_counts import Record, Records

PUBLISH: Final = """\
### Publish at once, where you can

**With a finite public class, a classifier that is published at once (`conclave learn`,
`answers = 0`) is more accurate than online voting at the same epsilon, and never runs out.** Online
voting is for learners and classes whose models cannot be listed, for the time before public points
exist, and for owners who will not publish a model. The output of `conclave plan` also recommends
publishing, and names the learner to set in the section `[classifier]` of the configuration. The
table has the accuracy of classifiers that `conclave learn` published at once, over all test rows,
as the mean of 4 seeds, with all of epsilon, delta 1e-6 and the public points of part B of this
page. The last column has the highest accuracy of online voting among those settings of part B that
answer nine tenths of the distinct test vectors or more:
"""
FOLLOWED: Final = """\
### What plan recommends, followed

For each class of part B, `conclave plan` was given a configuration with the public points of part
B, shares of .1 and .9 for relabelling and answers, T = 20, and 800 learners for trees or one
learner for each row for cells. The column *recommended* has the mechanism, the limit T of unstable
answers, the number k of learners, and the share of epsilon for relabelling that the plan
recommended. The columns *predicted* (with the likelihood of the prediction), *measured* and *E*
have numbers of stable answers (E if there were no end of new vectors); the measured figures and the
accuracy are means over three releases with the recommended settings. The last two columns have the
best setting of part B that is as accurate as the recommended settings, to .001; this best setting
was chosen among some hundred settings by the labels of the test rows:
"""
HEADING: Final = (
    "| data, epsilon | class | recommended | predicted | measured | E | accuracy"
    " | best of B's grid | its answers, E |"
)
LARGE: Final = 1e12
# Distinct test vectors, and how many of them count as all.
VECTORS: Final = {"adult": 15_032, "skin": 11_247}
ALL: Final = 0.9


def followed_section(listed: Records) -> list[str]:
    """Return both tables."""
    published = [each for each in listed if each["class"] == "published"]
    answered = [each for each in listed if each["class"] != "published"]
    return [
        PUBLISH,
        "| data | epsilon | `[classifier] learner` | accuracy, published | accuracy, online |",
        "| --- | --- | --- | --- | --- |",
        *(_published(each) for each in published),
        "",
        FOLLOWED,
        HEADING,
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *(_followed(each) for each in answered),
        "",
    ]


def _published(each: Record) -> str:
    return (
        f"| {each['data'].capitalize()} | {each['epsilon']} | `{each['learner']}`"
        f" | {each['accuracy']:.4f} | {_online(each['data'], each['epsilon'])} |"
    )


def _online(data: str, epsilon: str) -> str:
    """Return the highest accuracy with which B's grid answers nearly everything, and what does."""
    kept: Any = read("online") or {"settings": []}
    found = [
        (cell["accuracy"], f"{setting['setting']}; {cell['mechanism']}, T = {cell['cutoff']}")
        for setting in kept["settings"]
        if (setting["data"], setting["epsilon"]) == (data, epsilon)
        for cell in setting["cells"]
        if cell["mechanism"] != "noisy vote" and cell["answered"] >= ALL * VECTORS[data]
    ]
    if not found:
        return "not in B"
    accuracy, said = max(found)
    return f"{accuracy:.4f} ({said})"


def _followed(each: Record) -> str:
    cutoff = "" if each["T"] is None else f", T = {each['T']}"
    best = each["best"]
    grid = (
        "not in B | -"
        if best is None
        else f"{best['by']}; {best['accuracy']:.4f} | {best['labels']:,.0f}, {_large(best['E'])}"
    )
    return (
        f"| {each['data'].capitalize()}, {each['epsilon']} | {each['class']}"
        f" | `{each['mechanism']}`{cutoff}, k = {each['k']:,}, relabel {each['relabel']:g}"
        f" | {each['predicted']:,.0f} ({each['likelihood']:.0%}) | {each['labels']:,.0f}"
        f" | {_large(each['E'])} | {each['accuracy']:.4f} | {grid} |"
    )


def _large(number: float) -> str:
    return "above 10^12" if number >= LARGE else f"{number:.2g}".replace("e+0", "e")
