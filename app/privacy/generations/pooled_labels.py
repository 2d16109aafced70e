"""A label for each public cell from all batches of rows, by sums of noisy label counts.

A slot is the fixed place of one row, or of the rows of one person. The number of slots is public,
and a slot may be empty.

Counts are integers in units of ``1 / unit_count`` record, so that fractional weights of rows are
counted exactly. The private state is what a release must keep and never shows.

**Algorithm.** The Laplace mechanism (Dwork, McSherry, Nissim, Smith 2006) on each generation's
counts of labels in each cell, once, when the generation (a batch of rows) is appended. The label of
a cell is always the one with the largest sum of noisy counts over generations.

**Claim.** The noisy counts of a generation are epsilon_r-differentially private under replace-one
in the generation's rows, epsilon_r being the share of epsilon that is charged for the counts. Rows
of any generation may be relabelled by any labelling computed from such counts, at any time and
without further cost (Lemma 3 of the proof), provided that the cells are public.

**Proof.** One record moves a generation's counts by two in sum, and a labelling is a function of
noisy counts: ``app/privacy/generations/pooled_labels_proof.md``.

**Inputs and outputs.** ``private_value``: the cell, int64 (n,), and the label, int64 (n,), of each
row of a generation, secret. ``private_weights``: the weight of each row, if a column names persons
(``app/data/persons.py``); the weights of one person's rows add up to at most 1, exactly. Out:
``NoisyCounts``, int64 of shape (C, 1) with two labels and (C, L) with L labels, for C cells. The
noisy counts, their sums and the labelling stay secret, although the claim would allow to publish
them: answers reveal less. The ledger has only their digest.

**Utility.** The noise in a cell's sum over G generations has standard deviation
``2 sqrt(2 G) / epsilon_r`` records, while the lead of the most frequent label grows in proportion
to G.

**Deviations.** With two labels a cell has one number, the difference of its two counts. The noise
is from the exact discrete Laplace distribution on integers.

**Raises.** ``InvariantError``: parameters out of range, more rows than the generation has slots, or
stored counts of a wrong shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant
from app.noise.discrete_laplace import DiscreteLaplace
from app.privacy.noisy_grid.mechanism import BINARY, SCALE_MAX, SENSITIVITY, number_count

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from numpy.typing import NDArray

    from app.noise.source import NoiseSource

STORED: Final = np.dtype("<i8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The public parameters of the noisy label counts over one batch of rows.

    Attributes:
        cell_count: the number C of public cells.
        class_count: the number L of labels.
        slot_count: the generation's public number of slots, each for one row or one person.
        epsilon: epsilon_r, the share of epsilon that the ledger charges for the counts.
        unit_count: the number of units in one record: 1, or a number that makes all rows' weights
            whole numbers of units.

    """

    cell_count: int
    class_count: int
    slot_count: int
    epsilon: Fraction
    unit_count: int = 1

    def __post_init__(self) -> None:
        """Raise an error for parameters that the claim does not cover."""
        invariant(self.cell_count >= 1, "there is at least one cell")
        invariant(self.class_count >= BINARY, "there are two or more classes")
        invariant(self.slot_count >= 1 <= self.unit_count, "there is at least one slot")
        invariant(self.epsilon > 0, "the share is above zero")
        invariant(self.scale <= SCALE_MAX, "noise stays within 64 bits")

    @property
    def scale(self) -> Fraction:
        """The noise scale, ``2 unit_count / epsilon``, in units of ``1 / unit_count`` record."""
        return SENSITIVITY * self.unit_count / self.epsilon

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the noisy label counts: the number of cells, and of counts per cell."""
        return self.cell_count, number_count(self.class_count)


@dataclass(frozen=True, slots=True, eq=False)
class NoisyCounts:
    """Noisy label counts over batches of rows, in units of ``1 / unit_count`` record; secret.

    Attributes:
        private_noisy_counts: the counts, int64 of the shape in :attr:`Parameters.shape`.

    """

    private_noisy_counts: NDArray[np.int64]

    def to_bytes(self) -> bytes:
        """Return the noisy counts as 64-bit little-endian integers, for the private state."""
        return self.private_noisy_counts.astype(STORED).tobytes()

    @classmethod
    def from_bytes(cls, body: bytes, *, shape: tuple[int, int]) -> NoisyCounts:
        """Return the noisy counts that :meth:`to_bytes` wrote.

        Args:
            body: the bytes from the private state.
            shape: the shape of the counts, :attr:`Parameters.shape`.

        Raises:
            InvariantError: the number of integers in ``body`` does not fit the shape.

        """
        whole = len(body) == shape[0] * shape[1] * STORED.itemsize
        invariant(whole, "the persisted noisy counts are of the public cells")
        return cls(np.frombuffer(body, dtype=STORED).astype(np.int64).reshape(shape))

    def labels(self) -> NDArray[np.int64]:
        """Return each cell's label with the largest noisy count, (C,); ties go to the first."""
        counts = self.private_noisy_counts
        if counts.shape[1] == 1:
            return np.asarray(counts[:, 0] > 0, dtype=np.int64)
        return np.asarray(counts.argmax(axis=1), dtype=np.int64)


def draw(
    parameters: Parameters,
    private_value: tuple[NDArray[np.int64], NDArray[np.int64]],
    noise: NoiseSource,
    private_weights: NDArray[np.float64] | None = None,
) -> NoisyCounts:
    """Return noisy label counts over one batch of rows; empty cells get noise too."""
    counts = private_counts(parameters, private_value, private_weights)
    law = DiscreteLaplace(parameters.scale)
    drawn = np.array([law.draw(noise) for _ in range(counts.size)], dtype=np.int64)
    return NoisyCounts(counts + drawn.reshape(counts.shape))


def private_counts(
    parameters: Parameters,
    private_value: tuple[NDArray[np.int64], NDArray[np.int64]],
    private_weights: NDArray[np.float64] | None = None,
) -> NDArray[np.int64]:
    """Return the exact label counts per cell, in units of ``1 / unit_count`` record; secret."""
    cells, labels = private_value
    invariant(len(cells) == len(labels), "every row has a cell and a label")
    is_weighed = private_weights is not None
    invariant(is_weighed == (parameters.unit_count > 1), "weights are counted in their units")
    if private_weights is None:
        within = len(labels) <= parameters.slot_count
    else:
        invariant(len(labels) == len(private_weights), "every row has a weight")
        within = bool(private_weights.sum() <= parameters.slot_count)
    invariant(within, "the rows count for the generation's slots at most")
    size = parameters.cell_count, parameters.class_count
    # Sums of weights are exact in doubles, and whole in units.
    flat = np.bincount(
        cells * size[1] + labels, weights=private_weights, minlength=size[0] * size[1]
    )
    counts = (flat * parameters.unit_count).astype(np.int64).reshape(size)
    return counts if parameters.class_count > BINARY else counts[:, 1:] - counts[:, :1]


def running_sum(drawn: Iterable[NoisyCounts]) -> NoisyCounts:
    """Return the sum of the noisy label counts of one or more batches of rows."""
    counts = [each.private_noisy_counts for each in drawn]
    invariant(len(counts) > 0, "a labelling rests on the counts of one generation at least")
    same = all(each.shape == counts[0].shape for each in counts)
    invariant(same, "all generations count in the same public cells")
    return NoisyCounts(np.sum(np.stack(counts), axis=0))
