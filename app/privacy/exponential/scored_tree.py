"""A tree that ranks: drawn by balanced errors, with noisy counts of labels in its leaves.

**Algorithm.** Three parts in turn.  The Laplace mechanism on the number of rows of each label;
the exponential mechanism over trees, with weighted errors as score; the Laplace mechanism on the
histogram of labels in the leaves of the tree drawn.

**Claim.** (epsilon, delta_truncation)-differentially private under replace-one, epsilon being the
sum of the three parts.  Where rows are of persons, replace-one replaces all rows of a person, and
n is of persons.

**Proof.** Each part is private whatever the parts before it released, and the parts add up:
``app/privacy/exponential/scored_tree_proof.md``.

**Inputs and outputs.** ``private_value``: bits of tests as :class:`TreeClass` encodes rows, whole
or part by part, n along the first axis, and labels int64 (n,), secret.  ``private_weights``: what
each row counts for, where rows are of persons (``app/data/persons.py``); those of a person add up
to 1 at most, exactly.  Out: a tree, and an integer for every label in every leaf, in units of
``1 / unit_count`` record; secret until a caller that charged for it publishes it.

**Utility.** With probability 1 - beta the tree's balanced errors exceed the least by at most
2 (ln |H| + ln(1/beta)) / epsilon_tree.  A count is off by more than t with probability below
``e^(-t epsilon_leaves / 2)``.

**Deviations.** A row of the most frequent label counts less among errors, so that two leaves with
the same most frequent label, and different shares of it, differ in score.  The weights follow
from the noisy numbers of rows and not from the rows.  Every leaf has noise, empty ones too.

**Raises.** ``InvariantError``: parts that are no division of epsilon, a share that numerical error
uses up, or rows that are not of the public n.
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
    """The fractions of epsilon that the three parts of the mechanism get.

    Attributes:
        labels: of the number of rows of each label.
        tree: of the draw.
        leaves: of the counts in the leaves.

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
        epsilon: the share, which is what the ledger charges.
        delta_truncation: delta withheld for the integer weights of the tree's draw.
        row_count: the public n, of rows or of persons.
        hypotheses: the class of trees, fixed by public choices.
        division: of epsilon over the three parts.
        unit_count: parts of a record that are counted: 1, or of what weights are multiples.
        account_epsilon: of the account that the draw is in; None where shares add up.

    """

    epsilon: Fraction
    delta_truncation: Fraction
    row_count: int
    hypotheses: TreeClass
    division: Division = DIVISIONS[NEWEST_DIVISION]
    unit_count: int = 1
    account_epsilon: Fraction | None = None

    def __post_init__(self) -> None:
        """Check that the parts cost no more than the share, and that the tree can be drawn."""
        fractions = (self.division.labels, self.division.tree, self.division.leaves)
        invariant(self.unit_count >= 1, "a record has one unit or more")
        invariant(self.epsilon > 0, "a share that is drawn on is positive")
        invariant(all(part > 0 for part in fractions), "no part's share is zero")
        invariant(sum(fractions) <= 1, "the parts add up to the share")
        invariant(max(self.label_scale, self.leaf_scale) <= SCALE_MAX, "noise stays within 64 bits")
        invariant(self.tree.row_count == self.row_count, "the tree is drawn from all rows")

    @property
    def tree(self) -> exponential.Parameters:
        """The parameters of the tree's draw; its truncation is paid for at the whole epsilon."""
        return exponential.Parameters(
            epsilon=self.epsilon * self.division.tree,
            delta_truncation=self.delta_truncation,
            row_count=self.row_count,
            hypotheses=self.hypotheses,
            account_epsilon=self.epsilon if self.account_epsilon is None else self.account_epsilon,
        )

    @property
    def label_scale(self) -> Fraction:
        """The noise's scale in the number of rows of each label, in units."""
        return SENSITIVITY * self.unit_count / (self.epsilon * self.division.labels)

    @property
    def leaf_scale(self) -> Fraction:
        """The noise's scale in the counts of the leaves, in units."""
        return SENSITIVITY * self.unit_count / (self.epsilon * self.division.leaves)


@dataclass(frozen=True, slots=True, eq=False)
class ScoredTree:
    """A drawn tree, and noisy counts of labels in its leaves.

    Attributes:
        tree: its leaf labels are those of the draw, by balanced errors.
        counts: int64 (leaves, L), in units of a record; may be negative.

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
    """Return what a row of each label counts for among errors, in :data:`WEIGHT_UNITS`.

    The rows of the most frequent label count together for as many as those of the second.

    Args:
        parameters: of the draw.
        noisy_counts: of the rows of each label, in units of a record.

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
    """Return what each row counts for among errors: never more than its own weight.

    A function of one row, its own weight and the weights of labels; rounded down to
    :data:`WEIGHT_UNITS`, so that sums are exact and those of a person stay below 1.
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
    """Return the exact counts of labels in all cells, shape (cells, L), in units; secret."""
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

    Of two labels a leaf has one score: the share of the second less that of the first.  Of more
    it has a share for each.  Shares are estimated as if :data:`SCALES_ADDED` scales of rows more
    lay in the leaf, with the labels of all rows, so that few rows say little.

    Returns:
        Whole numbers of ``1 / SCORE_UNIT``.

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
