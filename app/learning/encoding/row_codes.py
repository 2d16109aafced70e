"""Rows packed into a few bytes; hypothesis classes compute their inputs from these bytes.

The input of a hypothesis class is a row in the form in which the class computes its label, for
example the outcomes of feature tests or the index of a cell. The bytes of a row depend on the
values of this row only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from app.learning.enumerated.hypothesis_list import Encoded


_NUMBER: Final = np.dtype("<f8")


class RowCodes(Protocol):
    """The interface of a compact encoding of rows as bytes, and of its decoding."""

    @property
    def width(self) -> int:
        """The number of bytes that encode a row."""
        ...

    def codes(self, values: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Return the bytes that encode rows, shape ``(bytes, rows)``.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        """
        ...

    def encoded(self, codes: NDArray[np.uint8]) -> Encoded:
        """Return rows in the form that a hypothesis class takes as input, from their bytes.

        Args:
            codes: the bytes that :meth:`codes` returns, shape ``(bytes, rows)``.

        """
        ...


@dataclass(frozen=True, slots=True)
class IntegerCodes:
    """A compact encoding for hypothesis classes that encode a row as nonnegative integers.

    Attributes:
        encode: a function that returns the hypothesis class's inputs for rows, as integers, shape
            ``(rows, integers)``.
        columns: the number of integers that encode a row.
        largest: the largest integer that occurs.

    """

    encode: Callable[[NDArray[np.float64]], Encoded]
    columns: int
    largest: int

    @property
    def width(self) -> int:
        """The number of bytes that encode a row."""
        return self.columns * self._kind.itemsize

    def codes(self, values: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Return the bytes that encode rows, shape ``(bytes, rows)``.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        """
        numbers = np.ascontiguousarray(self.encode(values), dtype=self._kind)
        return numbers.view(np.uint8).reshape(len(values), self.width).T

    def encoded(self, codes: NDArray[np.uint8]) -> Encoded:
        """Return rows as int64 integers, shape ``(rows, integers)``, from their bytes.

        Args:
            codes: the bytes that :meth:`codes` returns, shape ``(bytes, rows)``.

        """
        rows = np.ascontiguousarray(codes.T)
        return rows.view(self._kind).reshape(codes.shape[1], self.columns).astype(np.int64)

    @property
    def _kind(self) -> np.dtype[np.unsignedinteger]:
        """The narrowest type of the numbers, with the least significant byte first."""
        kind: np.dtype[np.unsignedinteger] = np.min_scalar_type(self.largest).newbyteorder("<")
        return kind


@dataclass(frozen=True, slots=True)
class NumberCodes:
    """An encoding of a row's feature values without rounding, for classes that need every digit.

    Attributes:
        columns: the number of feature values in a row.

    """

    columns: int

    @property
    def width(self) -> int:
        """The number of bytes that encode a row."""
        return self.columns * _NUMBER.itemsize

    def codes(self, values: NDArray[np.float64]) -> NDArray[np.uint8]:
        """Return the bytes that encode rows, shape ``(bytes, rows)``.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        """
        numbers = np.ascontiguousarray(values, dtype=_NUMBER)
        return numbers.view(np.uint8).reshape(len(values), self.width).T

    def encoded(self, codes: NDArray[np.uint8]) -> Encoded:
        """Return rows as float64 feature values, shape ``(rows, features)``, from their bytes.

        Args:
            codes: the bytes that :meth:`codes` returns, shape ``(bytes, rows)``.

        """
        rows = np.ascontiguousarray(codes.T)
        return rows.view(_NUMBER).reshape(codes.shape[1], self.columns)


def _no_numbers(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return no number for each row."""
    return np.zeros((len(values), 0), dtype=np.int64)


NO_CODES: Final = IntegerCodes(_no_numbers, columns=0, largest=0)
"""The encoding of a row by no bytes, for rows of which only a summary is needed."""
