"""The table of planted faults in docs/guarantee.md: ``python -m tests.audit.planted.fault_table``.

A cell is a mechanism, a cutoff and an epsilon.  What is printed for a fault is what the
exact part of the audit finds in its cells: the lower bound over the claim, and the
conditions that are broken, each by its letter.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from app.auditing.bounds_by_mechanism import broken_conditions, exact_bound
from app.auditing.laws import proof_conditions
from tests.audit.planted import planted_systems as planted
from tests.audit.planted.planted_systems import (
    NOISY_VOTE,
    ONE_THRESHOLD,
    PROFILE,
    REFRESHED,
    system,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from app.auditing.audited_mechanism import Audited

EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(2))
CUTOFFS = {
    ONE_THRESHOLD: (1, 2, 3),
    REFRESHED: (1, 2, 3),
    PROFILE: (1, 2, 3),
    NOISY_VOTE: (1, 10, 100),
}
HEADINGS = {
    ONE_THRESHOLD: "`svt` with one threshold",
    REFRESHED: "`svt`, refreshed at each hit",
    PROFILE: "`profile`",
    NOISY_VOTE: "`noisy-vote`",
}
LETTERS = {
    proof_conditions.FRESH: "a",
    proof_conditions.EVERY_BIT: "b",
    proof_conditions.LAST_HIT: "c",
    proof_conditions.BY_ONE: "d",
    proof_conditions.AT_A_FLIP: "e",
    proof_conditions.SAME_LABEL: "f",
    proof_conditions.HITS_PAID: "g",
    proof_conditions.LABELS_PAID: "h",
    proof_conditions.COMPARED: "i",
    proof_conditions.THRESHOLD_KEPT: "j",
    proof_conditions.LAST_ANSWER: "k",
    proof_conditions.ONE_VOTE: "l",
    proof_conditions.LARGEST_WINS: "m",
    proof_conditions.ANSWERS_PAID: "n",
}
OF_HITS = (ONE_THRESHOLD, REFRESHED, PROFILE)
OF_THRESHOLDS = (ONE_THRESHOLD, REFRESHED)
ALL = (*OF_HITS, NOISY_VOTE)
BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"


def unscaled(calibration: str, cutoff: int, epsilon: Fraction) -> Audited:
    """Return the mechanism with the noise of one hit, or of one answer."""
    return system(calibration, cutoff, epsilon, paid=1)


@dataclass(frozen=True)
class Fault:
    """A row of the table.

    Attributes:
        text: what is wrong.
        plant: puts it into a correct mechanism.
        mechanisms: those that have what it changes.
        make: in place of ``plant``, builds the faulty mechanism.
        unchanged: cells whose law it leaves as it is: mechanism and cutoff.

    """

    text: str
    plant: Callable[[Audited], Audited] = planted.real
    mechanisms: tuple[str, ...] = ALL
    make: Callable[[str, int, Fraction], Audited] = system
    unchanged: tuple[tuple[str, int], ...] = ()

    def audited(self, calibration: str, cutoff: int, epsilon: Fraction) -> Audited:
        """Return the faulty mechanism of a cell."""
        return self.plant(self.make(calibration, cutoff, epsilon))


NOT_SCALED = tuple((calibration, 1) for calibration in ALL)
FAULTS = {
    "none": Fault("none"),
    "gap": Fault(
        "the printed gap, as if one vote moved it by 1", planted.with_printed_gap, OF_HITS
    ),
    "gap-1": Fault(
        "max(0, gap - 1), printed elsewhere", planted.with_printed_gap_less_one, OF_HITS
    ),
    "hit": Fault("c <= T, or answer m + 1", planted.with_one_hit_more),
    "both": Fault("both of these", planted.with_gap_and_hit, OF_HITS),
    "half": Fault("d = floor(gap/2)", planted.with_half_gap, OF_HITS),
    "silent": Fault("no noise", planted.without_noise),
    "once": Fault("noise drawn once and reused", planted.with_noise_drawn_once),
    "hidden": Fault(
        "the same, though words are drawn for every query",
        planted.with_noise_kept_behind_a_draw,
        unchanged=((NOISY_VOTE, 1),),
    ),
    "unscaled": Fault("noise of one hit, or answer, for all", make=unscaled, unchanged=NOT_SCALED),
    "restart": Fault("counter lost at a restart", planted.with_counter_lost),
    "chunks": Fault("one record in two chunks", planted.with_record_in_two_chunks),
    "bits": Fault("words of 16 bits", planted.with_sixteen_bits),
    "label": Fault(
        "label of an unstable answer from the votes", planted.with_label_of_votes, OF_HITS
    ),
    "coin": Fault("a coin that favours the plurality", planted.with_loaded_coin, OF_HITS),
    "rho-silent": Fault("a threshold without noise", planted.with_silent_threshold, OF_THRESHOLDS),
    "rho-anew": Fault(
        "the threshold's noise drawn anew at a restart",
        planted.with_threshold_drawn_anew,
        OF_THRESHOLDS,
    ),
    "rho-kept": Fault(
        "the threshold's noise kept at a hit",
        planted.with_threshold_never_drawn_anew,
        (REFRESHED,),
        unchanged=((REFRESHED, 1),),
    ),
    "low": Fault("a threshold one vote too low", planted.with_low_threshold, OF_THRESHOLDS),
    "first": Fault("p_0 too small by 2^-44", planted.with_low_first_word, (PROFILE,)),
    "word": Fault("one entry off by one word in 2^64", planted.with_one_word_off, (PROFILE,)),
}


@dataclass(frozen=True)
class Found:
    """What the exact part of an audit finds in one cell.

    Attributes:
        share: the lower bound over the claim.
        letters: of the conditions that are broken, in order.

    """

    share: float
    letters: str

    @property
    def is_caught(self) -> bool:
        """Whether the audit would fail."""
        return self.share > 1 + 1e-6 or bool(self.letters)


def find(fault: Fault, calibration: str, cutoff: int, epsilon: Fraction) -> Found:
    """Audit one cell, by the adversaries that take no second."""
    audited = fault.audited(calibration, cutoff, epsilon)
    shown = exact_bound(audited, thorough=False).epsilon / float(epsilon)
    broken = broken_conditions(audited)
    return Found(shown, "".join(sorted(LETTERS[name] for name in broken)))


def read_table(page: str) -> Mapping[tuple[str, str, int, Fraction], Found]:
    """Return what the page says of every fault and cell, by key of the fault and cell."""
    keys = {fault.text: key for key, fault in FAULTS.items()}
    calibrations = {heading: calibration for calibration, heading in HEADINGS.items()}
    calibration, found = "", {}
    for line in page.split(BEGIN)[1].split(END, maxsplit=1)[0].splitlines():
        first, *cells = [part.strip() for part in line.strip("|").split("|")]
        heading = first.removesuffix(", fault")
        calibration = calibrations.get(heading, calibration)
        if first in keys:
            for cutoff, cell in zip(CUTOFFS[calibration], cells, strict=True):
                *shares, letters = [*cell.split(), ""][:4]
                for epsilon, share in zip(EPSILONS, shares, strict=True):
                    found[keys[first], calibration, cutoff, epsilon] = Found(float(share), letters)
    return found


def cells() -> list[tuple[str, str, int]]:
    """Return fault, mechanism and cutoff of every entry of the table."""
    return [
        (key, calibration, cutoff)
        for calibration, cutoffs in CUTOFFS.items()
        for key, fault in FAULTS.items()
        if calibration in fault.mechanisms
        for cutoff in cutoffs
    ]


def _entry(key: str, calibration: str, cutoff: int) -> str:
    found = [find(FAULTS[key], calibration, cutoff, epsilon) for epsilon in EPSILONS]
    (letters,) = {each.letters for each in found}
    return " ".join([*(f"{each.share:.2f}" for each in found), letters]).strip()


def table() -> str:
    """Return the section of the page between its marks, marks included."""
    lines = [BEGIN]
    for calibration, cutoffs in CUTOFFS.items():
        name = "m" if calibration == NOISY_VOTE else "T"
        heads = [f"{name} = {cutoff}" for cutoff in cutoffs]
        lines += ["", f"| {HEADINGS[calibration]}, fault | {' | '.join(heads)} |"]
        lines += ["| --- " * (len(cutoffs) + 1) + "|"]
        for key, fault in FAULTS.items():
            if calibration in fault.mechanisms:
                entries = [_entry(key, calibration, cutoff) for cutoff in cutoffs]
                lines += [f"| {fault.text} | {' | '.join(entries)} |"]
    return "\n".join([*lines, "", END, ""])


if __name__ == "__main__":
    sys.stdout.write(table())
