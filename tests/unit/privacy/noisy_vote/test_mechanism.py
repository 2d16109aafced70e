"""The noisy vote: each answer for given noise, and the end after m."""

from __future__ import annotations

from collections import Counter
from dataclasses import FrozenInstanceError, asdict
from fractions import Fraction
from math import exp, fsum

import pytest
from scipy.stats import chi2

from app.errors import InvariantError
from app.noise.discrete_gaussian import DiscreteGaussian
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.noisy_vote.mechanism import Outcome, Parameters, State, initial_state, step
from tests.builders.mechanisms.prescribed import NOTHING, PrescribedGaussian


def parameters(
    noise: tuple[int, ...] = (),
    *,
    class_count: int = 2,
    ensemble_size: int = 10,
    answer_limit: int = 3,
) -> Parameters:
    """Return parameters whose noise is prescribed."""
    return Parameters(
        vote_noise=PrescribedGaussian(noise),
        class_count=class_count,
        ensemble_size=ensemble_size,
        answer_limit=answer_limit,
    )


@pytest.mark.parametrize(
    ("votes", "noise", "label"),
    [
        ((4, 6), 0, 1),
        ((4, 6), -1, 0),  # five against five: the first class
        ((4, 6), -2, 0),
        ((6, 4), 0, 0),
        ((6, 4), 1, 0),
        ((6, 4), 2, 1),
        ((10, 0), 6, 1),
        ((0, 10), -100, 0),
    ],
)
def test_two_labels_are_decided_by_the_second_count(
    votes: tuple[int, int], noise: int, label: int
) -> None:
    """The second label is answered where its noisy count exceeds half of the votes."""
    assert step(parameters((noise,)), State(), votes, NOTHING) == (State(1), Outcome(label))


@pytest.mark.parametrize(("votes", "label"), [((5, 6), 1), ((6, 5), 0)])
def test_an_odd_number_of_votes_has_no_tie(votes: tuple[int, int], label: int) -> None:
    """Half of eleven votes is no integer."""
    given = parameters((0,), ensemble_size=11)
    assert step(given, State(), votes, NOTHING)[1] == Outcome(label)


@pytest.mark.parametrize(
    ("noise", "label"),
    [
        ((0, 0, 0), 1),
        ((2, 0, 0), 0),
        ((1, 0, 0), 0),
        ((0, 0, 1), 1),
        ((0, 0, 2), 2),
        ((-9, -9, 0), 2),
    ],
)
def test_more_labels_are_decided_by_the_largest_noisy_count(
    noise: tuple[int, int, int], label: int
) -> None:
    """Every count gets noise of its own, and ties go to the smallest class index."""
    given = parameters(noise, class_count=3)
    assert step(given, State(), (3, 4, 3), NOTHING) == (State(1), Outcome(label))


def test_a_run_ends_after_its_last_answer() -> None:
    """Answer m is given, and then a step raises and draws nothing."""
    given, state = parameters((0, 0, 0)), State()
    for number in range(1, 4):
        state, _ = step(given, state, (4, 6), NOTHING)
        assert state == State(number)
    with pytest.raises(InvariantError, match="last answer"):
        step(given, state, (4, 6), NOTHING)


@pytest.mark.parametrize(
    ("votes", "broken"), [((10,), "each class"), ((1, 4, 5), "each class"), ((4, 7), "one vote")]
)
def test_counts_that_are_not_the_votes_are_refused(votes: tuple[int, ...], broken: str) -> None:
    """Too few or too many counts or votes raise, and nothing is drawn."""
    with pytest.raises(InvariantError, match=broken):
        step(parameters(), State(), votes, NOTHING)


@pytest.mark.parametrize(
    ("class_count", "ensemble_size", "answer_limit"), [(1, 10, 3), (2, 0, 3), (2, 10, 0)]
)
def test_parameters_validate_themselves(
    class_count: int, ensemble_size: int, answer_limit: int
) -> None:
    """What cannot run never comes into being."""
    with pytest.raises(InvariantError):
        parameters(class_count=class_count, ensemble_size=ensemble_size, answer_limit=answer_limit)


def test_parameters_and_states_are_immutable_values() -> None:
    """They are frozen, and a state survives a round trip through plain values."""
    given, state = parameters(), initial_state(parameters(), NOTHING)
    for value, name in ((given, "class_count"), (state, "answered_count")):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(value, name, 5)
    assert State(**asdict(state)) == state == State(0)


def test_drawn_answers_have_the_laws_probabilities() -> None:
    """With drawn noise each label comes as often as the sum over the law says."""
    # One proportion of 6,000: by chance it leaves its interval with probability 1e-9,
    # and one that is off by .04 is seen except with probability 1e-2.
    variance, count = Fraction(9), 6_000
    given = Parameters(
        vote_noise=DiscreteGaussian(variance),
        class_count=2,
        ensemble_size=11,
        answer_limit=count,
    )
    state, noise, seen = State(), ScriptedNoise(seeded_words(5)), Counter[int]()
    for _ in range(count):
        state, outcome = step(given, state, (7, 4), noise)
        seen[outcome.label] += 1
    weight = {y: exp(-(y**2) / 18) for y in range(-60, 61)}
    second = fsum(w for y, w in weight.items() if 2 * (4 + y) > 11) / fsum(weight.values())
    expected = {0: count * (1 - second), 1: count * second}
    assert sum((seen[label] - e) ** 2 / e for label, e in expected.items()) < chi2.isf(1e-9, 1)
