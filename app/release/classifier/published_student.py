"""A published student: what its document says of it, and its predictions.

The document is public and says what was trained on how much.  A rule's student
is one of the hypotheses that a document holds; a fitted estimator stays a piece
of the release, because whoever unpickled it would run whatever it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.data.schema_columns import public_columns
from app.data.vectors import encode
from app.learning.student import EstimatorStudent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.data.schema import Schema
    from app.data.vectors import Vector


@dataclass(frozen=True, slots=True)
class PublishedStudent:
    """A fitted estimator that answers.

    Attributes:
        schema: the public schema.
        student: what was fitted.

    """

    schema: Schema
    student: EstimatorStudent

    def predict(self, vectors: Sequence[Vector]) -> list[str]:
        """Return the label of each feature vector in schema order, all in one call."""
        if not vectors:
            return []
        predicted = self.student.predict(encode(self.schema, vectors))
        return [self.schema.classes[label] for label in predicted.tolist()]


def rebuilt_student(schema: Schema, body: bytes, *, otherwise: str) -> PublishedStudent:
    """Rebuild a fitted estimator from its piece, whose digest was checked.

    Raises:
        LedgerCorruptError: the piece is not what was written.

    """
    fallback = schema.classes.index(otherwise)
    columns = public_columns(schema)
    return PublishedStudent(schema, EstimatorStudent.from_bytes(columns, body, fallback=fallback))
