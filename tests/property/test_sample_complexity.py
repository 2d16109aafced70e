"""Rows that the theorems ask for: monotone in everything, and enough for the textbooks."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from app.privacy.paper import sample_complexity_theorems
from app.privacy.paper.sample_complexity_theorems import (
    ROWS_MAX,
    Targets,
    Theorem,
    sample_complexity,
)

DIMENSIONS = st.integers(1, 1000)
ACCURACIES = st.floats(1e-4, 0.999)
PROBABILITIES = st.floats(1e-9, 0.999)


@given(alpha=ACCURACIES, beta=PROBABILITIES, dimension=DIMENSIONS)
def test_textbook_rows_meet_the_growth_bounds(alpha: float, beta: float, dimension: int) -> None:
    """With ``(2 e n/d)^d`` labellings the tails that prove the results are at most beta."""
    rows = sample_complexity_theorems.disagreement_rows(alpha=alpha, beta=beta, dimension=dimension)
    growth = 2 * dimension * math.log(2 * math.e * rows / dimension)
    assert math.log(4) + growth - rows * alpha * alpha / 8 <= math.log(beta) + 1e-9
    rows = sample_complexity_theorems.agnostic_rows(alpha=alpha, beta=beta, dimension=dimension)
    growth = dimension * math.log(2 * math.e * rows / dimension)
    assert math.log(4) + growth - rows * alpha * alpha / 32 <= math.log(beta) + 1e-9
    rows = sample_complexity_theorems.cover_rows(alpha=alpha, beta=beta, dimension=dimension)
    growth = 2 * dimension * math.log(2 * math.e * rows / dimension)
    assert math.log(2) + growth - rows * alpha * math.log(2) / 2 <= math.log(beta) + 1e-9


# -- monotonicity ------------------------------------------------------------------------

TARGETS = st.builds(
    Targets,
    epsilon=st.fractions(Fraction(1, 1000), Fraction(5)),
    delta=st.fractions(Fraction(1, 10**9), Fraction(36, 1000)),
    alpha=st.floats(1e-3, 0.999),
    beta=st.floats(1e-6, 0.999),
    query_count=st.integers(1, 10**6),
    dimension=st.integers(1, 30),
    best_error=st.floats(0, 0.5),
    dual_dimension=st.one_of(st.none(), st.integers(1, 10**6)),
    hypothesis_count=st.one_of(st.none(), st.fractions(1, 10**40)),
)
FACTORS = st.fractions(Fraction(101, 100), Fraction(10))
RANGE_MAX = {"epsilon": Fraction(5), "delta": Fraction(36, 1000), "alpha": 0.999, "beta": 0.999}


def explicit(theorem: Theorem, changed: str) -> int:
    """Rows with every constant; those that are past counting are the most.

    NB's printed k falls a little as m grows (epsilon-hat grows with m, and T is whole),
    and m falls in beta; so do NB's explicit rows, and they are not compared there.
    """
    if theorem.name in ("NB 7", "NB 11") and changed not in ("epsilon", "delta"):
        return 0
    if theorem.bound is None or theorem.bound.rows_explicit is None:
        return ROWS_MAX + 1
    return theorem.bound.rows_explicit


def printed(theorem: Theorem) -> int:
    """Rows of the bound as printed; those that are past counting are the most."""
    if theorem.bound is None or theorem.bound.rows is None:
        return ROWS_MAX + 1
    return theorem.bound.rows


@settings(max_examples=40, deadline=None)
@given(TARGETS, FACTORS, st.sampled_from(["epsilon", "delta", "beta"]))
def test_rows_fall_as_the_promise_gets_weaker(
    targets: Targets, factor: Fraction, name: str
) -> None:
    """No theorem asks for more rows at a larger epsilon, delta or beta."""
    value = getattr(targets, name)
    larger = min(value * type(value)(factor), RANGE_MAX[name])
    weaker = replace(targets, **{name: max(larger, value)})
    for before, after in zip(sample_complexity(targets), sample_complexity(weaker), strict=True):
        assert printed(after) <= printed(before), before.name
        assert explicit(after, name) <= explicit(before, name), before.name


@settings(max_examples=40, deadline=None)
@given(TARGETS, FACTORS)
def test_printed_rows_fall_as_alpha_grows(targets: Targets, factor: Fraction) -> None:
    """No theorem's bracket grows with alpha; rounding T up spares only the brackets."""
    alpha = max(targets.alpha, min(targets.alpha * float(factor), 0.999))
    weaker = replace(targets, alpha=alpha)
    for before, after in zip(sample_complexity(targets), sample_complexity(weaker), strict=True):
        assert printed(after) <= printed(before), before.name


@settings(max_examples=40, deadline=None)
@given(TARGETS, FACTORS, st.sampled_from(["query_count", "dimension", "dual_dimension"]))
def test_rows_rise_with_what_is_asked(targets: Targets, factor: Fraction, name: str) -> None:
    """No theorem asks for fewer rows for more queries, or for a richer class."""
    value = getattr(targets, name) or 1
    asked: dict[str, Any] = {name: value}
    asked_more: dict[str, Any] = {name: math.ceil(value * factor)}
    targets, more = replace(targets, **asked), replace(targets, **asked_more)
    for before, after in zip(sample_complexity(targets), sample_complexity(more), strict=True):
        assert printed(after) >= printed(before), before.name
        assert explicit(after, name) >= explicit(before, name), before.name


@settings(max_examples=40, deadline=None)
@given(TARGETS, FACTORS, st.floats(0, 0.4))
def test_rows_rise_with_the_class_and_its_error(
    targets: Targets, factor: Fraction, error: float
) -> None:
    """The learner's rows rise in ln|H|, and the ensemble's in the least error gamma."""
    targets = replace(targets, hypothesis_count=targets.hypothesis_count or Fraction(7))
    count = (targets.hypothesis_count or 1) * factor
    more = replace(targets, hypothesis_count=count, best_error=targets.best_error + error)
    for before, after in zip(sample_complexity(targets), sample_complexity(more), strict=True):
        assert printed(after) >= printed(before), before.name
        assert explicit(after, "class") >= explicit(before, "class"), before.name
