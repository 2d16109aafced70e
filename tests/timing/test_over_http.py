"""A client's clock tells no more of an answer than the answer does.

A real server process on a real ledger; the votes are looked at before it starts.  Where
the short test fails, a difference of more than the limit is proven, with false-alarm
probability 1e-9 for each of five comparisons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.main import open_from_settings
from app.noise.system import SystemNoise
from benchmarks.measuring.comparisons import COMPARISONS, STABLE_UNSTABLE
from benchmarks.measuring.margins import (
    Kind,
    MarginsRelease,
    find_margins,
    votes_needed,
)
from benchmarks.measuring.medians import certain_difference
from benchmarks.measuring.posting import time_posts
from benchmarks.measuring.stopwatch import shuffled
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.measuring.comparisons import Comparison
    from benchmarks.measuring.stopwatch import Timed

LIMIT_SECONDS = 5e-5
FALSE_ALARM = 1e-9
EACH = 60
LONG_EACH = 10_000
SERVE = ("-m", "app", "serve")
SLOW = ("-m", "tests.timing.slow_server")


def time_server(
    folder: Path, kinds: Sequence[Kind], each: int, *, script: Sequence[str] = SERVE
) -> list[Timed]:
    """Open a release, serve it by a process of its own and time its replies."""
    cutoff = 4 * each
    release = MarginsRelease(folder, votes_needed(cutoff), cutoff)
    opened = open_from_settings(release.write(), noise=SystemNoise())
    margins = find_margins(opened)
    opened.ledger.close()
    with serving(release.config, script=script) as process:
        return time_posts(process.address, margins, shuffled(kinds, each))


def proven_beyond(comparison: Comparison, timed: Sequence[Timed]) -> bool:
    """Whether the sample proves that medians differ by more than the limit."""
    low, high = certain_difference(*comparison.samples(timed, "committed"), false_alarm=FALSE_ALARM)
    return low > LIMIT_SECONDS or high < -LIMIT_SECONDS


def test_no_difference_is_proven_over_http(tmp_path: Path) -> None:
    """Neither stable and unstable answers nor answers on other votes come later."""
    timed = time_server(tmp_path, list(Kind), EACH)
    assert not [one.name for one in COMPARISONS if proven_beyond(one, timed)]


def test_a_slow_step_is_caught_over_http(tmp_path: Path) -> None:
    """Fifty milliseconds more where an answer is unstable are proven by as few queries."""
    timed = time_server(tmp_path, [Kind.SPLIT_NO, Kind.CLEAR], EACH, script=SLOW)
    assert proven_beyond(STABLE_UNSTABLE, timed)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_replies_differ_by_less_than_fifty_microseconds(tmp_path: Path) -> None:
    """Of 30,000 stable and 30,000 unstable answers, each interval lies within the limit."""
    timed = time_server(tmp_path, list(Kind), LONG_EACH)
    found = {one.name: one.difference(timed, "committed") for one in COMPARISONS}
    beyond = [name for name, difference in found.items() if not difference.is_within(LIMIT_SECONDS)]
    assert not beyond, "\n".join(f"{name} {found[name]}" for name in beyond)
