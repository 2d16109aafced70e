"""The interfaces of hypotheses, hypothesis classes and ensembles.

A class is a row of :mod:`app.learning.registry`, which lies in the class's folder, in
``class_row.py``.  The form in which its hypotheses are published is a row of
``app.release.classifier.written_hypotheses`` under the same name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Never, Protocol, Self, runtime_checkable

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from app.learning.cells.cell_class import CellSplits
    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.encoding.encoded_rows import EncodedRows, Tally
    from app.learning.encoding.public_columns import PublicColumn
    from app.learning.encoding.row_codes import RowCodes
    from app.learning.lists.enumerated_class import EnumeratedClass
    from app.learning.lists.hypothesis_list import Encoded
    from app.learning.predictors.predictor_classes import PredictorSource
    from app.learning.trees.counted_fit import CountedTrees
    from app.noise.source import NoiseSource


class Hypothesis(Protocol):
    """A drawn hypothesis (rule), kept private unless the mechanism that drew it publishes it."""

    def predict(self, encoded: Encoded) -> NDArray[np.int64]:
        """Return the hypothesis's class index for every encoded row, shape ``(n,)``."""
        ...

    def to_dict(self) -> Mapping[str, object]:
        """Return the hypothesis as plain lists and numbers, to be stored privately."""
        ...


class HypothesisClass(Protocol):
    """A finite hypothesis class fixed by public choices, with exact exponential weights.

    The weight of a hypothesis is ``exp(-epsilon * errors / 2)``; the number of
    errors has sensitivity 1 when one record is replaced, or one person whose rows
    count for 1 together.
    """

    @property
    def class_count(self) -> int:
        """The number of labels that hypotheses can give."""
        ...

    @property
    def size(self) -> int:
        """The number of hypotheses from which one is drawn, a public constant."""
        ...

    @property
    def dimension(self) -> int:
        """The VC dimension of the class, or a public upper bound on it."""
        ...

    @property
    def truncation_variation(self) -> Fraction:
        """A bound on the total variation distance that rounding weights causes in one draw."""
        ...

    def encode(self, values: NDArray[np.float64]) -> Encoded:
        """Return rows in the class's encoding, in which each row depends on its own values only.

        Args:
            values: encoded by the public schema, shape ``(n, d)``.

        """
        ...

    def log_weight_error(self, row_count: int, epsilon: float) -> float:
        """Return a bound on the rounding errors of hypotheses' log weights over one whole draw.

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
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        epsilon: float,
        row_weights: NDArray[np.float64] | None = None,
    ) -> float:
        """Return the log of the sum of all hypotheses' weights; secret."""
        ...

    def draw(
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        epsilon: float,
        noise: NoiseSource,
        row_weights: NDArray[np.float64] | None = None,
    ) -> Hypothesis:
        """Return a hypothesis drawn with probability proportional to its weight.

        Args:
            encoded: private rows as :meth:`encode` returns them, whole or part by part.
            labels: private class indices, shape ``(n,)``.
            epsilon: the parameter of the weights, already reduced by the
                caller for :meth:`log_weight_error`.
            noise: where the draws come from.
            row_weights: what each row counts for among errors, on a grid of ``2**-20``, shape
                ``(n,)``; those of a unit add up to 1 at most.  None for 1 each.

        """
        ...

    def restricted_to(self, public_points: Encoded) -> HypothesisClass:
        """Return a smaller class: one hypothesis for each labelling of the public points.

        One hypothesis for every dichotomy of the points; a class of trees
        keeps one test for every distinct cut instead.  Without points it is
        the class itself.

        Args:
            public_points: encoded public rows, m of them; m may be 0.

        """
        ...


@runtime_checkable
class TalliedClass(Protocol):
    """A hypothesis class that can draw a hypothesis from counts of rows alone."""

    def tally(self, encoded: Encoded, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the counts of rows that a draw needs; counts of parts can be added up."""
        ...

    def draw_tallied(self, tally: Tally, epsilon: float, noise: NoiseSource) -> Hypothesis:
        """Draw a hypothesis as :meth:`HypothesisClass.draw` does, from counts of the rows."""
        ...


class Ensemble(Protocol):
    """k trained models, each with one vote on every query; private state."""

    @property
    def size(self) -> int:
        """The number of votes on each query, k."""
        ...

    @property
    def class_count(self) -> int:
        """The number of labels, L."""
        ...

    def vote_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the votes of every model on every query of a batch.

        Args:
            values: encoded queries, shape ``(B, d)``.

        Returns:
            ``private_vote_count`` of shape ``(B, L)``; every row sums to k.
            A row depends on its own query only, never on the rest of the batch.

        """
        ...

    @property
    def is_scored(self) -> bool:
        """Whether every vote comes with a score, the model's estimate for the second class."""
        ...

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return every model's score for every query: its estimate of the second class's share.

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
        """Return the fitted models as bytes, to be stored privately."""
        ...


@runtime_checkable
class ChunkwiseEnsemble(Ensemble, Protocol):
    """An ensemble whose models can be replaced chunk by chunk."""

    def exchanged(self, chunks: NDArray[np.int64], others: Self) -> Self:
        """Return the ensemble with some chunks' models replaced by those of another ensemble.

        Args:
            chunks: indices of chunks, shape ``(c,)``.
            others: fitted by the same learner on as many chunks.

        """
        ...


class FittedEnsemble(Ensemble, Protocol):
    """An ensemble of models that was just trained."""

    def repeated(self, times: int) -> Ensemble:
        """Return an ensemble with every model repeated, to measure how time grows with k."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassAsked:
    """The public choices that a configuration makes for a hypothesis class.

    Attributes:
        kind: the name of the class.
        tests: the public tests.
        columns: the public encoding of every feature.
        depth: depth of ``trees``.
        class_count: the number L of labels.
        features: indices of the features in use; None for all.
        predictors: where a user's own predictors come from.
        splits: the public partition of ``cells``.
        public_values: encoded public points that a class of one's own may depend on.

    """

    kind: str
    tests: Sequence[BinaryTest] = ()
    columns: Sequence[PublicColumn] = ()
    depth: int
    class_count: int
    features: Sequence[int] | None = None
    predictors: PredictorSource | None = None
    splits: CellSplits | None = None
    public_values: NDArray[np.float64] | None = None

    @property
    def used(self) -> dict[int, PublicColumn]:
        """The public columns of the features in use, by feature index."""
        indices = range(len(self.columns)) if self.features is None else self.features
        return {index: self.columns[index] for index in indices}

    @property
    def numeric(self) -> list[int]:
        """The indices of the numeric features in use."""
        return [index for index, column in self.used.items() if column.bounds is not None]

    @property
    def source(self) -> PredictorSource:
        """The Python code of user-written predictors, needed by a class of predictors."""
        if self.predictors is None:
            raise ConfigurationError("hypotheses.class", f"{self.kind} needs its predictors")
        return self.predictors


def no_dichotomies(asked: ClassAsked, *_: object) -> Never:
    """Raise an error, since this class cannot list its labellings of private rows."""
    raise ConfigurationError("hypotheses.class", f"{asked.kind} has no private grid")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRow:
    """The functions of one hypothesis class, as an entry of the table of classes.

    Attributes:
        kind: its name in a configuration.
        searched: the type of the class.
        listed: the type of its list; None for a class that is not listed.
        hypothesis: the type of what is drawn of it.
        drawn: what that is, in plain words.
        numbers: the least and the most numeric features with a test that it takes, where it
            is a class of two labels over numbers; the most is None for any.
        takes_tests: whether it needs a test, of whatever feature.
        covers: whether a grid meets its cells, so that a table of statistics may cover it.
        make: the class over public tests.
        dichotomies: the class of the labellings of private points.
        dichotomy_bound: how many those are at most, by the number of points.
        fit: learners on chunks, by a rule.
        counted: what fits those learners from counts, by rule, class and whether they are
            scored; None where rows are read.
        packed: the learners of trees that were fitted from counts.
        codes: the bytes of which the encoding of rows follows; None where rows do not stream.
        joined: the learners of consecutive chunks together.
        read: those learners, from their bytes.
        read_drawn: a drawn hypothesis, from its plain values; None for a class whose hypotheses are
            not kept to label further rows.
        best: the hypothesis of least errors, which a student learns.
        check: refuses a rule, or scores, that its learners do not have.
        tests: what its hypotheses ask.
        splits: the public cells that its learners vote by; None where they do not.
        search_seconds: what fitting learners takes; None for a search of a list.
        refuse_search: refuses learners that would take hours.
        refuse_rows: refuses a draw that would take hours.
        is_quick: whether the time of a learner is known.

    """

    kind: str
    searched: type
    listed: type | None = None
    hypothesis: type
    drawn: str
    numbers: tuple[int, int | None] | None = None
    takes_tests: bool = False
    covers: bool = False
    make: Callable[[ClassAsked], HypothesisClass]
    dichotomies: Callable[[ClassAsked, NDArray[np.float64]], EnumeratedClass] = no_dichotomies
    dichotomy_bound: Callable[[ClassAsked, int], int] = no_dichotomies
    fit: Callable[..., FittedEnsemble]
    counted: Callable[..., CountedTrees | None] = lambda *_: None
    packed: Callable[..., FittedEnsemble] | None = None
    codes: Callable[..., RowCodes | None] = lambda _: None
    joined: Callable[..., FittedEnsemble]
    read: Callable[..., Ensemble]
    read_drawn: Callable[[dict[str, list[int]]], Hypothesis] | None = None
    best: Callable[..., Hypothesis]
    check: Callable[..., None] = lambda *_: None
    tests: Callable[..., Sequence[BinaryTest]] = lambda _: ()
    splits: Callable[..., CellSplits] | None = None
    search_seconds: Callable[..., float] | None = None
    refuse_search: Callable[..., None] = lambda *_, **__: None
    refuse_rows: Callable[..., None] = lambda *_, **__: None
    is_quick: bool = True
