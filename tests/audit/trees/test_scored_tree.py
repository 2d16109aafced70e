"""The exact divergence of scored trees on small tables: within the share, and more for faults.

The draw runs with noise and a tree that the test chooses, so that what it releases is seen: the
rows that each integer counts and the scale of its noise, the epsilon of the tree's draw and the
weight of each row in it.  The chance of an output is the product of those laws, and the largest
ratio of two neighbours' chances follows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from app.learning.trees.tree import Tree
from app.learning.trees.tree_class import TreeClass
from app.noise.scripted import ScriptedNoise
from app.privacy.exponential import mechanism as exponential
from app.privacy.exponential import scored_tree
from app.privacy.exponential.scored_tree import Division, Parameters
from tests.builders.learners.enumeration import unit_tests

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from app.noise.source import NoiseSource

    Fault = Callable[[pytest.MonkeyPatch], None]

pytestmark = pytest.mark.audit

EPSILON: Final = Fraction(4)
CLASSES: Final = TreeClass(tests=unit_tests(2), depth=1, class_count=2)
TREES: Final = [
    Tree(test_indices=(test,), leaf_labels=labels)
    for test in range(2)
    for labels in product(range(2), repeat=2)
]
# Rows that all neighbours have, and the records of which one is the last row: bits and a label.
COMMON: Final = ((0, 1, 0),) * 4 + ((1, 0, 1),) * 3
RECORDS: Final = tuple(product(range(2), repeat=3))
# Noisy numbers of rows: far below the rows, around them and far above, in every pair.
NUMBERS: Final = tuple(product((-40, 0, 2, 3, 4, 5, 40), repeat=2))
MARK: Final = 1 << 20


@dataclass(frozen=True)
class Released:
    """What one draw releases: the law of each of its parts.

    Attributes:
        counts: of rows of each label, exact.
        label_scales: of the noise in them.
        log_chances: of every tree.
        leaves: rows in each leaf of each label, exact.
        leaf_scales: of the noise in them; None where there is none.

    """

    counts: tuple[int, ...]
    label_scales: tuple[Fraction | None, ...]
    log_chances: tuple[float, ...]
    leaves: tuple[int, ...]
    leaf_scales: tuple[Fraction | None, ...]


class Prescribed:
    """In place of the law: numbers of labels come out as asked, every other draw is a mark."""

    asked: list[int]
    scales: list[Fraction]

    def __init__(self, scale: Fraction) -> None:
        """Note the scale of the draws to come."""
        self.scale = scale

    def draw(self, _: NoiseSource) -> int:
        """Return what makes the next number of a label as asked, or the next mark."""
        self.scales.append(self.scale)
        if self.asked:
            return self.asked.pop(0)
        return len(self.scales) * MARK


def released(
    rows: Sequence[tuple[int, ...]], numbers: tuple[int, ...], chosen: Tree, fault: Fault
) -> Released:
    """Return the laws behind one draw, given the noisy numbers and the tree that come out."""
    table = np.array(rows)
    bits, labels = table[:, :2].astype(np.uint8), table[:, 2].astype(np.int64)
    counts = np.bincount(labels, minlength=2).tolist()
    seen: list[tuple[float, NDArray[np.float64]]] = []

    def draw_tree(given: exponential.Parameters, *value: Any) -> Tree:
        seen.append((given.mechanism_epsilon, value[-1]))
        return chosen

    with pytest.MonkeyPatch.context() as patched:
        fault(patched)
        patched.setattr(scored_tree, "DiscreteLaplace", Prescribed)
        asked = [wanted - count for wanted, count in zip(numbers, counts, strict=True)]
        patched.setattr(Prescribed, "asked", asked, raising=False)
        patched.setattr(Prescribed, "scales", [], raising=False)
        patched.setattr(exponential, "draw", draw_tree)
        parameters = Parameters(
            epsilon=EPSILON,
            delta_truncation=Fraction(1, 10**6),
            row_count=len(rows),
            hypotheses=CLASSES,
        )
        found = scored_tree.draw(parameters, (bits, labels), ScriptedNoise([]))
        ((epsilon, weights),) = seen
        leaves, scales = [], []
        for number in found.counts.ravel().tolist():
            mark, rows_in = divmod(number + MARK // 2, MARK)
            leaves.append(rows_in - MARK // 2)
            scales.append(Prescribed.scales[mark - 1] if mark else None)
        label_scales = tuple(Prescribed.scales[:2])
    return Released(
        counts=tuple(counts),
        label_scales=label_scales,
        log_chances=_log_chances(bits, labels, weights, epsilon),
        leaves=tuple(leaves),
        leaf_scales=tuple(scales),
    )


def _log_chances(
    bits: NDArray[np.uint8],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    epsilon: float,
) -> tuple[float, ...]:
    """Return the log chance of every tree by the exponential mechanism over weighted errors."""
    errors = [float(weights[tree.predict(bits) != labels].sum()) for tree in TREES]
    logs = [-epsilon * each / 2 for each in errors]
    total = math.log(sum(map(math.exp, logs)))
    return tuple(each - total for each in logs)


def shown(
    one: Released, other: Released, numbers: tuple[int, ...], chosen: int
) -> tuple[float, float]:
    """Return the log ratio of two chances of one output, the worst of all counts in its leaves.

    In both directions: the counts of leaves may favour either.
    """
    of_leaves = 0.0
    for ours, theirs, scale, also in zip(
        one.leaves, other.leaves, one.leaf_scales, other.leaf_scales, strict=True
    ):
        if scale != also or (scale is None and ours != theirs):
            return math.inf, math.inf
        of_leaves += 0.0 if scale is None else float(abs(ours - theirs) / scale)
    before = one.log_chances[chosen] - other.log_chances[chosen]
    for number, ours, theirs, scale in zip(
        numbers, one.counts, other.counts, one.label_scales, strict=True
    ):
        assert scale is not None
        before += float((abs(number - theirs) - abs(number - ours)) / scale)
    return before + of_leaves, of_leaves - before


def largest(fault: Fault) -> float:
    """Return the largest log ratio over neighbours, numbers of rows, trees and counts."""
    found = 0.0
    for numbers in NUMBERS:
        for index, tree in enumerate(TREES):
            tables = [released((*COMMON, record), numbers, tree, fault) for record in RECORDS]
            for one, other in combinations(tables, 2):
                found = max(found, *shown(one, other, numbers, index))
    return found


def sound(_: pytest.MonkeyPatch) -> None:
    """Plant nothing."""


def half_the_noise(patched: pytest.MonkeyPatch) -> None:
    """Draw the noise of counts for a sensitivity of one."""
    patched.setattr(scored_tree, "SENSITIVITY", 1)


def occupied_only(patched: pytest.MonkeyPatch) -> None:
    """Add noise to the counts that are not zero alone."""

    def noised(counts: NDArray[np.int64], scale: Fraction, noise: NoiseSource) -> NDArray[np.int64]:
        law = Prescribed(scale)
        is_of_labels = len(counts) == 1
        drawn = [law.draw(noise) if is_of_labels or each else 0 for each in counts.ravel()]
        return counts + np.array(drawn, dtype=np.int64).reshape(counts.shape)

    patched.setattr(scored_tree, "_noised", noised)


def exact_balance(patched: pytest.MonkeyPatch) -> None:
    """Weigh labels by the rows that there are, not by the noisy numbers."""

    def weighed(_: list[int], labels: NDArray[np.int64], __: None) -> NDArray[np.float64]:
        counts = np.maximum(np.bincount(labels, minlength=2), 1)
        return np.asarray(np.minimum(1.0, counts.min() / counts)[labels])

    patched.setattr(scored_tree, "weighed_rows", weighed)


def heavier_rows(patched: pytest.MonkeyPatch) -> None:
    """Let rows of the rarer label count for more than one."""

    def weights(_: Parameters, numbers: list[int]) -> list[int]:
        counts = [max(number, 1) for number in numbers]
        return [scored_tree.WEIGHT_UNITS * max(counts) // count for count in counts]

    patched.setattr(scored_tree, "balancing_weights", weights)


def whole_for_the_tree(patched: pytest.MonkeyPatch) -> None:
    """Give the tree all of epsilon, and the counts their parts besides."""
    whole = Division(Fraction(1, 20), Fraction(1), Fraction(7, 20))
    patched.setattr(scored_tree, "sum", lambda _: 1, raising=False)
    patched.setattr(Parameters, "__init__", _with_division(whole))


def _with_division(division: Division) -> Callable[..., None]:
    made = Parameters.__init__

    def initial(self: Parameters, **given: Any) -> None:
        made(self, **{**given, "division": division})

    return initial


def test_the_divergence_is_within_the_share_and_uses_most_of_it() -> None:
    """Over all neighbours and outputs it is at most epsilon, and more than 95 % of it."""
    assert 0.95 * float(EPSILON) < largest(sound) <= float(EPSILON)


@pytest.mark.parametrize(
    "fault",
    [half_the_noise, occupied_only, exact_balance, heavier_rows, whole_for_the_tree],
    ids=lambda fault: fault.__name__,
)
def test_planted_faults_show_more(fault: Fault) -> None:
    """Each of five faults shows more than the share."""
    assert largest(fault) > float(EPSILON)
