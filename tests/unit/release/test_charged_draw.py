"""What a release draws once: the turn, the charge, the draw and the publication, in this order."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from app.errors import LedgerUnavailableError
from app.release.charged_draw import TURN_LOST, draw_once, no_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ALL = ["turn", "charge", "draw", "held", "publish", "turn ends"]


@dataclass
class Steps:
    """A record that notes what it is asked for, and answers as it is told to.

    Attributes:
        is_due: whether a publication is due after the charge.
        is_held: whether the turn is held after the draw.
        is_first: whether no other process has published before.
        seen: the steps, in their order.

    """

    is_due: bool = True
    is_held: bool = True
    is_first: bool = True
    seen: list[str] = field(default_factory=list)

    @contextmanager
    def turn(self) -> Iterator[Callable[[], bool]]:
        """Note the beginning and the end of the turn."""
        self.seen.append("turn")
        try:
            yield lambda: self.note("held", told=self.is_held)
        finally:
            self.seen.append("turn ends")

    def note(self, step: str, *, told: bool = True) -> bool:
        """Note a step, and say what it is told to."""
        self.seen.append(step)
        return told

    def draw(self) -> str:
        """Note the draw, and return what is drawn."""
        self.seen.append("draw")
        return "drawn"

    def take(self) -> str | None:
        """Draw once."""
        return draw_once(
            turn=self.turn(),
            charge=lambda: self.note("charge", told=self.is_due),
            draw=self.draw,
            publish=lambda drawn: self.note("publish", told=self.is_first and drawn == "drawn"),
        )


def test_a_draw_is_charged_before_and_published_after_it() -> None:
    """Within one turn: charge, draw, a look whether the turn is held, publication."""
    steps = Steps()
    assert steps.take() == "drawn"
    assert steps.seen == ALL


def test_what_is_published_already_is_not_drawn() -> None:
    """Nothing is drawn or published, and nothing is given back."""
    steps = Steps(is_due=False)
    assert steps.take() is None
    assert steps.seen == ["turn", "charge", "turn ends"]


def test_what_was_drawn_when_the_turn_was_lost_is_not_published() -> None:
    """Another process draws by then: this one's draw is as if it had crashed."""
    steps = Steps(is_held=False)
    with pytest.raises(LedgerUnavailableError, match=TURN_LOST):
        steps.take()
    assert steps.seen == ["turn", "charge", "draw", "held", "turn ends"]


def test_a_draw_that_came_second_is_forgotten() -> None:
    """Where another process published before, what was drawn here is not given back."""
    steps = Steps(is_first=False)
    assert steps.take() is None
    assert steps.seen == ALL


def test_a_refused_charge_draws_nothing() -> None:
    """What the charge raises ends the turn before anything is drawn."""

    def refuse() -> bool:
        raise KeyError

    with pytest.raises(KeyError):
        draw_once(turn=no_turn(), charge=refuse, draw=pytest.fail, publish=pytest.fail)
