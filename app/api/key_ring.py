"""Keys and roles: the hashes of ``server.keys_file``, compared in constant time.

A key has 256 random bits, so one SHA-256 of it cannot be searched; the file
holds that hash and never the key.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SETTING: Final = "server.keys_file"
ADD_ONE: Final = "add one with `conclave keys add --role query --name NAME`"
NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
HASH_PATTERN: Final = re.compile(r"[0-9a-f]{64}")
MEMBERS: Final = frozenset({"name", "role", "hash"})


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
    """One row of the keys file: who, what they may do, and the key's hash."""

    name: str
    role: Role
    hash: str


def hash_of(secret: str) -> str:
    """Return what the file holds of a key: its SHA-256, hex."""
    return _digest(secret).hex()


class KeyRing:
    """The keys that a server knows."""

    def __init__(self, keys: Sequence[Key]) -> None:
        """Hold ``keys``."""
        self.keys = tuple(keys)
        self._hashes = tuple(bytes.fromhex(key.hash) for key in keys)

    def find(self, presented: str) -> Key | None:
        """Return the key that ``presented`` is, or None; takes the same time for both."""
        digest = _digest(presented)
        found = None
        for key, known in zip(self.keys, self._hashes, strict=True):
            if hmac.compare_digest(digest, known):
                found = key
        return found


def read_key_ring(path: Path) -> KeyRing:
    """Read a keys file that must hold at least one key.

    Raises:
        ConfigurationError: the file is missing, empty, or not a keys file.

    """
    keys = read_keys(path)
    if not keys:
        raise ConfigurationError(SETTING, f"{path} holds no key; {ADD_ONE}")
    return KeyRing(keys)


def read_keys(path: Path) -> list[Key]:
    """Read the rows of a keys file, in order; see :func:`read_key_ring` for errors."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(SETTING, f"{path} does not exist; {ADD_ONE}") from None
    except OSError as error:
        raise ConfigurationError(SETTING, f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        # Neither the decoder's text nor TOML's is repeated: it could quote the file.
        raise ConfigurationError(SETTING, f"{path} is not a TOML file") from None
    return _parse(document, path)


def _parse(document: dict[str, object], path: Path) -> list[Key]:
    rows = document.get("keys", [])
    if set(document) - {"keys"} or not isinstance(rows, list):
        raise ConfigurationError(SETTING, f"{path} may hold [[keys]] tables only")
    keys = [_parse_row(row, number, path) for number, row in enumerate(rows, start=1)]
    names = [key.name for key in keys]
    if len(set(names)) < len(names):
        raise ConfigurationError(SETTING, f"{path} names two keys alike")
    return keys


def _parse_row(row: object, number: int, path: Path) -> Key:
    problem = f"[[keys]] number {number} of {path} needs name, hash and role = query | read | admin"
    if not isinstance(row, dict) or set(row) != MEMBERS:
        raise ConfigurationError(SETTING, problem)
    name, role, digest = str(row["name"]), str(row["role"]), str(row["hash"])
    fits = NAME_PATTERN.fullmatch(name) and HASH_PATTERN.fullmatch(digest)
    if not fits or role not in set(Role):
        raise ConfigurationError(SETTING, problem)
    return Key(name=name, role=Role(role), hash=digest)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
