"""A release relabelled by its rows' own labellings, served to its last unstable answer.

The public grid has one cut of the age, at 50, and the rule of the rows has it at
27.5.  The private labelling finds that cut; a learner on twelve rows is left with "yes
throughout" or the cut at 50, whichever errs less often on them, and about half take
either: below 50 the 240 votes are split, at a distance of 31 at four standard
deviations.  Above 50 all agree, at distance 119.  With 6.2 of epsilon on the sample a
split query is released with probability 1e-9, and an agreed one is a hit with 1e-11.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import numpy as np

from app.cli import run
from tests.builders.crash.clients import Clients, check_ledger, connect
from tests.builders.server.http_release import Row, SmallRelease
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from pathlib import Path

ROW_COUNT = 5760
CUT = 27.5
CUTOFF = 3
CHANGES = {
    "privacy": {"epsilon": "8", "sampling": "0.5", "calibration": '"svt"'},
    "shares": {"relabel": "0.3", "answers": "0.4", "classifier": "0.3"},
    "answers": {"ensemble": "240", "cutoff": str(CUTOFF)},
    "hypotheses": {"class": '"stumps"', "grid": '"private"'},
}


def rows() -> list[Row]:
    """Rows whose label is whether they lie above the cut."""
    ages = np.random.default_rng(7).uniform(0, 100, ROW_COUNT)
    return [(f"{age:.3f}", "common", "yes" if age >= CUT else "no") for age in ages]


def old(number: int) -> list[object]:
    """Return the ``number``-th vector that all learners agree on."""
    return [75 + round(number * 0.618034 % 25, 6), "common"]


def young(number: int) -> list[object]:
    """Return the ``number``-th vector that the learners are split about."""
    return [round(number * 0.618034 % 25, 6), "common"]


def test_a_private_grid_answers_and_halts_across_restarts(tmp_path: Path) -> None:
    """Agreed queries get their label, split ones none; after T of those it has halted."""
    release, clients = SmallRelease(tmp_path, CHANGES).write(rows()), Clients()
    for wish, unstable in (("kill", 1), ("terminate", 2), (None, CUTOFF)):
        with serving(release.config) as process:
            clients.repeat_all(process.address)
            with connect(process.address) as http:
                agreed = clients.ask_new(http, old)
                split = clients.ask_new(http, young)
                assert agreed is not None
                assert split is not None
                assert (agreed["label"], agreed["stable"]) == ("yes", True)
                assert (split["label"], split["stable"]) == (None, False)
                assert http.get("/budget").json()["unstable"]["count"] == unstable
                if unstable == CUTOFF:
                    assert clients.ask_new(http, old) is None
                    assert clients.ask_new(http, young) is None
                    assert http.get("/budget").json()["phase"] == "halted"
            if wish is not None:
                getattr(process, wish)()
                process.wait()
    assert clients.refused == [HTTPStatus.GONE, HTTPStatus.GONE]
    assert run(["verify", "--config", str(release.config)]) == 0
    state = check_ledger(release, clients)
    assert (state.answered, state.unstable) == (2 * CUTOFF, CUTOFF)
