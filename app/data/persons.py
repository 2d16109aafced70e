"""Persons as the unit of privacy: a private column names the person of each row.

Neighbours then replace all rows of one person by all rows of another, any number of them.
The number of persons is public, and the number of rows is not.  A person's identifier is
kept as a keyed digest only, and no feature, reply or log has it.

* A row is read alone: its person follows from its own identifier and the key.
* Persons are numbered in the order of their digests, which no claim rests on: a release puts
  them in slots by a uniform permutation of its own (``app/privacy/voting/votes_proof.md``).
* A mechanism that adds over rows gives each the weight ``floor(M / r) / M``, r being the
  person's rows and M ``2**20``.  The weights of a person add up to 1 at most, exactly; a
  person of more than M rows has none.  To the nearest instead, 682 rows of M = 1024 would
  add up to 1.33.  A noisy descent divides what a row adds by r toward zero.
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
    """The person to whom each row belongs, as a number; secret, and never shown by ``repr``.

    Attributes:
        numbers: int64 (n,); the number of each row's person, from 0.
        identities: uint8 (n_p, 16); the keyed digest of each person's identifier, ascending.
        digests: uint64 (n_p, 2); the digests by which rows that stream name the same persons;
            None where identifiers were not read.

    """

    numbers: NDArray[np.int64] = field(repr=False)
    identities: NDArray[np.uint8] = field(repr=False)
    digests: NDArray[np.uint64] | None = field(repr=False, default=None)

    def __post_init__(self) -> None:
        """Check that every person has a row, and freeze both arrays."""
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
        """Return the weight of each row, shape ``(n,)``: one over its person's number of rows."""
        units = WEIGHT_UNITS // self._counts
        weights: NDArray[np.float64] = units[self.numbers] / WEIGHT_UNITS
        return weights

    @cached_property
    def row_counts(self) -> NDArray[np.int64]:
        """Return for each row the number of rows of its person, shape ``(n,)``."""
        return self._counts[self.numbers]

    def positions(self, persons: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the indices of all rows of some persons, and where each person's indices begin.

        Args:
            persons: numbers of persons in any order, shape ``(m,)``; one may occur again.

        Returns:
            Positions, person by person, each one's in the order of the source; and offsets of
            shape ``(m + 1,)``, from 0 to the number of positions.

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
        name: of the column.
        key: of the digests; a secret of the database.
        missing: texts that stand for a missing value.
        count: the public number of persons, where it is known beforehand.

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

    Identifiers themselves are held only while rows are read, as the rows are.
    """

    def __init__(self, column: PersonColumn) -> None:
        """Start with no persons."""
        self._column = column
        self._found = _Numbers()
        self._digests = bytearray()

    def read(self, value: object) -> float:
        """Return the number that stands for a named person.

        Raises:
            CellError: there is no identifier, or none that can be told from others.

        """
        return self._found[self.identifier(value)]

    def identifier(self, value: object) -> str:
        """Return the text that identifies a person, without remembering it.

        Raises:
            CellError: there is no identifier, or none that can be told from others.

        """
        identifier = _identifier(value)
        if identifier is None or identifier in self._column.missing:
            raise CellError(NO_PERSON)
        return identifier

    def read_all(self, values: Sequence[object]) -> NDArray[np.float64]:
        """Return the numbers of many named persons, as :meth:`read` gives them.

        Raises:
            CellError: some value names nobody; which one is for the caller.

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
        """Return the number of persons whose rows were read so far."""
        return len(self._found)

    @property
    def expected(self) -> int | None:
        """Return the public number of persons, if it is known before the rows are read."""
        return self._column.count

    def persons(self, first_numbers: NDArray[np.int64]) -> Persons:
        """Return the person of each row read so far, numbered in the order of keyed hashes.

        Args:
            first_numbers: what :meth:`read` returned of each row, shape ``(n,)``.

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
        """Return the keyed hash of each person's name, by the person's number, uint8 (n_p, 16)."""
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
