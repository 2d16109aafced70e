"""The bit's step: each answer for a given word, and the end after m."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from app.errors import InvariantError
from app.noise.scripted import ScriptedNoise
from app.privacy.noisy_vote.bit_vote import WORD_RANGE, Parameters, step
from app.privacy.noisy_vote.mechanism import Outcome, State

EVEN, ODD = (1 << 63, 1 << 60, 1 << 10), (1 << 62, 1 << 60)


def parameters(size: int, answer_limit: int = 3) -> Parameters:
    """Return the parameters of k votes."""
    half = ODD if size % 2 else EVEN
    return Parameters(half=half, ensemble_size=size, answer_limit=answer_limit)


@pytest.mark.parametrize(
    ("votes", "words"),
    [
        ((5, 5), 1 << 63),
        ((6, 4), 1 << 60),
        ((4, 6), WORD_RANGE - (1 << 60)),
        ((7, 3), 1 << 10),
        ((10, 0), 1 << 10),  # beyond the table its last word holds
        ((0, 10), WORD_RANGE - (1 << 10)),
        ((6, 5), 1 << 62),
        ((5, 6), WORD_RANGE - (1 << 62)),
        ((11, 0), 1 << 60),
        ((0, 11), WORD_RANGE - (1 << 60)),
    ],
)
def test_a_word_below_the_tables_gives_the_second_label(votes: tuple[int, int], words: int) -> None:
    """Exactly the words below ``P(v)`` do, whichever label leads."""
    given = parameters(sum(votes))
    for word, label in ((words - 1, 1), (words, 0)):
        assert step(given, State(), votes, ScriptedNoise([word])) == (State(1), Outcome(label))


def test_the_run_ends_after_its_last_answer() -> None:
    """Answer m is given, and then a step raises and draws nothing."""
    given, state = parameters(10), State()
    for number in range(1, 4):
        state, _ = step(given, state, (4, 6), ScriptedNoise([0]))
        assert state == State(number)
    with pytest.raises(InvariantError, match="last answer"):
        step(given, state, (4, 6), ScriptedNoise([]))


@pytest.mark.parametrize(
    ("votes", "broken"),
    [
        ((10,), "each class"),
        ((1, 4, 5), "each class"),
        ((4, 7), "one vote"),
        ((11, -1), "negative"),
    ],
)
def test_counts_that_are_not_the_votes_are_refused(votes: tuple[int, ...], broken: str) -> None:
    """Too few or too many counts or votes raise, and nothing is drawn."""
    with pytest.raises(InvariantError, match=broken):
        step(parameters(10), State(), votes, ScriptedNoise([]))


def test_parameters_are_immutable_and_have_no_cutoff() -> None:
    """They are frozen, and m alone ends a run."""
    given = parameters(10)
    assert given.cutoff is None
    name = "half"
    with pytest.raises(FrozenInstanceError):
        setattr(given, name, ())
