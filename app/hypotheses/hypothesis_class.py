"""What a finite, publicly fixed hypothesis class offers the mechanisms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from app.hypotheses.binary_tests import BinaryTest
    from app.hypotheses.trees import Tree
    from app.noise.source import NoiseSource


class HypothesisClass(Protocol):
    """A finite class fixed by public choices, with exact exponential weights.

    The weight of a hypothesis is ``exp(-epsilon * errors / 2)``; the number of
    errors has sensitivity 1 when one record is replaced.
    """

    @property
    def tests(self) -> tuple[BinaryTest, ...]:
        """The binary tests; column ``i`` of ``bits`` is the outcome of ``tests[i]``."""
        ...

    @property
    def depth(self) -> int:
        """Depth of every drawn tree."""
        ...

    @property
    def class_count(self) -> int:
        """Number of labels."""
        ...

    @property
    def size(self) -> int:
        """Number of parametrised hypotheses, a public constant."""
        ...

    @property
    def truncation_variation(self) -> Fraction:
        """Total variation that the integer weights of one whole draw may cost."""
        ...

    def log_weight_error(self, row_count: int, epsilon: float) -> float:
        """Bound the error of computed log weights over one whole draw.

        Args:
            row_count: public number of rows.
            epsilon: at least the epsilon that :meth:`draw` will be given.

        Returns:
            eta such that every hypothesis is drawn, up to
            :attr:`truncation_variation`, with its exact probability times a
            factor in ``[e**(-2 eta), e**(2 eta)]``; the draw is then
            ``(epsilon + 4 eta)``-DP.

        """
        ...

    def log_normaliser(
        self, bits: NDArray[np.uint8], labels: NDArray[np.int64], epsilon: float
    ) -> float:
        """Return the log of the sum of all weights.  Secret: it comes from rows."""
        ...

    def draw(
        self,
        bits: NDArray[np.uint8],
        labels: NDArray[np.int64],
        epsilon: float,
        noise: NoiseSource,
    ) -> Tree:
        """Draw one hypothesis with probability proportional to its weight.

        Args:
            bits: outcomes of :attr:`tests` on private rows, shape ``(n, t)``.
            labels: private class indices, shape ``(n,)``.
            epsilon: the parameter of the weights, already reduced by the
                caller for :meth:`log_weight_error`.
            noise: where the draws come from.

        """
        ...
