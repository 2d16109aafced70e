"""Faults that an audit of calibration ``profile`` must catch, each in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.privacy.stability import mechanism as stability
from app.privacy.stability.mechanism import State
from app.privacy.voting import query_decision
from app.privacy.voting.query_decision import Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.noise.source import NoiseSource
    from app.privacy.stability.mechanism import Parameters
    from app.privacy.voting.votes import Tally


def _gaps(private_vote_count: NDArray[np.int64]) -> NDArray[np.int64]:
    ordered = np.sort(private_vote_count, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2], dtype=np.int64)


def gap_as_distance(
    private_vote_count: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Use the gap itself, as Nandi and Bassily print it."""
    return private_vote_count.argmax(axis=1), _gaps(private_vote_count)


def gap_less_one_as_distance(
    private_vote_count: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Use max(0, gap - 1), as Bassily, Thakkar and Thakurta print it."""
    return private_vote_count.argmax(axis=1), np.maximum(0, _gaps(private_vote_count) - 1)


def half_gap_as_distance(
    private_vote_count: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Use floor(gap / 2), which is not 0 where one vote changes the plurality."""
    return private_vote_count.argmax(axis=1), _gaps(private_vote_count) // 2


def step_once_more(
    parameters: Parameters, state: State, distance: int, noise: NoiseSource
) -> tuple[State, bool]:
    """Loop while c <= T, as printed: one hit too many."""
    if state.hit_count > parameters.cutoff:
        message = "no step after the cutoff"
        raise AssertionError(message)
    threshold = parameters.thresholds[min(distance, len(parameters.thresholds) - 1)]
    hit = noise.word() < threshold
    return State(state.hit_count + hit), hit


def step_with_sixteen_bits(
    parameters: Parameters, state: State, distance: int, noise: NoiseSource
) -> tuple[State, bool]:
    """Draw words of 16 bits, spread over the range of 64."""
    threshold = parameters.thresholds[min(distance, len(parameters.thresholds) - 1)]
    hit = noise.word() >> 48 < threshold >> 48
    return State(state.hit_count + hit), hit


def step_without_noise(
    parameters: Parameters, state: State, distance: int, noise: NoiseSource
) -> tuple[State, bool]:
    """Call a query a hit iff it is more likely one than not."""
    del noise
    hit = parameters.thresholds[min(distance, len(parameters.thresholds) - 1)] >> 63 == 1
    return State(state.hit_count + hit), hit


class StepWithOneWord:
    """Draw a word once and use it for every query."""

    def __init__(self) -> None:
        """Start without a word."""
        self._word: int | None = None

    def __call__(
        self, parameters: Parameters, state: State, distance: int, noise: NoiseSource
    ) -> tuple[State, bool]:
        """Compare the one word with the query's threshold."""
        if self._word is None:
            self._word = noise.word()
        threshold = parameters.thresholds[min(distance, len(parameters.thresholds) - 1)]
        hit = self._word < threshold
        return State(state.hit_count + hit), hit


def answer_with_the_votes(
    parameters: query_decision.Parameters,
    state: query_decision.State,
    private_value: Tally,
    noise: NoiseSource,
) -> tuple[query_decision.State, Outcome]:
    """Give an unstable answer the plurality as its label."""
    following, outcome = query_decision.step(parameters, state, private_value, noise)
    return following, Outcome(private_value.plurality, outcome.stable)


def answer_with_a_loaded_coin(
    parameters: query_decision.Parameters,
    state: query_decision.State,
    private_value: Tally,
    noise: NoiseSource,
) -> tuple[query_decision.State, Outcome]:
    """Toss an unstable answer's coin so that it favours the plurality."""
    following, outcome = query_decision.step(parameters, state, private_value, noise)
    if outcome.stable:
        return following, outcome
    votes = max(noise.below(parameters.class_count), private_value.plurality)
    return following, Outcome(votes, stable=False)


def real_step(
    parameters: Parameters, state: State, distance: int, noise: NoiseSource
) -> tuple[State, bool]:
    """Decide as the code does: no fault."""
    return stability.step(parameters, state, distance, noise)
