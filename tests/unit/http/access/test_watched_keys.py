"""Keys follow their file while a server runs; half of an edit locks nobody out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from app.cli.keys import write_keys
from app.http.access.keys import (
    NO_KEY_LEFT,
    Key,
    KeyRing,
    Role,
    WatchedKeys,
    hash_of,
    row_of,
)
from tests.http.doubles import wait_until

if TYPE_CHECKING:
    from pathlib import Path

WEB = Key(name="web", role=Role.QUERY, hash=hash_of("web"))
OPS = Key(name="ops", role=Role.ADMIN, hash=hash_of("ops"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file with the key web."""
    path = tmp_path / "keys.toml"
    write_keys(path, [WEB])
    return path


def test_a_key_that_is_added_or_removed_is_known_at_the_next_look(path: Path) -> None:
    """What was found before is looked up again by its digest, and is gone with its key."""
    keys = WatchedKeys(path)
    found = keys.find("web")
    assert found is not None
    write_keys(path, [OPS])
    assert keys.find("ops") is None
    keys.reload()
    assert keys.find("ops") is not None
    assert keys.find("web") is None
    assert keys.known(found.digest) is None


@pytest.mark.parametrize("text", ["", " \n", "keys = [", row_of(WEB)[:-20], "[release]\n", "\xff"])
def test_a_broken_file_changes_nothing_and_is_told_once(path: Path, text: str) -> None:
    """The keys of before go on; the log has one line, however often the file is looked at."""
    keys = WatchedKeys(path)
    path.write_text(text, encoding="latin-1")
    with capture_logs() as logs:
        for _ in range(3):
            keys.reload()
    assert [line["event"] for line in logs] == ["keys_not_reloaded"]
    assert keys.find("web") is not None
    write_keys(path, [OPS])
    keys.reload()
    assert (keys.find("web"), keys.find("ops") is None) == (None, False)


def test_a_file_that_is_gone_changes_nothing(path: Path) -> None:
    """Between a deletion and a new file nobody is locked out."""
    keys = WatchedKeys(path)
    path.unlink()
    with capture_logs() as logs:
        keys.reload()
        keys.reload()
    assert [line["event"] for line in logs] == ["keys_not_reloaded"]
    assert keys.find("web") is not None


def test_a_sound_file_without_a_key_lets_nobody_in(path: Path) -> None:
    """To remove the last key is a wish, and no half of an edit."""
    keys = WatchedKeys(path)
    path.write_text(NO_KEY_LEFT)
    keys.reload()
    assert keys.find("web") is None


def test_watching_looks_again_and_again(path: Path) -> None:
    """A change is taken over without anybody asking for it."""

    async def watch() -> None:
        keys = WatchedKeys(path)
        watching = asyncio.create_task(keys.watch(interval_seconds=0.01))
        write_keys(path, [WEB, OPS])
        await wait_until(lambda: keys.find("ops") is not None)
        watching.cancel()

    asyncio.run(watch())


def test_a_disabled_key_and_an_old_one_are_found_as_the_file_says() -> None:
    """Both hashes of a rotating key find it, and none of a disabled one."""
    rotating = Key("web", Role.QUERY, hash_of("new"), old_hash=hash_of("old"), limit=7)
    off = Key("off", Role.READ, hash_of("off"), disabled=True)
    ring = KeyRing([rotating, off])
    found = [ring.find(secret) for secret in ("new", "old", "off")]
    assert [each and each.key for each in found] == [rotating, rotating, None]


def test_a_key_among_many_is_found_by_its_whole_hash() -> None:
    """Hashes that begin alike are told apart by the rest."""
    first = hash_of("web")
    alike = first[:8] + "0" * 56
    ring = KeyRing([Key("other", Role.READ, alike), WEB])
    found = ring.find("web")
    assert found is not None
    assert found.key == WEB
    assert ring.known(bytes.fromhex(first[:8] + "1" * 56)) is None
