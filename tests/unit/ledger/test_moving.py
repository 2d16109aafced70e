"""Moving a ledger between databases: whole, verified, and never able to answer in both."""

from __future__ import annotations

import itertools
import resource
from typing import TYPE_CHECKING

import pytest

from app.errors import (
    ConfigurationError,
    InvariantError,
)
from app.ledger import move_database as moving
from app.ledger.copies import copy_target
from app.ledger.copies.copies import back_up, retire
from app.ledger.copies.copy_target import BLOCK_ROWS, COPIED, row_digests
from app.ledger.database.database import ledger_database
from app.ledger.database.open_database import reading
from app.ledger.database.tables import answer_groups
from app.ledger.entries.fold import DELTA_KEY, EPSILON_KEY
from app.ledger.ledger import Ledger, open_ledger
from app.ledger.move_database import Moved, MoveStep
from app.ledger.server_lock import take_server_lock
from app.ledger.verification import verify
from app.noise.system import SystemNoise
from tests.builders.ledger.databases import KINDS, POSTGRESQL, SQLITE
from tests.builders.ledger.old_ledgers import going_on
from tests.builders.ledger.places import EITHER, Places, StoppedError, answers_afresh, go, opened
from tests.builders.ledger.releases import answer, create, middle_of_life, open_release, record
from tests.builders.ledger.whole_lives import LIVES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


PAIRS = tuple(itertools.product(KINDS, repeat=2))
EVERYWHERE = pytest.mark.parametrize(
    ("here", "there"),
    [
        # From a kind to itself is the same code, and left to the long audits.
        pytest.param(
            *pair, id=" to ".join(pair), marks=pytest.mark.long if len(set(pair)) == 1 else ()
        )
        for pair in PAIRS
    ],
)
ENDS = (MoveStep.VERIFY, MoveStep.RESERVE, MoveStep.COPY, MoveStep.COMPARE, MoveStep.RETIRE)


def rows(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Return every row but the secret's, by its table."""
    with reading(ledger_database(url)) as connection:
        return {
            table.name: sorted((tuple(row) for row in connection.execute(table.select())), key=repr)
            for table in COPIED
        }


@pytest.mark.parametrize("life", [*LIVES.values(), going_on], ids=[*LIVES, "earlier"])
@EVERYWHERE
def test_everything_goes_on_elsewhere(
    places: Places, here: str, there: str, life: Callable[[Path], Ledger]
) -> None:
    """Every row arrives as it was, with the secret; two entries more, and the source is closed."""
    source, target = places.ledger(here, life), places.new(there)
    noted, before = opened(source).read_state(), rows(source)
    moved = go(source, target)
    left, ledger = opened(source), opened(target)
    after = rows(target)
    assert {name: len(found) for name, found in before.items()} == {
        name: len(found) - 2 * (name == "entries") for name, found in after.items()
    }
    assert all(set(found) <= set(after[name]) for name, found in before.items())
    assert ledger.database_secret() == left.database_secret()
    assert ledger.key_counts() == left.key_counts() != {}
    assert [entry["kind"] for entry in ledger.public_entries(noted.head.sequence, 9)] == [
        "ReleaseMoved",
        "ReleaseReopened",
    ]
    assert moved == Moved(
        verify(ledger, noted.head.hash).head,
        verify(left).head,
        ledger_database(target).place,
    )
    verify(ledger, moved.retired.hash)
    now = ledger.read_state()
    for field in set(noted.__struct_fields__) - {"head", "ended_epoch"}:
        assert getattr(now, field) == getattr(noted, field)
    assert (now.closed, left.read_state().closed) != (None, None)
    assert now.closed is None


@EVERYWHERE
def test_answers_go_on_in_one_place_only(places: Places, here: str, there: str) -> None:
    """The target takes the next answer, the source none, and the way back is another move."""
    source, target, back = places.ledger(here), places.new(there), places.new(here)
    go(source, target)
    assert not answers_afresh(source)
    assert answers_afresh(target)
    go(target, back)
    assert not answers_afresh(target)
    assert answers_afresh(back)
    assert verify(opened(back)).answered == 11


@pytest.mark.parametrize(
    "step",
    [
        *(pytest.param(step, marks=pytest.mark.long) for step in ENDS[:-1]),
        ENDS[-1],
        MoveStep.GO_ON,
        MoveStep.END,
    ],
)
@EVERYWHERE
def test_a_move_may_end_anywhere(places: Places, here: str, there: str, step: MoveStep) -> None:
    """Until the source is retired it goes on, from then on the target does, by the same command."""
    source, target = places.ledger(here), places.new(there)
    with pytest.raises(StoppedError):
        go(source, target, stop_at=step)
    assert answers_afresh(source) == (step in ENDS)
    assert answers_afresh(target) == (step is MoveStep.END)
    answered = opened(source).read_state().answered + (step is MoveStep.END)
    moved = go(source, target)
    assert moved.is_new == (step is not MoveStep.END)
    assert not answers_afresh(source)
    assert verify(opened(target)).answered == answered
    assert answers_afresh(target)
    assert not go(source, target).is_new


@EITHER
def test_a_retired_source_goes_on_in_the_one_place_that_it_went_to(
    places: Places, kind: str
) -> None:
    """Another place, and an empty one of that address, do not go on; they are left as they were."""
    source, target = places.ledger(SQLITE), places.new(kind)
    with pytest.raises(StoppedError):
        go(source, target, stop_at=MoveStep.GO_ON)
    with pytest.raises(StoppedError):
        go(places.ledger(SQLITE), other := places.new(kind), stop_at=MoveStep.COPY)
    told = f"--from: moved to {ledger_database(target).place} by entry 10, and goes on there"
    for elsewhere in (places.new(SQLITE), places.new(POSTGRESQL), other):
        with pytest.raises(ConfigurationError) as refused:
            go(source, elsewhere)
        assert str(refused.value).startswith(told)
    go(source, target)
    with pytest.raises(ConfigurationError, match="goes on there and nowhere else"):
        go(source, places.new(kind))


@EITHER
def test_an_unfinished_target_is_no_ledger(places: Places, kind: str) -> None:
    """Nobody opens, reads, copies or restores what a copy was being written to."""
    source, target = places.ledger(SQLITE), places.new(kind)
    with pytest.raises(StoppedError):
        go(source, target, stop_at=MoveStep.GO_ON)
    said = "is what a ledger was being copied to, and holds none yet"
    for use in (
        lambda: open_ledger(target, create=True),
        lambda: open_ledger(target, create=False),
        lambda: back_up(target, places.folder / "copy.db"),
        lambda: go(target, places.new(SQLITE)),
    ):
        with pytest.raises(ConfigurationError, match=said):
            use()


@EITHER
def test_a_server_that_runs_takes_no_answer_any_more(places: Places, kind: str) -> None:
    """One that has a ledger of PostgreSQL open learns it under the lock; SQLite's is refused."""
    source, target = places.ledger(kind), places.new(SQLITE)
    server = open_ledger(source, create=True)
    record(server, [answer(server, 10)])
    lock = take_server_lock(source)
    if kind == SQLITE:
        with pytest.raises(ConfigurationError, match=r"^--from: another server has .* open"):
            go(source, target)
        assert ledger_database(target).is_empty
    else:
        go(source, target)
        with pytest.raises(InvariantError):
            record(server, [answer(server, 11)])
        assert verify(opened(target)).answered == 10
    lock.release()


def test_a_prepared_database_may_be_the_target(places: Places) -> None:
    """Tables that are there already, and what is granted on them, stay; the secret is replaced."""
    for kind in KINDS:
        source, target = places.ledger(SQLITE), places.new(kind)
        open_ledger(target, create=True).close()
        go(source, target)
        assert opened(target).database_secret() == opened(source).database_secret()
        assert answers_afresh(target)


@EITHER
def test_a_retirement_that_is_forgotten_is_seen(
    places: Places, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests above have power: without the source's entry both places answer."""
    source, target = places.ledger(SQLITE), places.new(kind)
    append, calls = moving._Ledger.append, itertools.count(1)
    # Two entries in the target, and then the one of the source.
    monkeypatch.setattr(
        moving._Ledger, "append", lambda *given: append(*given) if next(calls) <= 2 else None
    )
    go(source, target)
    assert answers_afresh(source)
    assert answers_afresh(target)


GROUPS = 30


def test_blocks_are_bounded_and_in_order(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows there are, one block is held, and both kinds give the same digests."""
    monkeypatch.setitem(copy_target._LARGE_ROWS, "answer_groups", GROUPS)
    path = places.folder / "long.db"
    ledger = create(path)
    open_release(ledger, queries=None)
    for first in range(1, 2 * BLOCK_ROWS, BLOCK_ROWS // 2):
        record(ledger, [answer(ledger, first + number) for number in range(BLOCK_ROWS // 2)])
    ledger.close()
    source, target = f"sqlite:///{path}", places.new(POSTGRESQL)
    go(source, target)
    digests = []
    for url in (source, target):
        with reading(ledger_database(url)) as connection:
            digests.append(row_digests(connection))
            blocks = [len(block) for block in copy_target._blocks(connection, answer_groups)]
            *full, last = blocks
            assert set(full) == {GROUPS}
            assert 0 < last <= GROUPS
            assert len(blocks) > 2
    differing = {name for name, digest in digests[0].items() if digest != digests[1][name]}
    assert differing == {"entries"}


def test_several_releases_move_together(places: Places) -> None:
    """One that is retired for good stays so; the other one goes on."""
    path = places.folder / "two.db"
    first = middle_of_life(path)
    second = create(path, "second")
    open_release(
        second,
        name="second",
        release_id="1e" * 16,
        parameters={EPSILON_KEY: "2", DELTA_KEY: "1/500000"},
    )
    retire(first, moves=False, noise=SystemNoise())
    first.close()
    second.close()
    source, target = f"sqlite:///{path}", places.new(POSTGRESQL)
    go(source, target)
    closed = {}
    for url in (source, target):
        for name in ("test", "second"):
            ledger = open_ledger(url, create=False, name=name)
            verify(ledger)
            closed[url == target, name] = ledger.read_state().closed is not None
    assert closed == {
        (False, "test"): True,
        (False, "second"): True,
        (True, "test"): True,
        (True, "second"): False,
    }


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_large_ledger_moves_in_bounded_memory(places: Places) -> None:
    """100,000 answers need less than 100 MB more, there and back."""
    # The check of each vector's first answer keeps a dictionary of them, about 20 MB.
    path = places.folder / "large.db"
    ledger = create(path)
    open_release(ledger, queries=None)
    for first in range(1, 100_000, BLOCK_ROWS):
        record(ledger, [answer(ledger, first + number) for number in range(BLOCK_ROWS)])
    ledger.close()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    target, back = places.new(POSTGRESQL), places.new(SQLITE)
    go(f"sqlite:///{path}", target)
    go(target, back)
    assert verify(opened(back)).answered == 100_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes
