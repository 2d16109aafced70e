"""Results in the order of what was asked: those known at once, and those that come in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

ResultT = TypeVar("ResultT")


async def in_turn(
    known: Mapping[int, ResultT], parts: AsyncIterator[Sequence[ResultT]]
) -> AsyncIterator[Sequence[ResultT]]:
    """Yield results in order, part by part; where none is known at once, the parts as they are.

    Args:
        known: results by their place.
        parts: those of all other places, in order, as they come.

    """
    leading = _known_from(known, 0)
    if leading:
        yield leading
    place = len(leading)
    async for part in parts:
        if not known:
            yield part
            continue
        together: list[ResultT] = []
        for each in part:
            together.append(each)
            together += _known_from(known, place + len(together))
        place += len(together)
        yield together


def _known_from(known: Mapping[int, ResultT], place: int) -> list[ResultT]:
    """Return what is known at a place and from there on without a gap."""
    run: list[ResultT] = []
    while place + len(run) in known:
        run.append(known[place + len(run)])
    return run
