"""The metrics of a real release are its budget, in every phase and after a restart."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.builders.server.http_release import agreed, split
from tests.builders.server.serving import Served
from tests.http.test_metrics import budget_of, samples

if TYPE_CHECKING:
    from tests.http.end_to_end.conftest import OpenedRelease

NOTED_SECONDS_MAX = 60.0


UNCOUNTED = {
    "unit",
    "left",
    "accounting",
    "with_scores",
    "follows",
    "hopeless",
    "generations",
    "closed",
}
"""Parts of the budget that are settled at the opening, or the difference of two counted, or that
a release that goes on, or a fixed one, has none of."""


def check(served: Served) -> dict[str, object]:
    """Compare the metrics with the budget and the ledger's head; return the budget."""
    found = samples(served.get("/metrics").text)
    budget: dict[str, object] = served.get("/budget").json()
    counted = {name: part for name, part in budget.items() if name not in UNCOUNTED}
    assert budget_of(found) == counted
    head = served.get("/ledger/head").json()
    assert found["conclave_ledger_sequence"] == {(): head["sequence"]}
    assert found["conclave_ledger_head_info"] == {(head["hash"],): 1}
    return budget


def wait_for_note(served: Served) -> None:
    """Wait until the head file notes the newest entry, as the metrics tell."""
    deadline = time.monotonic() + NOTED_SECONDS_MAX
    while True:
        found = samples(served.get("/metrics").text)
        if found.get("conclave_ledger_head_file_sequence") == found["conclave_ledger_sequence"]:
            return
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_metrics_are_the_budget_in_every_phase(opened: OpenedRelease) -> None:
    """Fresh, answered, unstable, switched and restarted, no number differs."""
    release = opened(answers={"queries": "3"})
    with Served(release.settings()) as served:
        assert check(served)["phase"] == "ensemble"
        served.answer(agreed(1))
        served.answer(split(1))
        budget = check(served)
        assert budget["queries"] == {"answered": 2, "limit": 3, "left": 1}
        assert budget["unstable"] == {"count": 1, "cutoff": 3, "left": 2}
        wait_for_note(served)
        served.answer(agreed(2))
        served.answer(agreed(3))
        budget = check(served)
        assert (budget["phase"], budget["reserved"]) == ("classifier", [])
        wait_for_note(served)
    with Served(release.settings()) as served:
        assert check(served) == budget


def test_a_ledger_without_a_head_file_says_so(opened: OpenedRelease) -> None:
    """Where ``ledger.head_file`` is false there is no file, no sample and no warning."""
    release = opened()
    (release.folder / "conclave.db.head").unlink()
    told: list[str] = []
    settings = release.settings({"CONCLAVE_LEDGER__HEAD_FILE": "false"})
    with Served(settings, warn=told.append) as served:
        check(served)
        assert "conclave_ledger_head_file_sequence" not in samples(served.get("/metrics").text)
    assert told == []
    assert not (release.folder / "conclave.db.head").exists()
