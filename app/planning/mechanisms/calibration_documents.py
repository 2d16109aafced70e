"""The calibrations of a plan as JSON documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from app.errors import invariant
from app.planning.verdict import NoisyLead
from app.privacy.answering_rows import own
from app.privacy.sparse_vector.calibration import SvtCalibration
from app.privacy.stability.hit_table import ProfileTable
from app.privacy.stability.inequality import WORD_BITS

if TYPE_CHECKING:
    from fractions import Fraction

    from app.planning.verdict import Verdict
    from app.privacy.budget.ensemble_size import HitTest

Document = dict[str, object]
SHOWN_PROBABILITIES: Final = ("1e-2", "1e-4")


def exact_number(value: Fraction) -> msgspec.Raw:
    """Write a binary fraction as a JSON number with all of its decimal digits.

    A double, and a decimal of any precision, then read the very number that serves.
    """
    bits = value.denominator.bit_length() - 1
    invariant(value > 0 and value.denominator == 1 << bits, "a positive binary fraction")
    digits = str(value.numerator * 5**bits).rjust(bits + 1, "0")
    whole, decimals = digits[: len(digits) - bits], digits[len(digits) - bits :]
    return msgspec.Raw(f"{whole}.{decimals or '0'}".encode())


def profile_document(table: ProfileTable) -> Document:
    """Describe the table of Theorem A as it serves."""
    distances = range(len(table.thresholds))
    return {
        "alpha": exact_number(table.alpha),
        "lnR": exact_number(table.ln_ratio),
        "word_bits": WORD_BITS,
        "threshold": [str(threshold) for threshold in table.thresholds],
        "hit_probability": [table.hit_probability(distance) for distance in distances],
    }


def table_document(verdict: Verdict) -> Document:
    """Describe the table that serves."""
    table = own(verdict.calibration, ProfileTable)
    return {**profile_document(table), "distance_at": _distances(table)}


def svt_document(verdict: Verdict) -> Document:
    """Describe the sparse vector that serves."""
    calibration = own(verdict.calibration, SvtCalibration)
    return {
        "variant": calibration.variant.value,
        "b1": float(calibration.threshold_scale),
        "b2": float(calibration.query_scale),
        "w": calibration.threshold,
        "delta_svt": float(calibration.delta_svt),
        "delta_release": float(calibration.delta_release),
        "distance_at": _distances(calibration),
    }


def noise_document(verdict: Verdict) -> Document:
    """Describe the noise that serves, and the lead that it takes."""
    lead = own(verdict.noisy_lead, NoisyLead)
    return {
        "alpha": float(lead.calibration.alpha),
        "variance": float(lead.calibration.variance),
        "lead_needed": lead.wanted_lead,
        "lead_loses": lead.wanted_probability,
        "agreement_needed": lead.wanted_agreement,
        "lead_at": {
            probability: lead.calibration.lead_at(float(probability))
            for probability in SHOWN_PROBABILITIES
        },
    }


def _distances(calibration: HitTest) -> Document:
    return {
        probability: calibration.distance_at(float(probability))
        for probability in SHOWN_PROBABILITIES
    }
