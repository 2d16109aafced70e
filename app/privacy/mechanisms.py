"""The table of answering mechanisms: a new one is a folder and a row here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.errors import InvariantError
from app.privacy.noisy_vote.answering_row import NOISY_VOTE
from app.privacy.paper.answering_row import PAPER
from app.privacy.sparse_vector.answering_row import SPARSE_VECTOR
from app.privacy.stability.answering_row import PROFILE
from app.privacy.stability.certified.answering_row import CERTIFIED

if TYPE_CHECKING:
    from app.privacy.answering_rows import AnsweringRow

STABILITY = "stability"
"""The mechanism whose rows go by the name of their calibration."""

MECHANISMS: dict[str, AnsweringRow] = {
    row.name: row for row in (PROFILE, SPARSE_VECTOR, PAPER, CERTIFIED, NOISY_VOTE)
}


def serving_row(mechanism: str, calibration: str) -> AnsweringRow:
    """Return the row that ``answers.mechanism`` and ``privacy.calibration`` name."""
    return MECHANISMS[calibration if mechanism == STABILITY else mechanism]


def row_of(value: object) -> AnsweringRow:
    """Return the first row whose parameters, or whose calibration, a value is."""
    kind = type(value)
    for row in MECHANISMS.values():
        if kind is row.parameters or kind in row.calibrations:
            return row
    message = f"{kind.__name__} belongs to a mechanism"
    raise InvariantError(message)


def size_wanted(*, table: object, query_count: int) -> int:
    """Return the k that keeps queries on which two thirds agree, rows aside.

    Args:
        table: a calibration of the answers' share.
        query_count: m, at least 1.

    """
    return row_of(table).size_wanted(table, query_count)
