"""A row is read alone: no other row of its source decides how it is encoded."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.builders.ledger.postgresql_server import postgresql_server
from tests.builders.schema.planted_encodings import alike_zeros, block_typed, spelled_by_type
from tests.builders.schema.row_sources import (
    CompressedCsvRows,
    CsvRows,
    EstimatorRows,
    FrameRows,
    LargeCsvRows,
    NpzRows,
    ParquetRows,
    PartsRows,
    PostgresqlRows,
    RowSource,
    SqliteRows,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Fault = Callable[[pytest.MonkeyPatch], None]

BLOCKS = 200
BLOCKS_OF_LONG = 20_000
ROWS_MAX = 64
ROWS_PER_BLOCK_MAX = 9
# Rows, and what types their columns have, are drawn again after this many blocks; what
# each row is alone is read once.
BLOCKS_PER_POOL = 25
BLOCKS_PER_POOL_OF_LONG = 200
KINDS = (
    CsvRows,
    CompressedCsvRows,
    LargeCsvRows,
    ParquetRows,
    PartsRows,
    NpzRows,
    SqliteRows,
    EstimatorRows,
    FrameRows,
)
EVERY_KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def differing(
    source: RowSource,
    patch: pytest.MonkeyPatch,
    *,
    blocks: int = BLOCKS,
    blocks_per_pool: int = BLOCKS_PER_POOL,
) -> int:
    """Return how many random blocks are other bytes together than row by row."""
    random, count = source.random, 0
    for number in range(blocks):
        if number % blocks_per_pool == 0:
            with patch.context() as alone:
                source.lower_blocks(alone, ROWS_PER_BLOCK_MAX)
                drawn = source.pool(ROWS_MAX)
                pool = [(row, source.read([row])) for row in drawn]
            pool = [(row, encoded) for row, encoded in pool if encoded is not None]
            assert len(pool) > ROWS_MAX // 8
        places = sorted(random.sample(range(len(pool)), random.randint(1, len(pool))))
        with patch.context() as lowered:
            source.lower_blocks(lowered, random.randint(1, ROWS_PER_BLOCK_MAX))
            together = source.read([pool[place][0] for place in places])
        one_by_one = [pool[place][1] for place in places]
        count += together is None or [[each] for each in together] != one_by_one
    return count


@EVERY_KIND
def test_a_row_is_read_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[RowSource]
) -> None:
    """Random blocks of mixed values are the same bytes whole and row by row."""
    assert differing(kind(tmp_path, Random(1)), monkeypatch) == 0


@pytest.mark.long
# The longest, a large CSV, takes about 11 minutes at load 13.
@pytest.mark.timeout(5400)
@EVERY_KIND
def test_a_row_is_read_alone_at_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[RowSource]
) -> None:
    """A hundred times as many blocks, of other rows, find nothing either."""
    found = differing(
        kind(tmp_path, Random(2)),
        monkeypatch,
        blocks=BLOCKS_OF_LONG,
        blocks_per_pool=BLOCKS_PER_POOL_OF_LONG,
    )
    assert found == 0


def test_a_row_of_postgresql_is_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that is asked for as another type of number gives the same bytes."""
    with postgresql_server() as server:
        address = server.create_database()
        source = PostgresqlRows(tmp_path, Random(1), address)
        assert differing(source, monkeypatch, blocks_per_pool=BLOCKS // 2) == 0
        server.drop_database(address)


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (SqliteRows, block_typed),
        (NpzRows, alike_zeros),
        (EstimatorRows, spelled_by_type),
        (FrameRows, spelled_by_type),
    ],
)
def test_a_planted_fault_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[RowSource], fault: Fault
) -> None:
    """Each of the three faults that were there shows in many of the same blocks."""
    fault(monkeypatch)
    assert differing(kind(tmp_path, Random(1)), monkeypatch) > BLOCKS // 100
