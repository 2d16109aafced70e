"""The interface of an engine that reads parts of the rows, counts them and adds counts up.

A part is a file of the source, or a section of a file. All engines run the same functions, whose
results are integers that can be added in any order. Therefore no answer depends on the engine.
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
        """Return the sum of the counts of two parts of the rows; their order has no effect."""
        ...

    def finished(self, total: CountsT, /) -> ResultT_co:
        """Return the result, from the sum of the counts of all parts of the rows."""
        ...


class Counting(Summing[CountsT, ResultT_co], Protocol[PartT_contra, CountsT, ResultT_co]):
    """The interface of a computation that counts the rows of each part, and adds up the counts."""

    def of(self, part: PartT_contra, /) -> CountsT:
        """Return the counts of one part of the rows; they do not depend on other parts."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Held(Generic[PartT]):
    """A handle on parts of the rows that an engine has in memory.

    Attributes:
        parts: the parts, or handles on parts that are in the memory of other machines.

    """

    parts: list[PartT] = field(repr=False)


class Engine(Protocol):
    """The interface of an engine, which reads parts of the rows into memory and counts them."""

    def read(
        self, read: Callable[[Item], PartT], items: Sequence[Item], done: Callable[[Item], None]
    ) -> Held[PartT]:
        """Read parts of the rows into memory, and return a handle on them.

        Args:
            read: a pure function that returns a part, given its item.
            items: one item per part, for example the part's number and file.
            done: a function that is called with each item whose part is read, in any order.

        """
        ...

    def joined(self, join: Callable[[list[PartT]], JoinedT], held: Held[PartT]) -> Held[JoinedT]:
        """Return a handle on the parts of the rows, joined to one part per process.

        Args:
            join: a function that joins several parts.
            held: the parts in memory.

        """
        ...

    def completed(
        self,
        complete: Callable[[PartT, GivenT], PartT],
        held: Held[PartT],
        given: Sequence[GivenT],
    ) -> Held[PartT]:
        """Return the parts of the rows, each with a value that was computed from all parts.

        Args:
            complete: a pure function that returns a part with its value.
            held: the parts in memory, which are freed.
            given: the value for each part, for example the numbers of the part's persons.

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
            countings: the counts to make, one per result.
            held: the parts in memory.
            done: a function that is called with the number of results so far.

        """
        ...

    def divided(
        self,
        cut: Callable[[PartT, slice], PartT],
        join: Callable[[list[PartT]], PartT],
        held: Held[PartT],
        size: int,
    ) -> tuple[Held[PartT], list[slice]]:
        """Return the rows divided into new parts, with all rows of a chunk in one part.

        Args:
            cut: a function that returns some chunks of a part.
            join: a function that joins the same chunks of several parts.
            held: the parts in memory, which are freed if there are several.
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
            functions: each function with the index of its part.
            held: the parts in memory.
            done: a function that is called with the index of each finished function.

        """
        ...

    def close(self) -> None:
        """Free the memory of all rows that the engine has in memory."""
        ...
