"""The table of answering mechanisms: a new mechanism is a folder and an entry here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.errors import InvariantError
from app.privacy.noisy_vote.answering_row import (
    NOISY_BIT,
    NOISY_BIT_OF_CELLS,
    NOISY_VOTE,
    NOISY_VOTE_OF_CELLS,
)
from app.privacy.paper.answering_row import PAPER
from app.privacy.sparse_vector.answering_row import SPARSE_VECTOR
from app.privacy.stability.answering_row import PROFILE, PROFILE_OF_CELLS
from app.privacy.stability.certified.certified_row import CERTIFIED

if TYPE_CHECKING:
    from app.privacy.answering_rows import AnsweringRow

STABILITY = "stability"
"""The mechanism whose rows go by the name of their calibration."""

MECHANISMS: dict[str, AnsweringRow] = {
    row.name: row
    for row in (
        PROFILE,
        SPARSE_VECTOR,
        PAPER,
        CERTIFIED,
        NOISY_VOTE,
        NOISY_BIT,
        PROFILE_OF_CELLS,
        NOISY_VOTE_OF_CELLS,
        NOISY_BIT_OF_CELLS,
    )
}


def serving_row(
    mechanism: str, calibration: str, *, class_count: int, counts_decisions: bool = False
) -> AnsweringRow:
    """Return the table entry of the mechanism that a new release uses.

    Args:
        mechanism: as ``answers.mechanism`` names it.
        calibration: as ``privacy.calibration`` names it.
        class_count: the number L of labels.
        counts_decisions: whether one record moves decisions that are counted, where the
            mechanism has a row for that.

    """
    rows = [row for row in _named(mechanism, calibration) if row.takes(class_count)]
    return max(rows, key=lambda row: row.counts_decisions == counts_decisions)


def opened_row(mechanism: str, calibration: str, *, rule: str | None) -> AnsweringRow:
    """Return the table entry of an open release's mechanism; see :func:`serving_row`.

    Args:
        mechanism: as above.
        calibration: as above.
        rule: what its first entry says under ``RULE_KEY``.

    Raises:
        InvariantError: no row has that rule.

    """
    for row in _named(mechanism, calibration):
        if row.rule == rule:
            return row
    message = f"the release answers by rule {rule} of {mechanism}, which this version knows"
    raise InvariantError(message)


def calibrated_row(mechanism: str, calibration: str, made: object) -> AnsweringRow:
    """Return the table entry that settings name and that a calibration was made for.

    Args:
        mechanism: as :func:`serving_row` takes it.
        calibration: as :func:`serving_row` takes it.
        made: the calibration that serves.

    Raises:
        InvariantError: it is another mechanism's.

    """
    for row in _named(mechanism, calibration):
        if type(made) is row.calibrations[0]:
            return row
    message = "the calibration is the one of the answers' share"
    raise InvariantError(message)


def _named(mechanism: str, calibration: str) -> list[AnsweringRow]:
    """Return the rows that settings name."""
    return [
        row
        for row in MECHANISMS.values()
        if row.mechanism == mechanism and row.calibration in (None, calibration)
    ]


def row_of(value: object) -> AnsweringRow:
    """Return the first table entry that has the type of some parameters or calibration."""
    kind = type(value)
    for row in MECHANISMS.values():
        if kind is row.parameters or kind in row.calibrations:
            return row
    message = f"{kind.__name__} belongs to a mechanism"
    raise InvariantError(message)


def size_wanted(*, table: object, query_count: int) -> int:
    """Return the number of learners of whom a two-thirds majority gives a stable answer.

    Args:
        table: a calibration of the answers' share.
        query_count: m, at least 1.

    """
    return row_of(table).size_wanted(table, query_count)
