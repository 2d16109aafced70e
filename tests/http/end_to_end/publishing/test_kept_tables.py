"""A real server whose ledger keeps a table that is altered, or does not hold, does not start."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from app.ledger.entries.digests import private_digest
from app.main import open_from_settings
from app.noise.system import SystemNoise
from tests.builders.ledger.releases import tamper
from tests.builders.mechanisms.planted_calibrations import PLANTED
from tests.builders.server.http_release import SmallRelease
from tests.builders.server.nursery import started

if TYPE_CHECKING:
    from pathlib import Path

    from tests.http.end_to_end.conftest import OpenedRelease

TABLE = "profile-table"


def kept(release: SmallRelease, name: str) -> bytes:
    """Return a piece of private state as it is stored."""
    with closing(sqlite3.connect(release.ledger)) as connection:
        select = "SELECT body FROM private_state WHERE name = ?"
        (body,) = connection.execute(select, (name,)).fetchone()
    assert isinstance(body, bytes)
    return body


def one_lower(body: bytes) -> bytes:
    """Return a table whose second threshold is one lower: a digit or two."""
    before, separator, after = body.partition(b'","')  # ends the first of the thresholds
    second, quote, rest = after.partition(b'"')
    assert second.isdigit(), body[:300]
    return before + separator + str(int(second) - 1).encode() + quote + rest


def refusal(release: SmallRelease) -> str:
    """Start a server, and return the line with which it ends."""
    process = started(release.config)
    assert process.wait() == 1
    assert "Traceback" not in process.errors()
    return process.errors().splitlines()[-1]


@pytest.mark.parametrize("with_digest", [False, True])
def test_a_table_altered_on_disk_refuses_to_start(
    opened: OpenedRelease, *, with_digest: bool
) -> None:
    """One threshold off by one is named, even where its stored digest was made to match."""
    release = opened()
    body = one_lower(kept(release, TABLE).partition(b'"thresholds":')[2])
    body = kept(release, TABLE).partition(b'"thresholds":')[0] + b'"thresholds":' + body
    digest = private_digest(kept(release, "release-secret"), name=TABLE, body=body)
    assignments = [f"body = CAST(x'{body.hex()}' AS BLOB)"]
    assignments += [f"digest = '{digest}'"] * with_digest
    where = f"WHERE name = '{TABLE}'"
    tamper(release.ledger, f"UPDATE private_state SET {', '.join(assignments)} {where}")  # noqa: S608 -- of ours
    assert TABLE in refusal(release)


def test_a_table_that_does_not_hold_refuses_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bound by its entry like any other, it is refused by what it breaks."""
    release, planted = SmallRelease(tmp_path).write(), PLANTED[0]
    with planted.kept(monkeypatch):
        open_from_settings(release.settings(), noise=SystemNoise()).ledger.close()
    assert planted.claim in refusal(release)
