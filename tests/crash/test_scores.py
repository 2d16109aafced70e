"""A process that answers scores, killed around the commit of a query that uses units.

On a split query half of the learners score 1 and half 0, so that neither histogram is
stable: two units, or the last one.  On an agreed one all scores are in one bin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.ledger.ledger import open_ledger
from app.ledger.verification import verify
from tests.builders.crash.clients import Clients, check_ledger, connect
from tests.builders.crash.killing import kill_at
from tests.builders.server.http_release import agreed, agreed_label, split
from tests.builders.server.server_process import serving
from tests.crash.test_threshold_noise import ASKED, REFRESHED, REFRESHED_CUTOFF, kinds, noises

if TYPE_CHECKING:
    from tests.builders.server.http_release import SmallRelease
    from tests.http.end_to_end.conftest import OpenedRelease

pytestmark = pytest.mark.crash

SCORES = {"output": '"score"', "after": '"halt"', "queries": "100000"}


def check(release: SmallRelease) -> None:
    """Verify the whole ledger."""
    ledger = open_ledger(release.settings().ledger_url, create=False)
    verify(ledger)
    ledger.close()


@pytest.mark.parametrize(("edge", "units"), [("before", 0), ("after", 2)])
def test_a_restart_keeps_the_count_of_units(opened: OpenedRelease, edge: str, units: int) -> None:
    """Killed before a commit its units are forgotten, after it they count, and T still ends it."""
    release = opened(answers={**SCORES, "cutoff": "3"})
    clients = Clients()
    kill_at(release, f"commit:{edge}:1", clients, vectors=[split])
    assert check_ledger(release, clients).unstable == units
    with serving(release.config) as process, connect(process.address) as http:
        assert http.get("/budget").json()["unstable"]["count"] == units
        clients.ask_the_rest(process.address)
        last = clients.ask_new(http, split)
        assert last is not None
        assert (last["stable"], last["score"]) == (False, None)
        budget = http.get("/budget").json()
        assert clients.ask_new(http, agreed) is None
        clients.repeat_all(process.address)
    assert budget["unstable"] == {"count": 3, "cutoff": 3, "left": 0}
    assert (budget["phase"], budget["queries"]["answered"]) == ("halted", 2)
    check(release)


@pytest.mark.parametrize(("edge", "units"), [("before", 0), ("after", 2)])
def test_both_hits_and_their_noise_are_committed_together(
    opened: OpenedRelease, edge: str, units: int
) -> None:
    """The noise after the second hit is there with both units, or none of the three is."""
    release = opened(
        asked=ASKED,
        privacy=REFRESHED,
        answers={**SCORES, "cutoff": str(REFRESHED_CUTOFF)},
    )
    first = noises(release)
    clients = Clients()
    kill_at(release, f"commit:{edge}:1", clients, vectors=[split])
    left = noises(release)
    assert list(left) == sorted({"threshold-noise-0", f"threshold-noise-{units}"})
    with serving(release.config) as process, connect(process.address) as http:
        clients.ask_the_rest(process.address)
        answer = clients.ask_new(http, agreed)
        assert answer is not None
        assert (answer["label"], answer["stable"]) == (agreed_label(1), True)
        clients.repeat_all(process.address)
    assert first.items() <= left.items() <= noises(release).items()
    state = check_ledger(release, clients)
    assert (state.answered, state.unstable, state.refreshed_at) == (2, 2, 2)
    assert kinds(release)[-3:] == ["ScoresReleased", "ThresholdRefreshed", "ScoresReleased"]
    check(release)
