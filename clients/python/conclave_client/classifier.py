"""A published classifier, evaluated by numpy with the same labels as the server's.

Every row is evaluated by itself. Numbers are compared with thresholds, clipped to their bounds and
rounded to integers one by one, in float64, and only integers are summed. So the label of a row does
not depend on the other rows, to the bit. The document's format is described in Conclave's
``docs/classifier-format.md``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from conclave_client.frames import (
    Column,
    Frame,
    MissingTokens,
    codes_of,
    columns_of,
    days_of,
    numbers_of,
    truths_of,
)

if TYPE_CHECKING:
    from os import PathLike

Document: TypeAlias = Mapping[str, Any]
Integers: TypeAlias = NDArray[Any]
"""Of 64 bits, or Python's own where a sum could leave those."""
Columns: TypeAlias = Sequence[NDArray[Any]]

FORMAT: Final = "conclave-classifier"
# How a document of each version predicts; a predictor and a student need more than it.
FORMS: Final[Mapping[int, str]] = {
    1: "tree",
    2: "halfspace",
    4: "scores",
    5: "scores",
    6: "grid",
    7: "scores",
    8: "tree",
}
PHASES: Final = 1 << 32
INTEGER_BOUND: Final = 1 << 63
ROWS_TOGETHER: Final = 4096
BINARY: Final = 2
NUMERIC: Final = "numeric"
DATE: Final = "date"
BOOLEAN: Final = "boolean"
KINDS: Final = frozenset({NUMERIC, DATE, BOOLEAN, "categorical"})


class UnsupportedClassifierError(ValueError):
    """The document is no classifier, or does not contain everything that predicting needs."""


def load_classifier(path: str | PathLike[str]) -> Classifier:
    """Return the classifier in a file from ``conclave export`` or ``GET /classifier``.

    Raises:
        OSError: the file cannot be read.
        UnsupportedClassifierError: the file contains no document with which rows can be predicted.

    """
    return Classifier.read(Path(path).read_bytes())


class Classifier:
    """A published classifier that is evaluated without a server.

    Attributes:
        document: the published document.
        release: the name of the release.
        label: the name of the predicted column.
        classes: the labels, in order.
        features: the names of the features, in the order of a row's values.

    """

    def __init__(self, document: Document) -> None:
        """Prepare to predict by a document.

        Raises:
            UnsupportedClassifierError: rows cannot be predicted with this document.

        """
        self.document = document
        try:
            self._form = _form_of(document)
            self.release: str = document["release"]
            self.label: str = document["label"]
            self.classes: tuple[str, ...] = tuple(document["classes"])
            self._features: Sequence[Document] = document["features"]
            self.features = tuple(str(feature["name"]) for feature in self._features)
            _refuse_unknown_kinds(self._features)
            self._missing = MissingTokens.of(document["missing"])
            self._predict = _PREDICTING[self._form](self._features, document)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise UnsupportedClassifierError("is no whole classifier document") from error

    @classmethod
    def read(cls, text: str | bytes) -> Classifier:
        """Return the classifier in a JSON document.

        Raises:
            UnsupportedClassifierError: rows cannot be predicted with this document.

        """
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            raise UnsupportedClassifierError("is no JSON") from None
        if not isinstance(document, dict):
            raise UnsupportedClassifierError("is no classifier document")
        return cls(document)

    def predict(self, frame: Frame) -> NDArray[np.object_]:
        """Return the predicted label of each row.

        Args:
            frame: columns by name, or rows of values in the order of ``features``; a missing value
                is None, NaN, or a text that the document lists.

        Raises:
            ValueError: a column is missing or contains a value of another kind; the error names the
                column.

        """
        decided = [_indices(part) for part in self._parts(frame)]
        labels = np.array(self.classes, dtype=np.object_)
        return labels[np.concatenate(decided)] if decided else labels[:0]

    def scores(self, frame: Frame) -> NDArray[np.int64]:
        """Return the scores of each row, shape (rows, 1) for two classes, else (rows, classes).

        Scores rank rows, and they are not probabilities. The scores of a document are integers on
        one of two scales. Divided by the document's number ``unit``, they are the weighted sums of
        a linear classifier. Divided by ``tree_unit``, they are a tree's estimates of the fraction
        of rows in each class (for two classes, the second fraction minus the first).

        Raises:
            ValueError: the document has no scores, a column is missing, or a column contains a
                value of another kind.

        """
        if self._form != "scores" and not _has_scored_leaves(self.document):
            raise ValueError("this classifier has no scores")
        found = list(self._parts(frame))
        width = 1 if len(self.classes) == BINARY else len(self.classes)
        return np.concatenate(found) if found else np.empty((0, width), dtype=np.int64)

    def _parts(self, frame: Frame) -> Iterable[Integers]:
        """Predict so many rows at a time that what is computed on the way stays small."""
        columns = [
            _values_of(column, name, feature, self._missing)
            for column, name, feature in zip(
                columns_of(frame, self.features), self.features, self._features, strict=True
            )
        ]
        if len({len(column) for column in columns}) > 1:
            raise ValueError("columns are not of one length")
        for first in range(0, len(columns[0]) if columns else 0, ROWS_TOGETHER):
            yield self._predict([column[first : first + ROWS_TOGETHER] for column in columns])


def _refuse_unknown_kinds(features: Sequence[Document]) -> None:
    for feature in features:
        if feature["kind"] not in KINDS:
            raise UnsupportedClassifierError("has a kind of feature that this reader does not know")


def _values_of(
    column: Column, name: str, feature: Document, missing: MissingTokens
) -> NDArray[np.float64] | NDArray[np.int64]:
    """Return numbers, days, or the codes of categories."""
    if feature["kind"] == DATE:
        return days_of(column, name, missing)
    if feature["kind"] == NUMERIC:
        return numbers_of(column, name, missing)
    codes = truths_of if feature["kind"] == BOOLEAN else codes_of
    return codes(column, name, feature["categories"], missing)


def _indices(decided: Integers) -> NDArray[np.int64]:
    """Return the index of each row's class, which scores still have to decide."""
    if decided.ndim == 1:
        return decided
    if decided.shape[1] == 1:
        return np.array(decided[:, 0] > 0, dtype=np.int64)
    largest: NDArray[np.int64] = np.argmax(decided, axis=1)  # of equal ones the first
    return largest


def _form_of(document: Document) -> str:
    if document["format"] != FORMAT:
        raise UnsupportedClassifierError("is no classifier document")
    form = FORMS.get(document["version"])
    if form is not None and form in document:
        return form
    if "predictor" in document:
        raise UnsupportedClassifierError("predicts by code of the operator's own")
    if "student" in document and form is None:
        raise UnsupportedClassifierError(
            "is a fitted estimator, by which its server alone predicts"
        )
    raise UnsupportedClassifierError("has a version that this reader does not know")


class _Tests:
    """The outcomes of tests on the columns of some rows."""

    def __init__(self, features: Sequence[Document]) -> None:
        self._features = features

    def holds(
        self, test: Document, columns: Columns, chosen: NDArray[np.int64] | slice = slice(None)
    ) -> NDArray[np.bool_]:
        """Return for each chosen row whether a test holds."""
        feature = self._features[test["feature"]]
        values = columns[test["feature"]][chosen]
        if "bounds" in feature:
            if "at_least" not in test:
                return np.zeros(len(values), dtype=np.bool_)
            # NaN is missing, and nothing holds of it.
            result: NDArray[np.bool_] = _clipped(values, feature["bounds"]) >= test["at_least"]
            return result
        categories = feature["categories"]
        if test.get("category") in categories:
            wanted = categories.index(test["category"])
        else:
            wanted = len(categories) + (0 if test.get("other") else 1 if test.get("missing") else 2)
        matched: NDArray[np.bool_] = values == wanted
        return matched


def _has_scored_leaves(document: Document) -> bool:
    return "tree_unit" in document


class _Tree:
    """Rows go down a tree together, parted at each node, to a class or to scores."""

    def __init__(self, features: Sequence[Document], document: Document) -> None:
        self._tests = _Tests(features)
        self._root: Document = document["tree"]
        self._is_scored = _has_scored_leaves(document)
        classes = document["classes"]
        self._classes = {name: index for index, name in enumerate(classes)}
        self._width = 1 if len(classes) == BINARY else len(classes)

    def __call__(self, columns: Columns) -> Integers:
        count = len(columns[0])
        found = np.empty((count, self._width) if self._is_scored else count, dtype=np.int64)
        waiting = [(self._root, np.arange(len(found)))]
        while waiting:
            node, rows = waiting.pop()
            if not len(rows):
                continue
            if "label" in node:
                found[rows] = node["scores"] if self._is_scored else self._classes[node["label"]]
                continue
            holds = self._tests.holds(node, columns, rows)
            waiting += [(node["true"], rows[holds]), (node["false"], rows[~holds])]
        return found


class _Halfspace:
    """Sums of whole numbers of steps; the first level that is not zero decides."""

    def __init__(self, features: Sequence[Document], document: Document) -> None:
        del features
        self._form: Document = document["halfspace"]

    def __call__(self, columns: Columns) -> Integers:
        form = self._form
        inside = np.zeros(len(columns[0]), dtype=np.int64)
        undecided = np.ones(len(inside), dtype=np.bool_)
        for level in form["levels"]:
            weights, offset = level["weights"], level["offset"]
            exact = _exact(abs(offset) + sum(map(abs, weights)) * form["steps"])
            values = _steps(form, columns).astype(exact) @ np.array(weights, dtype=exact) - offset
            inside[undecided & (values > 0)] = 1
            undecided &= values == 0
        return inside


class _Scores:
    """Weights of the terms that hold, of waves and of numbers."""

    def __init__(self, features: Sequence[Document], document: Document) -> None:
        self._tests = _Tests(features)
        self._form: Document = document["scores"]
        self._dtype = _exact(self._bound())

    def __call__(self, columns: Columns) -> Integers:
        form, count = self._form, len(columns[0])
        totals = np.tile(np.array(form["intercepts"], dtype=self._dtype), (count, 1))
        outcomes: dict[tuple[object, ...], NDArray[np.bool_]] = {}
        for term in form["terms"]:
            holds = np.ones(count, dtype=np.bool_)
            for test in term["tests"]:
                named = tuple(test.get(name) for name in _TEST_MEMBERS)
                if named not in outcomes:
                    outcomes[named] = self._tests.holds(test, columns)
                holds &= outcomes[named] != test.get("fails", False)
            totals[holds] += np.array(term["weights"], dtype=self._dtype)
        if "waves" in form:
            totals += self._waves(form["waves"], columns)
        if "numbers" in form:
            weights = np.array(form["numbers"]["weights"], dtype=self._dtype)
            totals += _steps(form["numbers"], columns).astype(self._dtype) @ weights
        return totals

    def _waves(self, waves: Document, columns: Columns) -> Integers:
        largest = max((sum(map(abs, row)) for row in waves["frequencies"]), default=0)
        exact = _exact(largest * waves["steps"] + PHASES)
        frequencies = np.array(waves["frequencies"], dtype=exact)
        phases = _steps(waves, columns).astype(exact) @ frequencies.T + np.array(
            waves["shifts"], dtype=exact
        )
        places = phases % PHASES // (PHASES // len(waves["cosines"]))
        cosines = np.array(waves["cosines"], dtype=self._dtype)[places.astype(np.int64)]
        added: Integers = cosines @ np.array(waves["weights"], dtype=self._dtype)
        return added

    def _bound(self) -> int:
        """Return what no score, on its way or in the end, is above in size."""
        form = self._form
        bound = sum(map(abs, form["intercepts"]))
        bound += sum(abs(weight) for term in form["terms"] for weight in term["weights"])
        if "waves" in form:
            largest = max(map(abs, form["waves"]["cosines"]))
            bound += largest * sum(abs(each) for row in form["waves"]["weights"] for each in row)
        if "numbers" in form:
            weights = form["numbers"]["weights"]
            bound += form["numbers"]["steps"] * sum(abs(each) for row in weights for each in row)
        return int(bound)


class _Grid:
    """A label for each cell, found by counting cuts."""

    def __init__(self, features: Sequence[Document], document: Document) -> None:
        del features
        form = document["grid"]
        self._axes = [
            (feature, np.array(cuts, dtype=np.float64))
            for feature, cuts in zip(form["features"], form["cuts"], strict=True)
        ]
        self._labels = np.repeat(np.array(form["labels"], dtype=np.int64), form["lengths"])

    def __call__(self, columns: Columns) -> Integers:
        cells = np.zeros(len(columns[0]), dtype=np.int64)
        for feature, cuts in self._axes:
            values = columns[feature]
            ranks = np.searchsorted(cuts, values, side="right")
            cells = cells * (len(cuts) + 1) + np.where(np.isnan(values), 0, ranks)
        return self._labels[cells]


_TEST_MEMBERS: Final = ("feature", "at_least", "category", "other", "missing")
_PREDICTING: Final[
    Mapping[str, Callable[[Sequence[Document], Document], Callable[[Columns], Integers]]]
] = {"tree": _Tree, "halfspace": _Halfspace, "scores": _Scores, "grid": _Grid}


def _clipped(values: NDArray[np.float64], bounds: Sequence[float]) -> NDArray[np.float64]:
    return np.minimum(np.maximum(values, bounds[0]), bounds[1])


def _steps(form: Document, columns: Columns) -> NDArray[np.int64]:
    """Return whole numbers of steps between bounds, a row each; 0 where a number is missing."""
    placed = []
    for feature, (lower, upper) in zip(form["features"], form["bounds"], strict=True):
        values = _clipped(columns[feature], (lower, upper))
        # In float64 and in this order, as everywhere; halves go to the even integer.
        steps = np.rint((values - lower) / (upper - lower) * form["steps"])
        placed.append(np.where(np.isnan(values), 0.0, steps).astype(np.int64))
    return np.stack(placed, axis=1)


def _exact(bound: int) -> np.dtype[Any]:
    """Return integers that hold every sum up to a bound."""
    return np.dtype(np.int64 if bound < INTEGER_BOUND else np.object_)
