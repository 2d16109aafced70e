"""A database gives rows by a row-wise query, is not written to, and keeps its secrets."""

from __future__ import annotations

import sqlite3
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.schema import CategoricalFeature, NumericFeature, Schema
from app.data.sources import database_source
from app.data.sources.column_values import Values, source_columns
from app.data.sources.row_blocks import ROWS_PER_BLOCK, Block, Blocks, collect
from app.data.sources.sources import read_rows
from app.errors import ConfigurationError, DataError
from tests.builders.server.nursery import run_forked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCHEMA = Schema(
    label="y",
    classes=("0", "1"),
    features=(
        NumericFeature(name="x", lower=-10.0, upper=1e6),
        CategoricalFeature(name="c", categories=("u", "v")),
    ),
)
QUERY = "select * from people"
SECRET = "hunter2"


def write(path: Path, rows: list[tuple[object, ...]] | None = None) -> str:
    """Write a database of a table and a view, and return its address."""
    with sqlite3.connect(path) as connection:
        connection.execute("create table people (x, c, y, other)")
        rows = [(1, "u", 0, b"\0"), (None, None, 1.0, None), ("2.5", "v", "0", 3)] + (rows or [])
        connection.executemany("insert into people values (?, ?, ?, ?)", rows)
        connection.execute("create view known as select x, c, y, x as z from people")
    connection.close()
    return f"sqlite:///{path}"


def line_of(source: str, query: str | None = QUERY) -> str:
    """Return the line that a source is refused with, which keeps the password."""
    with pytest.raises(ConfigurationError) as refused:
        read_rows(source, SCHEMA, query=query)
    line = str(refused.value)
    assert SECRET not in line
    assert "\n" not in line
    return line


@pytest.mark.parametrize(
    "query",
    [
        QUERY,
        "select y, c, x from people where 1 = 1 order by x desc, c",
        "select c, x, y from known",
        "select 'x' as w, x, coalesce(c, '') as c, cast(y as integer) as y from people;",
        "select x, c, y, 'a:b %s %(name)s ? :z' as other from people",
    ],
)
def test_a_query_gives_rows(tmp_path: Path, query: str) -> None:
    """Types may differ from row to row; columns are found by name, rows in any order."""
    rows = read_rows(write(tmp_path / "people.db"), SCHEMA, query=query, rows_expected=3)
    order = np.argsort(rows.values[:, 0])
    np.testing.assert_array_equal(rows.values[order], [[1, 0], [2.5, 1], [np.nan, 3]])
    np.testing.assert_array_equal(rows.labels[order], [0, 0, 1])


def test_blocks_join_without_a_seam(tmp_path: Path) -> None:
    """Rows beyond a block come in their order, and the row number counts on."""
    count = 2 * ROWS_PER_BLOCK + 5
    source = write(tmp_path / "people.db", [(number, "u", 1, None) for number in range(count)])
    counts: list[int] = []
    rows = read_rows(source, SCHEMA, query=QUERY, progress=counts.append)
    np.testing.assert_array_equal(rows.values[3:, 0], np.arange(count))
    assert (counts[0], counts[-1]) == (ROWS_PER_BLOCK, count + 3)
    (tmp_path / "more").mkdir()
    labels = [1] * count + [2]
    source = write(tmp_path / "more" / "people.db", [(1, "u", label, None) for label in labels])
    expected = f'data.source: column "y", row {count + 4}: is not one of data.classes'
    assert line_of(source) == expected


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (("old", "u", 0), 'column "x", row 4: is not a number'),
        ((9e999, "u", 0), 'column "x", row 4: is not a finite number'),
        ((1, b"\xff", 0), 'column "c", row 4: is not UTF-8 text'),
        ((1, "u", None), 'column "y", row 4: is not one of data.classes'),
    ],
)
def test_a_bad_cell_is_named(tmp_path: Path, row: tuple[object, ...], line: str) -> None:
    """A cell of any type is held to the rules of a CSV."""
    source = write(tmp_path / "people.db", [(*row, None)])
    assert line_of(source) == f"data.source: {line}"


def test_text_that_is_not_utf8_is_refused_by_row(tmp_path: Path) -> None:
    """SQLite may hold bytes of another encoding and call them text."""
    path = tmp_path / "people.db"
    source = write(path)
    with sqlite3.connect(path) as connection:
        connection.execute("insert into people values (1, cast(x'ff' as text), 0, '')")
    connection.close()
    assert line_of(source) == 'data.source: column "c", row 4: is not UTF-8 text'


def test_a_message_that_is_not_utf8_is_one_line(tmp_path: Path) -> None:
    """A broken file may stand in the driver's own message, which then cannot be decoded."""
    path = tmp_path / "rows.db"
    source = write(path)
    body = path.read_bytes()
    assert b"CREATE TABLE" in body
    path.write_bytes(body.replace(b"CREATE TABLE", b"CREATE\xd4TABLE"))
    assert line_of(source).startswith("data.query: is refused by the database (")


def test_a_value_that_a_driver_cannot_convert_is_one_line() -> None:
    """Its error is no error of a database, and may have the value in its text."""

    class Rows:
        """Rows of which the second block holds a year before the first."""

        def partitions(self, _count: int) -> Iterator[list[tuple[int]]]:
            """Yield one block, and fail."""
            yield [(1,)]
            raise ValueError("year -43 is out of range")

    with pytest.raises(DataError) as refused:
        list(database_source._blocks(Rows(), [0]))  # type: ignore[arg-type]  # as it is read
    assert str(refused.value) == "data.source: after row 1: the database broke off (ValueError)"


def test_values_of_other_drivers_are_read() -> None:
    """Decimals are numbers, bytes are text, and what is neither is refused by its row."""
    numeric, nominal, label = source_columns(SCHEMA)
    assert numeric.encode(Values([Decimal("1.50"), 2, None]))[:2].tolist() == [1.5, 2]
    assert nominal.encode(Values([memoryview(b"v"), "u"])).tolist() == [1, 0]
    cells = [Values([2, 10**400]), Values(["u", ["u"]]), Values([0, 0])]
    for first, line in ((0, "is not a finite number"), (1, "is neither text nor a number nor")):
        cells[0] = cells[0] if first == 0 else Values([2, 2])
        with pytest.raises(DataError, match=line) as refused:
            collect(Blocks(iter([Block(cells)])), [numeric, nominal, label], _ignore)
        assert f'column "{"xc"[first]}", row 2: ' in str(refused.value)


def _ignore(_count: int) -> None:
    """Report progress to no one."""


def test_nothing_is_written(tmp_path: Path) -> None:
    """The connection refuses to write, and no file is made where there was none."""
    path = tmp_path / "people.db"
    write(path)
    before = path.read_bytes()
    engine = database_source._engine(f"sqlite:///{path}")
    with (
        database_source._connected(engine) as connection,
        pytest.raises(Exception, match="readonly"),
    ):
        connection.exec_driver_sql("delete from people")
    assert path.read_bytes() == before
    absent = tmp_path / "absent.db"
    assert line_of(f"sqlite:///{absent}") == f"data.source: no such file: {absent}"
    assert not absent.exists()


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    """The settings escape a folder's name, and the reader undoes it."""
    folder = tmp_path / "100%41 what"
    folder.mkdir()
    write(folder / "people.db")
    escaped = str(folder).replace("%", "%25").replace(" ", "%20")
    assert read_rows(f"sqlite:///{escaped}/people.db", SCHEMA, query=QUERY).count == 3


@pytest.mark.parametrize(
    ("source", "query", "line"),
    [
        ("{sqlite}", None, "data.query: is required: data.source is a database"),
        ("{sqlite}", "select count(*) from people", "data.query: count() is not row-wise"),
        (
            "{sqlite}",
            "select x, nothing from people",
            "data.query: is refused by the database (OperationalError): run it there to see why",
        ),
        ("{sqlite}", "select x, y from people", 'data.source: column "c" is missing in the query'),
        (
            "{sqlite}",
            "select x, c, c, y from people",
            'data.source: column "c" occurs more than once in the query',
        ),
        ("sqlite://", QUERY, "data.source: names no file"),
        (
            "sqlite:////etc/hostname",
            QUERY,
            "data.source: cannot be connected to (DatabaseError): check address, user and password",
        ),
        (
            f"nothing://me:{SECRET}@host/people",
            QUERY,
            "data.source: names a kind of database that is not known",
        ),
        (
            f"mysql+pymysql://me:{SECRET}@host/people",
            QUERY,
            "data.source: needs the driver pymysql; install it",
        ),
        (
            f"mysql+pymysql://me:{SECRET}@host:port/people",
            QUERY,
            "data.source: is no SQLAlchemy URL such as sqlite:///records.db",
        ),
    ],
)
def test_what_cannot_be_read_is_one_line(
    tmp_path: Path, source: str, query: str | None, line: str
) -> None:
    """The line says what to change, and neither a password nor what the driver says."""
    source = source.format(sqlite=write(tmp_path / "people.db"))
    assert line_of(source, query).startswith(line)


def test_a_server_keeps_the_password_of_its_source(tmp_path: Path) -> None:
    """A start that cannot reach its rows ends with two, in one line without the address."""
    path = tmp_path / "conclave.toml"
    path.write_text(CONFIGURATION.replace("{SECRET}", SECRET), encoding="utf-8")
    ended = run_forked(("-m", "app", "serve", "--config", str(path)))
    line = "conclave: data.source: needs the driver pymysql; install it"
    assert (ended.returncode, ended.stderr.decode().splitlines()[-1]) == (2, line)
    assert SECRET.encode() not in ended.stderr + ended.stdout


CONFIGURATION = """
[release]
name = "people"
[data]
source = "mysql+pymysql://me:{SECRET}@127.0.0.1/people"
query = "select age, income from people"
label = "income"
classes = ["low", "high"]
[[data.features]]
name = "age"
kind = "numeric"
bounds = [17, 90]
[hypotheses]
class = "stumps"
[answers]
ensemble = 1
[server]
port = 0
"""
