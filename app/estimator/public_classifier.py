"""The published classifier of an estimator, which predicts without privacy cost.

All its predictions are post-processing of one random draw, whose privacy cost is charged already,
so they use up no budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.metaestimators import available_if

from app.estimator.frame_columns import as_given, is_frame
from app.release.classifier.export_formats import onnx_model

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from app.data.vectors import Vector
    from app.estimator.frame_columns import Columns
    from app.release.classifier.published_classifier import PublishedClassifier


def _has_scores(classifier: PublicClassifier) -> bool:
    return classifier.published.document.has_scores


@dataclass(frozen=True, eq=False, repr=False)
class PublicClassifier:
    """A published classifier that predicts, and that can be exported to JSON and ONNX.

    Attributes:
        learner: the method that learned the classifier: ``exponential``, ``linear``, ``kernel``,
            ``grid`` or ``scored-tree``.
        classes_: the labels, sorted.
        columns: the public description of the columns of rows to predict.
        published: the classifier itself, which predicts labels of feature vectors.

    """

    learner: str
    classes_: NDArray[np.generic]
    columns: Columns
    published: PublishedClassifier

    @property
    def json(self) -> bytes:
        """The classifier's JSON document, as in ``GET /classifier``."""
        return self.published.json

    def predict(self, X: ArrayLike) -> NDArray[np.generic]:  # noqa: N803 -- scikit-learn's name
        """Return the label of each row, shape (rows,).

        Args:
            X: rows, shape (rows, features); a data frame must contain the columns of the fit, by
                name.

        Raises:
            ValueError: the rows cannot be read.

        """
        places = {name: place for place, name in enumerate(self.published.document.classes)}
        found = [places[label] for label in self.published.predict_many(self._vectors(X))]
        return self.classes_[np.array(found, dtype=np.int64)]

    @available_if(_has_scores)  # type: ignore[untyped-decorator]  # scikit-learn ships no types
    def decision_function(self, X: ArrayLike) -> NDArray[np.int64]:  # noqa: N803 -- as above
        """Return the scores of each row, which rank rows and are not probabilities.

        Args:
            X: rows, shape (rows, features); a data frame must contain the columns of the fit, by
                name.

        Returns:
            For two classes one score per row, shape (rows,), above 0 for the second class; for more
            classes a score per row and class, shape (rows, classes).

        """
        scores = np.array(self.published.scores_many(self._vectors(X)), dtype=np.int64)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def onnx(self) -> bytes:
        """Return the classifier as an ONNX model.

        Raises:
            NotExportableError: classifiers of this class of rules cannot be expressed in ONNX.

        """
        return onnx_model(self.json)

    def _vectors(self, rows: ArrayLike) -> list[Vector]:
        """Return rows as feature vectors, the columns of a data frame found by name."""
        names = self.columns.names
        if is_frame(rows):
            given = list(rows.columns)
            absent = [name for name in names if name not in given]
            if absent and any(isinstance(name, str) for name in given):
                message = f"X has no column {absent[0]!r}"
                raise ValueError(message)
            rows = rows if absent else rows[names]
        values = np.asarray(as_given(rows))
        if values.ndim != len(("rows", "columns")) or values.shape[1] != len(names):
            message = f"X: must be rows of {len(names)} columns, has shape {values.shape}"
            raise ValueError(message)
        return self.columns.vectors(values)

    def __repr__(self) -> str:
        """Name the learner, the classes and the number of columns."""
        classes = ", ".join(map(repr, self.classes_.tolist()))
        return (
            f"<published classifier: learner {self.learner!r}, classes {classes},"
            f" {len(self.columns.names)} columns>"
        )
