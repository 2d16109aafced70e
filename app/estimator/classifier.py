"""The scikit-learn classifier that answers queries privately, for notebooks and research.

:class:`PrivateQueryClassifier` opens a release when it is fitted and answers queries when
it predicts, by the mechanisms that serve (:mod:`app.estimator.memory_release`): everything
that one fitted object ever gives out is (epsilon, delta)-differentially private with
respect to replacing one row, or one person with all rows.  ``docs/estimator.md`` says how to
use it, and what of scikit-learn's conventions gives way to that promise.
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
from app.data.sources.cells import LabelColumn
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
        label: one of ``classes_``; of an unstable answer ``unstable_label``, or a coin's.
        stable: whether enough learners agreed; always so from the classifier.
        phase: ``ensemble``, or ``classifier`` after it.
        replayed: whether this vector was answered before, and got that answer again.
        query_id: number of the fresh answer, from 1; None from the classifier.
        score: the mid-point of the bin that holds the probability of the second class; None
            where none are answered, where unstable, and from the classifier.

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

    There is no ``random_state``: all noise is the operating system's, since whoever knows
    a seed can take the noise away again.

    Args:
        epsilon: of everything that this object gives out.
        delta: likewise; well below 1 over the number of rows.
        bounds: public bounds of the numbers: one (lower, upper) for all; one a column, of
            which those of categorical columns are not looked at; or by column, such as
            ``{"age": (0, 120)}``, one for each number.  Values outside are clipped.  Without
            bounds they are read from the private rows, with a warning, and the promise does
            not cover that.
        categories: public categories of the columns that have any, by column, such as
            ``{"sex": ["f", "m"], "smoker": [False, True]}``.  ``"dtype"`` in place of a list,
            or of all of it, takes those of the data frame's categorical and boolean dtypes:
            only where these are public, and not what pandas made of the rows.
        classes: public labels; without them as for bounds.
        shares: fractions of epsilon by ``relabel``, ``answers`` and ``classifier``; those
            of the configuration without.
        queries: m, answers of the ensemble.
        cutoff: T, unstable answers of the ensemble.
        ensemble: k, or ``auto``.
        hypotheses: class that relabels, is searched and published, as in the configuration.
        depth: of trees.
        bins: equal intervals of a numeric feature.
        learner: ``canonical``, ``halving``, or the import path of a classifier.
        learner_params: keyword arguments of such a classifier.
        classifier_learner: ``exponential``, ``linear``, ``kernel``, ``grid`` or ``auto``: how
            what follows the ensemble is learned.
        wanted: what the classifier is wanted for, ``labels`` or ``ranking``, for which
            ``auto`` takes a learner with scores.
        calibration: ``profile`` or ``svt``.
        mechanism: ``stability`` or ``noisy-vote``.
        after: what follows answer m: ``classifier`` or ``halt``.
        on_cutoff: what follows unstable answer T.
        output: what the ensemble answers, ``label`` or ``score``: of two classes, the
            probability of the second, for :meth:`predict_proba`.
        precision: equal bins of a score, where ``output`` is one; None for ten.
        unstable_label: what an unstable answer is given; None for a fair coin over the
            classes, which no row has touched.
        even_if_hopeless: open the release though its ensemble would give next to no stable
            answer, with a warning; without it :meth:`fit` refuses, and nothing is charged.

    Attributes:
        classes_: labels, sorted.
        n_features_in_: features.
        budget_: what is charged, reserved and left, as ``GET /budget`` shows it.

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

        The environment beats the file, as ever.  What concerns records, ledger and server is
        left aside: the rows are those of :meth:`fit`.  Classes are sorted.

        Args:
            path: a ``conclave.toml``.
            changes: parameters that beat it.

        Raises:
            ConfigurationError: anything wrong, or not served here, by its setting.

        """
        settings = load_settings(Path(path), os.environ)
        return cls(**{**parameters_of(settings), **changes})

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:  # noqa: N803 -- scikit-learn's name
        """Open the release: spend the budget, relabel the rows, and train models on chunks of rows.

        Args:
            X: private rows, shape (n, d).
            y: their labels, shape (n,).
            groups: the person of each row, shape (n,), who is then the unit of privacy with all
                rows; None where each row is.

        Raises:
            ValueError: rows or parameters that cannot be used; nothing is charged.
            RuntimeError: this object has opened its release already.
            ContainedError: the classifier could not be drawn; its charge stays.

        """
        self._open(X, y, groups)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.generic]:  # noqa: N803 -- scikit-learn's name
        """Return one label per query; a repeated vector gets the same label again.

        Args:
            X: queries, shape (m, d); they are public, and protected from nobody.

        Returns:
            Shape (m,), of ``classes_`` and ``unstable_label``.

        Raises:
            BudgetExhaustedError: the ensemble is done and nothing follows it; what was
                answered is recorded and can be asked again.

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

        There is such a method where ``output`` is ``"score"``.  The second class of an unstable
        answer has 1/2; the classifier has labels alone, which count as 0 or 1.

        Args:
            X: queries, shape (m, d), which are answered as by :meth:`predict`.

        Returns:
            Shape (m, 2).

        Raises:
            BudgetExhaustedError: as :meth:`predict`.

        """
        second = np.array([self._probability(answer) for answer in self.answer(X)])
        return np.stack([1 - second, second], axis=1)

    @available_if(_published_scores)  # type: ignore[untyped-decorator]  # as above
    def decision_function(self, X: ArrayLike) -> NDArray[np.int64]:  # noqa: N803 -- as above
        """Return the published classifier's scores, if it has any; they only rank rows.

        Args:
            X: as :meth:`PublicClassifier.decision_function` takes them, free of charge.

        """
        scores: NDArray[np.int64] = self.classifier_.decision_function(X)
        return scores

    def export_onnx(self) -> bytes:
        """Return the published classifier as an ONNX model, as ``conclave export`` does.

        Raises:
            NotPublishedError: there is none yet.
            NotExportableError: it is of a class that ONNX does not hold.

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
            return _persons(groups, row_count=row_count)
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
        return np.array([reader.read(as_number(label)) for label in values], dtype=np.int64)
    except CellError:
        message = "a label is none of classes"
        raise ValueError(message) from None


def _learner(configuration: Configuration, *, row_count: int) -> str | None:
    """Return the learner of the published classifier; None where that has no share."""
    if not configuration.has(Mechanism.CLASSIFIER):
        return None
    chosen = chosen_learner(configuration.settings, row_count=row_count, opened=None)
    return chosen.row.learner.name


def _persons(groups: ArrayLike, *, row_count: int) -> Persons:
    """Return the persons of rows, each identifier read alone and kept as a keyed digest only."""
    secret = SystemNoise().secret(SECRET_BYTES)
    reader = PersonReader(PersonColumn(name=GROUPS, key=secret, missing=frozenset({""})))
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
