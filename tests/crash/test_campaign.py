"""A server killed at every step and at random under 64 clients loses nothing and repeats itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.answering.answer_query import Step
from tests.builders.crash.campaign import Campaign, Counts, Kill, campaign, planned
from tests.builders.crash.planted import EARLY_REPLIES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.crash

SEED = 20240229
CLOSING_KILLS = 5
PLANTED_LIVES = 4
# What one kill in twenty shows is missed by 122 of them with probability 0.002.
MANY_AT_RANDOM, MANY_AT_AN_EDGE = 80, 3


@pytest.mark.parametrize(
    ("random_count", "each_edge"),
    [
        pytest.param(8, 1, id="some"),
        pytest.param(MANY_AT_RANDOM, MANY_AT_AN_EDGE, marks=pytest.mark.long, id="many"),
    ],
)
@pytest.mark.timeout(2400)
def test_no_kill_loses_an_answer_or_passes_a_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], random_count: int, each_edge: int
) -> None:
    """After each kill all that was seen is recorded and repeated; T and m_o are met exactly."""
    counts = campaign(tmp_path, random_count=random_count, each_edge=each_edge, seed=SEED)
    with capsys.disabled():
        print(f"\nseed {SEED}", *counts.table(), sep="\n")  # noqa: T201 -- what an audit is for
    assert counts.total == random_count + 14 * each_edge + CLOSING_KILLS
    assert 2 * counts.in_flight >= counts.total
    assert min(map(counts.of_step, Step)) >= 2 * each_edge


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_no_kill_separates_a_hit_from_its_noise(tmp_path: Path) -> None:
    """The same of calibration ``svt``, whose every entry with a hit has its noise beside it."""
    counts, kills = Counts(), planned(random_count=20, each_edge=1, seed=SEED + 1)
    privacy = {"calibration": '"svt"', "delta": "1e-2"}
    Campaign(tmp_path, "cutoff", kills, SEED, counts, privacy=privacy).run()
    assert counts.total == len(kills) + 2


def test_an_answer_given_before_its_commit_is_found_out(tmp_path: Path) -> None:
    """A planted server that replies before it commits fails the very check that follows a kill."""
    # The clients' new vectors are in the first batches or two; one life that has them is enough.
    kills = [Kill("commit:before:2"), Kill("commit:before:1")] * PLANTED_LIVES
    planted = Campaign(tmp_path, "cutoff", kills, SEED, Counts(), plant=(EARLY_REPLIES,))
    with pytest.raises(AssertionError, match="recorded"):
        planted.run()
