"""Scripted noise: what the operating system's generator is asked for, from a seed instead."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from hashlib import shake_256
from typing import TYPE_CHECKING
from unittest.mock import patch

import structlog

from tests.lives.application import noise_door

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

READ_BYTES = 1 << 16


class ScriptedSystem:
    """Stands where the noise source looks for the module ``os``: an endless stream of a seed."""

    def __init__(self, seed: str) -> None:
        """Begin at the first byte of the stream."""
        self._seed = seed
        self._block = 0
        self._left = b""
        self._reading = threading.Lock()

    def urandom(self, byte_count: int) -> bytes:
        """Return the next bytes of the stream."""
        with self._reading:
            while len(self._left) < byte_count:
                name = f"{self._seed}:{self._block}".encode()
                self._left += shake_256(name).digest(READ_BYTES)
                self._block += 1
            drawn, self._left = self._left[:byte_count], self._left[byte_count:]
            return drawn


@contextmanager
def scripted(seed: str, door: ModuleType = noise_door) -> Iterator[None]:
    """Draw all noise from a seed, and keep no logger from one life to the next."""
    configure = structlog.configure

    def configure_unkept(**changes: object) -> None:
        configure(**{**changes, "cache_logger_on_first_use": False})  # type: ignore[arg-type]  # its own names

    with (
        patch.object(door, "os", ScriptedSystem(seed)),
        patch.object(structlog, "configure", configure_unkept),
    ):
        yield
