"""The universal algorithm: outcomes, counters, and the phase that they give."""

from __future__ import annotations

import pytest

from app.errors import InvariantError
from app.mechanisms import stability, universal
from app.mechanisms.subsample_aggregate import Tally
from app.mechanisms.universal import Outcome, Parameters, Phase, Sequel, State, phase, step
from app.noise.scripted import ScriptedNoise

HIT, STABLE = 0, (1 << 64) - 1
HALT, CLASSIFIER = Sequel.HALT, Sequel.CLASSIFIER


def tally(plurality: int, distance: int) -> Tally:
    """Return votes of which a stability test looks at the plurality and the distance."""
    return Tally(plurality, distance, ())


def parameters(
    *,
    cutoff: int = 2,
    limit: int = 5,
    after: Sequel = CLASSIFIER,
    on_cutoff: Sequel = HALT,
    coin: bool = False,
    classes: int = 2,
) -> Parameters:
    """Return parameters whose stability test hits at a word of 0 only."""
    return Parameters(
        answering=stability.Parameters((1,), cutoff),
        class_count=classes,
        answer_limit=limit,
        after=after,
        on_cutoff=on_cutoff,
        unstable_gets_coin=coin,
    )


def test_a_stable_answer_is_the_plurality() -> None:
    """Without a hit the plurality goes out, and one answer is counted."""
    following, outcome = step(parameters(), State(), tally(1, 7), ScriptedNoise([STABLE]))
    assert outcome == Outcome(label=1, stable=True)
    assert following == State(answered_count=1, unstable_count=0)


@pytest.mark.parametrize("plurality", [0, 1])
def test_an_unstable_answer_abstains(plurality: int) -> None:
    """A hit has no label, whatever the votes were, and both counters grow."""
    following, outcome = step(parameters(), State(3, 1), tally(plurality, 0), ScriptedNoise([HIT]))
    assert outcome == Outcome(label=None, stable=False)
    assert following == State(answered_count=4, unstable_count=2)


@pytest.mark.parametrize(("word", "label"), [(0, 0), (1 << 63, 1), ((1 << 62) * 3, 1)])
@pytest.mark.parametrize("plurality", [0, 1])
def test_a_coin_comes_from_its_own_word(word: int, label: int, plurality: int) -> None:
    """A coin's label is drawn after the hit from the next word, not from the votes."""
    noise = ScriptedNoise([HIT, word])
    _, outcome = step(parameters(coin=True), State(), tally(plurality, 9), noise)
    assert outcome == Outcome(label=label, stable=False)
    assert noise.drawn_count == 2


def test_a_stable_answer_tosses_no_coin() -> None:
    """One word is drawn for a stable answer, coin or not."""
    noise = ScriptedNoise([STABLE, 0])
    step(parameters(coin=True), State(), tally(1, 9), noise)
    assert noise.drawn_count == 1


def test_a_coin_of_three_labels_rejects_the_fourth() -> None:
    """A draw that is no label is drawn again, so that the three are equally likely."""
    noise = ScriptedNoise([HIT, (1 << 64) - 1, 1 << 62])
    _, outcome = step(parameters(coin=True, classes=3), State(), tally(2, 0), noise)
    assert outcome == Outcome(label=1, stable=False)
    assert noise.drawn_count == 3


@pytest.mark.parametrize(
    ("state", "after", "on_cutoff", "expected"),
    [
        (State(0, 0), CLASSIFIER, HALT, Phase.ENSEMBLE),
        (State(4, 1), CLASSIFIER, HALT, Phase.ENSEMBLE),
        (State(5, 1), CLASSIFIER, HALT, Phase.CLASSIFIER),
        (State(5, 1), HALT, CLASSIFIER, Phase.HALTED),
        (State(3, 2), CLASSIFIER, HALT, Phase.HALTED),
        (State(3, 2), HALT, CLASSIFIER, Phase.CLASSIFIER),
        (State(5, 2), CLASSIFIER, HALT, Phase.HALTED),
        (State(5, 2), HALT, CLASSIFIER, Phase.CLASSIFIER),
        (State(4, 1, halted=True), CLASSIFIER, CLASSIFIER, Phase.HALTED),
        (State(5, 1, halted=True), CLASSIFIER, HALT, Phase.CLASSIFIER),
    ],
)
def test_the_phase_follows_from_the_counters(
    state: State, after: Sequel, on_cutoff: Sequel, expected: Phase
) -> None:
    """Answer m_o leads to ``after``, hit T to ``on_cutoff``, which decides where both fall."""
    assert phase(parameters(after=after, on_cutoff=on_cutoff), state) is expected


@pytest.mark.parametrize(
    ("after", "expected"), [(CLASSIFIER, Phase.CLASSIFIER), (HALT, Phase.HALTED)]
)
def test_without_answers_the_run_starts_with_what_follows(after: Sequel, expected: Phase) -> None:
    """Where answers have no share the first phase is what follows them."""
    without = Parameters(
        answering=None,
        class_count=2,
        answer_limit=0,
        after=after,
        on_cutoff=HALT,
        unstable_gets_coin=False,
    )
    assert phase(without, State()) is expected
    with pytest.raises(InvariantError, match="outside the ensemble phase"):
        step(without, State(), tally(0, 0), ScriptedNoise([STABLE]))


@pytest.mark.parametrize(
    ("state", "claim"),
    [
        (State(5, 0), "outside the ensemble phase"),
        (State(6, 1), "outside the ensemble phase"),
        (State(1, 0, halted=True), "outside the ensemble phase"),
        (State(2, 2), "no step after the cutoff"),
    ],
)
def test_no_step_is_taken_outside_the_ensemble_phase(state: State, claim: str) -> None:
    """Past a limit a step raises and draws nothing."""
    noise = ScriptedNoise([STABLE])
    with pytest.raises(InvariantError, match=claim):
        step(parameters(), state, tally(0, 0), noise)
    assert noise.drawn_count == 0


def test_a_run_begins_with_nothing_answered() -> None:
    """The initial state has zero counters and draws nothing."""
    noise = ScriptedNoise([])
    assert universal.initial_state(parameters(), noise) == State(0, 0)


@pytest.mark.parametrize(
    ("changed", "claim"),
    [({"classes": 1}, "two or more classes"), ({"limit": -1}, "is not negative")],
)
def test_parameters_that_cannot_run_are_refused(changed: dict[str, int], claim: str) -> None:
    """A single class and a negative limit raise."""
    with pytest.raises(InvariantError, match=claim):
        parameters(**changed)  # type: ignore[arg-type]  # the names differ by case
