"""Floor and ours by turns, on the same core, with the load on the other."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks.measuring.linear_release import bodies
from benchmarks.measuring.load import measure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.measuring.load import Measured
    from benchmarks.measuring.pinned import Server

PAIRS: Final = 5
WARM_UP: Final = 500
LABEL: Final = b'"label":"a"'


@dataclass(frozen=True, slots=True)
class Pair:
    """One load on the floor and the same load on the release, one right after the other.

    Attributes:
        floor: what the floor did.
        ours: what the release did.
        floor_processor: seconds of the processor a request, of the floor.
        ours_processor: likewise, of the release.

    """

    floor: Measured
    ours: Measured
    floor_processor: float
    ours_processor: float


def pairs(
    floor: Server,
    ours: Server,
    *,
    clients: int,
    requests: int,
    expected: bytes,
    first_part: int,
    count: int = PAIRS,
) -> Iterator[Pair]:
    """Yield measurements of floor and ours by turns, with vectors that nobody has asked before.

    The caller may measure something beside them in between.

    Args:
        floor: the floor.
        ours: the release.
        clients: connections, each with one request under way.
        requests: of each measurement.
        expected: what every reply of ours must hold.
        first_part: of the vectors; so many parts as there are pairs, and one more, are used.
        count: of pairs.

    """
    warm = bodies(WARM_UP, part=first_part)
    measure(floor.port, warm, clients=clients, expected=LABEL)
    measure(ours.port, warm, clients=clients, expected=expected)
    for number in range(1, count + 1):
        posted = bodies(requests, part=first_part + number)
        floor_used = floor.processor_seconds()
        by_floor = measure(floor.port, posted, clients=clients, expected=LABEL)
        floor_used = floor.processor_seconds() - floor_used
        ours_used = ours.processor_seconds()
        by_ours = measure(ours.port, posted, clients=clients, expected=expected)
        ours_used = ours.processor_seconds() - ours_used
        yield Pair(by_floor, by_ours, floor_used / requests, ours_used / requests)


def told_rate(measured: list[Measured]) -> str:
    """Return the median rate, for people."""
    return f"{median(each.rate for each in measured):,.0f} a second"


def told_processor(seconds: list[float]) -> str:
    """Return the median of processor's times of a request, for people."""
    return f"{median(seconds) * 1e6:.0f} us of the processor each"
