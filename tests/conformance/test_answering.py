"""The battery that every answering mechanism passes."""

from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError, asdict, fields
from typing import TYPE_CHECKING, Any

import pytest

from app.errors import InvariantError
from app.noise.scripted import ScriptedNoise, seeded_words
from tests.conformance.cases import ANSWERING_CASES, AnsweringCase, Ask

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = pytest.mark.parametrize(
    "case",
    ANSWERING_CASES,
    ids=[f"{case.name}-{index}" for index, case in enumerate(ANSWERING_CASES)],
)


def start(case: AnsweringCase) -> Any:
    """Return the state before the first query."""
    return case.mechanism.initial_state(case.parameters, ScriptedNoise(seeded_words(1)))


def step(case: AnsweringCase, state: Any, ask: Ask) -> tuple[Any, Any]:
    """Answer one query from its own words."""
    return case.mechanism.step(case.parameters, state, ask.private_value, ScriptedNoise(ask.words))


def run(case: AnsweringCase, asks: Iterable[Ask]) -> tuple[Any, list[Any]]:
    """Answer queries until they or the run end; return the state and the outcomes."""
    state, outcomes = start(case), []
    for ask in asks:
        try:
            state, outcome = step(case, state, ask)
        except InvariantError:
            break
        outcomes.append(outcome)
    return state, outcomes


def ended(case: AnsweringCase) -> Any:
    """Return the state of a run that has ended."""
    return run(case, [case.ending] * case.ending_count)[0]


def test_parameters_and_states_are_immutable_values(case: AnsweringCase) -> None:
    """They are frozen, compare by value and hash."""
    for value in (case.parameters, start(case), ended(case)):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(value, fields(value)[0].name, None)
        assert value == copy.deepcopy(value)
        assert hash(value) == hash(copy.deepcopy(value))


def test_parameters_validate_themselves(case: AnsweringCase) -> None:
    """What no claim covers never comes into being."""
    for make in case.bad_parameters:
        with pytest.raises(InvariantError):
            make()


def test_a_step_leaves_what_it_was_given(case: AnsweringCase) -> None:
    """The state that goes in is the same afterwards, whatever the answer."""
    state = start(case)
    before = copy.deepcopy(state)
    for ask in (*case.asks, case.ending):
        step(case, state, ask)
    assert state == before


def test_a_run_is_a_function_of_its_noise(case: AnsweringCase) -> None:
    """The same words give the same outcomes and the same state: nothing else is drawn."""
    assert start(case) == start(case)
    assert run(case, case.asks) == run(case, case.asks)


def test_runs_side_by_side_do_not_touch(case: AnsweringCase) -> None:
    """Two runs that take turns give what each gives alone: no state is shared."""
    scripts = [list(case.asks), list(case.asks[::-1])]
    alone = [run(case, script) for script in scripts]
    states = [start(case), start(case)]
    outcomes: list[list[Any]] = [[], []]
    for index in range(min(len(each) for _, each in alone)):
        for which, script in enumerate(scripts):
            states[which], outcome = step(case, states[which], script[index])
            outcomes[which].append(outcome)
    for mixed, (_, expected) in zip(outcomes, alone, strict=True):
        assert mixed == expected[: len(mixed)]
        assert mixed


def test_a_run_ends_after_exactly_so_many_answers(case: AnsweringCase) -> None:
    """What ends a run is answered as often as the parameters say, not once more or less."""
    _, outcomes = run(case, [case.ending] * (case.ending_count + 5))
    assert len(outcomes) == case.ending_count


@pytest.mark.parametrize("lasting_count", [1, 7])
def test_other_answers_do_not_hasten_the_end(case: AnsweringCase, lasting_count: int) -> None:
    """With stable answers between them, there are as many unstable ones, and no fewer."""
    if case.lasting is None:
        assert not case.hits  # every answer counts the same
        return
    turn = [case.lasting] * lasting_count + [case.ending]
    _, outcomes = run(case, turn * (case.ending_count + 5))
    assert len(outcomes) == case.ending_count * len(turn)
    _, lasting = run(case, [case.lasting] * 40)
    assert len(lasting) == 40
    assert len(set(lasting)) == 1
    assert outcomes.count(lasting[0]) == case.ending_count * lasting_count


def test_a_refused_step_draws_and_changes_nothing(case: AnsweringCase) -> None:
    """After the end every step raises, however often it is tried."""
    state = ended(case)
    before = copy.deepcopy(state)
    for ask in case.asks:
        noise = ScriptedNoise(ask.words)
        with pytest.raises(InvariantError):
            case.mechanism.step(case.parameters, state, ask.private_value, noise)
        assert noise.drawn_count == 0
    assert state == before


def test_a_state_survives_a_round_trip(case: AnsweringCase) -> None:
    """Written as plain values and read back, a state goes on as if nothing had happened."""
    state = start(case)
    for ask in case.asks[: case.ending_count - 1]:
        restored = type(state)(**asdict(state))
        assert restored == state
        following = step(case, state, ask)
        assert step(case, restored, ask) == following
        state = following[0]


def test_an_unstable_outcome_tells_nothing_of_the_votes(case: AnsweringCase) -> None:
    """With the same words a hit's outcome is the same for every private value."""
    outcomes = {step(case, start(case), ask)[1] for ask in case.hits}
    assert len(outcomes) == min(len(case.hits), 1)
    assert case.lasting is None or step(case, start(case), case.lasting)[1] not in outcomes


def test_every_step_draws_words_of_its_own(case: AnsweringCase) -> None:
    """No noise is drawn once and used again, nor any kept back for the next query."""
    state = start(case)
    asks = [case.lasting] * 5 if case.lasting else [case.ending] * case.ending_count
    drawn = []
    for ask in asks:
        noise = ScriptedNoise(ask.words)
        state, _ = case.mechanism.step(case.parameters, state, ask.private_value, noise)
        drawn.append(noise.drawn_count)
    assert min(drawn) >= 1
    assert len(set(drawn)) == 1
