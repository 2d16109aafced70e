"""Persons as the unit of privacy: a private column names the person of each row.

Neighbouring data sets then differ in one person: all rows of this person, however many, are
replaced by all rows of another. The number of persons is public, and the number of rows is not. An
identifier is stored only as a keyed digest, and occurs in no feature, reply or log.

* The person of a row depends only on the row's own identifier and the key, not on other rows.
* Persons are numbered in the order of their digests. No privacy claim depends on this order: a
  release permutes the persons uniformly at random (``app/privacy/voting/votes_proof.md``).
* A mechanism that adds over rows gives each row the weight ``floor(M / r) / M``, where r is the
  number of rows of the row's person and ``M = 2**20``. The weights of one person add up to at most
  1, exactly. A person with more than M rows has weight 0. Rounding to the nearest multiple of
  ``1 / M`` would break this bound: with M = 1024, for example, the weights of a person's 682 rows
  would add up to 1.33. Noisy gradient descent divides the contribution of a row by r and rounds
  toward zero.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, cast
from uuid import UUID

import numpy as np

from app.data.field_values import ERRORS, CellError
from app.data.person_digests import text_digests
from app.errors import invariant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

WEIGHT_UNITS: Final = 1 << 20
"""M, the parts of a person that weights are whole numbers of."""
PERSON_COUNT_MAX: Final = 1 << 32
"""Persons whose weights add up exactly in doubles, with a bit to spare."""
IDENTITY_BYTES: Final = 16
EXACT_FLOAT_MAX: Final = 1 << 53
NO_PERSON: Final = "names no person"
NO_IDENTIFIER: Final = "is neither a text nor a whole number"
LOST_DIGITS: Final = "is a number whose last digits may be lost; store text or integers"


@dataclass(frozen=True, eq=False)
class Persons:
    """The person of each row, as a number; secret, and never shown by ``repr``.

    Attributes:
        numbers: the number of each row's person, from 0, int64, shape ``(rows,)``.
        identities: the keyed digest of each person's identifier, ascending, uint8, shape
            ``(persons, 16)``.
        digests: another keyed digest of each person's identifier, by which persons are recognised
            when rows are read block by block, uint64, shape ``(persons, 2)``; None if identifiers
            were not read.

    """

    numbers: NDArray[np.int64] = field(repr=False)
    identities: NDArray[np.uint8] = field(repr=False)
    digests: NDArray[np.uint64] | None = field(repr=False, default=None)

    def __post_init__(self) -> None:
        """Check that every person has a row, and make the arrays read-only."""
        invariant(self.count <= PERSON_COUNT_MAX, "the weights of all persons add up exactly")
        invariant(bool(self._counts.min(initial=1) > 0), "every person has a row")
        invariant(len(self._counts) == self.count, "every row is about a person")
        self.numbers.flags.writeable = False
        self.identities.flags.writeable = False

    @property
    def count(self) -> int:
        """Return the number of persons, which is public."""
        return len(self.identities)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Return the weight of each row: about 1 / (number of rows of its person), ``(rows,)``.

        The weight is rounded down to a multiple of ``2**-20``, so that the weights of one person
        add up to at most 1.
        """
        units = WEIGHT_UNITS // self._counts
        weights: NDArray[np.float64] = units[self.numbers] / WEIGHT_UNITS
        return weights

    @cached_property
    def row_counts(self) -> NDArray[np.int64]:
        """Return for each row the number of rows of its person, shape ``(rows,)``."""
        return self._counts[self.numbers]

    def positions(self, persons: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the indices of all rows of some persons, and where each person's indices start.

        Args:
            persons: the numbers of persons in any order, shape ``(persons,)``; a person may be
                repeated.

        Returns:
            The row indices, person by person, and in the order of the source for each person; and
            the position at which each person's indices start, followed by the number of indices,
            shape ``(persons + 1,)``.

        """
        order, starts = self._by_person
        lengths = self._counts[persons]
        offsets = _offsets(lengths)
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        return order[np.repeat(starts[persons], lengths) + within], offsets

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        return np.bincount(self.numbers, minlength=self.count).astype(np.int64)

    @cached_property
    def _by_person(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return positions of rows, those of a person together, and where each one's begin."""
        return _stable_order(self.numbers), _offsets(self._counts)


def _stable_order(numbers: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the positions of numbers below 2**32 in ascending order, equal ones as they are.

    Sixteen bits at a time, which numpy sorts in a time that grows with their count alone.
    """
    low, high = ((numbers >> shift).astype(np.uint16) for shift in (0, 16))
    order = np.argsort(low, kind="stable")
    return order[np.argsort(high[order], kind="stable")]


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each part begins, and the end of the last."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])


@dataclass(frozen=True, slots=True)
class PersonColumn:
    """The configuration of the private column that names the person of each row.

    Attributes:
        name: the name of the column.
        key: the secret key of the digests, which the ledger's database keeps.
        missing: texts that stand for a missing value.
        count: the public number of persons, if it is known before the rows are read.

    """

    name: str
    key: bytes = field(repr=False)
    missing: frozenset[str]
    count: int | None = None


class _Numbers(dict[str, int]):
    """Numbers of identifiers by first appearance; a new one gets the next."""

    def __missing__(self, identifier: str) -> int:
        number = self[identifier] = len(self)
        return number


class PersonReader:
    """A parser of the column that names persons; it numbers persons by first appearance.

    It keeps the identifiers in memory only while rows are read.
    """

    def __init__(self, column: PersonColumn) -> None:
        """Start with no persons."""
        self._column = column
        self._found = _Numbers()
        self._digests = bytearray()

    def read(self, value: object) -> float:
        """Return the number of the person that a value identifies.

        Raises:
            CellError: the identifier is missing, or is of a kind that may not be unique, such as a
                boolean or a fraction.

        """
        return self._found[self.identifier(value)]

    def identifier(self, value: object) -> str:
        """Return the text that identifies a person, without storing it.

        Raises:
            CellError: the identifier is missing, or is of a kind that may not be unique, such as a
                boolean or a fraction.

        """
        identifier = _identifier(value)
        if identifier is None or identifier in self._column.missing:
            raise CellError(NO_PERSON)
        return identifier

    def read_all(self, values: Sequence[object]) -> NDArray[np.float64]:
        """Return the numbers of the persons that many values identify, as :meth:`read` does.

        Raises:
            CellError: some value identifies no person; the caller finds out which value it is.

        """
        kinds = set(map(type, values))
        if kinds in ({str}, {int}):
            texts = list(map(str, values)) if kinds == {int} else cast("Sequence[str]", values)
            if not self._column.missing.isdisjoint(texts):
                raise CellError(NO_PERSON)
            new = dict.fromkeys(text for text in texts if text not in self._found)
            self._found.update(zip(new, itertools.count(len(self._found)), strict=False))
            return np.fromiter(map(self._found.__getitem__, texts), np.float64, count=len(texts))
        return np.fromiter(map(self.read, values), dtype=np.float64, count=len(values))

    @property
    def count(self) -> int:
        """Return the number of persons in the rows that were read so far."""
        return len(self._found)

    @property
    def expected(self) -> int | None:
        """Return the public number of persons, if it is known before the rows are read."""
        return self._column.count

    def persons(self, first_numbers: NDArray[np.int64]) -> Persons:
        """Return the person of each row that was read so far, numbered in the order of the digests.

        Args:
            first_numbers: the number that :meth:`read` returned for each row, shape ``(rows,)``.

        """
        halves = self.identities().view(">u8")
        order = np.lexsort((halves[:, 1], halves[:, 0]))
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order))
        return Persons(
            ranks[first_numbers],
            np.ascontiguousarray(halves[order]).view(np.uint8),
            text_digests(list(self._found), self._column.key)[order],
        )

    def identities(self) -> NDArray[np.uint8]:
        """Return the keyed digest of each person's identifier, in the order of first appearance.

        Returns:
            Digests, uint8, shape ``(persons, 16)``.

        """
        new = itertools.islice(self._found, len(self._digests) // IDENTITY_BYTES, None)
        keyed = blake2b(key=self._column.key, digest_size=IDENTITY_BYTES)
        for identifier in new:
            digest = keyed.copy()
            digest.update(identifier.encode(errors=ERRORS))
            self._digests += digest.digest()
        # A copy: an array that is looked at keeps its bytes from growing.
        digests = np.frombuffer(bytes(self._digests), dtype=np.uint8)
        return digests.reshape(-1, IDENTITY_BYTES)


def _identifier(value: object) -> str | None:
    """Return the text of an identifier, None where it is missing; 7, 7.0 and "7" are one."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode(errors=ERRORS)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bool | np.bool):
        raise CellError(NO_IDENTIFIER)
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        return _whole(float(value))
    if isinstance(value, Decimal):
        return _whole(value)
    raise CellError(NO_IDENTIFIER)


def _whole(value: float | Decimal) -> str | None:
    """Return the text of a number that is whole, None for NaN."""
    if math.isnan(value):
        return None
    if math.isinf(value) or value != int(value):
        raise CellError(NO_IDENTIFIER)
    if isinstance(value, float) and abs(value) >= EXACT_FLOAT_MAX:
        raise CellError(LOST_DIGITS)
    return str(int(value))
