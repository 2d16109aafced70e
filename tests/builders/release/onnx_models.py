"""Run a published classifier as an ONNX model, row by row as a query has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime

from app.release.classifier.onnx.onnx_model import SCORES, output_name, to_onnx

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.data.vectors import Vector
    from app.release.classifier.classifier_document import ClassifierDocument


def model_labels(document: ClassifierDocument, vectors: Sequence[Vector]) -> list[str]:
    """Return what onnxruntime predicts for rows in schema order by the exported model."""
    return labels_of(to_onnx(document), document, vectors)


def labels_of(model: bytes, document: ClassifierDocument, vectors: Sequence[Vector]) -> list[str]:
    """Return what onnxruntime predicts for rows in schema order by a model."""
    (labels,) = _session(model).run([output_name(document)], inputs(document, vectors))
    assert labels.shape == (len(vectors),)
    return [str(label) for label in labels]


def scores_of_model(
    model: bytes, document: ClassifierDocument, vectors: Sequence[Vector]
) -> list[list[int]]:
    """Return the scores that a model gives rows in schema order, beside their labels."""
    (scores,) = _session(model).run([output_name(document, SCORES)], inputs(document, vectors))
    assert scores.dtype == np.int64
    found: list[list[int]] = scores.tolist()
    return found


def output_names(document: ClassifierDocument) -> list[str]:
    """Return the names of the outputs of a document's model, in order."""
    return [output.name for output in _session(to_onnx(document)).get_outputs()]


def _session(model: bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def inputs(document: ClassifierDocument, vectors: Sequence[Vector]) -> dict[str, Any]:
    """Return rows as a model's inputs: a missing number as NaN, a missing string as empty."""
    columns = {
        feature.name: _column([row[index] for row in vectors], number=feature.bounds is not None)
        for index, feature in enumerate(document.features)
    }
    if _all_numbers(document):
        return {"features": np.hstack(list(columns.values()))}
    return columns


def _all_numbers(document: ClassifierDocument) -> bool:
    return all(feature.kind == "numeric" for feature in document.features)


def _column(values: Sequence[float | str | None], *, number: bool) -> NDArray[Any]:
    """Return one feature of all rows, shape (N, 1)."""
    if number:
        numbers = [value if isinstance(value, float) else np.nan for value in values]
        return np.array(numbers, dtype=np.float64)[:, None]
    return np.array(["" if value is None else value for value in values], dtype=object)[:, None]
