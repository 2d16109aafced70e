"""Keys and roles: hashes that a presented key is compared with in constant time.

A key has 256 random bits, so one SHA-256 of it cannot be searched; the file of keys
holds that hash and never the key.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from app.answering.types import Asker

if TYPE_CHECKING:
    from collections.abc import Sequence

BUCKET_BYTES: Final = 4


class Role(StrEnum):
    """What a key may do; ``admin`` includes the other two, which exclude each other."""

    QUERY = "query"
    READ = "read"
    ADMIN = "admin"

    def allows(self, needed: Role) -> bool:
        """Return whether a key of this role may use a route that needs ``needed``."""
        return self is needed or self is Role.ADMIN


@dataclass(frozen=True, slots=True)
class Key:
    """One row of the keys file.

    Attributes:
        name: whose it is; what it is given is counted by it.
        role: what it may do.
        hash: of the key, 64 hexadecimal digits.
        old_hash: of the key that it replaces, which goes on for a while; None without one.
        limit: fresh answers that it may have; None for as many as there are.
        unstable_limit: the same of unstable answers; with scores, of units of the cutoff.
        disabled: whether it opens nothing for now.

    """

    name: str
    role: Role
    hash: str
    old_hash: str | None = None
    limit: int | None = None
    unstable_limit: int | None = None
    disabled: bool = False

    @property
    def hashes(self) -> tuple[str, ...]:
        """What a presented key may have, the new one first."""
        return (self.hash,) if self.old_hash is None else (self.hash, self.old_hash)


class Found(NamedTuple):
    """A key that was presented.

    Attributes:
        key: as the file has it now.
        asker: by whom its queries are counted.
        digest: SHA-256 of what was presented, 32 bytes.

    """

    key: Key
    asker: Asker
    digest: bytes


class Keys(Protocol):
    """Where keys are looked up, as they are now."""

    def find(self, presented: str) -> Found | None:
        """Return the key that ``presented`` is, or None."""

    def known(self, digest: bytes) -> Found | None:
        """Return the key of a digest that was found before, if it still opens anything."""


class KeyRing:
    """The keys that a server knows at one moment.

    A hash is looked for among those that begin with the same four bytes: how long that
    takes depends on 32 bits of hashes, which say nothing of a key of 256 random bits.
    Within, hashes are compared in constant time.
    """

    def __init__(self, keys: Sequence[Key]) -> None:
        """Hold ``keys``."""
        self.keys = tuple(keys)
        self._buckets: dict[bytes, tuple[Found, ...]] = {}
        for key in keys:
            asker = Asker(key.name, key.limit, key.unstable_limit)
            for digest in map(bytes.fromhex, () if key.disabled else key.hashes):
                bucket = self._buckets.get(digest[:BUCKET_BYTES], ())
                self._buckets[digest[:BUCKET_BYTES]] = (*bucket, Found(key, asker, digest))

    def find(self, presented: str) -> Found | None:
        """Return the key that ``presented`` is, or None; hashes once, however many there are."""
        return self.known(_digest(presented))

    def known(self, digest: bytes) -> Found | None:
        """Return the key of a digest, or None."""
        found = None
        for each in self._buckets.get(digest[:BUCKET_BYTES], ()):
            if hmac.compare_digest(digest, each.digest):
                found = each
        return found


def hash_of(secret: str) -> str:
    """Return what the file holds of a key: its SHA-256, hex."""
    return _digest(secret).hex()


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
