"""What a finite hypothesis class offers the mechanisms, and what they get from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.lists.hypothesis_list import Encoded
    from app.noise.source import NoiseSource


class Hypothesis(Protocol):
    """A drawn hypothesis, a private value until whoever charged for it publishes it."""

    def predict(self, encoded: Encoded) -> NDArray[np.int64]:
        """Return the class index of every row that its class encoded, shape ``(n,)``."""
        ...

    def to_dict(self) -> Mapping[str, object]:
        """Return it in plain values, for private state."""
        ...


class HypothesisClass(Protocol):
    """A finite class fixed by public choices, with exact exponential weights.

    The weight of a hypothesis is ``exp(-epsilon * errors / 2)``; the number of
    errors has sensitivity 1 when one record is replaced.
    """

    @property
    def class_count(self) -> int:
        """Number of labels."""
        ...

    @property
    def size(self) -> int:
        """Number of hypotheses as they are weighed, a public constant."""
        ...

    @property
    def dimension(self) -> int:
        """VC dimension, or a public upper bound of it."""
        ...

    @property
    def truncation_variation(self) -> Fraction:
        """Total variation that the integer weights of one whole draw may cost."""
        ...

    def encode(self, values: NDArray[np.float64]) -> Encoded:
        """Return rows as the class reads them, each a function of its own values.

        Args:
            values: encoded by the public schema, shape ``(n, d)``.

        """
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
        self, encoded: EncodedRows, labels: NDArray[np.int64], epsilon: float
    ) -> float:
        """Return the log of the sum of all weights.  Secret: it comes from rows."""
        ...

    def draw(
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        epsilon: float,
        noise: NoiseSource,
    ) -> Hypothesis:
        """Draw one hypothesis with probability proportional to its weight.

        Args:
            encoded: private rows as :meth:`encode` returns them, whole or part by part.
            labels: private class indices, shape ``(n,)``.
            epsilon: the parameter of the weights, already reduced by the
                caller for :meth:`log_weight_error`.
            noise: where the draws come from.

        """
        ...

    def restricted_to(self, public_points: Encoded) -> HypothesisClass:
        """Return the class as these public points tell its hypotheses apart.

        One hypothesis for every dichotomy of the points; a class of trees
        keeps one test for every distinct cut instead.  Without points it is
        the class itself.

        Args:
            public_points: encoded public rows, m of them; m may be 0.

        """
        ...


class Ensemble(Protocol):
    """k fitted learners, each with one vote on every query.  Private state."""

    @property
    def size(self) -> int:
        """Number of votes, k."""
        ...

    @property
    def class_count(self) -> int:
        """Number of labels, L."""
        ...

    def vote_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Evaluate every model on every query of a batch.

        Args:
            values: encoded queries, shape ``(B, d)``.

        Returns:
            ``private_vote_count`` of shape ``(B, L)``; every row sums to k.
            A row depends on its own query only, never on the rest of the batch.

        """
        ...

    @property
    def is_scored(self) -> bool:
        """Whether every vote has a score too."""
        ...

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return every model's score of every query: its share of the second class.

        Args:
            values: encoded queries, shape ``(B, d)``.

        Returns:
            ``private_scores`` of shape ``(B, k)``; what is not in [0, 1], a NaN
            too, stands for 0.  A function of the models and of the queries.

        Raises:
            InvariantError: the ensemble was fitted for votes only.

        """
        ...

    def to_bytes(self) -> bytes:
        """Return the fitted models as private state."""
        ...


class FittedEnsemble(Ensemble, Protocol):
    """An ensemble fresh from its fit."""

    def repeated(self, times: int) -> Ensemble:
        """Return an ensemble with every model so many times, to measure the work of more."""
        ...
