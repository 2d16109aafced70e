"""The parts of a source: files of a folder, of a path pattern, or of Hive partitions.

Parts are listed without reading them. They are sorted by name, so that every process and every
machine has them in the same order. All files in a folder named ``key=value`` get a further column
``key``, in which every field is the text ``value``. The name of a folder may therefore be private,
and is never shown.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Final
from urllib.parse import unquote

from app.data.sources.row_blocks import SOURCE
from app.data.sources.stored_files import (
    CHANGED,
    GONE,
    SCHEME_END,
    SEPARATOR,
    StoredFile,
    has_wildcard,
    reaching,
    storage_of,
    store_scheme,
)
from app.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PARQUET_SUFFIX: Final = ".parquet"
CSV_SUFFIXES: Final = (".csv", ".csv.gz")
LEFT_OUT: Final = (".", "_")
PARTITION: Final = "="
# What Hive, Spark and pyarrow write for a missing value.
MISSING_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a source, one row group of a Parquet file, or some records of a CSV file.

    A part contains no row, and can be sent to another process. If the name of a folder is a private
    value, the path and the partitions are private, and so is this object.

    Attributes:
        file: the path, size and version tag of the file.
        name: the name of the part in error messages, without private values; empty if it is the
            only part.
        partitions: the further columns ``key`` that folders named ``key=value`` give to all rows of
            the file, each with its text ``value``; None in place of the text is a missing value.
        row_group: the index of the row group; None for the whole file.
        span: the byte offsets at which the records of a section of a CSV file start and end; None
            for the whole file.
        row_count: the number of rows; None if it is not known without reading.
        rows_before: the number of rows of the source before the part; 0 if it is not known.
        rows_before_file: the number of rows of the source before the part's file; 0 if it is not
            known.

    """

    file: StoredFile = field(repr=False)
    name: str
    partitions: tuple[tuple[str, str | None], ...] = field(repr=False, default=())
    row_group: int | None = None
    span: tuple[int, int] | None = None
    row_count: int | None = None
    rows_before: int = 0
    rows_before_file: int = 0

    @property
    def place(self) -> str:
        """Return the name of the part in error messages."""
        return self.name or "the file"


def is_csv(source: str) -> bool:
    """Return whether a source is one or several CSV files, judged by its name."""
    return _is_file_name(source) and source.lower().endswith(CSV_SUFFIXES)


def is_parquet(source: str) -> bool:
    """Return whether a source is a folder, or is named as one or several Parquet files."""
    if source.lower().endswith(PARQUET_SUFFIX) or store_scheme(source) or has_wildcard(source):
        return True
    return storage_of(source).is_folder(source)


def source_files(source: str, suffixes: tuple[str, ...] = (PARQUET_SUFFIX,)) -> tuple[Part, ...]:
    """Return the files of a source in the order of their names; no file is opened.

    Hidden files and files whose name begins with ``_`` are left out, and so are all files in
    folders that are hidden or whose name begins with ``_``.

    Args:
        source: the path or address of a file or a folder, or a path pattern.
        suffixes: the endings of the file names.

    Raises:
        DataError: there is no file, or a file has another ending, or the source cannot be listed.

    """
    storage = storage_of(source)
    with reaching(source, source, gone=f"no such file: {source}"):
        if has_wildcard(source):
            return _matching(source, storage.matching(source), suffixes)
        if suffixes == (PARQUET_SUFFIX,) and storage.is_folder(source):
            return _of_folder(source, storage.below(source), suffixes)
        return (Part(storage.file(source), ""),)


@contextmanager
def opened(part: Part, source: str, *, in_order: bool) -> Iterator[IO[bytes]]:
    """Yield an opened part, after checking that the file did not change since it was listed.

    Args:
        part: the part.
        source: the path, address or path pattern of the source.
        in_order: whether the file is read from start to end.

    Raises:
        DataError: the file is gone, has changed, or cannot be read.

    """
    path = part.file.path
    storage = storage_of(path)
    gone = f"{part.name} {GONE}" if part.name else f"no such file: {source}"
    with reaching(path, part.name or source, gone=gone):
        now = storage.file(path)
        if now != part.file:
            raise DataError(SOURCE, f"{part.place} {CHANGED}")
        file = storage.open(path, in_order=in_order)
    with file:
        yield file


def _matching(pattern: str, files: list[StoredFile], suffixes: tuple[str, ...]) -> tuple[Part, ...]:
    """Return the parts among files of a pattern."""
    root = _fixed(pattern)
    parts = _parts({file.path.removeprefix(root): file for file in files}, suffixes)
    if not parts:
        raise DataError(SOURCE, f"no file matches {pattern}")
    return parts


def _of_folder(
    folder: str, files: Mapping[str, StoredFile], suffixes: tuple[str, ...]
) -> tuple[Part, ...]:
    """Return the parts among the files of a folder, whose own folders are partitions."""
    for name in sorted(files):
        *folders, _ = name.split(SEPARATOR)
        stray = next((each for each in folders if PARTITION not in each), None)
        if stray is not None and not _is_left_out(name):
            raise _no_part(stray, suffixes)
    parts = _parts(files, suffixes)
    if not parts:
        raise DataError(SOURCE, f"the folder {folder} has no {suffixes[0]} file")
    return parts


def _parts(files: Mapping[str, StoredFile], suffixes: tuple[str, ...]) -> tuple[Part, ...]:
    """Return files as parts, in the order of their names."""
    names = sorted(name for name in files if not _is_left_out(name))
    parts = []
    for number, name in enumerate(names, start=1):
        *folders, last = name.split(SEPARATOR)
        if not last.lower().endswith(suffixes):
            raise _no_part(last, suffixes)
        partitions = tuple(_partition(each) for each in folders if PARTITION in each)
        parts.append(Part(files[name], _shown(folders, last, number), partitions))
    return tuple(parts)


def _shown(folders: list[str], last: str, number: int) -> str:
    """Return the name of a part without the values in it."""
    if not any(PARTITION in each for each in folders):
        return SEPARATOR.join([*folders, last])
    bare = [f"{each.partition(PARTITION)[0]}=*" if PARTITION in each else each for each in folders]
    return f"part {number}, {SEPARATOR.join([*bare, last])}"


def _partition(folder: str) -> tuple[str, str | None]:
    """Return the column of a folder and the text of its fields."""
    key, _, value = folder.partition(PARTITION)
    return unquote(key), None if value == MISSING_PARTITION else unquote(value)


def _is_left_out(name: str) -> bool:
    """Return whether a file, or a folder about it, is none of the parts."""
    return any(
        each.startswith(LEFT_OUT) and PARTITION not in each for each in name.split(SEPARATOR)
    )


def _fixed(pattern: str) -> str:
    """Return the folders of a pattern before its first wildcard, those of partitions left out."""
    folders = pattern.split(SEPARATOR)[:-1]
    fixed: list[str] = []
    for each in folders:
        if has_wildcard(each) or PARTITION in each:
            break
        fixed.append(each)
    return SEPARATOR.join([*fixed, ""])


def _no_part(name: str, suffixes: tuple[str, ...]) -> DataError:
    """Return the refusal of something that is no part."""
    problem = f'"{name}" in the folder is not a {suffixes[0]} file'
    return DataError(SOURCE, f"{problem}; put _ in front of its name to leave it out")


def _is_file_name(source: str) -> bool:
    """Return whether a source is no address of a database."""
    return SCHEME_END not in source or store_scheme(source) is not None
