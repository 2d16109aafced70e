"""The scikit-learn classifier that answers queries privately, for notebooks and research.

:class:`PrivateQueryClassifier` opens a release when it is fitted, and answers queries when it
predicts, by the same mechanisms as a server (:mod:`app.estimator.memory_release`). Everything that
one fitted object ever gives out is (epsilon, delta)-differentially private with respect to
replacing one row, or one person with all rows. ``docs/estimator.md`` explains its use, and which of
scikit-learn's conventions it cannot keep because of the privacy promise.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from app.answering.answers import ScoredAnswer
from app.data.field_values import CellError
from app.data.persons import PersonColumn, PersonReader, Persons
from app.data.rows import PrivateRows
from app.data.sources.column_values import LabelColumn
from app.data.vectors import encode
from app.errors import BudgetExhaustedError, ConfigurationError, NotPublishedError
from app.estimator.frame_columns import (
    Categories,
    Columns,
    UnchargedDataWarning,
    as_given,
    as_number,
    class_names,
    is_frame,
    public_columns,
)
from app.estimator.memory_release import COPIED, MemoryRelease
from app.estimator.parameter_tables import (
    GROUPS,
    feature_names,
    missing_tokens,
    names_persons,
    parameter_line,
    parameters_of,
    tables_of,
)
from app.estimator.public_classifier import PublicClassifier
from app.ledger.entries.digests import SECRET_BYTES
from app.noise.system import SystemNoise
from app.planning.from_settings import advising
from app.privacy.budget.composition import Mechanism
from app.release.classifier.learner_table import chosen_learner
from app.release.terms.configuration import configure
from app.release.terms.hopeless_release import WARNING
from app.settings.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags

    from app.answering.answers import Answer
    from app.release.terms.configuration import Configuration

__all__ = [
    "HopelessReleaseWarning",
    "PrivateQueryClassifier",
    "QueryAnswer",
    "UnchargedDataWarning",
]

OPENED: Final = (
    "this object has opened its release: a second fit would spend the budget again on what may"
    " be the same rows. Fit a new object (sklearn.base.clone makes one), and add the promises up"
)
UNKNOWN_CLASSES: Final = (
    "classes are not given and were read from the private labels, which no charge covers; name"
    " the public ones with classes="
)
NO_CLASSIFIER: Final = "no classifier is published yet: the ensemble answers, or nothing follows it"
NO_PERSONS: Final = "groups: the configuration names persons; give the person of each row"


class HopelessReleaseWarning(UserWarning):
    """Warning: a release was opened although it will give almost no stable answers."""


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """The result of one query: its label, its stability, and the phase of the release.

    Attributes:
        label: a label of ``classes_``; for an unstable answer ``unstable_label``, or a random
            label.
        stable: whether enough models agreed; always True for an answer of the classifier.
        phase: the release's phase: ``ensemble``, or ``classifier`` after the models have stopped.
        replayed: whether this vector was answered before, so that its recorded answer is repeated.
        query_id: the number of the new answer, counted from 1; None for an answer of the
            classifier.
        score: the mid-point of the interval (bin) that contains the probability of the second
            class; None if the release answers labels, if the answer is unstable, and for an answer
            of the classifier.

    """

    label: object
    stable: bool
    phase: str
    replayed: bool
    query_id: int | None
    score: float | None = None


def _answers_scores(estimator: PrivateQueryClassifier) -> bool:
    release: MemoryRelease | None = getattr(estimator, "_release", None)
    return estimator.output == "score" if release is None else release.answers_scores


def _published_scores(estimator: PrivateQueryClassifier) -> bool:
    published = getattr(estimator, "classifier_", None)
    return published is not None and hasattr(published, "decision_function")


class PrivateQueryClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """A classifier that answers queries about its training rows with differential privacy.

    There is no ``random_state``: all noise comes from the operating system, because anybody who
    knows a seed can subtract the noise.

    Args:
        epsilon: the epsilon of everything that this object gives out.
        delta: the delta of everything that this object gives out; well below 1 divided by the
            number of rows.
        bounds: the public bounds of numeric columns: one pair (lower, upper) for all columns; a
            sequence with a pair for each column, in which the pairs of categorical columns are
            ignored; or a mapping with a pair for each numeric column, such as
            ``{"age": (0, 120)}``. Values outside the bounds are clipped. If ``None``, the bounds
            are read from the private rows, with a warning, and the privacy promise does not cover
            this reading.
        categories: the public categories of the categorical columns, by column, such as
            ``{"sex": ["f", "m"], "smoker": [False, True]}``. The text ``"dtype"``, for one column
            or for all, takes the categories from the data frame's categorical and boolean dtypes:
            allowed only if these are public, and not derived by pandas from the rows.
        classes: the public labels; if ``None``, they are read from the private rows, with a
            warning, and the privacy promise does not cover this reading.
        shares: the fractions of epsilon for ``relabel``, ``answers`` and ``classifier``; if
            ``None``, the default fractions of the configuration.
        queries: the number m of answers that the ensemble may give.
        cutoff: the number T of unstable answers after which the ensemble stops.
        ensemble: the number k of models in the ensemble, or ``auto``.
        hypotheses: the public class of rules from which the rule that relabels the rows, and the
            published classifier, are drawn: a value of the setting ``hypotheses.class``, such as
            ``trees``.
        depth: the depth of decision trees.
        bins: the number of equal intervals into which a numeric feature is divided.
        learner: the method that trains each model: ``canonical`` (the rule of the class
            ``hypotheses`` with the fewest errors), ``halving`` (the most frequent label of
            a hundred trees without error on the model's rows), or the import path of a
            scikit-learn classifier.
        learner_params: the keyword arguments of the scikit-learn classifier.
        classifier_learner: the method that learns the published classifier: ``exponential`` (a rule
            drawn by the exponential mechanism), ``linear`` (noisy gradient descent), ``kernel``
            (noisy gradient descent with random Fourier features as additional inputs), ``grid``
            (noisy counts of labels in cells), or ``auto`` (one of these methods, chosen by a public
            rule).
        wanted: the purpose of the published classifier, ``labels`` or ``ranking``; for ``ranking``,
            ``auto`` chooses a method whose classifier has :meth:`decision_function`.
        calibration: the rule that sets the noise of the stability test, ``profile`` or ``svt``.
        mechanism: the answering mechanism: ``stability`` gives a label only if the votes pass the
            stability test (a noisy test of whether enough models agree), and ``noisy-vote`` gives
            every query a label, chosen with noise.
        after: what happens after answer m: ``classifier`` or ``halt``.
        on_cutoff: what happens after unstable answer T: ``classifier`` or ``halt``.
        output: the kind of the ensemble's answers, ``label``, or ``score`` for the probability of
            the second of two classes, which :meth:`predict_proba` returns.
        precision: the number of equal intervals (bins) of [0, 1], of which an answer names one, if
            ``output`` is ``score``; ``None`` for ten.
        unstable_label: the label of an unstable answer; ``None`` for a class that is drawn
            uniformly at random, independently of the rows.
        even_if_hopeless: whether to open the release, with a warning, even if its ensemble would
            give almost no stable answers; if not, :meth:`fit` refuses, and nothing is charged.

    Attributes:
        classes_: the labels, sorted.
        n_features_in_: the number of features.
        budget_: the charged, reserved and remaining budget, in the form of ``GET /budget``.

    """

    def __init__(  # noqa: PLR0913 -- scikit-learn's convention: a parameter each
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bounds: ArrayLike | Mapping[int | str, ArrayLike] | None = None,
        categories: Categories | None = None,
        classes: ArrayLike | None = None,
        shares: Mapping[str, float] | None = None,
        queries: int = 1000,
        cutoff: int = 5,
        ensemble: int | str = "auto",
        hypotheses: str = "trees",
        depth: int = 2,
        bins: int = 16,
        learner: str = "canonical",
        learner_params: Mapping[str, object] | None = None,
        classifier_learner: str = "exponential",
        wanted: str = "labels",
        calibration: str = "profile",
        mechanism: str = "stability",
        after: str = "classifier",
        on_cutoff: str = "classifier",
        output: str = "label",
        precision: int | None = None,
        unstable_label: object = None,
        even_if_hopeless: bool = False,
        configuration: Mapping[str, Any] | None = None,
    ) -> None:
        """Store the parameters; :meth:`fit` validates them."""
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.shares = shares
        self.queries = queries
        self.cutoff = cutoff
        self.ensemble = ensemble
        self.hypotheses = hypotheses
        self.depth = depth
        self.bins = bins
        self.learner = learner
        self.learner_params = learner_params
        self.classifier_learner = classifier_learner
        self.wanted = wanted
        self.calibration = calibration
        self.mechanism = mechanism
        self.after = after
        self.on_cutoff = on_cutoff
        self.output = output
        self.precision = precision
        self.unstable_label = unstable_label
        self.even_if_hopeless = even_if_hopeless
        self.configuration = configuration

    @classmethod
    def from_config(cls, path: str | Path, **changes: Any) -> Self:  # noqa: ANN401 -- any parameter
        """Return an estimator configured in the same way as ``conclave serve``.

        Environment variables take precedence over the file. Settings of records, ledger and server
        are ignored: the rows are those passed to :meth:`fit`. The classes are sorted.

        Args:
            path: the path of a ``conclave.toml``.
            changes: parameters that take precedence over the file and the environment.

        Raises:
            ConfigurationError: a setting is wrong, or the estimator does not support it; the error
                names the setting.

        """
        settings = load_settings(Path(path), os.environ)
        return cls(**{**parameters_of(settings), **changes})

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:  # noqa: N803 -- scikit-learn's name
        """Open the release: spend the budget, relabel the rows, and train models on chunks of rows.

        To relabel the rows is to replace their labels by those of a rule that is drawn at random.

        Args:
            X: the private rows, shape (rows, features).
            y: the labels of the rows, shape (rows,).
            groups: the person of each row, shape (rows,), if the unit of privacy is a person with
                all rows; None if it is a row.

        Raises:
            ValueError: rows or parameters cannot be used; nothing is charged.
            RuntimeError: this object has opened its release already.
            ContainedError: the classifier could not be drawn; its charge remains.

        """
        self._open(X, y, groups)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.generic]:  # noqa: N803 -- scikit-learn's name
        """Return one label per query; a repeated vector gets the same label again.

        Args:
            X: the queries, shape (queries, features); queries are public, and the privacy promise
                does not cover them.

        Returns:
            The labels, shape (queries,): labels of ``classes_``, and ``unstable_label`` for
            unstable answers.

        Raises:
            BudgetExhaustedError: the ensemble has stopped, and no classifier follows it. Earlier
                queries are recorded and can be repeated.

        """
        labels = [answer.label for answer in self.answer(X)]
        return np.array(labels, dtype=self.classes_.dtype if self.unstable_label is None else None)

    def answer(self, X: ArrayLike) -> list[QueryAnswer]:  # noqa: N803 -- scikit-learn's name
        """Return each query's label, whether it is stable, and whether models voted on it."""
        check_is_fitted(self)
        checks = self._input_checks()
        return self._answered(validate_data(self, self._given(X), reset=False, **checks))

    @available_if(_answers_scores)  # type: ignore[untyped-decorator]  # scikit-learn ships no types
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803 -- scikit-learn's name
        """Return the probabilities of both classes, from each query's score.

        The method exists only if ``output`` is ``"score"``. The second class of an unstable answer
        has probability 1/2. The published classifier gives labels only, which are returned as
        probability 0 or 1.

        Args:
            X: the queries, shape (queries, features), which are answered as by :meth:`predict`.

        Returns:
            The probabilities of the first and the second class, shape (queries, 2).

        Raises:
            BudgetExhaustedError: the ensemble has stopped, and no classifier follows it.

        """
        second = np.array([self._probability(answer) for answer in self.answer(X)])
        return np.stack([1 - second, second], axis=1)

    @available_if(_published_scores)  # type: ignore[untyped-decorator]  # as above
    def decision_function(self, X: ArrayLike) -> NDArray[np.int64]:  # noqa: N803 -- as above
        """Return the published classifier's scores, if it has any; they only rank rows.

        The method spends no budget.

        Args:
            X: rows, shape (rows, features); a data frame must contain the columns of :meth:`fit`,
                by name.

        """
        scores: NDArray[np.int64] = self.classifier_.decision_function(X)
        return scores

    def export_onnx(self) -> bytes:
        """Return the published classifier as an ONNX model, as ``conclave export`` does.

        Raises:
            NotPublishedError: no classifier is published yet.
            NotExportableError: classifiers of this class of rules cannot be expressed in ONNX.

        """
        check_is_fitted(self)
        published = getattr(self, "classifier_", None)
        if published is None:
            raise NotPublishedError(NO_CLASSIFIER)
        model: bytes = published.onnx()
        return model

    @property
    def classifier_(self) -> PublicClassifier:
        """The published classifier; the attribute is absent until it is published."""
        published = self._release.classifier if hasattr(self, "_release") else None
        if published is None or self.learner_ is None:
            raise AttributeError(NO_CLASSIFIER)
        return PublicClassifier(self.learner_, self.classes_, self._columns, published)

    @property
    def budget_(self) -> dict[str, Any]:
        """The spent, reserved and remaining privacy budget; absent before ``fit``."""
        if not hasattr(self, "_release"):
            message = "budget_ is there once the estimator is fitted"
            raise AttributeError(message)
        return self._release.budget()

    def _open(self, rows: ArrayLike, labels: ArrayLike, groups: ArrayLike | None) -> None:
        is_open = hasattr(self, "_release")
        checks = self._input_checks()
        values, given = validate_data(self, self._given(rows), labels, reset=not is_open, **checks)
        check_classification_targets(given)
        if is_open:
            raise RuntimeError(OPENED)
        columns = self._public_columns(values, rows)
        self.classes_ = self._public_classes(given)
        names = class_names(self.classes_)
        indices = _indices(names, labels)
        persons = self._persons(groups, row_count=len(indices))
        try:
            tables = tables_of(
                self.get_params(deep=False),
                columns,
                classes=names,
                of_persons=persons is not None,
            )
            configuration = configure(Settings.read(tables), even_if_hopeless=self.even_if_hopeless)
            encoded = encode(configuration.schema, columns.vectors(values))
            private_rows = PrivateRows(values=encoded, labels=indices, persons=persons)
            learner = _learner(configuration, row_count=private_rows.count)
            with advising(configuration.settings):
                self._release = MemoryRelease(configuration, rows=private_rows, noise=SystemNoise())
        except ConfigurationError as refused:
            raise ValueError(parameter_line(refused, columns.names)) from None
        self._columns, self.learner_ = columns, learner
        self._labels = dict(zip(names, self.classes_, strict=True))
        if self._release.is_hopeless:
            warnings.warn(WARNING, HopelessReleaseWarning, stacklevel=3)
        self._release.publish_if_due()

    def _public_columns(self, values: NDArray[np.generic], rows: ArrayLike) -> Columns:
        """Return the columns by name: those of a data frame, or of the configuration."""
        in_configuration = feature_names(self.configuration)
        if in_configuration is not None and len(in_configuration) != values.shape[1]:
            in_configuration = None
        names = getattr(self, "feature_names_in_", in_configuration)
        return public_columns(
            values,
            bounds=self.bounds,
            categories=self.categories,
            names=None if names is None else list(names),
            dtypes=list(rows.dtypes) if is_frame(rows) else None,
            missing=missing_tokens(self.configuration),
        )

    def _persons(self, groups: ArrayLike | None, *, row_count: int) -> Persons | None:
        """Return the persons of the rows, where they are the unit of privacy."""
        if groups is not None:
            missing = missing_tokens(self.configuration)
            return _persons(groups, row_count=row_count, missing=missing)
        if names_persons(self.configuration):
            raise ValueError(NO_PERSONS)
        return None

    def _answered(self, values: NDArray[np.generic]) -> list[QueryAnswer]:
        found = self._release.answer(self._columns.vectors(values))
        for refused in found:
            if isinstance(refused, BudgetExhaustedError):
                raise refused
        return [self._named(each) for each in found if not isinstance(each, BudgetExhaustedError)]

    def _named(self, answer: Answer) -> QueryAnswer:
        return QueryAnswer(
            label=self.unstable_label if answer.label is None else self._labels[answer.label],
            stable=answer.stable,
            phase=answer.phase,
            replayed=answer.replayed,
            query_id=answer.query_id,
            score=answer.score if isinstance(answer, ScoredAnswer) else None,
        )

    def _probability(self, answer: QueryAnswer) -> float:
        """Return the probability of the second class."""
        if answer.score is not None:
            return answer.score
        return float(answer.label == self.classes_[1]) if answer.stable else 0.5

    def _reads_cells(self) -> bool:
        """Whether cells are read one by one, since some may be more than numbers."""
        is_by_column = isinstance(self.bounds, Mapping)
        return bool(self.categories) or is_by_column or bool(missing_tokens(self.configuration))

    def _input_checks(self) -> dict[str, object]:
        """Return how scikit-learn checks an array: numbers, or anything beside categories."""
        if self._reads_cells():
            return {"dtype": None, "ensure_all_finite": False}
        return {"dtype": np.float64, "ensure_all_finite": "allow-nan"}

    def _given(self, rows: ArrayLike) -> ArrayLike:
        """Return rows of cells so that no row decides how another is read."""
        return as_given(rows) if self._reads_cells() else rows

    def _public_classes(self, labels: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return the classes, sorted; without any they are read from the labels."""
        if self.classes is None:
            classes = np.unique(labels)
            warnings.warn(UNKNOWN_CLASSES, UnchargedDataWarning, stacklevel=3)
        else:
            classes = np.unique(np.asarray(self.classes))
        if len(classes) < len(("no", "yes")):
            message = "there must be two classes or more, and there is one class"
            raise ValueError(message)
        return classes

    def __getstate__(self) -> dict[str, object]:
        """Return the parameters; a fitted object refuses every copy, which would answer afresh."""
        if hasattr(self, "_release"):
            raise TypeError(COPIED)
        state: dict[str, object] = super().__getstate__()
        return state

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether the release is open."""
        return hasattr(self, "_release")

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that no seed repeats a fit, and which cells are understood."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = bool(self.categories)
        return tags


def _indices(classes: Sequence[str], labels: ArrayLike) -> NDArray[np.int64]:
    """Return the index of each label among the classes, each label read alone."""
    reader = LabelColumn(classes)
    try:
        values = np.asarray(labels, dtype=object).ravel().tolist()
        # A configuration may name the classes "True" and "False"; those of an array are 0 and 1.
        given = values if reader.names.have_booleans else map(as_number, values)
        return np.array([reader.read(label) for label in given], dtype=np.int64)
    except CellError:
        message = "a label is none of classes"
        raise ValueError(message) from None


def _learner(configuration: Configuration, *, row_count: int) -> str | None:
    """Return the learner of the published classifier; None where that has no share."""
    if not configuration.has(Mechanism.CLASSIFIER):
        return None
    chosen = chosen_learner(configuration.settings, row_count=row_count, opened=None)
    return chosen.row.learner.name


def _persons(groups: ArrayLike, *, row_count: int, missing: frozenset[str]) -> Persons:
    """Return the persons of rows, each identifier read alone and kept as a keyed digest only."""
    secret = SystemNoise().secret(SECRET_BYTES)
    reader = PersonReader(PersonColumn(name=GROUPS, key=secret, missing=missing | {""}))
    identifiers = np.asarray(groups, dtype=object).ravel().tolist()
    if len(identifiers) != row_count:
        message = f"groups: {len(identifiers)} identifiers for {row_count} rows"
        raise ValueError(message)
    numbers = np.empty(row_count, dtype=np.int64)
    for row, identifier in enumerate(identifiers):
        try:
            numbers[row] = reader.read(identifier)
        except CellError as refused:
            message = f"groups: row {row + 1} {refused}"
            raise ValueError(message) from None
    return reader.persons(numbers)
