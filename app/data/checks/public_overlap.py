"""Checks that a public file is not the private source and does not contain its rows.

Nothing protects public points. If an operator gave the private file as the public one, private rows
would be exposed. Therefore the file is refused, before any budget is charged, in the three
cases below. A *run* is a sequence of consecutive points or rows.

* Both files are the same file, possibly through a link.
* The points are the rows of the source in any order, and each occurs as often as in the source.
* At least half of the points' runs of two points are runs of the source, after encoding. If rows
  repeat so much that a source in random order would contain more than a tenth of the points' runs
  by chance, runs of four are compared instead, or eight, and so on. Then the probability that half
  of them occur by chance is at most about a fifth (by Markov's inequality), and almost zero if
  there are many points.

Single points that equal a row are common and prove nothing; the operator is warned of their share.
All results depend on private rows, so they are shown on the operator's terminal and recorded
nowhere. The checks protect against mistakes only: a part of the rows in another order passes them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.public_points import OPTION
from app.data.sources.encoded_parts import list_files
from app.data.sources.stored_files import SCHEME_END
from app.errors import ConfigurationError, DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

RUN_SHARE_MAX: Final = 0.5
CHANCE_MAX: Final = 0.1
# Longer ones are not looked for: the rows are then a few that repeat.
RUN_ROWS_MAX: Final = 64
ABSENT: Final = -1
ADVICE: Final = "nothing protects public points, so give rows that anybody may know"
SAME_FILE: Final = f"is data.source itself; {ADVICE}"
SAME_ROWS: Final = f"has the rows of data.source; {ADVICE}"
ROWS_IN_ORDER: Final = f"half of its rows or more are rows of data.source, in its order; {ADVICE}"
EQUAL_POINTS: Final = (
    "{share:.1%} of the public points have the features of a record; rows of other people may "
    "well be alike, but no point may be taken from data.source"
)
# Of splitmix64, in which every bit of a number moves every bit of its code.
STEP: Final = np.uint64(0x9E3779B97F4A7C15)
MIXES: Final = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
    (np.uint64(31), np.uint64(1)),
)


def refuse_source_file(public: Path, source: str) -> None:
    """Refuse a public file that is also a private file, by their paths, without opening them.

    Args:
        public: the path of the file of public points.
        source: the setting ``data.source``, a path or an address.

    Raises:
        ConfigurationError: the public file is the private source.

    """
    if SCHEME_END in source:
        return
    paths = [source]
    with suppress(DataError):  # such as an archive, which has no parts
        paths = [part.file.path for part in list_files(source)]
    try:
        is_same = any(map(public.samefile, paths))
    except OSError:
        return  # one is not there, or cannot be looked at: opening it says so
    if is_same:
        raise ConfigurationError(OPTION, f"{public} {SAME_FILE}")


def refuse_source_rows(
    points: NDArray[np.float64], rows: NDArray[np.float64], warn: Callable[[str], None]
) -> None:
    """Refuse public points that are the private rows; warn if only some points equal a row.

    Args:
        points: public points, encoded by the public schema, float64, shape ``(points, features)``.
        rows: the private rows, encoded by the public schema, float64, shape ``(rows, features)``.
        warn: a function that is called with a warning for the operator if some points equal a row.
            The warning has their share, which is private.

    Raises:
        ConfigurationError: the points are the rows, or at least half of their runs (sequences of
            consecutive points) are runs of the rows.

    """
    if not len(points):
        return
    point_codes, row_codes = _shared_codes(row_numbers(points), row_numbers(rows))
    counts = np.bincount(row_codes[row_codes != ABSENT], minlength=int(point_codes.max()) + 1)
    frequencies = counts[point_codes] / len(rows)
    if len(points) == len(rows) and np.array_equal(np.bincount(point_codes), counts):
        raise ConfigurationError(OPTION, SAME_ROWS)
    if _has_runs(point_codes, row_codes, frequencies):
        raise ConfigurationError(OPTION, ROWS_IN_ORDER)
    share = float(np.mean(frequencies > 0.0))
    if share > 0.0:
        warn(EQUAL_POINTS.format(share=share))


@dataclass(frozen=True, slots=True)
class Overlap:
    """The public points, and the runs (sequences) of them, that occur among private rows; secret.

    Attributes:
        counts: the number of rows that equal each distinct point, int64.
        found: for each length of a run, whether each distinct run of the points occurs among the
            rows, bool.

    """

    counts: NDArray[np.int64] = field(repr=False)
    found: tuple[NDArray[np.bool_], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class PublicRuns:
    """The distinct public points, and the distinct runs of 2, 4, and up to 64 consecutive points.

    Rows are compared with the points block by block. A run that crosses two blocks is not found.

    Attributes:
        known: a sorted array with a hash of each distinct point and, for each length of a run, a
            sorted array with a number for each distinct run of this length.
        codes: for each array of ``known``, the index in it of each point, or of the run that starts
            at each point.

    """

    known: tuple[NDArray[np.integer], ...] = field(repr=False)
    codes: tuple[NDArray[np.int64], ...] = field(repr=False)

    @classmethod
    def of(cls, points: NDArray[np.float64]) -> PublicRuns:
        """Return the distinct points and runs (sequences of consecutive points) of public points.

        Args:
            points: public points (feature vectors), encoded by the public schema, float64, shape
                ``(points, features)``.

        """
        known, codes = np.unique(row_numbers(points), return_inverse=True)
        all_known: list[NDArray[np.integer]] = [known]
        all_codes, length = [codes], 1
        while length < RUN_ROWS_MAX and len(codes) > length:
            pairs = _pairs(codes, len(known), length)
            known, codes = np.unique(pairs, return_inverse=True)
            all_known.append(known)
            all_codes.append(codes)
            length *= 2
        return cls(tuple(all_known), tuple(all_codes))

    def among(self, numbers: Sequence[NDArray[np.uint64]]) -> Overlap:
        """Return the public points and runs that occur among the rows of one block.

        Args:
            numbers: the hash of each row, as :func:`row_numbers` returns it.

        """
        codes = _found(self.known[0], np.concatenate(numbers))
        counts = np.bincount(codes[codes != ABSENT], minlength=len(self.known[0]))
        found = []
        for place, known in enumerate(self.known[1:]):
            codes = _found(known, _pairs(codes, len(self.known[place]), 1 << place))
            found.append(np.zeros(len(known), dtype=np.bool_))
            found[-1][codes[codes != ABSENT]] = True
        return Overlap(counts, tuple(found))

    def merged(self, first: Overlap, second: Overlap) -> Overlap:
        """Return the overlap of the public points with two blocks of rows together."""
        found = zip(first.found, second.found, strict=True)
        return Overlap(first.counts + second.counts, tuple(one | other for one, other in found))

    def finished(self, total: Overlap) -> Overlap:
        """Return the given overlap unchanged, since it is the overlap with all rows."""
        return total

    def refuse(self, overlap: Overlap, *, row_count: int, warn: Callable[[str], None]) -> None:
        """Refuse points that are the private rows, as :func:`refuse_source_rows` does.

        Args:
            overlap: the points and runs that occur among the private rows.
            row_count: the number of private rows.
            warn: a function that is called with a warning for the operator if some points equal a
                row. The warning has their share, which is private.

        Raises:
            ConfigurationError: the points are the rows, or at least half of their runs are runs of
                the rows.

        """
        points = self.codes[0]
        frequencies = overlap.counts[points] / row_count
        if len(points) == row_count and np.array_equal(np.bincount(points), overlap.counts):
            raise ConfigurationError(OPTION, SAME_ROWS)
        share = float(np.mean(frequencies > 0.0))
        for place, (codes, found) in enumerate(zip(self.codes[1:], overlap.found, strict=True)):
            frequencies = frequencies[: -(1 << place)] * frequencies[1 << place :]
            if float(np.mean(np.minimum(1.0, row_count * frequencies))) <= CHANCE_MAX:
                if np.mean(found[codes]) >= RUN_SHARE_MAX:
                    raise ConfigurationError(OPTION, ROWS_IN_ORDER)
                break
        if share > 0.0:
            warn(EQUAL_POINTS.format(share=share))


def _pairs(codes: NDArray[np.int64], count: int, distance: int) -> NDArray[np.int64]:
    """Return one number for every two of ``count`` codes at a distance."""
    first, second = codes[:-distance], codes[distance:]
    both = (first != ABSENT) & (second != ABSENT)
    return np.where(both, first * count + second, ABSENT)


def _found(known: NDArray[np.integer], numbers: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the place of each number among the known ones."""
    places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    return np.where(known[places] == numbers, places, ABSENT)


def _has_runs(
    points: NDArray[np.int64], rows: NDArray[np.int64], frequencies: NDArray[np.float64]
) -> bool:
    """Whether half of the points' runs are the rows' where chance gives a tenth at most."""
    row_count = len(rows)
    run_rows = 1
    while run_rows < RUN_ROWS_MAX and len(points) > run_rows:
        # Runs of twice the length: codes of two runs, the second behind the first.
        points, rows = _shared_codes(*_paired(points, rows, run_rows))
        frequencies = frequencies[:-run_rows] * frequencies[run_rows:]
        run_rows *= 2
        if float(np.mean(np.minimum(1.0, row_count * frequencies))) <= CHANCE_MAX:
            return bool(np.mean(np.isin(points, rows)) >= RUN_SHARE_MAX)
    return False


def row_numbers(values: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each row; two different rows have equal hashes once in 2^64 pairs."""
    codes = np.zeros(len(values), dtype=np.uint64)
    for column in values.T:
        canonical = np.where(np.isnan(column), np.nan, column + 0.0)
        codes += STEP
        codes ^= canonical.view(np.uint64)
        for shift, factor in MIXES:
            codes ^= codes >> shift
            codes *= factor
    return codes


def _paired(
    points: NDArray[np.int64], rows: NDArray[np.int64], distance: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return one number for every two codes at a distance, of the points and of the rows."""
    count = int(points.max()) + 1
    return _pairs(points, count, distance), _pairs(rows, count, distance)


def _shared_codes(
    points: NDArray[np.integer], rows: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the distinct keys of the points, and find the rows' keys among them."""
    known, point_codes = np.unique(points, return_inverse=True)
    return point_codes, _found(known, rows)


class EqualPoints:
    """A counter of public points (feature vectors) that equal some private row."""

    def __init__(self, points: NDArray[np.float64]) -> None:
        """Store public points, encoded by the public schema, shape ``(points, features)``.

        There must be at least one point.
        """
        self._points = _as_bytes(points)
        self._is_equal = np.zeros(len(points), dtype=bool)

    def add(self, private_values: NDArray[np.float64]) -> None:
        """Compare the public points (feature vectors) with a block of private rows.

        Args:
            private_values: the rows, encoded by the public schema, shape ``(rows, features)``.

        """
        if len(private_values):
            self._is_equal |= np.isin(self._points, _as_bytes(private_values))

    @property
    def share(self) -> float:
        """The share of the public points that equal a private row of the blocks compared so far."""
        return float(self._is_equal.mean())


def _as_bytes(values: NDArray[np.float64]) -> NDArray[np.void]:
    """Return each row as one item, so that rows with the same bytes are equal."""
    rows = np.ascontiguousarray(values)
    return rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel()
