"""The parameters as printed, after the errata, against the vectors."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from app.errors import ConfigurationError
from app.privacy.paper import paper

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "privacy-vectors.json").read_text())
Numbers = dict[str, float]


def nandi_bassily(given: Numbers) -> paper.PaperParameters:
    """The parameters for the input of one vector."""
    return paper.paper_parameters(
        epsilon=Fraction(str(given["epsilon"])),
        delta=Fraction(str(given["delta"])),
        alpha=given["alpha"],
        beta=given["beta"],
        query_count=int(given["m"]),
        row_count=int(given["n"]),
        dimension=int(given["d"]),
    )


@pytest.mark.parametrize("case", VECTORS["nandi_bassily"])
def test_algorithms_three_to_five_agree_with_the_vectors(case: dict[str, Numbers]) -> None:
    """Every parameter of Nandi and Bassily is met within 1e-9."""
    found = nandi_bassily(case["in"])
    assert {
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
    } == pytest.approx(case["out"], rel=1e-9)


@pytest.mark.parametrize("case", VECTORS["bassily_thakkar_thakurta"])
def test_sparse_vector_agrees_with_the_vectors(case: dict[str, Numbers]) -> None:
    """Every parameter of Bassily, Thakkar and Thakurta is met within 1e-9."""
    given = case["in"]
    found = paper.sparse_vector_parameters(
        epsilon=given["epsilon"],
        delta=given["delta"],
        beta=given["beta"],
        query_count=int(given["m"]),
        cutoff=int(given["T"]),
    )
    assert {
        "lambda": found.laplace_scale,
        "w": found.threshold,
        "k_real": found.ensemble_size_real,
        "k": found.ensemble_size,
        "soft_lambda": found.soft_laplace_scale,
        "soft_w_corrected": found.soft_threshold,
    } == pytest.approx(case["out"], rel=1e-9)


@pytest.mark.parametrize("case", VECTORS["bassily_thakkar_thakurta_cutoff"])
def test_agnostic_cutoff_agrees_with_the_vectors(case: dict[str, Any]) -> None:
    """The real cutoff is met within 1e-9 and the integer one is its ceiling."""
    given = case["in"]
    found = paper.agnostic_cutoff(alpha=given["alpha"], beta=given["beta"], query_count=given["m"])
    assert found == pytest.approx(case["T_real"], rel=1e-9)
    assert math.ceil(found) == case["T"]


def test_cutoff_is_at_least_one() -> None:
    """One unstable answer is always allowed for."""
    found = nandi_bassily(
        {"epsilon": 1, "delta": 1e-6, "alpha": 0.001, "beta": 0.9, "m": 1, "n": 10, "d": 1}
    )
    assert (found.cutoff_real, found.cutoff) == (1.0, 1)


@pytest.mark.parametrize(
    ("epsilon", "delta", "key"),
    [
        ("0", "1e-6", "privacy.epsilon"),
        ("5.01", "1e-6", "privacy.epsilon"),
        ("1", "0", "privacy.delta"),
        ("1", "0.0361", "privacy.delta"),
    ],
)
def test_budgets_that_the_argument_does_not_cover_are_refused(
    epsilon: str, delta: str, key: str
) -> None:
    """Beyond delta .036, or where sampling no longer pays for delta, there is no claim."""
    with pytest.raises(ConfigurationError) as refusal:
        paper.refuse_out_of_range(epsilon=Fraction(epsilon), delta=Fraction(delta))
    assert refusal.value.key == key


def test_largest_delta_is_accepted() -> None:
    """Delta .036 itself is within the calibration."""
    paper.refuse_out_of_range(epsilon=Fraction(1), delta=Fraction("0.036"))


@pytest.mark.parametrize(("epsilon", "size"), [("1", 2795611), ("0.5", 4130525), ("0.3", 7)])
def test_rows_needed_is_the_smallest(epsilon: str, size: int) -> None:
    """The sample has a row for each chunk at that n and not one row earlier."""
    rate = Fraction(epsilon) / 56
    needed = paper.rows_needed(epsilon=Fraction(epsilon), ensemble_size=size)
    assert math.floor(rate * needed) >= size > math.floor(rate * (needed - 1))
