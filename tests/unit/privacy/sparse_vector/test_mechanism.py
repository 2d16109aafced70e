"""The sparse vector: each step, and the exact law of where the hits fall."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import islice, product
from math import exp, prod
from typing import TYPE_CHECKING

import pytest
from scipy.stats import chi2

from app.errors import InvariantError
from app.noise.discrete_laplace import DiscreteLaplace
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.sparse_vector.mechanism import Outcome, Parameters, State, initial_state, step
from tests.builders.mechanisms.prescribed import NOTHING, PrescribedLaplace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from app.noise.source import NoiseSource

Hits = tuple[bool, ...]
HIT, RELEASED = Outcome(hit=True), Outcome(hit=False)


def parameters(
    *,
    threshold: int = 10,
    threshold_noise: Iterable[int] = (),
    query_noise: Iterable[int] = (),
    cutoff: int = 3,
    refreshed: bool = False,
) -> Parameters:
    """Return parameters whose noise is prescribed."""
    return Parameters(
        threshold=threshold,
        threshold_noise=PrescribedLaplace(threshold_noise),
        query_noise=PrescribedLaplace(query_noise),
        cutoff=cutoff,
        refreshed=refreshed,
    )


@pytest.mark.parametrize(
    ("value", "query_noise", "threshold_noise", "outcome"),
    [
        (10, 1, 0, RELEASED),
        (10, 0, 0, HIT),  # strict: the noisy threshold itself is not passed
        (12, 0, 2, HIT),
        (13, 0, 2, RELEASED),
        (0, 8, -3, RELEASED),
        (0, 7, -3, HIT),
        (-5, 16, 0, RELEASED),
        (10**6, -(10**7), 0, HIT),
    ],
)
def test_a_query_is_released_above_the_noisy_threshold(
    value: int, query_noise: int, threshold_noise: int, outcome: Outcome
) -> None:
    """A query is released exactly where its noisy value exceeds the noisy threshold."""
    given = parameters(query_noise=[query_noise])
    assert step(given, State(0, threshold_noise), value, NOTHING)[1] == outcome


def test_the_thresholds_noise_is_drawn_at_the_start() -> None:
    """The state before the first query holds one draw, and no hit."""
    given = parameters(threshold_noise=[-7])
    assert initial_state(given, NOTHING) == State(0, -7)


def test_a_release_changes_nothing() -> None:
    """After a release the state is the same, however it is refreshed."""
    for refreshed in (False, True):
        given = parameters(query_noise=[99], refreshed=refreshed)
        assert step(given, State(1, 4), 0, NOTHING) == (State(1, 4), RELEASED)


def test_one_threshold_keeps_its_noise_at_a_hit() -> None:
    """Without refreshing a hit counts and draws nothing."""
    given = parameters(query_noise=[-99])
    assert step(given, State(1, 4), 0, NOTHING) == (State(2, 4), HIT)


def test_a_refreshed_threshold_draws_its_next_noise_at_a_hit() -> None:
    """With refreshing a hit counts and draws the next epoch's noise."""
    given = parameters(query_noise=[-99], threshold_noise=[5], refreshed=True)
    assert step(given, State(1, 4), 0, NOTHING) == (State(2, 5), HIT)


@pytest.mark.parametrize("hit_count", [3, 4])
def test_there_is_no_step_after_the_cutoff(hit_count: int) -> None:
    """After T hits a step raises and draws nothing."""
    with pytest.raises(InvariantError, match="cutoff"):
        step(parameters(), State(hit_count, 0), 10**6, NOTHING)


def test_a_cutoff_is_at_least_one() -> None:
    """A run that may never begin is refused."""
    with pytest.raises(InvariantError, match="cutoff"):
        parameters(cutoff=0)


def run(given: Parameters, values: Sequence[int], noise: NoiseSource) -> Hits:
    """Return the hit bits of a run, which ends with the values or at the cutoff."""
    state, bits = initial_state(given, noise), []
    for value in values:
        if state.hit_count == given.cutoff:
            break
        state, outcome = step(given, state, value, noise)
        bits.append(outcome.hit)
    return tuple(bits)


# A small law whose probabilities are rationals, so that nothing is rounded.
SUPPORT = range(-2, 3)
THRESHOLD_LAW = {x: Fraction(3 ** (2 - abs(x)), 17) for x in SUPPORT}
QUERY_LAW = {x: Fraction(2 ** (2 - abs(x)), 10) for x in SUPPORT}


def enumerated_law(values: Sequence[int], *, cutoff: int, refreshed: bool) -> dict[Hits, Fraction]:
    """Run the code on every combination of noises and add up their probabilities."""
    given = parameters(threshold=1, cutoff=cutoff, refreshed=refreshed)
    law: dict[Hits, Fraction] = {}
    threshold_count = 1 + cutoff * refreshed
    for thresholds in product(SUPPORT, repeat=threshold_count):
        for queries in product(SUPPORT, repeat=len(values)):
            for noise, drawn in (
                (given.threshold_noise, thresholds),
                (given.query_noise, queries),
            ):
                assert isinstance(noise, PrescribedLaplace)
                noise.prescribe(drawn)
            bits = run(given, values, NOTHING)
            weight = prod(map(THRESHOLD_LAW.__getitem__, thresholds), start=Fraction(1))
            weight *= prod(map(QUERY_LAW.__getitem__, queries), start=Fraction(1))
            law[bits] = law.get(bits, Fraction(0)) + weight
    return law


def summed_probability(
    bits: Hits,
    values: Sequence[int],
    *,
    threshold: int,
    refreshed: bool,
    threshold_law: dict[int, Fraction],
    hit_probability: Callable[[int], Fraction],
) -> Fraction:
    """Sum over the threshold's noise, epoch by epoch, given which the bits are independent.

    Args:
        bits: of a run.
        values: of its queries.
        threshold: w.
        refreshed: whether each hit begins an epoch.
        threshold_law: probabilities of the threshold's noise.
        hit_probability: of noise at most so large.

    """
    ends = [place + 1 for place, hit in enumerate(bits) if hit and refreshed]
    total = Fraction(1)
    for begin, end in zip([0, *ends], [*ends, len(bits)], strict=True):
        epoch = Fraction(0)
        for noise, weight in threshold_law.items():
            for place in range(begin, end):
                hit = hit_probability(threshold + noise - values[place])
                weight *= hit if bits[place] else 1 - hit  # noqa: PLW2901 -- a running product
            epoch += weight
        total *= epoch
    return total


@pytest.mark.parametrize("refreshed", [False, True])
@pytest.mark.parametrize(("values", "cutoff"), [((0, 2, 1), 1), ((0, 2, 1), 2), ((3, 1, 2), 3)])
def test_hits_fall_as_direct_summation_says(
    values: tuple[int, ...], cutoff: int, *, refreshed: bool
) -> None:
    """Over all noises the law of the hit bits is the sum over thresholds, as rationals."""
    law = enumerated_law(values, cutoff=cutoff, refreshed=refreshed)
    assert sum(law.values()) == 1
    assert max(map(sum, law)) <= cutoff
    for bits, probability in law.items():
        assert probability == summed_probability(
            bits,
            values,
            threshold=1,
            refreshed=refreshed,
            threshold_law=THRESHOLD_LAW,
            hit_probability=lambda top: sum(
                (weight for noise, weight in QUERY_LAW.items() if noise <= top), Fraction(0)
            ),
        )


def laplace_at_most(top: int, base: float) -> Fraction:
    """Return the probability that discrete Laplace noise is at most ``top``."""
    return Fraction(base**-top / (1 + base) if top < 0 else 1 - base ** (top + 1) / (1 + base))


@pytest.mark.parametrize("refreshed", [False, True])
def test_drawn_hits_fall_as_direct_summation_says(*, refreshed: bool) -> None:
    """Runs on drawn noise have the law that summation gives, by Pearson's statistic."""
    # 8,000 runs over 11 patterns: a probability of .1 that is off by a fifth (squared,
    # times 800 runs: 32, and as much again where it is missing) is near the limit of
    # 64 for 10 degrees of freedom, which is passed by chance with probability 1e-9;
    # noise that is reused, missing or off by a factor changes most of them by more.
    values, cutoff, count = (4, 3, 5, 2), 2, 8_000
    given = Parameters(
        threshold=3,
        threshold_noise=DiscreteLaplace(Fraction(3, 2)),
        query_noise=DiscreteLaplace(Fraction(2)),
        cutoff=cutoff,
        refreshed=refreshed,
    )
    noise = ScriptedNoise(seeded_words(3))
    seen = Counter(run(given, values, noise) for _ in range(count))
    first, second = exp(-2 / 3), exp(-1 / 2)
    patterns = {
        tuple(islice(bits, stop))
        for bits in product((False, True), repeat=4)
        for stop in [next((n for n in range(5) if sum(bits[:n]) == cutoff), 4)]
    }
    law = {
        bits: summed_probability(
            bits,
            values,
            threshold=3,
            refreshed=refreshed,
            threshold_law={
                x: Fraction((1 - first) / (1 + first) * first ** abs(x)) for x in range(-40, 41)
            },
            hit_probability=lambda top: laplace_at_most(top, second),
        )
        for bits in patterns
    }
    assert float(sum(law.values())) == pytest.approx(1, abs=1e-10)
    expected = {bits: count * float(probability) for bits, probability in law.items()}
    assert min(expected.values()) > 50
    found = sum((seen[bits] - e) ** 2 / e for bits, e in expected.items())
    assert found < chi2.isf(1e-9, len(expected) - 1)
