"""What tests of openings read of a release, change in it and damage."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from app.noise.scripted import ScriptedNoise
from tests.builders.release.small_release import SmallRelease

if TYPE_CHECKING:
    from app.ledger.entries.fold import LedgerState

ONE_BYTE_MORE = "CAST(body || x'00' AS BLOB)"
PIECES = (
    "release-secret",
    "hypothesis",
    "permutation",
    "ensemble",
    "profile-table",
    "calibration-checked",
)
RESTORE = "restore it, or give the new release a name of its own"


class NoNoise(ScriptedNoise):
    """Fails on the first draw: whoever gets it may draw nothing."""

    def __init__(self) -> None:
        """Hold no word."""
        super().__init__(())


def kinds(release: SmallRelease) -> list[str]:
    """Return the kinds of all entries, in order."""
    return [str(entry["kind"]) for entry in release.ledger().public_entries(0, 100)]


def shares(state: LedgerState) -> dict[str, list[tuple[str, str]]]:
    """Return what is charged and what is reserved, by mechanism and epsilon."""
    return {
        "charged": [(share.mechanism, share.epsilon) for share in state.charged],
        "reserved": [(share.mechanism, share.epsilon) for share in state.reserved],
    }


def changed(release: SmallRelease, **changes: str) -> SmallRelease:
    """Return the same folder with other settings."""
    return SmallRelease(release.folder, {**release.changes, **changes})


def pieces(release: SmallRelease) -> dict[str, bytes]:
    """Return every piece of private state as it is stored."""
    connection = sqlite3.connect(release.folder / "conclave.db")
    rows = connection.execute("SELECT name, body FROM private_state").fetchall()
    connection.close()
    return dict(rows)


def statement_of(damage: str, name: str) -> str:
    """Return the SQL that alters or removes a piece of private state."""
    where = f"private_state WHERE name = '{name}'"
    if damage == "altered":
        return f"UPDATE {where}".replace("WHERE", f"SET body = {ONE_BYTE_MORE} WHERE")
    return f"DELETE FROM {where}"  # noqa: S608 -- the name is one of ours
