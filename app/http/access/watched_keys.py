"""Keys that follow their file: added, limited, disabled and removed without a restart.

The file is looked at every second or so, rather than on a signal: a secret that a
container platform mounts changes by itself, and nobody in there sends signals.  A file
that is gone, cannot be read or is none of keys changes nothing, and is logged once: half
of an edit must not lock every client out.  A file that is sound and lists no key lets
nobody in.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from app.errors import ConfigurationError
from app.http.access.keys import SETTING, KeyRing, parse_keys, read_key_ring, read_text

if TYPE_CHECKING:
    from pathlib import Path

    from app.http.access.keys import Found, Key

log = structlog.get_logger("conclave.api")


class WatchedKeys:
    """The keys of a file, as it was when last looked at."""

    def __init__(self, path: Path) -> None:
        """Read the file, which must hold at least one key.

        Raises:
            ConfigurationError: the file is missing, empty, or not a keys file.

        """
        self._path = path
        self._ring = read_key_ring(path)
        self._text = read_text(path)

    def find(self, presented: str) -> Found | None:
        """Return the key that ``presented`` is, or None."""
        return self._ring.find(presented)

    def known(self, digest: bytes) -> Found | None:
        """Return the key of a digest that was found before, if it still opens anything."""
        return self._ring.known(digest)

    def reload(self) -> None:
        """Take over what the file holds, if it changed and is sound."""
        text = _text_of(self._path)
        if text == self._text:
            return
        self._text = text
        try:
            keys = _complete(text, self._path)
        except ConfigurationError:
            log.error("keys_not_reloaded")  # noqa: TRY400 -- a line of its text could quote the file
            return
        self._ring = KeyRing(keys)
        log.info("keys_reloaded", count=len(keys))

    async def watch(self, *, interval_seconds: float) -> None:
        """Look at the file again and again, until cancelled."""
        while True:
            await asyncio.sleep(interval_seconds)
            self.reload()


def _text_of(path: Path) -> bytes:
    """Return what a file holds, nothing where it cannot be read."""
    try:
        return read_text(path)
    except ConfigurationError:
        return b""


def _complete(text: bytes, path: Path) -> list[Key]:
    if not text.strip():
        raise ConfigurationError(SETTING, f"{path} is empty")
    return parse_keys(text, path)
