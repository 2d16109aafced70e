"""A page of memory that a server shares with the test that kills it, and that outlives it."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Final, TypeAlias

from app.answering.answer_query import Edge, Step

if TYPE_CHECKING:
    from pathlib import Path

Point: TypeAlias = tuple[Step, Edge]

POINTS: Final[tuple[Point, ...]] = tuple((step, edge) for step in Step for edge in Edge)
_SIZE: Final = mmap.PAGESIZE
_ARMED: Final = 0
_FAULT: Final = 1
_UNDER_WAY: Final = 2
_FRONT: Final = 3
_BATCH: Final = 4
_COUNT: Final = 5

FRONT: Final = (Step.VALIDATE, Step.ENQUEUE)
"""Steps of single requests, which go on while a batch is decided on another thread."""


class Marks:
    """Single bytes, each written at once, so that no kill leaves half of one."""

    def __init__(self, path: Path) -> None:
        """Map a file; a new one is created, with nothing marked."""
        with path.open("a+b") as file:
            file.truncate(_SIZE)
            self._page = mmap.mmap(file.fileno(), _SIZE)

    def close(self) -> None:
        """Let go of the page."""
        self._page.close()

    def clear(self) -> None:
        """Begin another life of the server: nothing is armed, marked or at fault."""
        self._page[:_COUNT] = bytes(_COUNT)

    @property
    def armed(self) -> bool:
        """Whether the passes of a point count by now."""
        return self._page[_ARMED] == 1

    def arm(self) -> None:
        """Let the passes of a point count from now on."""
        self._page[_ARMED] = 1

    def note(self, step: Step, edge: Edge) -> None:
        """Mark that the server has come to an edge of a step."""
        self._page[_FRONT if step in FRONT else _BATCH] = POINTS.index((step, edge)) + 1

    @property
    def standing(self) -> Point | None:
        """The edge that the batch under way passed last, or else the last request; or None."""
        batch, front = self._page[_BATCH], self._page[_FRONT]
        is_under_way = batch and POINTS[batch - 1] != (Step.RESPOND, Edge.AFTER)
        number = batch if is_under_way else front or batch
        return POINTS[number - 1] if number else None

    @property
    def fault(self) -> int:
        """The number of the fault that the server is to have; 0 for none."""
        return self._page[_FAULT]

    @fault.setter
    def fault(self, number: int) -> None:
        self._page[_FAULT] = number

    @property
    def under_way(self) -> int:
        """How many requests the server has begun and not ended, 255 at most."""
        return self._page[_UNDER_WAY]

    @under_way.setter
    def under_way(self, count: int) -> None:
        self._page[_UNDER_WAY] = min(count, 255)
