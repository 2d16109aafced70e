"""The persons of rows that are read in parts: each person gets a number, and rows are counted.

The rows of a person may be in several parts (files of the source, or sections of files). Each part
is summarised by the distinct digests of its persons, and the number of rows of each. The summaries
are combined in any order. Then the persons are numbered in the order of their digests, and the rows
of each person in all parts are counted. In sums, each row has a weight of about 1 / (number of rows
of its person).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from app.data.persons import PERSON_COUNT_MAX, WEIGHT_UNITS
from app.errors import invariant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class DistinctPersons:
    """The persons of the rows of one part, each once; secret, and never shown by ``repr``.

    Attributes:
        digests: the keyed digest of each person's identifier, uint64, shape ``(persons, 2)``,
            ascending.
        row_counts: the number of each person's rows in the part, int64, shape ``(persons,)``.

    """

    digests: NDArray[np.uint64] = field(repr=False)
    row_counts: NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class NamedRows:
    """The person of each row of one part, before persons have numbers; secret, not in ``repr``.

    Attributes:
        codes: the index of each row's person among the distinct persons of the part, shape
            ``(rows,)``.
        distinct: the distinct persons of the part.

    """

    codes: NDArray[np.unsignedinteger] = field(repr=False)
    distinct: DistinctPersons = field(repr=False)

    @classmethod
    def of(cls, digests: NDArray[np.uint64]) -> NamedRows:
        """Return the persons of rows, given the keyed digest of each row's person.

        Args:
            digests: the digests as two 64-bit words each, shape ``(rows, 2)``.

        """
        order, is_first = _in_order(digests)
        distinct = digests[order[is_first]]
        codes: NDArray[np.unsignedinteger] = np.empty(
            len(order), dtype=np.min_scalar_type(len(distinct))
        )
        codes[order] = np.cumsum(is_first) - 1
        counts = np.diff(np.flatnonzero(is_first), append=len(order))
        return cls(codes, DistinctPersons(distinct, counts))


@dataclass(frozen=True, slots=True, eq=False)
class PersonRows:
    """The person of each row of one part, by number; secret, and never shown by ``repr``.

    Attributes:
        codes: the index of each row's person among the distinct persons of the part, shape
            ``(rows,)``.
        numbers: the number of each of these persons among all persons, int64, shape ``(persons,)``.
        counts: the number of rows of each of these persons in all parts, int64, shape
            ``(persons,)``.

    """

    codes: NDArray[np.unsignedinteger] = field(repr=False)
    numbers: NDArray[np.int64] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)

    def row_counts(self, rows: slice) -> NDArray[np.int64]:
        """Return for some rows the number of rows of the row's person, shape ``(rows,)``.

        Args:
            rows: a slice of the rows of the part.

        """
        row_counts: NDArray[np.int64] = self.counts[self.codes[rows]]
        return row_counts

    @property
    def weight_units(self) -> NDArray[np.int64]:
        """The weight of one row of each person, as an integer in units of ``2**-20``."""
        return WEIGHT_UNITS // self.counts


@dataclass(frozen=True, slots=True, eq=False)
class NumberedPersons:
    """All persons of the rows, numbered in the order of their keyed digests; secret.

    Attributes:
        row_counts: the number of each person's rows, int64, shape ``(persons,)``.
        by_part: for every part of the rows, the numbers of its distinct persons.

    """

    row_counts: NDArray[np.int64] = field(repr=False)
    by_part: Sequence[NDArray[np.int64]] = field(repr=False)

    @property
    def count(self) -> int:
        """The public number of persons."""
        return len(self.row_counts)

    def of_parts(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Return for each part the numbers of its persons, and how many rows each of them has.

        The rows of a person are counted in all parts together.
        """
        return [(numbers, self.row_counts[numbers]) for numbers in self.by_part]


def merged_persons(parts: Sequence[DistinctPersons]) -> NumberedPersons:
    """Return all persons of some parts of the rows; the order of the parts has no effect.

    A person's number is the rank of its digest among all digests.

    Args:
        parts: the distinct persons of each part.

    """
    digests = np.concatenate([np.zeros((0, 2), dtype="<u8"), *(part.digests for part in parts)])
    counts = np.concatenate([np.zeros(0, dtype=np.int64), *(part.row_counts for part in parts)])
    order, is_first = _in_order(digests)
    count = int(is_first.sum())
    invariant(count <= PERSON_COUNT_MAX, "the weights of all persons add up exactly")
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(is_first) - 1
    row_counts = np.zeros(count, dtype=np.int64)
    np.add.at(row_counts, numbers, counts)
    ends = np.cumsum([len(part.digests) for part in parts])
    return NumberedPersons(row_counts, np.split(numbers, ends[:-1]))


def _in_order(digests: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the ascending order of digests, and for each in order whether it is a new one.

    By their first words: where those of two persons agree, by both words.
    """
    firsts, seconds = np.ascontiguousarray(digests.T)
    order = np.argsort(firsts)
    in_order = seconds[order]
    differs = in_order[1:] != in_order[:-1]
    in_order = firsts[order]
    is_new = in_order[1:] != in_order[:-1]
    if (differs > is_new).any():
        order = np.lexsort((seconds, firsts))
        is_new = (np.diff(firsts[order]) != 0) | (np.diff(seconds[order]) != 0)
    return order, np.concatenate([np.ones(min(len(order), 1), dtype=np.bool_), is_new])
