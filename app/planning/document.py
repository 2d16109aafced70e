"""Plans as JSON documents; the keys are those of the command line's contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from app.accounting.profile_inequality import WORD_BITS
from app.errors import invariant

if TYPE_CHECKING:
    from fractions import Fraction

    from app.accounting.paper import PaperParameters
    from app.accounting.profile import ProfileTable
    from app.planning.plan import Plan
    from app.planning.profile_plan import Stability

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


def paper_document(found: PaperParameters) -> Document:
    """Describe the papers' parameters by their own symbols."""
    return {
        "n_prime": found.sampled_row_count,
        "T_real": found.cutoff_real,
        "T": found.cutoff,
        "eps_prime": found.epsilon_prime,
        "eps_hat": found.epsilon_hat,
        "delta_hat": found.delta_hat,
        "lambda": found.laplace_scale,
        "w": found.threshold,
        "k": found.ensemble_size,
        "m_o_real": found.public_query_count_real,
        "m_o": found.public_query_count,
    }


def plan_document(plan: Plan) -> Document:
    """Describe a release as planned."""
    request = plan.request
    return {
        "feasible": plan.feasible,
        "reasons": plan.reasons,
        "advice": plan.advice,
        "notes": plan.notes,
        "calibration": request.calibration,
        "best_mechanism": plan.best_mechanism,
        "epsilon": float(request.epsilon),
        "delta": float(request.delta),
        "charges": [
            {
                "mechanism": charge.mechanism.value,
                "epsilon": float(charge.epsilon),
                "delta": float(charge.delta),
            }
            for charge in request.charges
        ],
        "n": request.row_count,
        "n_prime": plan.sampled_row_count,
        "rows_needed": plan.rows_needed,
        "m": request.query_count,
        "m_o": request.query_count if request.universal else None,
        "m_o_wanted": plan.public_query_count,
        "T": plan.cutoff,
        "k": plan.ensemble_size,
        "chunk_rows": plan.chunk_row_count,
        "classes": request.class_count,
        "excess_error": {name.value: bound for name, bound in plan.excess_errors.items()},
        "table": None if plan.stability is None else _table_document(plan.stability.table),
        "distance": None if plan.stability is None else _distance_document(plan.stability),
        "paper": None if plan.paper is None else paper_document(plan.paper),
    }


def _table_document(table: ProfileTable) -> Document:
    return {
        **profile_document(table),
        "distance_at": {
            probability: table.distance_at(float(probability))
            for probability in SHOWN_PROBABILITIES
        },
    }


def _distance_document(stability: Stability) -> Document:
    return {
        "needed": stability.wanted_distance,
        "needed_hits": stability.wanted_probability,
        "agreement_needed": stability.wanted_agreement,
        "unanimous": stability.unanimous_distance,
        "unanimous_hits": stability.unanimous_probability,
        "hits_max": stability.largest_probability,
    }
