"""While a release opens, and what a restart is compared with."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

import pytest

from app.answering.answer_query import FAILED_AFTER_VOTE
from app.cli import run
from app.errors import ConfigurationError, DataError, ReleaseMismatchError
from app.ledger.entries.entry_kinds import ReleaseHalted
from app.ledger.ledger import open_ledger
from app.noise.scripted import ScriptedNoise
from app.release.terms.hopeless_release import WARNING as HOPELESS
from tests.builders.server.chances import Asked
from tests.builders.server.http_release import (
    SmallRelease,
    agreed,
    agreed_label,
    private_rows,
    write_rows,
)
from tests.builders.server.serving import Served

if TYPE_CHECKING:
    from pathlib import Path

    from tests.http.end_to_end.conftest import OpenedRelease

OTHER_ROWS = (
    "data.source: holds other rows than those that the ledger's release was opened on; "
    "restore it, or give the new release a name of its own"
)
# What is written in the configuration, what is put in its place, and the key,
# then and now, that the refusal names.
CHANGES = [
    ("epsilon = 6", "epsilon = 6.5", "privacy.epsilon", "6", "13/2"),
    ("delta = 1e-12", "delta = 1e-11", "privacy.delta", "1/1000000000000", "1/100000000000"),
    ("relabel = 0.3", "relabel = 0.2", "privacy.shares.relabel", "3/10", "1/5"),
    ("cutoff = 3", "cutoff = 4", "answers.cutoff", "3", "4"),
    ("queries = 40", "queries = 41", "answers.queries", "40", "41"),
    ("ensemble = 2400", "ensemble = 2399", "answers.ensemble", "2400", "2399"),
    ('"halt"', '"classifier"', "answers.on_cutoff", '"halt"', '"classifier"'),
    ("depth = 2", "depth = 1", "hypotheses.depth", "2", "1"),
    ('"canonical"', '"halving"', "learner.rule", '"canonical"', '"halving"'),
    ("[0, 100]", "[0, 90]", "data.features.age.bounds", "[0.0,100.0]", "[0.0,90.0]"),
    ("thresholds = [50]", "thresholds = [51]", "data.features.age.thresholds", "[50.0]", "[51.0]"),
    ('["?"]', "[]", "data.missing", '["?"]', "[]"),
    # Rows that do not fit what is new: the setting is named, and not a column or a cell.
    ('"no", "yes"', '"no", "maybe"', "data.classes", '["no","yes"]', '["no","maybe"]'),
    ('name = "age"', 'name = "years"', "data.features", '["age","group"]', '["years","group"]'),
    (
        '"rare"]',
        '"odd"]',
        "data.features.group.categories",
        '["common","rare"]',
        '["common","odd"]',
    ),
]


@dataclass
class HeldProgress:
    """A progress that stops the opening at a stage until it is let go."""

    stage: str
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Wait at the stage."""
        del done, total
        if stage == self.stage:
            self.reached.set()
            assert self.released.wait(timeout=60)


def test_probes_tell_of_an_opening_under_way(tmp_path: Path) -> None:
    """While the release opens it is alive and not ready, and every request is told to wait."""
    release = SmallRelease(tmp_path).write()
    held = HeldProgress("fitting learners")
    with Served(release.settings(), wait=False, progress=held) as served:
        assert served.run(_in_thread(held.reached))
        assert served.get("/healthz").status_code == HTTPStatus.OK
        replies = [served.query(agreed(0)), *map(served.get, ("/readyz", "/budget", "/ledger"))]
        for reply in replies:
            assert reply.status_code == HTTPStatus.SERVICE_UNAVAILABLE
            assert reply.json()["type"] == "urn:conclave:problem:opening"
            assert int(reply.headers["Retry-After"]) > 0
        held.released.set()
        served.wait_until_open()
        assert served.get("/readyz").status_code == HTTPStatus.OK
        assert served.answer(agreed(0))["query_id"] == 1


def test_the_source_is_not_needed_again_until_a_restart(opened: OpenedRelease) -> None:
    """An open release goes on without its source, through the switch; a restart names it."""
    release = opened(answers={"queries": "2"})
    with Served(release.settings()) as served:
        release.source.unlink()
        for number in range(2):
            assert served.answer(agreed(number))["label"] == agreed_label(number)
        assert served.answer(agreed(2))["phase"] == "classifier"
    with pytest.raises(DataError) as refused, Served(release.settings()):
        pass
    assert str(refused.value) == f"data.source: no such file: {release.source}"


@pytest.mark.parametrize(("old", "new", "key", "was", "now"), CHANGES, ids=lambda part: part[:24])
def test_another_configuration_is_refused_by_name(
    opened: OpenedRelease, old: str, new: str, key: str, was: str, now: str
) -> None:
    """A restart with another parameter says which, what it was and what it is now."""
    release = opened()
    text = release.config.read_text(encoding="utf-8")
    assert text.count(old) == 1
    release.config.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ReleaseMismatchError) as refused, Served(release.settings()):
        pass
    assert str(refused.value) == (
        f"{key}: the ledger's release was opened with {was}, the configuration says {now}; "
        "restore it, or give the new release a name of its own"
    )


def test_an_infeasible_release_is_served_with_one_warning(tmp_path: Path) -> None:
    """Planning's verdict is told at the opening, once, and not at a restart."""
    release = SmallRelease(tmp_path, {"answers": {"ensemble": "700"}}).write(asked=Asked(0, 0))
    warnings: list[str] = []
    for _ in ("opening", "restart"):
        with Served(release.settings(), warn=warnings.append) as served:
            assert served.query(agreed(0)).status_code == HTTPStatus.OK
    (warning,) = warnings
    assert warning.startswith("this release is infeasible as planned: even if all k = 700 votes")


def test_a_release_that_halted_says_so_at_every_start(opened: OpenedRelease) -> None:
    """A halt in the ledger outlives the process: one line says so, and no query is answered."""
    release, warnings = opened(), list[str]()
    with Served(release.settings()) as served:
        given = served.query(agreed(0))
    url = release.settings().ledger_url
    ledger = open_ledger(url, create=True, noise=ScriptedNoise([]))
    with ledger.transaction() as transaction:
        transaction.append(ReleaseHalted(reason=FAILED_AFTER_VOTE))
    ledger.close()
    with Served(release.settings(), warn=warnings.append) as served:
        assert served.query(agreed(0)).json() == {**given.json(), "replayed": True}
        assert served.query(agreed(1)).status_code == HTTPStatus.GONE
    (warning,) = warnings
    assert warning == (
        "this release has halted for good (an internal failure after votes were cast):"
        " recorded answers are given again, and new queries are refused"
    )
    assert run(["verify", "--config", str(release.config)]) == 0


def test_what_cannot_be_served_is_refused_without_a_warning(tmp_path: Path) -> None:
    """More learners than rows end the start with what to change, and with nothing else."""
    release = SmallRelease(tmp_path, {"answers": {"ensemble": "99999"}}).write(asked=Asked(0, 0))
    warnings: list[str] = []
    with (
        pytest.raises(ConfigurationError) as refused,
        Served(release.settings(), warn=warnings.append),
    ):
        pass
    reason = "answers.ensemble: this release is hopeless, and nothing is charged: 99999 learners "
    assert str(refused.value).startswith(reason + "need at least as many")
    assert warnings == []


def test_a_hopeless_release_that_was_asked_for_says_so_for_good(tmp_path: Path) -> None:
    """Refused without the flag; with it the budget and every start say so, and it verifies."""
    release = SmallRelease(tmp_path, {"answers": {"ensemble": "40"}}).write(asked=Asked(0, 0))
    with pytest.raises(ConfigurationError, match="hopeless"), Served(release.settings()):
        pass
    warnings: list[str] = []
    with Served(release.settings(), warn=warnings.append, even_if_hopeless=True) as served:
        assert served.budget()["hopeless"] is True
        entry = served.get("/ledger").json()["entries"][0]
        assert entry["body"]["parameters"]["opening.even_if_hopeless"] == "true"
    with Served(release.settings(), warn=warnings.append) as served:
        assert served.budget()["hopeless"] is True
    assert [HOPELESS in warning for warning in warnings] == [False, True, True]
    assert warnings[0].startswith("this release is infeasible as planned: ")
    assert run(["verify", "--config", str(release.config)]) == 0


def test_other_rows_are_refused(opened: OpenedRelease) -> None:
    """A restart refuses rows of which one differs, and takes the same rows in another order."""
    release = opened()
    rows = private_rows()
    write_rows(release.source, rows[::-1])
    with Served(release.settings()) as served:
        assert served.answer(agreed(0))["query_id"] == 1
    age, group, approved = rows[0]
    changed = (age, group, "no" if approved == "yes" else "yes")
    write_rows(release.source, [changed, *rows[1:]])
    with pytest.raises(ReleaseMismatchError) as refused, Served(release.settings()):
        pass
    assert str(refused.value) == OTHER_ROWS


def test_another_number_of_rows_is_refused(opened: OpenedRelease) -> None:
    """A restart with one row more says that n is another."""
    release = opened()
    rows = private_rows()
    write_rows(release.source, [*rows, rows[0]])
    with pytest.raises(ReleaseMismatchError) as refused, Served(release.settings()):
        pass
    assert str(refused.value) == (
        f"data.source: has {len(rows) + 1} rows, and the ledger's release was opened on "
        f"{len(rows)}; restore it, or give the new release a name of its own"
    )


async def _in_thread(event: threading.Event) -> bool:
    """Wait for an event while the application goes on."""
    return await asyncio.to_thread(event.wait, 60)
