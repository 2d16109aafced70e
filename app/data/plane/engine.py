"""The interface of an engine that reads parts of the rows, counts them and adds counts up.

No answer depends on it: the functions are the same, their results are whole numbers, and adding
them does not depend on order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Item = TypeVar("Item")
PartT = TypeVar("PartT")
JoinedT = TypeVar("JoinedT")
GivenT = TypeVar("GivenT")
CountsT = TypeVar("CountsT")
ResultT = TypeVar("ResultT")
PartT_contra = TypeVar("PartT_contra", contravariant=True)
ResultT_co = TypeVar("ResultT_co", covariant=True)


class Summing(Protocol[CountsT, ResultT_co]):
    """The interface of a computation that adds up the counts of parts of the rows, in any order."""

    def merged(self, first: CountsT, second: CountsT, /) -> CountsT:
        """Return the sum of two parts' counts; associative and commutative."""
        ...

    def finished(self, total: CountsT, /) -> ResultT_co:
        """Return the result that is computed from the counts of all parts."""
        ...


class Counting(Summing[CountsT, ResultT_co], Protocol[PartT_contra, CountsT, ResultT_co]):
    """The interface of a computation that counts the rows of each part and adds up the counts."""

    def of(self, part: PartT_contra, /) -> CountsT:
        """Return the counts of the rows in one part, which depend on no other part."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Held(Generic[PartT]):
    """A handle on parts of the rows that an engine holds in memory.

    Attributes:
        parts: them, or what stands for those that other machines hold.

    """

    parts: list[PartT] = field(repr=False)


class Engine(Protocol):
    """The interface of an engine, which reads parts of rows, holds them and counts in them."""

    def read(
        self, read: Callable[[Item], PartT], items: Sequence[Item], done: Callable[[Item], None]
    ) -> Held[PartT]:
        """Return a handle on parts of the rows, which are read and held in memory.

        Args:
            read: a pure function of an item.
            items: one a part.
            done: told of each item that is read, in any order.

        """
        ...

    def joined(self, join: Callable[[list[PartT]], JoinedT], held: Held[PartT]) -> Held[JoinedT]:
        """Return a handle on the parts of the rows, joined within each process."""
        ...

    def completed(
        self,
        complete: Callable[[PartT, GivenT], PartT],
        held: Held[PartT],
        given: Sequence[GivenT],
    ) -> Held[PartT]:
        """Return a handle on the parts, after adding to each a value computed from all parts.

        Args:
            complete: a pure function of a part and of what is given for it.
            held: the parts, which are let go.
            given: one a part, in order.

        """
        ...

    def counted(
        self,
        countings: Sequence[Counting[PartT, CountsT, ResultT]],
        held: Held[PartT],
        done: Callable[[int], None],
    ) -> list[ResultT]:
        """Return the result of each count over all parts of the rows, in order.

        Args:
            countings: one a result.
            held: the parts.
            done: told how many results there are, as they come.

        """
        ...

    def divided(
        self,
        cut: Callable[[PartT, slice], PartT],
        join: Callable[[list[PartT]], PartT],
        held: Held[PartT],
        size: int,
    ) -> tuple[Held[PartT], list[slice]]:
        """Return a handle on the rows, divided anew so that each part holds whole chunks.

        Args:
            cut: some chunks of a part.
            join: what several parts have of the same chunks.
            held: the parts; where they are several, they are let go.
            size: the number of chunks.

        Returns:
            The new parts, and the consecutive chunks of each.

        """
        ...

    def mapped(
        self,
        functions: Sequence[tuple[int, Callable[[PartT], ResultT]]],
        held: Held[PartT],
        done: Callable[[int], None],
    ) -> list[ResultT]:
        """Return the result of each function on its part of the rows, in order.

        Args:
            functions: each with the place of its part among those held.
            held: the parts.
            done: told the place of each result, as they come.

        """
        ...

    def close(self) -> None:
        """Free the memory of all rows that the engine holds."""
        ...
