"""The entry of the certified stability test in the table ``app/privacy/mechanisms.py``.

A certified table has the probabilities of an unstable answer, and a numeric certificate proves that
it is private.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.privacy.stability import mechanism as stability
from app.privacy.stability.answering_registration import PROFILE
from app.privacy.stability.certified import certified_table
from app.privacy.stability.certified.certified_table import SharedWith

if TYPE_CHECKING:
    from app.privacy.mechanism_registration import AnswersAsked


@dataclass(frozen=True, slots=True)
class CertifiedParameters(stability.Parameters):
    """The public parameters of a stability test whose table has a certificate.

    A stability table has one threshold for each distance; the distance of a query is the number of
    votes that may change without changing the leading label. An answer is unstable if a random
    64-bit integer is below the threshold.
    """


def _calibrate(
    asked: AnswersAsked, *, epsilon: Fraction, delta: Fraction
) -> certified_table.CertifiedTable:
    return certified_table.calibrate(
        epsilon=epsilon, delta=delta, cutoff=asked.cutoff, shared=shared_with(asked, epsilon)
    )


def shared_with(asked: AnswersAsked, epsilon: Fraction) -> SharedWith:
    """Return the epsilons of the draws that share the answers' budget, for a total epsilon.

    The draws are those of a relabelling rule and of a classifier, whose cost is computed jointly
    with that of the answers.
    """
    if asked.account is None:
        return certified_table.ALONE
    factor = epsilon / asked.account.epsilon
    relabel = Fraction(0) if asked.relabel is None else asked.relabel.epsilon
    drawn = sum((draw.epsilon for draw in asked.account.draws), Fraction(0))
    return SharedWith(relabel=factor * relabel, classifier=factor * (drawn - relabel))


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
    is_of=lambda table, asked: (
        (table.cutoff, table.shared) == (asked.cutoff, shared_with(asked, table.epsilon))
    ),
    orders_by_cutoff=False,
    ends_before_classifier=True,
    open_account=None,
    serve=lambda table, _: CertifiedParameters(table.thresholds, table.cutoff),
)
