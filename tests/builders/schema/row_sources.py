"""Every kind of source, and the estimator, as a function from a few rows to their bytes."""

from __future__ import annotations

import csv
import gzip
import sqlite3
import warnings
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pyarrow as pa
from pyarrow import parquet
from sqlalchemy.engine import make_url

from app.data.field_values import CellError
from app.data.schema import CategoricalFeature, NumericFeature, Schema
from app.data.sources import csv_records, csv_source, database_source, npz_source, parquet_source
from app.data.sources.sources import read_rows
from app.errors import DataError
from app.estimator import PrivateQueryClassifier
from app.estimator import classifier as estimator
from tests.frames.data_frames import pd

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from random import Random

    import pytest

    from app.data.rows import PrivateRows

    Row = tuple[Any, ...]
    Encoded = list[bytes]

NAMES = ("amount", "share", "code", "word", "label")
CODES = ("0", "1", "01", "2.5", "3000", "true", "9007199254740993")
WORDS = ("a", "ü", "1", "-0.5", "False", "1e3")
CLASSES = ("0", "1", "b")
SCHEMA = Schema(
    label="label",
    classes=CLASSES,
    features=(
        NumericFeature(name="amount", lower=-5.0, upper=2.0**60),
        NumericFeature(name="share", lower=-0.0, upper=100.0),
        CategoricalFeature(name="code", categories=CODES),
        CategoricalFeature(name="word", categories=WORDS),
    ),
    missing=("99.0", "?", "-7"),
)
WHOLES = (0, 1, 2, 37, 99, -7, -3, 1000, 3000, 2**53, 2**53 + 1, 2**62)
REALS = (0.0, -0.0, 1.0, 99.0, -7.0, 2.5, -0.5, 0.1, 1e3, 1e16, 2.0**53, 40.5, float("nan"))
NUMBERS = (*WHOLES, *REALS, None)
SPELLED = ("1", "1.0", "01", "99", "99.00", " 99 ", "9.9e1", "-0", "-0.0", "?", "", "-7.0", "37")
SPELLED_NUMBERS = (*SPELLED, "2.5", ".5", "+3", "1e3", "9007199254740993")
TEXTS = (*SPELLED, *CODES, *WORDS, "True", "nan", "other", " a", "3000.0")
TRUTHS = (True, False)
LABELS = (0, 1, 0.0, 1.0, -0.0)


class RowSource:
    """A kind of source; rows of one pool may stand in one source together."""

    def __init__(self, folder: Path, random: Random) -> None:
        """Keep where files go and what draws."""
        self.folder = folder
        self.random = random

    def pool(self, count: int) -> list[Row]:
        """Draw rows."""
        return [self._row() for _ in range(count)]

    def read(self, rows: Sequence[Row]) -> Encoded | None:
        """Return the bytes of each row; None where the source is refused."""
        try:
            return _bytes_of(self._read(rows))
        except (CellError, DataError):
            return None

    def lower_blocks(self, patch: pytest.MonkeyPatch, count: int) -> None:
        """Let a block have few rows."""
        raise NotImplementedError

    def _row(self) -> Row:
        raise NotImplementedError

    def _read(self, rows: Sequence[Row]) -> PrivateRows:
        raise NotImplementedError


class CsvRows(RowSource):
    """A CSV, plain or compressed."""

    suffix = ".csv"

    def lower_blocks(self, patch: pytest.MonkeyPatch, count: int) -> None:
        """Let a block have few rows."""
        patch.setattr(csv_source, "ROWS_PER_BLOCK", count)

    def _row(self) -> Row:
        numbers = [self.random.choice(SPELLED_NUMBERS) for _ in "ab"]
        words = [self.random.choice(TEXTS) for _ in "ab"]
        return (*numbers, *words, self.random.choice(CLASSES))

    def _read(self, rows: Sequence[Row]) -> PrivateRows:
        path = self.folder / f"rows{self.suffix}"
        opened = gzip.open if self.suffix.endswith("gz") else open
        with opened(path, "wt", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([NAMES, *rows])
        return read_rows(path, SCHEMA)


class CompressedCsvRows(CsvRows):
    """The same, compressed."""

    suffix = ".csv.gz"


class LargeCsvRows(CsvRows):
    """The same, divided as large files are."""

    def lower_blocks(self, patch: pytest.MonkeyPatch, count: int) -> None:
        """Let a block have few bytes."""
        patch.setattr(csv_source, "SMALL_BYTES", 0)
        patch.setattr(csv_records, "BLOCK_BYTES", 8 * count)
        patch.setattr(csv_records, "PIECE_BYTES", 8 * count)


class TypedRows(RowSource):
    """A source with a type a column, which its writer takes from the rows that are there."""

    def pool(self, count: int) -> list[Row]:
        """Draw rows, of which each column is of one family: numbers, text or truths."""
        self._families = [
            self.random.choice((NUMBERS, WHOLES, REALS, SPELLED_NUMBERS)),
            self.random.choice((NUMBERS, REALS)),
            self.random.choice((NUMBERS, WHOLES, TEXTS, TRUTHS)),
            self.random.choice((NUMBERS, REALS, TEXTS)),
            self.random.choice((LABELS, CLASSES)),
        ]
        return super().pool(count)

    def _row(self) -> Row:
        return tuple(map(self.random.choice, self._families))

    def _arrays(self, rows: Sequence[Row]) -> dict[str, np.ndarray[Any, Any]]:
        columns = zip(NAMES, zip(*rows, strict=True), strict=True)
        return {name: _inferred(column) for name, column in columns}


class NpzRows(TypedRows):
    """An archive of arrays."""

    def lower_blocks(self, patch: pytest.MonkeyPatch, count: int) -> None:
        """Let a block have few rows."""
        patch.setattr(npz_source, "ROWS_PER_READ", count)

    def _read(self, rows: Sequence[Row]) -> PrivateRows:
        path = self.folder / "rows.npz"
        np.savez(path, allow_pickle=False, **self._arrays(rows))
        return read_rows(path, SCHEMA)


class ParquetRows(TypedRows):
    """A Parquet file, whose columns may be decimals and dictionaries."""

    def lower_blocks(self, patch: pytest.MonkeyPatch, count: int) -> None:
        """Let a block have few rows."""
        patch.setattr(parquet_source, "ROWS_PER_BATCH", count)

    def _read(self, rows: Sequence[Row]) -> PrivateRows:
        path = self.folder / "rows.parquet"
        self._write(path, rows)
        return read_rows(path, SCHEMA)

    def _write(self, path: Path, rows: Sequence[Row]) -> None:
        arrays = {name: self._typed(array) for name, array in self._arrays(rows).items()}
        parquet.write_table(pa.table(arrays), path)

    def _typed(self, array: np.ndarray[Any, Any]) -> pa.Array:
        kind = self.random.choice(("plain", "coded", "decimal"))
        if kind == "decimal" and array.dtype.kind in "if" and not np.isnan(array).any():
            return pa.array([Decimal(repr(value)) for value in array.tolist()])
        typed = pa.array(array, from_pandas=True)
        return typed.dictionary_encode() if kind == "coded" else typed


class PartsRows(ParquetRows):
    """A folder of parts, each with types of its own."""

    def _read(self, rows: Sequence[Row]) -> PrivateRows:
        folder = self.folder / "parts"
        folder.mkdir(exist_ok=True)
        for part in folder.iterdir():
            part.unlink()
        cut = self.random.randint(0, len(rows))
        for name, part_rows in (("a", rows[:cut]), ("b", rows[cut:])):
            if part_rows:
                self._write(folder / f"{name}.parquet", part_rows)
        return read_rows(folder, SCHEMA)


class SqliteRows(RowSource):
    """A table of a database without types; every value has one of its own."""

    def pool(self, count: int) -> list[Row]:
        """Draw rows and write them, each with a number by which it is asked for."""
        rows = super().pool(count)
        path = self.folder / "rows.db"
        path.unlink(missing_ok=True)
        with sqlite3.connect(path) as connection:
            connection.execute(f"create table pool (number, {', '.join(NAMES)})")
            numbered = [(number, *row) for number, row in enumerate(rows)]
            connection.executemany("insert into pool values (?, ?, ?, ?, ?, ?)", numbered)
        connection.close()
        self._url = f"sqlite:///{path}"
        return [(number, *row) for number, row in enumerate(rows)]

    def lower_blocks(self, patch: pytest.MonkeyPatch, count: int) -> None:
        """Let a block have few rows."""
        patch.setattr(database_source, "ROWS_PER_BLOCK", count)
        streamed = {**database_source.STREAMED, "yield_per": count}
        patch.setattr(database_source, "STREAMED", streamed)

    def _row(self) -> Row:
        choose = self.random.choice
        numbers = [choose((choose(NUMBERS), choose(SPELLED_NUMBERS))) for _ in "ab"]
        words = [choose((choose(NUMBERS), choose(TEXTS), b"a", b"1")) for _ in "ab"]
        return (*numbers, *words, choose((*LABELS, *CLASSES)))

    def _read(self, rows: Sequence[Row]) -> PrivateRows:
        numbers = ", ".join(str(row[0]) for row in rows)
        query = f"select * from pool where number in ({numbers}) order by number"  # noqa: S608 -- numbers of ours
        return read_rows(self._url, SCHEMA, query=query)


class PostgresqlRows(SqliteRows):
    """A table of a database with types; the query asks for one of several types of number."""

    types = ("numeric", "numeric", "text", "numeric", "text")
    asked = ("numeric", "double precision")

    def __init__(self, folder: Path, random: Random, address: str) -> None:
        """Make the table."""
        super().__init__(folder, random)
        self._url = address
        columns = ", ".join(map(" ".join, zip(NAMES, self.types, strict=True)))
        self._run(f"create table pool (number integer, {columns})")

    def pool(self, count: int) -> list[Row]:
        """Draw rows and write them, each with a number by which it is asked for."""
        rows = [(number, *row) for number, row in enumerate(RowSource.pool(self, count))]
        self._run("delete from pool")
        self._run("insert into pool values (%s, %s, %s, %s, %s, %s)", rows)
        return rows

    def _row(self) -> Row:
        choose = self.random.choice
        return (choose(NUMBERS), choose(NUMBERS), choose(TEXTS), choose(NUMBERS), choose(CLASSES))

    def _read(self, rows: Sequence[Row]) -> PrivateRows:
        asked = [
            f"cast({name} as {self.random.choice(self.asked)}) as {name}"
            if kind == "numeric"
            else name
            for name, kind in zip(NAMES, self.types, strict=True)
        ]
        numbers = ", ".join(str(row[0]) for row in rows)
        where = f"where number in ({numbers}) order by number"
        query = f"select {', '.join(asked)} from pool {where}"  # noqa: S608 -- names of ours
        return read_rows(self._url, SCHEMA, query=query)

    def _run(self, statement: str, rows: Sequence[Row] | None = None) -> None:
        address = make_url(self._url).set(drivername="postgresql")
        with psycopg.connect(address.render_as_string(hide_password=False)) as connection:
            cursor = connection.cursor()
            if rows is None:
                cursor.execute(statement)
            else:
                cursor.executemany(statement, rows)


class EstimatorRows(RowSource):
    """Rows and labels as lists, arrays of objects, or arrays of a type that numpy chose."""

    def __init__(self, folder: Path, random: Random) -> None:
        """Catch the rows of every release that would open."""
        super().__init__(folder, random)
        self._caught: list[PrivateRows] = []

    def catch(self, patch: pytest.MonkeyPatch) -> None:
        """Open no release, and keep the rows that one would be opened on."""

        def opened(_configuration: object, *, rows: PrivateRows, noise: object) -> object:
            del noise
            self._caught.append(rows)
            return SimpleNamespace(is_hopeless=False, publish_if_due=lambda: None)

        patch.setattr(estimator, "MemoryRelease", opened)

    def lower_blocks(self, patch: pytest.MonkeyPatch, count: int) -> None:
        """There are no blocks."""
        del count
        self.catch(patch)

    def pool(self, count: int) -> list[Row]:
        """Draw rows for one of the forms that an array may have."""
        self._form = self.random.choice((_as_lists, _as_objects, np.array))
        return super().pool(count)

    def _row(self) -> Row:
        choose = self.random.choice
        label = choose((*LABELS, *CLASSES))
        if self._form is np.array:
            return (*(choose(NUMBERS[:-1]) for _ in "abcd"), label)
        numbers = [choose((choose(NUMBERS), choose(SPELLED_NUMBERS), True)) for _ in "ab"]
        words = [choose((choose(NUMBERS), choose(TEXTS), choose(TRUTHS), b"a")) for _ in "ab"]
        return (*numbers, *words, label)

    def _classifier(self) -> PrivateQueryClassifier:
        return PrivateQueryClassifier(
            bounds=(-5, 100), categories={2: CODES, 3: WORDS}, classes=CLASSES
        )

    def _read(self, rows: Sequence[Row]) -> PrivateRows:
        form: Callable[[Any], Any] = self._form
        classifier = self._classifier()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            try:
                classifier.fit(form([row[:-1] for row in rows]), [row[-1] for row in rows])
            except ValueError as error:
                raise DataError("rows", str(error)) from None
        return self._caught.pop()


class FrameRows(EstimatorRows):
    """Rows as a data frame, whose columns have the types that pandas makes of their values."""

    def pool(self, count: int) -> list[Row]:
        """Draw rows, of which each column is of one family, or of several."""
        self._form = _as_frame
        self._families = [
            self.random.choice((NUMBERS, WHOLES, SPELLED_NUMBERS, (*NUMBERS, *SPELLED_NUMBERS))),
            self.random.choice((NUMBERS, REALS)),
            self.random.choice((NUMBERS, WHOLES, REALS, TEXTS, (*NUMBERS, *TEXTS))),
            self.random.choice((TRUTHS, (*TRUTHS, None), (*TRUTHS, 0, 1.0, "True", "?", None))),
            (*LABELS, *CLASSES),
        ]
        return RowSource.pool(self, count)

    def _row(self) -> Row:
        return tuple(map(self.random.choice, self._families))

    def _classifier(self) -> PrivateQueryClassifier:
        return PrivateQueryClassifier(
            bounds={"amount": (-5, 100), "share": (0, 100)},
            categories={"code": CODES, "word": TRUTHS},
            classes=CLASSES,
        )


def _as_frame(rows: list[Row]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(NAMES[:-1]))


def _as_lists(rows: list[Row]) -> list[list[Any]]:
    return list(map(list, rows))


def _as_objects(rows: list[Row]) -> np.ndarray[Any, Any]:
    return np.array(rows, dtype=object)


def _inferred(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Return an array of the type that all values together have."""
    return np.array([float("nan") if value is None else value for value in values])


def _bytes_of(rows: PrivateRows) -> Encoded:
    pairs = zip(rows.values, rows.labels, strict=True)
    return [values.tobytes() + label.tobytes() for values, label in pairs]
