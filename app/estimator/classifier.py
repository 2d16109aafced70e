"""A release behind scikit-learn's interface, for notebooks and research without a server.

:class:`PrivateQueryClassifier` opens a release when it is fitted and answers queries when
it predicts, by the mechanisms that serve (:mod:`app.estimator.memory_release`): everything
that one fitted object ever gives out is (epsilon, delta)-differentially private with
respect to replacing one row, or one person with all rows.  ``docs/estimator.md`` says how to
use it, and what of scikit-learn's conventions gives way to that promise.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from app.data.persons import PersonColumn, PersonReader, Persons
from app.data.rows import PrivateRows
from app.data.spelling import CellError
from app.data.vectors import encode
from app.errors import BudgetExhaustedError, ConfigurationError
from app.estimator.frame_columns import (
    Columns,
    UnchargedDataWarning,
    as_given,
    as_number,
    public_columns,
    public_labels,
)
from app.estimator.memory_release import COPIED, MemoryRelease
from app.ledger.entries.digests import SECRET_BYTES
from app.noise.system import SystemNoise
from app.planning.from_settings import advising
from app.release.terms.configuration import configure
from app.release.terms.hopelessness import WARNING
from app.settings.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags

    from app.answering.types import Answer

__all__ = [
    "HopelessReleaseWarning",
    "PrivateQueryClassifier",
    "QueryAnswer",
    "UnchargedDataWarning",
]

PARAMETER_OF_KEY: Final = {
    "answers.ensemble": "ensemble",
    "answers.queries": "queries",
    "answers.cutoff": "cutoff",
    "answers.after": "after",
    "answers.on_cutoff": "on_cutoff",
    "answers.mechanism": "mechanism",
    "hypotheses": "hypotheses",
    "hypotheses.class": "hypotheses",
    "hypotheses.depth": "depth",
    "hypotheses.bins": "bins",
    "classifier.depth": "depth",
    "classifier.learner": "classifier_learner",
    "learner.rule": "learner",
    "learner.estimator": "learner",
    "learner.params": "learner_params",
    "privacy.calibration": "calibration",
    "privacy.delta": "delta",
    "privacy.epsilon": "epsilon",
}
GROUPS: Final = "groups"
SEQUELS: Final = ("classifier", "halt")
RULES: Final = ("canonical", "halving")
OPENED: Final = (
    "this object has opened its release: a second fit would spend the budget again on what may"
    " be the same rows. Fit a new object (sklearn.base.clone makes one), and add the promises up"
)
UNKNOWN_CLASSES: Final = (
    "classes are not given and were read from the private labels, which no charge covers; name"
    " the public ones with classes="
)
LABEL: Final = "label"
SOURCE: Final = "in-memory"
NO_LEDGER: Final = "sqlite:///no-ledger.db"


class HopelessReleaseWarning(UserWarning):
    """A release was opened though its ensemble gives next to no stable answer."""


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """What one query got.

    Attributes:
        label: one of ``classes_``; of an unstable answer ``unstable_label``, or a coin's.
        stable: whether enough learners agreed; always so from the classifier.
        phase: ``ensemble``, or ``classifier`` after it.
        replayed: whether this vector was answered before, and got that answer again.
        query_id: number of the fresh answer, from 1; None from the classifier.

    """

    label: object
    stable: bool
    phase: str
    replayed: bool
    query_id: int | None


class PrivateQueryClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Answers classification queries about the rows it is fitted on, privately.

    There is no ``random_state``: all noise is the operating system's, since whoever knows
    a seed can take the noise away again.

    Args:
        epsilon: of everything that this object gives out.
        delta: likewise; well below 1 over the number of rows.
        bounds: public bounds of the features: one (lower, upper) for all, or one a
            feature; values outside are clipped.  Without them they are read from the
            private rows, with a warning, and the promise does not cover that.
        categories: public categories of the features that have any, by column index.
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
        calibration: ``profile`` or ``svt``.
        mechanism: ``stability`` or ``noisy-vote``.
        after: what follows answer m: ``classifier`` or ``halt``.
        on_cutoff: what follows unstable answer T.
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
        bounds: ArrayLike | None = None,
        categories: Mapping[int, Sequence[object]] | None = None,
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
        calibration: str = "profile",
        mechanism: str = "stability",
        after: str = "classifier",
        on_cutoff: str = "classifier",
        unstable_label: object = None,
        even_if_hopeless: bool = False,
    ) -> None:
        """Keep the parameters; :meth:`fit` looks at them."""
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
        self.calibration = calibration
        self.mechanism = mechanism
        self.after = after
        self.on_cutoff = on_cutoff
        self.unstable_label = unstable_label
        self.even_if_hopeless = even_if_hopeless

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:  # noqa: N803 -- scikit-learn's name
        """Open the release: charge its shares, then relabel, cut and fit the ensemble.

        Args:
            X: private rows, shape (n, d).
            y: their labels, shape (n,).
            groups: the person of each row, shape (n,), who is then the unit of privacy with all
                rows; None where each row is.

        Raises:
            ValueError: rows or parameters that cannot be used; nothing is charged.
            RuntimeError: this object has opened its release already.

        """
        self._open(X, y, groups)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.generic]:  # noqa: N803 -- scikit-learn's name
        """Return a label a query; a vector that was asked before gets its label again.

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
        """Return what each query got, with its stable flag and phase; raises as ``predict``."""
        check_is_fitted(self)
        checks = self._input_checks()
        return self._answered(validate_data(self, self._given(X), reset=False, **checks))

    @property
    def budget_(self) -> dict[str, Any]:
        """What is charged, reserved and left; absent before ``fit``."""
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
        columns = public_columns(values, bounds=self.bounds, categories=self.categories)
        self.classes_ = self._public_classes(given)
        indices = _indices(self.classes_, labels)
        persons = None if groups is None else _persons(groups, row_count=len(indices))
        try:
            tables = self._tables(columns, person=None if persons is None else GROUPS)
            configuration = configure(Settings.read(tables), even_if_hopeless=self.even_if_hopeless)
            encoded = encode(configuration.schema, columns.vectors(values))
            private_rows = PrivateRows(values=encoded, labels=indices, persons=persons)
            with advising(configuration.settings):
                self._release = MemoryRelease(configuration, rows=private_rows, noise=SystemNoise())
        except ConfigurationError as refused:
            raise ValueError(_parameter_line(refused)) from None
        if self._release.is_hopeless:
            warnings.warn(WARNING, HopelessReleaseWarning, stacklevel=3)
        self._columns = columns

    def _answered(self, values: NDArray[np.generic]) -> list[QueryAnswer]:
        found = self._release.answer(self._columns.vectors(values))
        for refused in found:
            if isinstance(refused, BudgetExhaustedError):
                raise refused
        return [self._named(each) for each in found if not isinstance(each, BudgetExhaustedError)]

    def _named(self, answer: Answer) -> QueryAnswer:
        stable = answer.stable
        label = self.unstable_label if answer.label is None else self.classes_[int(answer.label)]
        return QueryAnswer(label, stable, answer.phase, answer.replayed, answer.query_id)

    def _input_checks(self) -> dict[str, object]:
        """Return how scikit-learn checks an array: numbers, or anything beside categories."""
        if self.categories:
            return {"dtype": None, "ensure_all_finite": False}
        return {"dtype": np.float64, "ensure_all_finite": "allow-nan"}

    def _given(self, rows: ArrayLike) -> ArrayLike:
        """Return rows with categories so that no row decides how another is read."""
        return as_given(rows) if self.categories else rows

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

    def _tables(self, columns: Columns, *, person: str | None = None) -> dict[str, object]:
        """Return the configuration that these parameters come to.

        Raises:
            ConfigurationError: something follows the ensemble that needs a ledger.

        """
        for name in ("after", "on_cutoff"):
            if getattr(self, name) not in SEQUELS:
                problem = f"must be one of {', '.join(SEQUELS)}"
                raise ConfigurationError(f"answers.{name}", problem)
        is_rule = self.learner in RULES
        learner = {"rule": self.learner} if is_rule else {"estimator": self.learner}
        privacy: dict[str, object] = {
            "epsilon": Decimal(repr(float(self.epsilon))),
            "delta": Decimal(repr(float(self.delta))),
            "calibration": self.calibration,
        }
        if self.shares is not None:
            exact = {name: Decimal(repr(float(share))) for name, share in self.shares.items()}
            privacy["shares"] = {"relabel": 0, "answers": 0, "classifier": 0, **exact}
        return {
            "release": {"name": "estimator"},
            "data": {
                "source": SOURCE,
                "label": LABEL,
                "classes": [str(index) for index in range(len(self.classes_))],
                "features": columns.tables(),
                **({} if person is None else {"person": person}),
            },
            "hypotheses": {"class": self.hypotheses, "depth": self.depth, "bins": self.bins},
            "learner": {**learner, "params": dict(self.learner_params or {})},
            "classifier": {"learner": self.classifier_learner},
            "privacy": privacy,
            "answers": {
                "queries": self.queries,
                "cutoff": self.cutoff,
                "ensemble": self.ensemble,
                "mechanism": self.mechanism,
                "after": self.after,
                "on_cutoff": self.on_cutoff,
                "unstable": "coin" if self.unstable_label is None else "abstain",
            },
            "ledger": {"url": NO_LEDGER},
        }

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


def _indices(classes: NDArray[np.generic], labels: ArrayLike) -> NDArray[np.int64]:
    """Return the index of each label among the classes, each label read alone."""
    reader = public_labels(classes)
    try:
        values = np.asarray(labels, dtype=object).ravel().tolist()
        return np.array([reader.read(as_number(label)) for label in values], dtype=np.int64)
    except CellError:
        message = "a label is none of classes"
        raise ValueError(message) from None


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


def _parameter_line(refused: ConfigurationError) -> str:
    """Name the parameter where the configuration names a key."""
    key = refused.key
    if key.startswith("privacy.shares"):
        key = "shares"
    problem = refused.problem.replace("data.person names", f"{GROUPS} name")
    return f"{PARAMETER_OF_KEY.get(key, key)}: {problem}"
