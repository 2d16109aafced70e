"""The table entry of the stability test with a certified table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from app.privacy.stability import mechanism as stability
from app.privacy.stability.answering_row import PROFILE
from app.privacy.stability.certified import certified_table

if TYPE_CHECKING:
    from fractions import Fraction

    from app.privacy.answering_rows import AnswersAsked


@dataclass(frozen=True, slots=True)
class CertifiedParameters(stability.Parameters):
    """The public parameters of a stability test with a certified table."""


def _calibrate(
    asked: AnswersAsked, *, epsilon: Fraction, delta: Fraction
) -> certified_table.CertifiedTable:
    return certified_table.calibrate(epsilon=epsilon, delta=delta, cutoff=asked.cutoff)


CERTIFIED: Final = replace(
    PROFILE,
    calibration="certified",
    theorem="Theorem C: a table of hits over the distance, by a certificate for each hit left",
    proof="app/privacy/stability/certified/certified_table_proof.md",
    parameters=CertifiedParameters,
    calibrations=(certified_table.CertifiedTable, certified_table.ApproximateCertified),
    piece="certified-table",
    calibrate=_calibrate,
    check=certified_table.check,
    read=certified_table.CertifiedTable.from_plain,
    is_of=lambda table, asked: table.cutoff == asked.cutoff,
    may_share_account=False,
    serve=lambda table, _: CertifiedParameters(table.thresholds, table.cutoff),
)
