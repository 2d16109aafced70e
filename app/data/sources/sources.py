"""Reading of private rows from a source of any format, with every field validated.

Rows are read in blocks, so that the memory is about ``rows * features * 8`` bytes. Each kind of
source has its own module, and a library that only one kind needs is imported only when a source of
this kind is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.data.rows import PrivateRows
from app.data.sources import csv_source
from app.data.sources.column_values import SourcePersons, source_columns
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
    from app.data.sources.column_values import SourceColumn
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

    Columns may come in any order. Columns that the schema does not have, and that do not name
    persons, are ignored.

    Args:
        source: the path of a ``.csv``, ``.csv.gz``, ``.parquet`` or ``.npz`` file or of a folder of
            Parquet files, or an SQLAlchemy URL.
        schema: the public schema.
        query: the ``SELECT`` query for a database, which must compute each row from one record.
        dialect: the separators and the encoding of a CSV file.
        rows_expected: the configured number of rows, which must be correct; None if none is
            configured.
        person: the private column that names persons; None if a row is the unit of privacy.
        progress: a function that is called with the number of rows read so far.

    Raises:
        DataError: the source cannot be read, or a field does not fit the schema. The error names
            the column and the row number.
        ConfigurationError: the query may combine several records.

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
    """Return an opened source; its name determines the format.

    Args:
        source: the path or address of the source, as for :func:`read_rows`.
        query: the ``SELECT`` query for a database, which must compute each row from one record.
        columns: the needed columns.
        dialect: the separators and the encoding of a CSV file.
        refuse_row: a function that is called with the number of a row of a CSV file that has too
            many or too few fields, and the problem. If it raises no error, the row is left out.

    Raises:
        DataError: the source cannot be opened, or lacks columns.
        ConfigurationError: the query may combine several records.

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
    """Return the decimal separator in a source's texts: for CSV as configured, else a point."""
    return dialect.decimal if is_csv(source) else PLAIN_CSV.decimal


def _ignore(_count: int) -> None:
    """Report progress to no one."""
