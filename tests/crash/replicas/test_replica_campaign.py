"""Four servers on one database, killed, cut off and paused under 64 clients, are one server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builders.crash.planted import EARLY_REPLIES
from tests.builders.crash.planted_replicas import (
    ALONE,
    NO_TURNS,
    SHORT_IDLE_SECONDS,
    SHORT_TURNS,
    STALE_READS,
    STALE_REPLAYS,
)
from tests.builders.crash.replica_campaign import Plan, ReplicaCampaign
from tests.builders.ledger.postgresql_server import OwnServer, own_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.crash

SEED = 20240301
SHORT = Plan(
    kills=6,
    restarts=("immediate",),
    paused_seconds=2.5 * SHORT_IDLE_SECONDS,
    idle_seconds=SHORT_IDLE_SECONDS,
    forked=True,
    plant=(SHORT_TURNS,),
)
# What one kill in ten shows is missed by the 48 of both with probability 0.006.
MANY = 24
LONG_CLASSIFIER, LONG_HALT = Plan(kills=MANY), Plan(kills=MANY, follows="halt", forked=True)


@pytest.fixture(scope="module")
def database() -> Iterator[OwnServer]:
    """Yield a PostgreSQL server that may be restarted."""
    with own_server() as server:
        yield server


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(SHORT, id="some"),
        pytest.param(LONG_CLASSIFIER, marks=pytest.mark.long, id="many, then a classifier"),
        pytest.param(LONG_HALT, marks=pytest.mark.long, id="many, then a halt"),
    ],
)
@pytest.mark.timeout(2400)
def test_no_kill_or_pause_tells_the_servers_apart(
    tmp_path: Path, database: OwnServer, plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    """T is met exactly, all that was seen is recorded and repeated by each, and nothing is old."""
    campaign = ReplicaCampaign(tmp_path, database, plan, SEED)
    campaign.run()
    with capsys.disabled():
        print(f"\nseed {SEED}: {dict(campaign.counts)}")  # noqa: T201 -- what an audit is for
    assert campaign.counts["servers"] == plan.kills // 2
    assert campaign.counts["connections"] == plan.kills - plan.kills // 2
    assert campaign.counts["pauses"] == 1


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("fault", "found"),
    [
        pytest.param(
            EARLY_REPLIES, "recorded|then|number|afresh|a budget shows", id="early replies"
        ),
        pytest.param(NO_TURNS, "500", id="no turns"),
        pytest.param(STALE_READS, "a budget shows|a budget is of before", id="stale reads"),
        # Who looks at nothing by itself may also leave a draw that was cut off undrawn.
        pytest.param(
            STALE_REPLAYS, "after the switch|ensemble|the limit does not come", id="stale replays"
        ),
    ],
)
def test_a_fault_of_servers_is_found(
    tmp_path: Path, database: OwnServer, fault: str, found: str
) -> None:
    """Each planted fault fails the very check that servers without it pass."""
    # Where one commits for all, a fault of the others would not come to light.
    plan = Plan(**(vars(SHORT) | {"plant": (SHORT_TURNS, ALONE, fault)}))
    with pytest.raises(AssertionError, match=found):
        ReplicaCampaign(tmp_path, database, plan, SEED).run()
