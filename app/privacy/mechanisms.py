"""The table of answering mechanisms: a new mechanism is a folder and an entry here.

An answering mechanism turns the models' votes on a query into a private answer, and has noise
parameters, its *calibration*, for a privacy budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.errors import InvariantError
from app.privacy.noisy_vote.answering_registration import (
    NOISY_BIT,
    NOISY_BIT_OF_CELLS,
    NOISY_VOTE,
    NOISY_VOTE_OF_CELLS,
)
from app.privacy.paper.answering_registration import PAPER
from app.privacy.sparse_vector.answering_registration import SPARSE_VECTOR
from app.privacy.stability.answering_registration import PROFILE, PROFILE_OF_CELLS
from app.privacy.stability.certified.certified_registration import CERTIFIED

if TYPE_CHECKING:
    from app.privacy.mechanism_registration import MechanismRegistration

STABILITY = "stability"
"""The mechanism whose rows go by the name of their calibration."""

MECHANISMS: dict[str, MechanismRegistration] = {
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
) -> MechanismRegistration:
    """Return the table entry of the mechanism that a new release uses.

    Args:
        mechanism: the setting ``answers.mechanism``.
        calibration: the setting ``privacy.calibration``.
        class_count: the number L of labels.
        counts_decisions: whether each public cell is answered once, so that one record can change
            two answers at most; the entry for this case is used if the mechanism has one.

    """
    rows = [row for row in _named(mechanism, calibration) if row.takes(class_count)]
    return max(rows, key=lambda row: row.counts_decisions == counts_decisions)


def opened_row(mechanism: str, calibration: str, *, rule: str | None) -> MechanismRegistration:
    """Return the table entry of an open release's mechanism; see :func:`serving_row`.

    Args:
        mechanism: the setting ``answers.mechanism``.
        calibration: the setting ``privacy.calibration``.
        rule: the text under ``RULE_KEY`` in the release's first ledger entry; None if absent.

    Raises:
        InvariantError: no entry of the table of mechanisms has this text.

    """
    for row in _named(mechanism, calibration):
        if row.rule == rule:
            return row
    message = f"the release answers by rule {rule} of {mechanism}, which this version knows"
    raise InvariantError(message)


def calibrated_row(mechanism: str, calibration: str, made: object) -> MechanismRegistration:
    """Return the table entry for a mechanism's settings and for the noise parameters in use.

    Args:
        mechanism: the setting ``answers.mechanism``.
        calibration: the setting ``privacy.calibration``.
        made: the release's noise parameters.

    Raises:
        InvariantError: the noise parameters belong to another mechanism.

    """
    for row in _named(mechanism, calibration):
        if type(made) is row.calibrations[0]:
            return row
    message = "the calibration is the one of the answers' share"
    raise InvariantError(message)


def _named(mechanism: str, calibration: str) -> list[MechanismRegistration]:
    """Return the rows that settings name."""
    return [
        row
        for row in MECHANISMS.values()
        if row.mechanism == mechanism and row.calibration in (None, calibration)
    ]


def row_of(value: object) -> MechanismRegistration:
    """Return the table entry of the mechanism whose public parameters or calibration are given."""
    kind = type(value)
    for row in MECHANISMS.values():
        if kind is row.parameters or kind in row.calibrations:
            return row
    message = f"{kind.__name__} belongs to a mechanism"
    raise InvariantError(message)


def size_wanted(*, table: object, query_count: int) -> int:
    """Return the number of models at which a two-thirds majority gives a stable answer.

    Args:
        table: the answering mechanism's noise parameters.
        query_count: the number m of answers, at least 1.

    """
    return row_of(table).size_wanted(table, query_count)
