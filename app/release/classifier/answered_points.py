"""The queries answered so far, as the public points of what is drawn after them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.data.vectors import decode_key, encode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.data.schema import Schema
    from app.ledger.ledger import Ledger


def answered_points(ledger: Ledger, schema: Schema) -> NDArray[np.float64]:
    """Return the vectors of all fresh answers, encoded, shape (answered, d)."""
    vectors = [decode_key(answer.vector) for answer in ledger.answers_after(0)]
    if not vectors:
        return np.empty((0, len(schema.features)))
    return encode(schema, vectors)
