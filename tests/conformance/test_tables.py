"""The battery of the mechanism that releases a table at once."""

from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError, fields

import pytest

from app.errors import InvariantError
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.multiplicative_weights import mechanism as multiplicative_weights
from app.privacy.multiplicative_weights.mechanism import draw
from tests.builders.mechanisms.releasing import CELL_COUNT, ROW_COUNT, counts_of, drawn
from tests.conformance.cases import TABLES

SEEDS = range(40)

pytestmark = pytest.mark.parametrize("refreshed", [False, True])


def test_parameters_and_tables_are_immutable(*, refreshed: bool) -> None:
    """Neither can be changed in place, and the module is the one of the battery."""
    table = draw(drawn(refreshed=refreshed), counts_of(), ScriptedNoise(seeded_words(1)))
    for value in (drawn(refreshed=refreshed), table):
        for field in fields(value):
            with pytest.raises((FrozenInstanceError, AttributeError)):
                setattr(value, field.name, None)
    assert table == copy.deepcopy(table)
    assert hash(table) == hash(copy.deepcopy(table))
    assert {multiplicative_weights.__name__.split(".")[-2]} == TABLES


def test_a_draw_is_a_function_of_its_noise(*, refreshed: bool) -> None:
    """The same words give the same table: nothing else is drawn."""
    tables = [
        draw(drawn(refreshed=refreshed), counts_of(), ScriptedNoise(seeded_words(9)))
        for _ in range(2)
    ]
    assert tables[0] == tables[1]


def test_other_noise_gives_other_tables(*, refreshed: bool) -> None:
    """Over 40 seeds more than one table comes: the draw is random."""
    tables = {
        draw(drawn(refreshed=refreshed), counts_of(), ScriptedNoise(seeded_words(seed)))
        for seed in SEEDS
    }
    assert len(tables) > 1


def test_no_more_updates_are_made_than_are_paid_for(*, refreshed: bool) -> None:
    """Over 40 seeds there are at most U answers with noise of their own, and U at times."""
    parameters = drawn(refreshed=refreshed)
    updates = [
        draw(parameters, counts_of(), ScriptedNoise(seeded_words(seed))).update_count
        for seed in SEEDS
    ]
    assert max(updates) == parameters.test.cutoff


def test_counts_are_only_read(*, refreshed: bool) -> None:
    """Counts that cannot be written will do, and are the same afterwards."""
    counts = counts_of()
    draw(drawn(refreshed=refreshed), counts, ScriptedNoise(seeded_words(1)))
    assert counts.tolist() == list(CELL_COUNT)


@pytest.mark.parametrize("row_count", [ROW_COUNT - 1, ROW_COUNT + 1])
def test_other_rows_than_the_public_number_are_refused(row_count: int, *, refreshed: bool) -> None:
    """Counts of another number of rows raise, and nothing is drawn."""
    noise = ScriptedNoise([])
    with pytest.raises(InvariantError):
        draw(drawn(row_count=row_count, refreshed=refreshed), counts_of(), noise)
    assert noise.drawn_count == 0


def test_noise_that_ends_is_told(*, refreshed: bool) -> None:
    """Without enough words the draw fails loudly instead of making some up."""
    with pytest.raises(InvariantError, match="the scripted noise has ended"):
        draw(drawn(refreshed=refreshed), counts_of(), ScriptedNoise([1]))
