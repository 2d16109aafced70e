"""Noisy counts of labels on public grids of several resolutions.

A grid divides the public feature space into cells; a coarse and several finer grids are used.
Counts are integers in units of ``1 / unit_count`` record, so that fractional weights of rows are
counted exactly.

**Algorithm.** The Laplace mechanism (Dwork, McSherry, Nissim, Smith 2006) on histograms, at several
resolutions of one grid (as Hay et al. 2010 and Qardaji et al. 2013), with discrete noise.

**Claim.** epsilon-differentially private under replace-one, epsilon being the sum of the epsilons
of all resolutions (levels). If a column names the person of each row, replace-one replaces all rows
of a person, and n counts persons.

**Proof.** One record moves a level's counts by two in sum. At level l, with epsilon_l, Laplace
noise of scale ``2 / epsilon_l`` covers this change, and the costs of levels add up:
``app/privacy/noisy_grid/proof.md``.

**Inputs and outputs.** ``private_value``: for each row and feature the index of its interval in the
finest grid, uint8 (n, d), all at once or part by part, and labels int64 (n,), secret.
``private_weights``: the weight of each row, if a column names persons (``app/data/persons.py``);
the weights of one person's rows add up to at most 1, exactly. Out: for each level and every public
cell, noisy counts in units of ``1 / unit_count`` record. They become public when a caller that
charged for them publishes them.

**Utility.** The count of a cell at level l is wrong by more than t with probability below
``e^(-t epsilon_l / 2)``.

**Deviations.** With two labels a cell has one number, the difference of its two label counts. One
record changes this difference as much as it changes the two counts together. Every cell gets noise,
even if no row lies in it. The noise is from the exact discrete Laplace distribution on integers.

**Raises.** ``InvariantError``: the epsilons of the levels are not positive or add up to more than
epsilon, or the number of rows is not the public n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant
from app.learning.encoding.encoded_rows import parts
from app.noise.discrete_laplace import DiscreteLaplace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from app.learning.cells.nested_grid import Grid
    from app.learning.encoding.encoded_rows import EncodedRows, Tally
    from app.noise.source import NoiseSource

BINARY: Final = 2
# By how much, in sum, one record replaced moves the numbers of a level, in records.
SENSITIVITY: Final = 2
# Noise of a larger scale could leave 64 bits; of this one it does so never.
SCALE_MAX: Final = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parameters:
    """The public parameters of one draw of noisy grid counts.

    Attributes:
        grid: the public cells.
        class_count: the number L of labels.
        row_count: the public number n of rows, or of persons.
        epsilon: the share of epsilon, which the ledger charges.
        level_epsilons: the division of epsilon over the levels (resolutions), coarsest first.
        unit_count: the number of units in one record: 1, or a number that makes all rows' weights
            whole numbers of units.

    """

    grid: Grid
    class_count: int
    row_count: int
    epsilon: Fraction
    level_epsilons: tuple[Fraction, ...]
    unit_count: int = 1

    def __post_init__(self) -> None:
        """Check that the levels together cost at most the share of epsilon."""
        invariant(self.class_count >= BINARY, "there are two or more classes")
        invariant(self.row_count >= 1 <= self.unit_count, "there is at least one row")
        invariant(len(self.level_epsilons) == len(self.grid.sides), "every level has a share")
        invariant(all(share > 0 for share in self.level_epsilons), "no level's share is zero")
        invariant(sum(self.level_epsilons) <= self.epsilon, "the levels add up to the share")
        invariant(max(self.scales) <= SCALE_MAX, "noise stays within 64 bits")

    @property
    def scales(self) -> tuple[Fraction, ...]:
        """The scale of the noise at each resolution, in units of ``1 / unit_count`` record."""
        return tuple(SENSITIVITY * self.unit_count / share for share in self.level_epsilons)

    @property
    def draw_count(self) -> int:
        """The number of random noise values that one draw needs."""
        cells = sum(map(self.grid.cell_count, self.grid.sides))
        return cells * number_count(self.class_count)


def number_count(class_count: int) -> int:
    """Return the number of counts per cell: one per label, or one difference for two labels."""
    return 1 if class_count == BINARY else class_count


def divided(epsilon: Fraction, level_count: int) -> tuple[Fraction, ...]:
    """Return a budget divided evenly over the levels (resolutions) of the grid."""
    return (epsilon / level_count,) * level_count


def draw(
    parameters: Parameters,
    private_value: tuple[EncodedRows, NDArray[np.int64]],
    noise: NoiseSource,
    private_weights: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.int64], ...]:
    """Return the noisy counts of every cell of every grid, shape ``(cells, s)`` for each grid.

    Here s is the number of counts per cell, :func:`number_count`.
    """
    encoded, labels = private_value
    is_weighed = private_weights is not None
    invariant(is_weighed == (parameters.unit_count > 1), "weights are counted in their units")
    if private_weights is None:
        invariant(len(labels) == parameters.row_count, "the rows are the public n rows")
    else:
        invariant(len(labels) == len(private_weights), "every row has a weight")
        within = bool(private_weights.sum() <= parameters.row_count)
        invariant(within, "the rows count for the public n persons at most")
    invariant(len(encoded) == len(labels), "every row has ranks and a label")
    private_counts = level_counts(parameters, encoded, labels, private_weights)
    return _noised(parameters, private_counts, noise)


def draw_counted(
    parameters: Parameters, private_counts: Tally, noise: NoiseSource
) -> tuple[NDArray[np.int64], ...]:
    """Return noisy counts as :func:`draw` does, from the exact counts that :func:`tally` gave."""
    is_same = private_counts.unit_count == parameters.unit_count
    invariant(is_same, "weights are counted in their units")
    invariant(private_counts.is_of(parameters.row_count), "the counts are of the public n")
    shapes = [(cells, number_count(parameters.class_count)) for cells in _cell_counts(parameters)]
    ends = np.cumsum([cells * numbers for cells, numbers in shapes])[:-1]
    levels = np.split(private_counts.counts, ends)
    counts = [each.reshape(shape) for each, shape in zip(levels, shapes, strict=True)]
    return _noised(parameters, counts, noise)


def tally(
    parameters: Parameters, encoded: EncodedRows, labels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the exact counts of all cells at all resolutions in one array; secret.

    The counts of several parts of the rows may be added. Each row counts as 1. To count weighted
    rows, call this function for the rows of one weight at a time, and multiply the results by the
    weights.
    """
    counts = level_counts(parameters, encoded, labels)
    return np.concatenate([each.ravel() for each in counts])


def _cell_counts(parameters: Parameters) -> list[int]:
    """Return the number of cells of each level."""
    return [parameters.grid.cell_count(side) for side in parameters.grid.sides]


def _noised(
    parameters: Parameters, private_counts: Sequence[NDArray[np.int64]], noise: NoiseSource
) -> tuple[NDArray[np.int64], ...]:
    """Return the values of each level with noise of its own."""
    noisy_counts = []
    for counts, scale in zip(private_counts, parameters.scales, strict=True):
        law = DiscreteLaplace(scale)
        drawn = np.array([law.draw(noise) for _ in range(counts.size)], dtype=np.int64)
        noisy_counts.append(counts + drawn.reshape(counts.shape))
    return tuple(noisy_counts)


def level_counts(
    parameters: Parameters,
    encoded: EncodedRows,
    labels: NDArray[np.int64],
    row_weights: NDArray[np.float64] | None = None,
) -> list[NDArray[np.int64]]:
    """Return the exact label counts of every cell of every grid; secret."""
    grid, classes = parameters.grid, parameters.class_count
    counts = [np.zeros((grid.cell_count(side), classes), dtype=np.int64) for side in grid.sides]
    unit_count = 1 if row_weights is None else parameters.unit_count
    for rows in parts(len(labels)):
        ranks = encoded[rows].astype(np.uint8, copy=False)
        weights = None if row_weights is None else row_weights[rows]
        for level, side in enumerate(grid.sides):
            # Sums of weights are exact in doubles, and whole in units.
            weighed = grid.counts(ranks, labels[rows], side, classes, weights)
            counts[level] += (weighed * unit_count).astype(np.int64)
    if classes > BINARY:
        return counts
    return [counted[:, 1:] - counted[:, :1] for counted in counts]
