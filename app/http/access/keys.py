"""API keys and roles; a presented key is compared with stored hashes in constant time.

An API key has 256 random bits, so it cannot be found from its SHA-256 hash by trying keys. The file
of keys contains the hash and never the key itself.

A key may have a limit on its new answers and one on its new unstable answers; recorded answers that
are given again are not counted. In a release with scores, the limit of unstable answers counts
failed stability tests (noisy tests of whether enough models agree); an answer takes up to two.

The file is TOML with a ``[[keys]]`` table for each key. It is always read and written as a whole,
and a server reads it again when it changes.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import structlog

from app.answering.queries import Asker
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

BUCKET_BYTES: Final = 4


class Role(StrEnum):
    """The permissions of an API key; ``admin`` includes ``query`` and ``read``."""

    QUERY = "query"
    READ = "read"
    ADMIN = "admin"

    def allows(self, needed: Role) -> bool:
        """Return whether an API key of this role may use a route that needs ``needed``."""
        return self is needed or self is Role.ADMIN


@dataclass(frozen=True, slots=True)
class Key:
    """One API key as the keys file lists it: name, hash, role and limits.

    Attributes:
        name: the name of the key's holder, under which its answers are counted.
        role: the permissions of the key.
        hash: the SHA-256 hash of the key, 64 hexadecimal digits.
        old_hash: the hash of the previous key, which is still accepted during a rotation; None
            without one.
        limit: the largest number of new answers that the key may get; None for no limit.
        unstable_limit: the largest number of new unstable answers (with scores, of failed stability
            tests) that the key may get; None for no limit.
        disabled: whether the key is not accepted at present.

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
        """The accepted hashes of the API key, the newest first."""
        return (self.hash,) if self.old_hash is None else (self.hash, self.old_hash)


class FoundKey(NamedTuple):
    """An API key of the keys file that a request presented.

    Attributes:
        key: the entry of the keys file, as it is now.
        asker: the name and limits under which the key's queries are counted.
        digest: the SHA-256 hash of the presented key, 32 bytes.

    """

    key: Key
    asker: Asker
    digest: bytes

    @property
    def noun(self) -> str:
        """The word for the kind of credential, which is a key."""
        return "key"

    @property
    def roles(self) -> frozenset[Role]:
        """The role of the API key, as a set."""
        return frozenset({self.key.role})

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """The key's limits on new answers and on unstable answers; None for no limit."""
        return self.key.limit, self.key.unstable_limit


class Keys(Protocol):
    """The interface of a set of API keys that can be searched."""

    def find(self, presented: str) -> FoundKey | None:
        """Return the API key whose hash is that of ``presented``, or None."""

    def known(self, digest: bytes) -> FoundKey | None:
        """Return the API key with the given hash, if the key is (still) accepted."""

    def listed(self) -> Sequence[Key]:
        """Return every API key of the file, disabled ones included."""


class KeyRing:
    """The fixed set of API keys that one version of the keys file contains.

    A presented hash is searched among the hashes that begin with the same four bytes. The duration
    of this search depends on 32 bits of hashes, which reveal nothing useful about a key of 256
    random bits. Hashes with the same four bytes are compared in constant time.
    """

    def __init__(self, keys: Sequence[Key]) -> None:
        """Index ``keys`` by their hashes."""
        self.keys = tuple(keys)
        self._buckets: dict[bytes, tuple[FoundKey, ...]] = {}
        for key in keys:
            asker = Asker(key.name, key.limit, key.unstable_limit)
            for digest in map(bytes.fromhex, () if key.disabled else key.hashes):
                bucket = self._buckets.get(digest[:BUCKET_BYTES], ())
                self._buckets[digest[:BUCKET_BYTES]] = (*bucket, FoundKey(key, asker, digest))

    def find(self, presented: str) -> FoundKey | None:
        """Return the API key with this text, or None; the text is hashed once for all keys."""
        return self.known(_digest(presented))

    def known(self, digest: bytes) -> FoundKey | None:
        """Return the API key that has the given hash, or None."""
        found = None
        for each in self._buckets.get(digest[:BUCKET_BYTES], ()):
            if hmac.compare_digest(digest, each.digest):
                found = each
        return found

    def listed(self) -> Sequence[Key]:
        """Return every API key, in the order of the file."""
        return self.keys


def hash_of(secret: str) -> str:
    """Return the stored form of an API key: its SHA-256 hash in hexadecimal."""
    return _digest(secret).hex()


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


SETTING: Final = "server.keys_file"
ADD_ONE: Final = "add one with `conclave keys add --role query --name NAME`"
NO_KEY_LEFT: Final = "# Every key was removed: nobody may ask.\nkeys = []\n"
NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
HASH_PATTERN: Final = re.compile(r"[0-9a-f]{64}")
NEEDED: Final = frozenset({"name", "role", "hash"})
MEMBERS: Final = NEEDED | {"old_hash", "limit", "unstable_limit", "disabled"}
LIMIT_MAX: Final = 10**15
SHAPE: Final = (
    "needs name, hash and role = query | read | admin, and may have old_hash, limit and "
    "unstable_limit (whole numbers, of role query or admin) and disabled = true"
)


def read_key_ring(path: Path) -> KeyRing:
    """Return the API keys of a keys file, which must contain at least one.

    Raises:
        ConfigurationError: the file is missing, empty, or not a keys file.

    """
    keys = read_keys(path)
    if not keys:
        raise ConfigurationError(SETTING, f"{path} holds no key; {ADD_ONE}")
    return KeyRing(keys)


def read_keys(path: Path) -> list[Key]:
    """Return the API keys of a keys file, in order; see :func:`read_key_ring` for errors."""
    return parse_keys(read_text(path), path)


def read_text(path: Path) -> bytes:
    """Return the text of a keys file.

    Raises:
        ConfigurationError: the file is missing, or cannot be read.

    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ConfigurationError(SETTING, f"{path} does not exist; {ADD_ONE}") from None
    except OSError as error:
        raise ConfigurationError(SETTING, f"{path} cannot be read: {error.strerror}") from None


def parse_keys(text: bytes, path: Path) -> list[Key]:
    """Return the API keys that the text of a keys file lists.

    Raises:
        ConfigurationError: the text is not that of a keys file.

    """
    try:
        document = tomllib.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        # Neither the decoder's text nor TOML's is repeated: it could quote the file.
        raise ConfigurationError(SETTING, f"{path} is not a TOML file") from None
    rows = document.get("keys", [])
    if set(document) - {"keys"} or not isinstance(rows, list):
        raise ConfigurationError(SETTING, f"{path} may hold [[keys]] tables only")
    keys = [_parse_row(row, number, path) for number, row in enumerate(rows, start=1)]
    _refuse_doubles(keys, path)
    return keys


def _refuse_doubles(keys: Sequence[Key], path: Path) -> None:
    names = [key.name for key in keys]
    if len(set(names)) < len(names):
        raise ConfigurationError(SETTING, f"{path} names two keys alike")
    hashes = [each for key in keys for each in key.hashes]
    if len(set(hashes)) < len(hashes):
        raise ConfigurationError(SETTING, f"{path} has one key under two names")


def _parse_row(row: object, number: int, path: Path) -> Key:
    problem = f"[[keys]] number {number} of {path} {SHAPE}"
    if not isinstance(row, dict) or not set(row) >= NEEDED or set(row) - MEMBERS:
        raise ConfigurationError(SETTING, problem)
    texts = [row[name] for name in ("name", "role", "hash")]
    hashes = [row["hash"], row.get("old_hash", row["hash"])]
    limits = [row[name] for name in ("limit", "unstable_limit") if name in row]
    if not (
        all(isinstance(text, str) for text in (*texts, *hashes))
        and NAME_PATTERN.fullmatch(row["name"])
        and row["role"] in set(Role)
        and all(HASH_PATTERN.fullmatch(text) for text in hashes)
        and all(type(limit) is int and 0 <= limit <= LIMIT_MAX for limit in limits)
        and not (limits and row["role"] == Role.READ)
        and isinstance(row.get("disabled", False), bool)
    ):
        raise ConfigurationError(SETTING, problem)
    return Key(**(row | {"role": Role(row["role"])}))


def row_of(key: Key) -> str:
    """Return one API key as a table of the TOML keys file."""
    lines = [f'name = "{key.name}"', f'role = "{key.role}"', f'hash = "{key.hash}"']
    if key.old_hash is not None:
        lines.append(f'old_hash = "{key.old_hash}"')
    if key.limit is not None:
        lines.append(f"limit = {key.limit}")
    if key.unstable_limit is not None:
        lines.append(f"unstable_limit = {key.unstable_limit}")
    if key.disabled:
        lines.append("disabled = true")
    return "\n".join(["[[keys]]", *lines, "", ""])


log = structlog.get_logger("conclave.api")


class WatchedKeys:
    """The API keys of a file, which is read again whenever it changes.

    The file is checked about once a second instead of on a signal, because a container platform
    changes a mounted secret without sending a signal. If the file is missing, unreadable or
    invalid, the known keys remain valid and the problem is logged once, so that a half-finished
    edit does not lock out all clients. If the file is valid and lists no key, no client is
    accepted.
    """

    def __init__(self, path: Path) -> None:
        """Read the keys file, which must contain at least one key.

        Raises:
            ConfigurationError: the file is missing, empty, or not a keys file.

        """
        self._path = path
        self._ring = read_key_ring(path)
        self._text = read_text(path)

    def find(self, presented: str) -> FoundKey | None:
        """Return the API key with this text, or None."""
        return self._ring.find(presented)

    def known(self, digest: bytes) -> FoundKey | None:
        """Return the API key with the given hash, if the key is (still) accepted."""
        return self._ring.known(digest)

    def listed(self) -> Sequence[Key]:
        """Return every API key of the file, as of the last check."""
        return self._ring.keys

    def reload(self) -> None:
        """Read the keys file again, if it changed and is valid."""
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
        """Check the keys file for changes repeatedly, until cancelled."""
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
