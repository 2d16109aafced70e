"""The votes of every model on every new query vector, counted by label or by bin of scores."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from app.privacy.soft_labels.mechanism import PrivateBins, bin_scores
from app.privacy.voting.votes import Tallies, Tally, tally_alone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from app.learning.hypothesis import Ensemble

# Scores of models held at once, eight bytes each.
SCORES_MAX: Final = 1 << 22
# So few queries are tallied one by one sooner than in columns.
FEW_MAX: Final = 12


class PrivateValues(Mapping[bytes, Tally | PrivateBins]):
    """The counted votes on some query vectors, looked up by the vectors' keyed hashes.

    Attributes:
        digests: the keyed hashes, in the order in which the vectors were evaluated.
        in_order: the counted votes in the order in which the vectors were evaluated; secret.

    """

    def __init__(
        self, digests: Sequence[bytes] = (), in_order: Sequence[Tally | PrivateBins] = ()
    ) -> None:
        """Store the counted votes of different digests (keyed hashes of vectors)."""
        self.digests = digests
        self.in_order = in_order

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return dict(zip(self.digests, range(len(self.in_order)), strict=True))

    def __getitem__(self, digest: bytes) -> Tally | PrivateBins:
        """Return the counted votes on a vector; raises ``KeyError`` if it was not evaluated."""
        return self.in_order[self._places[digest]]

    def __iter__(self) -> Iterator[bytes]:
        """Yield the digests in order."""
        return iter(self.digests)

    def __len__(self) -> int:
        """Return the number of digests."""
        return len(self.digests)


def private_tallies(
    private_ensemble: Ensemble, values: NDArray[np.float64], precisions: Sequence[int | None]
) -> Sequence[Tally | PrivateBins]:
    """Return the counted votes on every query; secret.

    Args:
        private_ensemble: the k models.
        values: the feature vectors of B queries, encoded, shape ``(B, d)``.
        precisions: the number of bins of the score that each query asks for; None for a label.
            Either all queries ask for labels or none does.

    """
    bin_counts = [precision for precision in precisions if precision is not None]
    if not bin_counts:
        private_vote_count = private_ensemble.vote_counts(values)
        if len(private_vote_count) <= FEW_MAX:
            return list(map(tally_alone, private_vote_count.tolist()))
        return Tallies(private_vote_count)
    step = max(1, SCORES_MAX // private_ensemble.size)
    bins: list[PrivateBins] = []
    for start in range(0, len(values), step):
        block = slice(start, start + step)
        bins += bin_scores(private_ensemble.scores(values[block]), bin_counts[block])
    return bins
