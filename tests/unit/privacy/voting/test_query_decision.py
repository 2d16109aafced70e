"""The universal algorithm: outcomes, counters, and the phase that they give."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.errors import InvariantError
from app.noise.scripted import ScriptedNoise
from app.privacy.noisy_vote import mechanism as noisy_vote
from app.privacy.soft_labels.mechanism import PrivateBins, ScoreBin
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.stability import mechanism as stability
from app.privacy.voting import query_decision
from app.privacy.voting.query_decision import Outcome, Parameters, Phase, Sequel, State, phase, step
from app.privacy.voting.votes import Tally
from tests.builders.mechanisms.prescribed import NOTHING, PrescribedGaussian, PrescribedLaplace

HIT, STABLE = 0, (1 << 64) - 1
HALT, CLASSIFIER, STUDENT = Sequel.HALT, Sequel.CLASSIFIER, Sequel.STUDENT


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
        (State(4, 1), STUDENT, STUDENT, Phase.ENSEMBLE),
        (State(5, 1), STUDENT, HALT, Phase.CLASSIFIER),
        (State(3, 2), HALT, STUDENT, Phase.CLASSIFIER),
        (State(5, 2), STUDENT, HALT, Phase.HALTED),
    ],
)
def test_the_phase_follows_from_the_counters(
    state: State, after: Sequel, on_cutoff: Sequel, expected: Phase
) -> None:
    """Answer m_o leads to ``after``, hit T to ``on_cutoff``, which decides where both fall."""
    assert phase(parameters(after=after, on_cutoff=on_cutoff), state) is expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (State(4, 1), None),
        (State(4, 1, halted=True), None),
        (State(5, 1), STUDENT),
        (State(3, 2), CLASSIFIER),
        (State(5, 2), CLASSIFIER),
    ],
)
def test_what_follows_is_told_by_the_limit_that_was_met(
    state: State, expected: Sequel | None
) -> None:
    """A student after answer m_o and a classifier after hit T are one phase, told apart here."""
    given = parameters(after=STUDENT, on_cutoff=CLASSIFIER)
    assert query_decision.sequel(given, state) is expected


def test_a_halt_stands_in_for_what_may_not_follow() -> None:
    """Of both sequels those that are kept stay, and whatever else could follow is a halt."""
    either = parameters(after=STUDENT, on_cutoff=CLASSIFIER)
    assert either.sequels == {STUDENT, CLASSIFIER}
    assert either.keeping(()).sequels == {HALT}
    assert either.keeping((STUDENT,)) == parameters(after=STUDENT, on_cutoff=HALT)
    assert either.keeping((STUDENT, CLASSIFIER)) == either


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
    assert query_decision.initial_state(parameters(), noise) == State(0, 0)


@pytest.mark.parametrize(
    ("changed", "claim"),
    [({"classes": 1}, "two or more classes"), ({"limit": -1}, "is not negative")],
)
def test_parameters_that_cannot_run_are_refused(changed: dict[str, int], claim: str) -> None:
    """A single class and a negative limit raise."""
    with pytest.raises(InvariantError, match=claim):
        parameters(**changed)  # type: ignore[arg-type]  # the names differ by case


def sparse(*noises: int, drawn: tuple[int, ...] = (), refreshed: bool = True) -> Parameters:
    """Return parameters over the sparse vector: threshold 10, T = 2, prescribed noise."""
    answering = sparse_vector.Parameters(
        threshold=10,
        threshold_noise=PrescribedLaplace(drawn),
        query_noise=PrescribedLaplace(noises),
        cutoff=2,
        refreshed=refreshed,
    )
    return replace(parameters(), answering=answering)


def test_the_sparse_vector_keeps_its_noise_in_the_state() -> None:
    """It is drawn at the start, stays with a release, and is the next one after a hit."""
    given = sparse(0, 0, drawn=(3, -4))
    state = query_decision.initial_state(given, NOTHING)
    assert state.private_threshold_noise == 3
    state, outcome = step(given, state, tally(1, 14), NOTHING)
    assert (state.private_threshold_noise, outcome) == (3, Outcome(1, stable=True))
    state, outcome = step(given, state, tally(1, 13), NOTHING)
    assert (state.private_threshold_noise, outcome) == (-4, Outcome(None, stable=False))
    assert (state.answered_count, state.unstable_count) == (2, 1)


@pytest.mark.parametrize("refreshed", [False, True])
def test_the_sparse_vector_ends_at_its_cutoff(*, refreshed: bool) -> None:
    """Its T is the run's, whether or not a hit ends an epoch."""
    given = sparse(refreshed=refreshed)
    assert (given.cutoff, given.is_refreshed) == (2, refreshed)
    assert phase(given, State(3, 1)) is Phase.ENSEMBLE
    assert phase(given, State(3, 2)) is Phase.HALTED


def test_the_sparse_vector_does_not_answer_without_its_noise() -> None:
    """A state that has lost it raises, and draws none in its place."""
    with pytest.raises(InvariantError, match="kept while it answers"):
        step(sparse(), State(), tally(1, 99), NOTHING)


def test_the_threshold_noise_is_not_shown() -> None:
    """No text of a state has it."""
    assert "271828" not in repr(State(private_threshold_noise=271828))


def test_the_noisy_vote_answers_from_the_counts() -> None:
    """Every answer is stable, no cutoff ends the run, and its limit does."""
    answering = noisy_vote.Parameters(
        vote_noise=PrescribedGaussian([0, -3]), class_count=2, ensemble_size=9, answer_limit=2
    )
    given, state = replace(parameters(limit=2), answering=answering), State()
    assert (given.cutoff, given.is_refreshed) == (None, False)
    assert query_decision.initial_state(given, NOTHING) == state
    for label in (1, 0):
        state, outcome = step(given, state, Tally(1, 0, (4, 5)), NOTHING)
        assert outcome == Outcome(label, stable=True)
    assert phase(given, state) is Phase.CLASSIFIER


def test_without_answers_there_is_no_cutoff() -> None:
    """Nothing inside has neither a count of unstable answers nor epochs."""
    without = replace(parameters(), answering=None)
    assert (without.cutoff, without.is_refreshed) == (None, False)


# -- scores ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "label", "released", "units"),
    [
        ((STABLE,), 0, ScoreBin(4, 1, shifted=False), 0),
        ((HIT, STABLE), 1, ScoreBin(4, 2, shifted=True), 1),
        ((HIT, HIT), None, None, 2),
    ],
)
def test_a_score_goes_out_with_its_bins_label(
    words: tuple[int, ...], label: int | None, released: ScoreBin | None, units: int
) -> None:
    """The label is the second class from a mid-point of 1/2 on, and hits are units."""
    given = replace(parameters(cutoff=3), with_scores=True)
    value = PrivateBins(4, plain=(1, 9), shifted=(2, 9))
    following, outcome = step(given, State(), value, ScriptedNoise(words))
    assert outcome == Outcome(label, stable=label is not None, released_bin=released)
    assert following == State(1, units)


def test_a_noisy_vote_tests_no_bins() -> None:
    """Parameters that pair it with scores cannot be made."""
    noisy = noisy_vote.Parameters(
        vote_noise=PrescribedGaussian(), class_count=2, ensemble_size=9, answer_limit=5
    )
    with pytest.raises(InvariantError, match="tested for stability"):
        replace(parameters(), answering=noisy, with_scores=True)


def test_votes_are_not_taken_for_scores() -> None:
    """A tally where scores are answered, and bins where labels are, raise."""
    given = replace(parameters(), with_scores=True)
    with pytest.raises(InvariantError, match="where scores are answered"):
        step(given, State(), tally(1, 9), NOTHING)
    with pytest.raises(InvariantError, match="where scores are answered"):
        step(parameters(), State(), PrivateBins(4, plain=(1, 9), shifted=(2, 9)), NOTHING)


@pytest.mark.parametrize(
    ("state", "hits", "stable", "expected"),
    [
        (State(5, 0), 0, True, (State(6, 0), True)),
        (State(5, 1), 1, True, (State(6, 2), True)),
        (State(5, 2), 1, True, (State(6, 3), False)),
        (State(5, 1), 2, False, (State(6, 3), False)),
        (State(5, 2), 2, False, (State(6, 3), False)),
        (State(5, 2), 1, False, (State(6, 3), False)),
    ],
)
def test_an_answer_is_redone_with_the_hits_that_it_had(
    state: State,
    hits: int,
    *,
    stable: bool,
    expected: tuple[State, bool],
) -> None:
    """The first hit that is the last unit ends the run; before it nothing changes."""
    given = replace(parameters(cutoff=3), with_scores=True)
    released = ScoreBin(4, 1, shifted=hits > 0)
    drawn = (
        Outcome(0, stable=True, released_bin=released) if stable else Outcome(None, stable=False)
    )
    following, outcome = query_decision.redo(
        given, state, drawn, drawn=(State(0, 0), State(1, hits)), noise=NOTHING
    )
    assert (following, outcome.stable) == expected
    assert outcome == (drawn if outcome.stable else Outcome(None, stable=False))


def test_an_answer_that_turns_unstable_gets_its_coin() -> None:
    """The coin is a fresh one, which no score has touched."""
    given = replace(parameters(cutoff=1, coin=True), with_scores=True)
    drawn = Outcome(0, stable=True, released_bin=ScoreBin(4, 1, shifted=True))
    states = (State(0, 0), State(1, 1))
    noise = ScriptedNoise([STABLE])
    assert query_decision.redo(given, State(3, 0), drawn, drawn=states, noise=noise) == (
        State(4, 1),
        Outcome(1, stable=False),
    )


def test_a_noisy_vote_is_redone_without_a_cutoff() -> None:
    """Where nothing counts hits the answer is recorded as it was."""
    answering = noisy_vote.Parameters(
        vote_noise=PrescribedGaussian([]), class_count=2, ensemble_size=9, answer_limit=5
    )
    given, drawn = replace(parameters(), answering=answering), Outcome(1, stable=True)
    states = (State(0, 0), State(1, 0))
    assert query_decision.redo(given, State(3, 0), drawn, drawn=states, noise=NOTHING) == (
        State(4, 0),
        drawn,
    )
