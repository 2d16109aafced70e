"""Every calibration of the answers, served by a real process that is restarted mid-stream.

The rows, the learners and the queries are those of ``small_release``, whose ``chances``
are worked out for each case that has unstable answers.

* ``svt`` with T = 3 has one threshold for all of them.
* ``svt`` with T = 250, 20 of epsilon and delta 1e-7 draws another threshold after
  every hit.
* ``noisy-vote`` with m = 40 adds noise of standard deviation 76 to 2,400 votes
  that are more than 2,300 away from the other label.
* ``sampling`` of one half leaves 1,200 chunks of 8 rows.  With the sample's own
  labellings by stumps, all learners agree on what the stump says.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest

from app.cli import run
from app.ledger.database.statements import read_private_names
from app.ledger.ledger import open_ledger
from tests.builders.crash.clients import Clients, check_ledger, connect
from tests.builders.server.chances import Asked
from tests.builders.server.http_release import (
    ENSEMBLE_SIZE,
    SmallRelease,
    agreed,
    agreed_label,
    split,
)
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from tests.http.end_to_end.conftest import OpenedRelease

    Changes = Mapping[str, Mapping[str, str]]


NOISE = "threshold-noise-"


@dataclass(frozen=True)
class Case:
    """A calibration, and what it must count exactly.

    Attributes:
        name: shown by pytest.
        changes: to the small release.
        limit: m.
        cutoff: T; None where nothing is unstable.
        charged: epsilon of relabelling and of answers.
        refreshed: whether a hit draws another noise of the threshold.
        size: k.
        has_splits: whether the learners are split about anything.

    """

    name: str
    changes: Changes
    limit: int
    cutoff: int | None
    charged: tuple[float, float] = (1.8, 0.6)
    refreshed: bool = False
    size: int = ENSEMBLE_SIZE
    has_splits: bool = True

    @property
    def asked(self) -> Asked:
        """What the tests rely on."""
        return Asked(agreed=self.limit, split=(self.cutoff or 0) if self.has_splits else 0)


HALF = {"epsilon": "12", "sampling": "0.5", "calibration": '"svt"'}
CASES = (
    Case("one threshold", {"privacy": {"calibration": '"svt"'}}, 40, 3),
    Case(
        "refreshed threshold",
        {
            "privacy": {"calibration": '"svt"', "epsilon": "100", "delta": "1e-7"},
            "shares": {"relabel": "0.1", "answers": "0.2", "classifier": "0.7"},
            "answers": {"queries": "300", "cutoff": "250"},
        },
        300,
        250,
        (10.0, 20.0),
        refreshed=True,
    ),
    Case("noisy vote", {"answers": {"mechanism": '"noisy-vote"'}}, 40, None, has_splits=False),
    Case(
        "half of the rows",
        {"privacy": HALF, "answers": {"ensemble": "1200"}},
        40,
        3,
        (3.6, 1.2),
        size=1200,
    ),
    Case(
        "labellings of half of the rows",
        {
            "privacy": HALF,
            "answers": {"ensemble": "1200"},
            "hypotheses": {"class": '"stumps"', "grid": '"private"'},
        },
        40,
        3,
        (3.6, 1.2),
        size=1200,
        has_splits=False,
    ),
)
WITH_CUTOFF = tuple(case for case in CASES if case.has_splits)
EACH_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
EACH_CUTOFF = pytest.mark.parametrize("case", WITH_CUTOFF, ids=lambda case: case.name)


@EACH_CASE
def test_answers_go_on_after_a_restart_to_the_last(opened: OpenedRelease, case: Case) -> None:
    """Killed after a third and ended after two, nothing is missing or different, and m is exact."""
    release, clients = opened(case.asked, **case.changes), Clients()
    third = case.limit // 3
    for wish, wanted in (("kill", third), ("terminate", 2 * third), (None, case.limit)):
        with serving(release.config) as process:
            clients.repeat_all(process.address)
            with connect(process.address) as http:
                while len(clients.seen) < wanted:
                    answer = clients.ask_new(http, agreed)
                    assert answer is not None
                    assert answer["label"] == agreed_label(answer["query_id"] - 1)
                    assert (answer["stable"], answer["phase"]) == (True, "ensemble")
                check_budget(http, case, answered=wanted, unstable=0)
                if wanted == case.limit:
                    after = clients.ask_new(http, agreed)
                    assert after is not None
                    assert (after["phase"], after["query_id"]) == ("classifier", None)
            if wish is not None:
                getattr(process, wish)()
                process.wait()
        check(release, clients, answered=wanted, unstable=0)
    assert [answer["query_id"] for answer in clients.seen.values()] == list(
        range(1, case.limit + 1)
    )


@EACH_CUTOFF
def test_unstable_answers_go_on_after_a_restart_to_the_last(
    opened: OpenedRelease, case: Case
) -> None:
    """Between agreed queries T split ones are unstable, over two restarts, and then it halts."""
    release, clients, cutoff = opened(case.asked, **case.changes), Clients(), case.cutoff or 0
    for wish, wanted in (("kill", cutoff // 3), ("terminate", 2 * cutoff // 3), (None, cutoff)):
        with serving(release.config) as process:
            clients.repeat_all(process.address)
            with connect(process.address) as http:
                while count_unstable(clients) < wanted:
                    answer = clients.ask_new(http, split)
                    assert answer is not None
                    assert (answer["stable"], answer["label"]) == (False, None)
                    if count_unstable(clients) % 10 == 1:
                        answer = clients.ask_new(http, agreed)
                        assert answer is not None
                        assert answer["stable"] is True
                if wanted == cutoff:
                    assert clients.ask_new(http, agreed) is None
                    assert clients.ask_new(http, split) is None
                    clients.repeat_all(process.address)
                budget = check_budget(
                    http, case, answered=len(clients.seen), unstable=count_unstable(clients)
                )
            if wish is not None:
                getattr(process, wish)()
                process.wait()
        check(release, clients, answered=len(clients.seen), unstable=wanted)
    assert clients.refused == [HTTPStatus.GONE, HTTPStatus.GONE]
    assert budget["phase"] == "halted"
    noises = threshold_noises(release)
    assert noises[:cutoff] == list(range(cutoff if case.refreshed else 1))


def check_budget(http: httpx.Client, case: Case, *, answered: int, unstable: int) -> dict[str, Any]:
    """Check what ``GET /budget`` says of a case, and return it."""
    budget: dict[str, Any] = http.get("/budget").json()
    left = case.limit - answered
    assert budget["queries"] == {"answered": answered, "limit": case.limit, "left": left}
    unstable_left = None if case.cutoff is None else case.cutoff - unstable
    assert budget["unstable"] == {"count": unstable, "cutoff": case.cutoff, "left": unstable_left}
    charged = {share["mechanism"]: share["epsilon"] for share in budget["charged"]}
    assert (charged["relabel"], charged["answers"]) == case.charged
    assert budget["ensemble"] == {"size": case.size}
    return budget


def check(release: SmallRelease, clients: Clients, *, answered: int, unstable: int) -> None:
    """Check the ledger against what clients saw, by the command and entry by entry."""
    assert run(["verify", "--config", str(release.config)]) == 0
    state = check_ledger(release, clients)
    assert (state.answered, state.unstable) == (answered, unstable)


def count_unstable(clients: Clients) -> int:
    """Return how many unstable answers were seen."""
    return sum(not answer["stable"] for answer in clients.seen.values())


def threshold_noises(release: SmallRelease) -> list[int]:
    """Return after which unstable answers the threshold got the noises that the ledger keeps."""
    ledger = open_ledger(release.settings().ledger_url, create=False)
    try:
        with ledger.snapshot() as connection:
            names = read_private_names(connection, ledger.release_number)
    finally:
        ledger.close()
    return sorted(int(name.removeprefix(NOISE)) for name in names if name.startswith(NOISE))
