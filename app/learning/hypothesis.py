"""The interfaces of hypotheses, hypothesis classes and ensembles.

A hypothesis is one classifier; a hypothesis class is a public set of possible classifiers. Every
class has an entry in the table of :mod:`app.learning.registry`. The file
``class_registration.py`` in the class's folder defines the entry. The form in which a hypothesis of
the class is published is in the table of ``app.release.classifier.written_hypotheses`` under the
name of the class.

The exponential mechanism draws a hypothesis with a probability in proportion to its weight
``exp(-epsilon * errors / 2)``, where ``errors`` is the number of rows that it mislabels.
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
    from app.learning.enumerated.enumerated_class import EnumeratedClass
    from app.learning.enumerated.hypothesis_list import Encoded
    from app.learning.predictors.predictor_classes import PredictorSource
    from app.learning.trees.counted_fit import CountedTrees
    from app.noise.source import NoiseSource


class Hypothesis(Protocol):
    """A classifier drawn at random; private unless the mechanism that drew it publishes it."""

    def predict(self, encoded: Encoded) -> NDArray[np.int64]:
        """Return the hypothesis's class index for every row, shape ``(rows,)``.

        Args:
            encoded: the rows, encoded by the hypothesis class.

        """
        ...

    def to_dict(self) -> Mapping[str, object]:
        """Return the hypothesis as plain lists and numbers, for private storage."""
        ...


class HypothesisClass(Protocol):
    """A finite set of classifiers, fixed by public choices, from which one can be drawn at random.

    The number of rows that a hypothesis mislabels changes by at most 1 when one record is replaced.
    If rows have weights, the total weight of these rows changes by at most 1 when all rows of one
    person are replaced.
    """

    @property
    def class_count(self) -> int:
        """The number of labels that the hypotheses can give."""
        ...

    @property
    def size(self) -> int:
        """The number of hypotheses in the class, a public constant."""
        ...

    @property
    def dimension(self) -> int:
        """The VC dimension of the class, or a public upper bound on it."""
        ...

    @property
    def truncation_variation(self) -> Fraction:
        """A bound on the total variation distance by which rounded weights change a random draw."""
        ...

    def encode(self, values: NDArray[np.float64]) -> Encoded:
        """Return rows in the form that the class needs; a row's form depends on this row only.

        Args:
            values: feature values encoded as numbers by the public schema, shape
                ``(rows, features)``.

        """
        ...

    def log_weight_error(self, row_count: int, epsilon: float) -> float:
        """Return a bound on the rounding errors of the hypotheses' log weights in one random draw.

        Args:
            row_count: the public number of rows.
            epsilon: the parameter in the weights ``exp(-epsilon * errors / 2)``, or an upper bound
                on it.

        Returns:
            A number ``eta``. Every hypothesis is drawn with its exact probability times a factor in
            ``[e**(-2 eta), e**(2 eta)]``, up to a total variation distance of
            :attr:`truncation_variation`. Therefore the draw is ``(epsilon + 4 eta)``-DP up to this
            distance.

        """
        ...

    def log_normaliser(
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        epsilon: float,
        row_weights: NDArray[np.float64] | None = None,
    ) -> float:
        """Return the log of the sum of all hypotheses' weights; the result is secret.

        Args:
            encoded: the private rows, encoded by :meth:`encode`.
            labels: private class indices, shape ``(rows,)``.
            epsilon: the parameter in the weights ``exp(-epsilon * errors / 2)``.
            row_weights: the weight of an error on each row, shape ``(rows,)``; None for 1 each.

        """
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
            encoded: the private rows, encoded by :meth:`encode`, as one array or block by block.
            labels: private class indices, shape ``(rows,)``.
            epsilon: the parameter in the weights ``exp(-epsilon * errors / 2)``. The caller has
                already lowered it by the rounding errors that :meth:`log_weight_error` bounds.
            noise: the source of randomness.
            row_weights: the weight of an error on each row, a multiple of ``2**-20``, shape
                ``(rows,)``; the weights of one person's rows add up to at most 1. None: an error on
                any row counts 1.

        """
        ...

    def restricted_to(self, public_points: Encoded) -> HypothesisClass:
        """Return a smaller class: one hypothesis for each labelling of public points.

        A class of trees instead keeps all trees over fewer feature tests: one test for each way in
        which the tests divide the points.
        Without points the class is returned unchanged.

        Args:
            public_points: public feature vectors, encoded by :meth:`encode`; there may be none.

        """
        ...


@runtime_checkable
class TalliedClass(Protocol):
    """A hypothesis class that can draw a hypothesis from counts of rows, without the rows."""

    def tally(self, encoded: Encoded, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the counts of rows that a random draw of a hypothesis needs.

        The counts of several blocks of rows can be added.

        Args:
            encoded: the private rows, encoded by the class.
            labels: private class indices, shape ``(rows,)``.

        """
        ...

    def draw_tallied(self, tally: Tally, epsilon: float, noise: NoiseSource) -> Hypothesis:
        """Draw a hypothesis as :meth:`HypothesisClass.draw` does, from counts in place of rows.

        Args:
            tally: the counts that :meth:`tally` returns.
            epsilon: the parameter in the weights ``exp(-epsilon * errors / 2)``.
            noise: the source of randomness.

        """
        ...


class Ensemble(Protocol):
    """An ensemble of k trained models, each with one vote on every query; private."""

    @property
    def size(self) -> int:
        """The number of models, and so of votes on each query."""
        ...

    @property
    def class_count(self) -> int:
        """The number of labels."""
        ...

    def vote_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of models that vote for each label, for every query of a batch.

        Args:
            values: queries, encoded as numbers by the public schema, shape ``(queries, features)``.

        Returns:
            Private vote counts, shape ``(queries, labels)``. The counts of one query add up to the
            number of models, and depend on this query only, not on the rest of the batch.

        """
        ...

    @property
    def is_scored(self) -> bool:
        """Whether every vote comes with a score: the model's probability of the second class."""
        ...

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return every model's score for every query: its probability of the second class.

        Args:
            values: queries, encoded as numbers by the public schema, shape ``(queries, features)``.

        Returns:
            Private scores, shape ``(queries, models)``. The caller must read a score outside
            ``[0, 1]``, or a NaN, as 0. The scores depend on the models and the queries only.

        Raises:
            InvariantError: the models give votes only.

        """
        ...

    def to_bytes(self) -> bytes:
        """Return the trained models as bytes, for private storage."""
        ...


@runtime_checkable
class ChunkwiseEnsemble(Ensemble, Protocol):
    """An ensemble in which the model of one chunk can be replaced."""

    def exchanged(self, chunks: NDArray[np.int64], others: Self) -> Self:
        """Return the ensemble with some chunks' models replaced by the models of another ensemble.

        Args:
            chunks: the indices of the chunks whose models are replaced, shape ``(chunks,)``.
            others: an ensemble of the same learner, with as many chunks as this one.

        """
        ...


class FittedEnsemble(Ensemble, Protocol):
    """An ensemble that was just trained, in contrast to one that was read from storage."""

    def repeated(self, times: int) -> Ensemble:
        """Return an ensemble with ``times`` copies of each model, to time a larger ensemble."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassAsked:
    """The public choices that a configuration makes for a hypothesis class.

    Attributes:
        kind: the name of the class.
        tests: the public yes-or-no tests of features, for example age >= 40.
        columns: the public encoding of every feature.
        depth: the depth of the trees, for class ``trees``.
        class_count: the number of labels.
        features: the indices of the features in use; None for all.
        predictors: the Python code of predictors that the user wrote.
        splits: the public division of the feature space, for class ``cells``.
        public_values: encoded public feature vectors, from which user-written predictors may be
            made.

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
        """The public encoding of each feature in use, by feature index."""
        indices = range(len(self.columns)) if self.features is None else self.features
        return {index: self.columns[index] for index in indices}

    @property
    def numeric(self) -> list[int]:
        """The indices of the numeric features in use."""
        return [index for index, column in self.used.items() if column.bounds is not None]

    @property
    def source(self) -> PredictorSource:
        """The Python code of the user's predictors.

        Raises:
            ConfigurationError: the configuration names no predictors.

        """
        if self.predictors is None:
            raise ConfigurationError("hypotheses.class", f"{self.kind} needs its predictors")
        return self.predictors


def no_dichotomies(asked: ClassAsked, *_: object) -> Never:
    """Raise an error: the class cannot list the ways in which it labels private rows.

    Raises:
        ConfigurationError: always.

    """
    raise ConfigurationError("hypotheses.class", f"{asked.kind} has no private grid")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRegistration:
    """The functions of one hypothesis class, as an entry of the table of classes.

    Attributes:
        kind: the name of the class in a configuration.
        searched: the Python type that represents the class.
        listed: the Python type of the list of all hypotheses of the class; None if they are not
            listed.
        hypothesis: the Python type of a drawn hypothesis.
        drawn: a noun for a drawn hypothesis in texts for users, for example "an interval".
        numbers: for a class with two labels over numeric features, how many numeric features may
            have tests: the smallest and the largest number; the largest is None for any number.
        takes_tests: whether the class needs at least one test of a feature.
        covers: whether a statistics table may use the class. Such a table contains, for each
            hypothesis of the class, the number of rows to which it gives label 1, with noise.
        make: returns the class over public tests of features.
        dichotomies: returns the list of all labellings that the class gives to private rows.
        dichotomy_bound: returns an upper bound on the number of these labellings, from the number
            of rows.
        fit: trains models on chunks by a built-in training rule, ``canonical`` or ``halving``.
        counted: returns the method that trains the models from counts of rows; None if training
            needs the rows.
        packed: returns an ensemble of trees that were trained from counts of rows.
        codes: returns the encoding that packs rows into bytes; None if the class does not support
            rows that are read in parts.
        joined: returns one ensemble with the models of several ensembles, whose chunks are
            consecutive.
        read: returns the ensemble that bytes encode.
        read_drawn: returns a drawn hypothesis from the lists of integers in which it was stored, so
            that it can give labels to rows that are added later. None for a class whose hypotheses
            cannot be stored in this way.
        best: returns the hypothesis with the fewest errors, for the student classifier, which is
            trained on queries and their released labels.
        check: refuses a training rule, or scores, if the class does not support them.
        tests: returns the tests of features that the hypotheses use.
        splits: returns the public cells by which the models vote; None if they do not vote by
            cells.
        search_seconds: returns the estimated time of training; None for classes that are listed.
        refuse_search: refuses training that would take more than an hour.
        refuse_rows: refuses a random draw that would take more than some minutes.
        is_quick: whether training is known to be quick; False for code that a user wrote.

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
