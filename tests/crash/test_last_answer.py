"""A process killed at the commit of the last answer that a limit allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builders.crash.clients import Clients, check_ledger, connect
from tests.builders.crash.killing import kill_at
from tests.builders.server.http_release import agreed, split
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from tests.http.end_to_end.conftest import OpenedRelease

pytestmark = pytest.mark.crash


@pytest.mark.parametrize("edge", ["before", "after"])
@pytest.mark.parametrize("limit", ["cutoff", "queries"])
def test_the_last_answer_is_given_once(opened: OpenedRelease, limit: str, edge: str) -> None:
    """Killed at the commit of the last answer that a limit allows, it is given once, after."""
    release = opened(answers={limit: "1", "after": '"halt"'})
    clients = Clients()
    vector = split if limit == "cutoff" else agreed
    kill_at(release, f"commit:{edge}:1", clients, vectors=[vector])
    committed = check_ledger(release, clients)
    assert committed.answered == (0 if edge == "before" else 1)
    assert not clients.seen
    with serving(release.config) as process, connect(process.address) as http:
        clients.ask_the_rest(process.address)
        (answer,) = clients.seen.values()
        assert answer["stable"] is (limit == "queries")
        assert clients.ask_new(http, vector) is None
        assert clients.ask_new(http, agreed) is None
        clients.repeat_all(process.address)
    assert clients.refused == [410, 410]
    assert check_ledger(release, clients).answered == 1
