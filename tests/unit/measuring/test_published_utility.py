"""Benchmark A's own parts: what it makes up, what it draws noise from, what it says."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from app.noise.discrete_gaussian import DiscreteGaussian
from app.privacy.noisy_gradient.descent_choices import descent_choice
from benchmarks.utility.populations import population
from benchmarks.utility.published_page import section
from benchmarks.utility.seeded_noise import SeededNoise
from benchmarks.utility.tuning import variants

EPSILONS = ("0.1", "0.5", "1.0", "2.0")


def test_a_seed_repeats_the_apps_draws() -> None:
    """The same seed gives the same noise, and another one other noise."""
    law = DiscreteGaussian(Fraction(10**6))
    sources = [SeededNoise(seed) for seed in (1, 1, 2)]
    one, again, other = ([law.draw(source) for _ in range(4)] for source in sources)
    assert one == again != other


@pytest.mark.parametrize("rare", [False, True])
def test_a_population_is_its_seeds(*, rare: bool) -> None:
    """A seed makes the same people again, with the share of labels that is asked for."""
    one, again = (population(3, row_count=4000, rare=rare) for _ in range(2))
    assert np.array_equal(one.values, again.values)
    assert np.array_equal(one.labels, again.labels)
    # Log-odds are centred so that the share's quantile is even: noise moves it inwards.
    assert 0.2 < one.labels.mean() < 0.5


def test_every_variant_moves_one_constant() -> None:
    """Beside the choice itself, every variant differs from it in exactly one constant."""
    chosen = descent_choice(row_count=30_000, epsilon=1.0)
    for name, variant in variants(chosen).items():
        moved = [
            each.name
            for each in fields(chosen)
            if getattr(variant, each.name) != getattr(chosen, each.name)
        ]
        assert len(moved) == (name != "as chosen"), name


def found(accuracy: float) -> dict[str, Any]:
    """Return what a method found that is equally right at every epsilon."""
    runs = {
        "setting": {"rate": 1.0},
        "tried": 3,
        "accuracies": [accuracy - 0.001, accuracy + 0.001],
    }
    return dict.fromkeys(EPSILONS, runs)


def document(ours: float, theirs: float) -> dict[str, Any]:
    """Return results of one of our learners and of one peer."""
    circumstances = ("commit", "machine", "processors", "load", "python", "at")
    return dict.fromkeys(circumstances, "some") | {
        "methods": {
            "linear": {"found": found(ours)},
            "descent": {"found": found(theirs)},
            "references": {"found": {"majority": 0.7638}},
        }
    }


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        (0.87, "accuracy of .8700 reaches the goal of .866, and is .0100 ahead of"),
        (0.863, "accuracy of .8630 reaches the wanted minimum of .862, and is .0030 ahead of"),
        (0.85, "accuracy of .8500 is below the wanted minimum of .862, and is .0100 behind"),
    ],
)
def test_the_section_says_what_is_reached(ours: float, said: str) -> None:
    """The verdict names the target that is reached, and who is ahead by how much."""
    printed = section(document(ours, 0.86))
    assert f"At epsilon 2 Conclave's {said}" in printed
    assert f".{round(ours * 1e4)} ± .0014" in printed
    assert "majority .764" in printed
