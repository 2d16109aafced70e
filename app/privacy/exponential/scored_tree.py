"""A tree for ranking, drawn by balanced errors, with noisy counts of labels in its leaves.

Errors are balanced: an error on a row of the most frequent label counts less. Counts are integers
in units of ``1 / unit_count`` record, so that fractional weights of rows are counted exactly.

**Algorithm.** Three steps: the Laplace mechanism on the number of rows of each label; the
exponential mechanism over trees, with the weighted number of errors as their quality; the Laplace
mechanism on the counts of labels in the leaves of the drawn tree.

**Claim.** (epsilon, delta_truncation)-differentially private under replace-one. Here epsilon is the
sum of the epsilons of the three steps, and delta_truncation bounds the cost of rounding the weights
of trees to integers. If a column names the person of each row, replace-one replaces all rows of a
person, and n counts persons.

**Proof.** Each step is private whatever the earlier steps released, and the costs add up:
``app/privacy/exponential/scored_tree_proof.md``.

**Inputs and outputs.** ``private_value``: rows as bits of feature tests, as :class:`TreeClass`
encodes them, all at once or part by part, n along the first axis, and labels int64 (n,), secret.
``private_weights``: the weight of each row, if a column names persons (``app/data/persons.py``);
the weights of one person's rows add up to at most 1, exactly. Out: a tree, and for every label in
every leaf a noisy count in units of ``1 / unit_count`` record; secret until a caller that charged
for it publishes it.

**Utility.** With probability 1 - beta the tree's weighted number of errors exceeds the least by at
most 2 (ln |H| + ln(1/beta)) / epsilon_tree, H being the class of trees and epsilon_tree the epsilon
of the second step. A count is wrong by more than t with probability below
``e^(-t epsilon_leaves / 2)``, epsilon_leaves being the epsilon of the third step.

**Deviations.** An error on a row of the most frequent label has a smaller weight, so that a feature
test that separates two leaves with the same most frequent label, but different proportions of it,
can lower the weighted number of errors. The weights are computed from the noisy numbers of rows and
not from the rows. Every leaf has noise, even if no row lies in it.

**Raises.** ``InvariantError``: the three fractions of epsilon are not positive or add up to more
than 1, the share does not exceed the cost of numerical error, or the number of rows is not the
public n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import InvariantError, invariant
from app.learning.encoding.encoded_rows import parts
from app.learning.trees.tree import Tree
from app.noise.discrete_laplace import DiscreteLaplace
from app.privacy.exponential import mechanism as exponential

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.trees.tree_class import TreeClass
    from app.noise.source import NoiseSource

# By how much, in sum, one record replaced moves the counts of a histogram, in records.
SENSITIVITY: Final = 2
# Noise of a larger scale could leave 64 bits; of this one it does so never.
SCALE_MAX: Final = 1 << 40
# Row weights are whole numbers of one part in so many, as those of persons are.
WEIGHT_UNITS: Final = 1 << 20
# A number of rows below so many scales of its noise counts as so many.
SCALES_LEAST: Final = 2
# Scores are whole numbers of one part in so many of a share of the rows.
SCORE_UNIT: Final = 1 << 20
# As if so many scales of rows more lay in each leaf, with the labels of all rows.
SCALES_ADDED: Final = 4
BINARY: Final = 2


@dataclass(frozen=True, slots=True)
class Division:
    """The fractions of epsilon for the three steps of the mechanism.

    Attributes:
        labels: the fraction for the number of rows of each label.
        tree: the fraction for the draw of the tree.
        leaves: the fraction for the counts in the leaves.

    """

    labels: Fraction
    tree: Fraction
    leaves: Fraction


DIVISIONS: Final[Mapping[int, Division]] = MappingProxyType(
    {1: Division(Fraction(1, 20), Fraction(3, 5), Fraction(7, 20))}
)
"""The rules that divide epsilon, by version: a release keeps the one that it was opened by."""
NEWEST_DIVISION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The public parameters of one draw of a tree with noisy counts.

    Attributes:
        epsilon: the share of epsilon, which the ledger charges.
        delta_truncation: the delta that is withheld for integer weights in the draw of the tree.
        row_count: the public number n of rows, or of persons.
        hypotheses: the class of trees, fixed by public choices.
        division: the fractions of epsilon for the three steps.
        unit_count: the number of units in one record: 1, or a number that makes all rows' weights
            whole numbers of units.
        account_epsilon: the joint epsilon of answers and draws if their cost is computed together,
            in one privacy account; None if shares of epsilon are added up.

    """

    epsilon: Fraction
    delta_truncation: Fraction
    row_count: int
    hypotheses: TreeClass
    division: Division = DIVISIONS[NEWEST_DIVISION]
    unit_count: int = 1
    account_epsilon: Fraction | None = None

    def __post_init__(self) -> None:
        """Check that the three steps cost at most the share, and that the tree can be drawn."""
        fractions = (self.division.labels, self.division.tree, self.division.leaves)
        invariant(self.unit_count >= 1, "a record has one unit or more")
        invariant(self.epsilon > 0, "a share that is drawn on is positive")
        invariant(all(part > 0 for part in fractions), "no part's share is zero")
        invariant(sum(fractions) <= 1, "the parts add up to the share")
        invariant(max(self.label_scale, self.leaf_scale) <= SCALE_MAX, "noise stays within 64 bits")
        invariant(self.tree.row_count == self.row_count, "the tree is drawn from all rows")

    @property
    def tree(self) -> exponential.Parameters:
        """The parameters of the draw of the tree.

        The delta for integer weights is computed at the epsilon of all three steps together.
        """
        return exponential.Parameters(
            epsilon=self.epsilon * self.division.tree,
            delta_truncation=self.delta_truncation,
            row_count=self.row_count,
            hypotheses=self.hypotheses,
            account_epsilon=self.epsilon if self.account_epsilon is None else self.account_epsilon,
        )

    @property
    def label_scale(self) -> Fraction:
        """The noise scale for each label's row count, in units of ``1 / unit_count`` record."""
        return SENSITIVITY * self.unit_count / (self.epsilon * self.division.labels)

    @property
    def leaf_scale(self) -> Fraction:
        """The noise scale for the counts in the leaves, in units of ``1 / unit_count`` record."""
        return SENSITIVITY * self.unit_count / (self.epsilon * self.division.leaves)


@dataclass(frozen=True, slots=True, eq=False)
class ScoredTree:
    """A drawn tree, and noisy counts of labels in its leaves.

    Attributes:
        tree: the drawn tree; the label of a leaf is the one drawn by balanced errors.
        counts: the noisy counts, int64 of shape (leaves, L) for L labels, in units of
            ``1 / unit_count`` record; a count may be negative.

    """

    tree: Tree
    counts: NDArray[np.int64]


def draw(
    parameters: Parameters,
    private_value: tuple[EncodedRows, NDArray[np.int64]],
    noise: NoiseSource,
    private_weights: NDArray[np.float64] | None = None,
) -> ScoredTree:
    """Return a tree drawn by balanced errors, with noisy counts of labels in its leaves."""
    encoded, labels = private_value
    invariant(len(encoded) == len(labels), "every row has bits and a label")
    is_weighed = private_weights is not None
    invariant(is_weighed == (parameters.unit_count > 1), "weights are counted in their units")
    if private_weights is None:
        invariant(len(labels) == parameters.row_count, "the rows are the public n rows")
    everywhere = np.zeros(len(labels), dtype=np.int64)
    label_counts = _noised(
        histogram(parameters, everywhere, labels, private_weights, cell_count=1),
        parameters.label_scale,
        noise,
    )
    label_weights = balancing_weights(parameters, label_counts[0].tolist())
    row_weights = weighed_rows(label_weights, labels, private_weights)
    tree = exponential.draw(parameters.tree, private_value, noise, row_weights)
    if not isinstance(tree, Tree):
        raise InvariantError("a class of trees draws a tree")
    leaves = _leaves_of(tree, encoded)
    leaf_count = len(tree.leaf_labels)
    private_counts = histogram(parameters, leaves, labels, private_weights, cell_count=leaf_count)
    return ScoredTree(tree, _noised(private_counts, parameters.leaf_scale, noise))


def balancing_weights(parameters: Parameters, noisy_counts: list[int]) -> list[int]:
    """Return, for each label, the weight of an error on one row, times :data:`WEIGHT_UNITS`.

    The weights make all rows of the most frequent label together count as much as the rows of the
    second most frequent label.

    Args:
        parameters: the public parameters of the draw.
        noisy_counts: the noisy number of rows of each label, in units of ``1 / unit_count`` record.

    """
    least = math.ceil(SCALES_LEAST * parameters.label_scale)
    counts = [max(count, least) for count in noisy_counts]
    second = sorted(counts)[-2]
    return [min(WEIGHT_UNITS, WEIGHT_UNITS * second // count) for count in counts]


def weighed_rows(
    label_weights: list[int],
    labels: NDArray[np.int64],
    private_weights: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Return the weight of an error on each row, at most the row's own weight.

    It is the row's own weight times the weight of its label; ``label_weights`` contains the labels'
    weights multiplied by :data:`WEIGHT_UNITS`. The result is rounded down to a multiple of ``1 /
    WEIGHT_UNITS``, so that sums are exact and the results for one person's rows add up to at most
    1.
    """
    whole = np.array(label_weights, dtype=np.int64)[labels]
    if private_weights is not None:
        whole = whole * (private_weights * WEIGHT_UNITS).astype(np.int64) // WEIGHT_UNITS
    weights: NDArray[np.float64] = whole / WEIGHT_UNITS
    return weights


def histogram(
    parameters: Parameters,
    cells: NDArray[np.int64],
    labels: NDArray[np.int64],
    row_weights: NDArray[np.float64] | None,
    *,
    cell_count: int,
) -> NDArray[np.int64]:
    """Return the exact counts of labels in all leaves, shape ``(leaves, L)``; secret.

    The counts are in units of ``1 / unit_count`` record. ``cells`` has for each row the index of
    its leaf.
    """
    class_count = parameters.hypotheses.class_count
    places, length = cells * class_count + labels, cell_count * class_count
    if row_weights is None:
        counts = np.bincount(places, minlength=length).astype(np.int64)
    else:
        # Sums of weights are exact in doubles, and whole in units.
        weighed = np.bincount(places, weights=row_weights, minlength=length)
        counts = (weighed * parameters.unit_count).astype(np.int64)
    return counts.reshape(cell_count, class_count)


def leaf_scores(counts: NDArray[np.int64], scale: Fraction) -> tuple[tuple[int, ...], ...]:
    """Return the scores of all leaves, from their noisy counts and the scale of the noise.

    With two labels a leaf has one score: the proportion of the second label minus that of the
    first. With more labels a leaf has one proportion for each label. Proportions are estimated as
    if each leaf contained additional rows, whose number is :data:`SCALES_ADDED` times the noise's
    scale and whose labels have the proportions of all rows, so that a leaf with few rows has a
    score near the average.

    Returns:
        The scores as multiples of ``1 / SCORE_UNIT``.

    """
    held = np.maximum(counts, 0).tolist()
    totals = [1 + sum(column) for column in zip(*held, strict=True)]
    added = math.ceil(SCALES_ADDED * scale)
    return tuple(_scores(leaf, totals, added) for leaf in held)


def _scores(leaf: list[int], totals: list[int], added: int) -> tuple[int, ...]:
    """Return the scores of one leaf, from its counts and those of all leaves."""
    everywhere, rows = sum(totals), sum(leaf) + added
    # Shares are these numerators over everywhere * rows.
    numerators = [
        count * everywhere + added * total for count, total in zip(leaf, totals, strict=True)
    ]
    if len(leaf) == BINARY:
        numerators = [numerators[1] - numerators[0]]
    return tuple(SCORE_UNIT * numerator // (everywhere * rows) for numerator in numerators)


def _leaves_of(tree: Tree, encoded: EncodedRows) -> NDArray[np.int64]:
    """Return the leaf of every row, read part by part."""
    leaves = np.empty(len(encoded), dtype=np.int64)
    for rows in parts(len(encoded)):
        leaves[rows] = tree.leaves(encoded[rows])
    return leaves


def _noised(
    private_counts: NDArray[np.int64], scale: Fraction, noise: NoiseSource
) -> NDArray[np.int64]:
    """Return counts with noise in every one of them."""
    law = DiscreteLaplace(scale)
    drawn = [law.draw(noise) for _ in range(private_counts.size)]
    return private_counts + np.array(drawn, dtype=np.int64).reshape(private_counts.shape)
