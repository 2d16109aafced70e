"""The streamed private rows of a release whose opening needs only counts of them.

Whoever needs the rows themselves, as a classifier may that is drawn later, makes them be read
into memory then; they are compared with what was opened before anything is drawn from them.

Two rules of a fingerprint: a sum over rows, and a digest of the sorted rows.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from app.data.checks.dead_features import dead_of_summaries
from app.data.plane.countings import Summaries
from app.data.plane.row_sums import MODULUS, fingerprint_of_sum, sum_of_rows
from app.data.rows import PrivateRows, fingerprint
from app.data.sources.encoded_parts import list_files, list_parts
from app.errors import DataError, InvariantError, invariant

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.data.plane.engine import Engine, Held
    from app.data.plane.summaries import PackedRows, Reading, Summary
    from app.data.sources.parts import Part

ROW_SUMS: Final = "row sums"
SORTED: Final = "sorted rows"
ROWS_AT_ONCE: Final = 1 << 16
SOURCE: Final = "data.source"
CHANGED: Final = "holds other rows than when it was read; restore it"


class StreamedRows:
    """Private rows that are counted part by part, and loaded into memory only on request.

    Args:
        reading: how a part is read.
        engine: who reads parts and counts.
        load: reads all rows into memory.
        told: told of the rows read so far, and of all rows where their number is known.
        opened: number and fingerprint of the rows, where a release was opened on parts that
            are still of the same sizes and versions; they are read only if something needs them.

    """

    def __init__(
        self,
        reading: Reading,
        engine: Engine,
        *,
        load: Callable[[], PrivateRows],
        told: Callable[[int, int | None], None],
        opened: tuple[int, str] | None = None,
    ) -> None:
        """Prepare for reading without reading anything."""
        self.reading = reading
        self.engine = engine
        self._load = load
        self._told = told
        self._opened = opened
        self._held: Held[PackedRows] | None = None
        self._summary: Summary | None = None

    @property
    def count(self) -> int:
        """Return n, the public number of rows."""
        return self._opened[0] if self._opened is not None else self.summary.row_count

    @property
    def summary(self) -> Summary:
        """The summary of all rows, which are read at its first use; secret."""
        if self._summary is None:
            self._summary = self._read()
        return self._summary

    @property
    def held(self) -> Held[PackedRows]:
        """The packed rows of all parts; secret. Joining them empties this handle."""
        if self._held is None:
            self._summary = self._read()
        held, self._held = self._held, None
        if held is None:
            raise InvariantError("parts that are read are held")
        return held

    def dead_features(self) -> dict[str, str]:
        """Return the reason for each uninformative feature, by the feature's name."""
        return dead_of_summaries(self.reading.schema, self.summary.features)

    def fingerprint(self, key: bytes) -> str:
        """Return the fingerprint of the rows, as a sum of keyed hashes."""
        if self._opened is not None:
            return self._opened[1]
        invariant(key == self.reading.key, "rows are summed under the fingerprint's key")
        width = len(self.reading.schema.features)
        return fingerprint_of_sum(self.summary.row_sum, row_count=self.count, width=width, key=key)

    def in_memory(self) -> PrivateRows:
        """Return all rows in memory, after reading the source again.

        Raises:
            DataError: they are not the rows that were counted.

        """
        rows, key = self._load(), self.reading.key
        if rows.count != self.count or row_sum_fingerprint(rows, key) != self.fingerprint(key):
            raise DataError(SOURCE, CHANGED)
        return rows

    def close(self) -> None:
        """Release all rows held in memory, and the engine."""
        self._held = None
        self.engine.close()

    def _read(self) -> Summary:
        """Read and pack every part, and return the summary of all."""
        reading = self.reading
        parts = list_parts(reading.source, reading.schema, dialect=reading.dialect)
        counts = [part.row_count for part in parts]
        known = sum(count for count in counts if count is not None)
        total = None if None in counts else known
        read = 0

        def done(numbered: tuple[int, Part]) -> None:
            nonlocal read
            read += numbered[1].row_count or 0
            self._told(read, total)

        self._told(0, total)
        try:
            self._held = self.engine.read(reading.packed, list(enumerate(parts)), done)
        except MemoryError:
            raise DataError(SOURCE, "does not fit into memory") from None
        (summary,) = self.engine.counted([Summaries()], self._held, lambda _: None)
        if not summary.row_count:
            raise DataError(SOURCE, "has no row of data")
        self._told(summary.row_count, summary.row_count)
        return summary


def row_sum_fingerprint(rows: PrivateRows, key: bytes) -> str:
    """Return the row-sum fingerprint of rows in memory: 64 hexadecimal digits."""
    total = 0
    for start in range(0, len(rows.labels), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        total += sum_of_rows(rows.values[some], rows.labels[some], key)
    count, width = rows.values.shape
    return fingerprint_of_sum(total % MODULUS, row_count=count, width=width, key=key)


def fingerprint_by(rule: str, rows: PrivateRows | StreamedRows, key: bytes) -> str:
    """Return a fingerprint of rows, by one of two rules: 64 hexadecimal digits.

    Args:
        rule: ``row sums``, or any other for the digest of sorted rows.
        rows: the private rows; those that are streamed are read into memory to be sorted.
        key: of the fingerprint.

    """
    if isinstance(rows, StreamedRows):
        if rule == ROW_SUMS and key == rows.reading.key:
            return rows.fingerprint(key)
        rows = rows.in_memory()
    return row_sum_fingerprint(rows, key) if rule == ROW_SUMS else fingerprint(rows, key)


def tag_of_files(source: str) -> str:
    """Return a digest of the paths, sizes and version tags of a source's files; secret."""
    digest = hashlib.sha256()
    for part in list_files(source):
        digest.update(repr(part.file).encode() + b"\0")
    return digest.hexdigest()
