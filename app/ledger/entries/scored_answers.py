"""The check of a ledger entry of answers with scores: bins, labels, and used units of the cutoff.

A stability test decides, with noise, whether enough of the models' scores lie in one bin of a
histogram. A query has up to two tests: one of the plain histogram and, if it fails, one of a
histogram whose bins are shifted by half a bin. The models stop after a number of failed tests, the
cutoff. Each failed test uses one unit of it; if the first test uses the last unit, there is no
second. So the number of units that an answer used follows from the answer, and is checked here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.privacy.soft_labels.mechanism import ScoreBin

if TYPE_CHECKING:
    from app.ledger.entries.entry_kinds import ScoresReleased

OUTPUT: Final = "answers.output"
SCORE: Final = '"score"'
"""The parameter of ``ReleaseOpened`` that says that answers have scores, and its text."""


def illegal_scores(event: ScoresReleased, units_before: int, cutoff: int | None) -> str:
    """Return a text on the fault in a range of answers with scores; empty if there is none.

    Args:
        event: the event; its lists of labels, stable flags and hashed vectors are equally long.
        units_before: the number of units that the earlier answers used.
        cutoff: the number of units after which the models stop; every release with scores has one.

    """
    count = len(event.stable)
    lists = (event.precisions, event.bins, event.shifted, event.units)
    if any(len(each) != count for each in lists):
        return "does not give every answer a precision, a bin or none, and its units"
    if cutoff is None:
        return "has scores where no count of units ends the run"
    if not _have_units_of_tests(event, units_before, cutoff):
        return "has an answer that used other units than its tests do"
    if not all(_is_label_of_bin(event, place) for place in range(count)):
        return "has an answer with another bin or label than its stable flag allows"
    return ""


def _have_units_of_tests(event: ScoresReleased, units: int, cutoff: int) -> bool:
    """Whether each answer used the units that its tests must have used, up to the last one."""
    for stable, shifted, used in zip(event.stable, event.shifted, event.units, strict=True):
        # An unstable answer failed both tests, or the one that used the last unit.
        expected = int(shifted) if stable else min(2, cutoff - units)
        if units >= cutoff or used != expected:
            return False
        units += used
        if stable and units >= cutoff:
            return False
    return True


def _is_label_of_bin(event: ScoresReleased, place: int) -> bool:
    """Whether an answer has a bin of its histogram, with its label, if and only if stable."""
    index, shifted = event.bins[place], event.shifted[place]
    if not event.stable[place]:
        return index is None and not shifted
    last = event.precisions[place] - (not shifted)
    if index is None or index > last:
        return False
    return event.labels[place] == ScoreBin(event.precisions[place], index, shifted=shifted).label
