"""Reading of private rows from a source of any format, with every field validated.

Read in blocks, so that memory stays near rows x features x 8 bytes.  Each kind
of source is a file of its own; libraries that only one of them needs are
imported when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.data.rows import PrivateRows
from app.data.sources import csv_source
from app.data.sources.cells import SourcePersons, source_columns
from app.data.sources.csv_dialect import PLAIN_CSV
from app.data.sources.parts import is_csv, is_parquet
from app.data.sources.row_blocks import ROWS_PER_BLOCK, SOURCE, Blocks, collect, refuse_row
from app.data.sources.stored_files import is_database, store_scheme
from app.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from app.data.persons import PersonColumn
    from app.data.schema import Schema
    from app.data.sources.cells import SourceColumn
    from app.data.sources.csv_dialect import CsvDialect
    from app.data.sources.row_blocks import RefuseRow

NPZ_SUFFIX = ".npz"

__all__ = ["ROWS_PER_BLOCK", "PrivateRows", "read_rows"]


def read_rows(
    source: str | Path,
    schema: Schema,
    *,
    query: str | None = None,
    dialect: CsvDialect = PLAIN_CSV,
    rows_expected: int | None = None,
    person: PersonColumn | None = None,
    progress: Callable[[int], None] | None = None,
) -> PrivateRows:
    """Return every private row of a source, encoded by public rules.

    Columns may come in any order; others than the schema's and the persons' are ignored.

    Args:
        source: path of a ``.csv``, ``.csv.gz``, ``.parquet`` or ``.npz`` file
            or of a folder of Parquet parts, or an SQLAlchemy URL.
        schema: the public schema.
        query: the row-wise ``SELECT`` of a database.
        dialect: how a CSV is written.
        rows_expected: n as the configuration gives it, which must agree.
        person: the private column that names persons; None where a row is the unit.
        progress: called with the number of rows read so far.

    Raises:
        DataError: what does not fit, by column and row number.
        ConfigurationError: the query is not row-wise.

    """
    columns = source_columns(schema, decimal=decimal_of(str(source), dialect))
    named = None if person is None else SourcePersons(person)
    if named is not None:
        columns.append(named)
    try:
        with open_source(str(source), query, columns, dialect) as blocks:
            rows = collect(blocks, columns, progress or _ignore, named)
    except MemoryError:
        raise DataError(SOURCE, "does not fit into memory") from None
    unit, expected = ("rows", rows_expected) if person is None else ("persons", person.count)
    if expected is not None and rows.count != expected:
        problem = f"says {expected}, but the source has {rows.count} {unit}"
        raise DataError(f"data.{unit}", problem)
    return rows


def open_source(
    source: str,
    query: str | None,
    columns: Sequence[SourceColumn],
    dialect: CsvDialect = PLAIN_CSV,
    *,
    refuse_row: RefuseRow = refuse_row,
) -> AbstractContextManager[Blocks]:
    """Return an opened source, in the format that its name shows.

    Args:
        source: as :func:`read_rows` takes it.
        query: the row-wise ``SELECT`` of a database.
        columns: the columns that are read.
        dialect: how a CSV is written.
        refuse_row: told of a row of a CSV that is too long or too short, by its number;
            where it returns, the row is left out.

    Raises:
        DataError: it cannot be opened, or has not the columns.
        ConfigurationError: the query is not row-wise.

    """
    # Imported only where asked for: some of these libraries take longer than a small file.
    if is_database(source):
        from app.data.sources.database_source import open_database  # noqa: PLC0415 -- as above

        return open_database(source, query, columns)
    if is_csv(source):
        return csv_source.open_csv(source, columns, refuse_row, dialect)
    if source.lower().endswith(NPZ_SUFFIX) and store_scheme(source) is None:
        from app.data.sources.npz_source import open_npz  # noqa: PLC0415 -- as above

        return open_npz(source, columns)
    if is_parquet(source):
        from app.data.sources.parquet_source import open_parquet  # noqa: PLC0415 -- as above

        return open_parquet(source, columns)
    raise DataError(
        SOURCE,
        "is neither a .csv, .csv.gz, .parquet or .npz file, nor a folder of Parquet parts, "
        "nor an SQLAlchemy URL",
    )


def decimal_of(source: str, dialect: CsvDialect) -> str:
    """Return the decimal separator in a source's texts: as configured for CSV, else a point."""
    return dialect.decimal if is_csv(source) else PLAIN_CSV.decimal


def _ignore(_count: int) -> None:
    """Report progress to no one."""
