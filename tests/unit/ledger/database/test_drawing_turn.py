"""Of several that would draw what a release publishes once, one draws: a server or a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.data.vectors import encode
from app.errors import LedgerUnavailableError
from app.ledger.database.locks import turn_to_draw
from app.release.classifier import publish_at_once
from app.release.classifier import switch as switching
from app.release.progress import no_progress
from app.release.statistics import opening_table as opening
from tests.builders.release.learning import learned
from tests.builders.release.opened_release import NoNoise, changed, kinds
from tests.builders.release.small_release import (
    STABLE,
    SmallRelease,
    ask,
    private_rows,
    seeded_noise,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    from app.release.release import Release

BUSY = "another process draws what is published"


def in_the_middle(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, act: Callable[[], object]
) -> None:
    """Let something else happen while a module draws, once."""
    draw, left = getattr(module, name), [act]

    def drawing(*given: object, **named: object) -> object:
        if left:
            left.pop()()
        return draw(*given, **named)

    monkeypatch.setattr(module, name, drawing)


def refused(act: Callable[[], object]) -> Callable[[], None]:
    """Return what expects that another one has the turn."""

    def check() -> None:
        with pytest.raises(LedgerUnavailableError, match=BUSY):
            act()

    return check


def at_the_switch(release: SmallRelease) -> Release:
    """Return an open release that has given its last answer."""
    answerer = release.answerer([STABLE] * 4)
    answerer.answer_batch([ask(margin) for margin in (-30, -1, 1, 30)])
    return answerer.release


def test_of_two_that_learn_at_once_one_draws(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second draws nothing while the first does; it is told why, and nothing is lost."""
    again = refused(lambda: learned(small_release, noise=NoNoise()))
    in_the_middle(monkeypatch, publish_at_once, "draw_published", again)
    learned(small_release)
    assert kinds(small_release).count("ClassifierPublished") == 1


def test_a_server_waits_for_who_learns_and_the_other_way_round(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is first draws, and the server adopts what it publishes without a draw."""
    release = at_the_switch(small_release)
    switch = refused(lambda: switching.switch_phase(release, NoNoise()))
    in_the_middle(monkeypatch, publish_at_once, "draw_published", switch)
    published = learned(small_release)
    switching.switch_phase(release, NoNoise())
    assert release.classifier == published


def test_who_learns_is_refused_while_a_server_draws(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The draw of the switch is the one that is published."""
    release = at_the_switch(small_release)
    learn = refused(lambda: learned(small_release, noise=NoNoise()))
    in_the_middle(monkeypatch, switching, "draw_published", learn)
    switching.switch_phase(release, seeded_noise(5))
    assert kinds(small_release)[-1] == "ClassifierPublished"


def test_of_two_tables_that_would_open_at_once_one_is_drawn(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``conclave statistics`` beside itself: the second counts no row."""
    shares = '{"relabel": 0.1, "answers": 0.5, "classifier": 0.2, "statistics": 0.2}'
    release = changed(small_release, privacy__shares=shares, privacy__epsilon="200")
    configuration = release.configuration()

    def open_table() -> object:
        return opening.open_at_once(
            configuration,
            ledger=release.ledger(),
            rows=private_rows(),
            public_values=encode(configuration.schema, [(-30.0, "a"), (30.0, "b")]),
            noise=seeded_noise(6),
            progress=no_progress,
            tell=lambda _: None,
        )

    in_the_middle(monkeypatch, opening, "drawn_statistics", refused(open_table))
    open_table()
    assert kinds(release).count("StatisticsReleased") == 1


def test_a_turn_is_of_one_release_and_ends_with_its_block(tmp_path: Path) -> None:
    """Another release of the file may draw beside it, and the next one afterwards."""
    path = tmp_path / "conclave.db"
    with turn_to_draw(path, 1) as is_held, turn_to_draw(path, 2):
        assert is_held()
        with pytest.raises(LedgerUnavailableError, match=BUSY), turn_to_draw(path, 1):
            pass
    with pytest.raises(KeyError), turn_to_draw(path, 1):
        raise KeyError
    with turn_to_draw(path, 1):
        pass
    with (
        pytest.raises(LedgerUnavailableError, match="cannot be locked"),
        turn_to_draw(tmp_path / "nowhere" / "conclave.db", 1),
    ):
        pass
