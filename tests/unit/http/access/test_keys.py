"""The file of keys, roles, and where a server without keys may listen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from app.errors import ConfigurationError
from app.http.access.access_control import require_safe_binding
from app.http.access.keys import Key, KeyRing, Role, hash_of, read_key_ring

if TYPE_CHECKING:
    from pathlib import Path

HASH = hash_of("a key")


def row(**members: str) -> str:
    """Return a [[keys]] table, by default a good one."""
    members = {"name": "web", "role": "query", "hash": HASH} | members
    return "[[keys]]\n" + "".join(f'{name} = "{text}"\n' for name, text in members.items())


def test_finds_a_key_by_its_hash(tmp_path: Path) -> None:
    """The file holds hashes; a key is known by its own only."""
    path = tmp_path / "keys.toml"
    path.write_text(row() + row(name="ops", role="admin", hash=hash_of("other")))
    keys = read_key_ring(path)
    web, ops = keys.find("a key"), keys.find("other")
    assert web is not None
    assert web.key == Key(name="web", role=Role.QUERY, hash=HASH)
    assert ops is not None
    assert ops.key == Key(name="ops", role=Role.ADMIN, hash=hash_of("other"))
    assert keys.find(HASH) is None
    assert keys.find("") is None


def test_an_empty_ring_finds_nothing() -> None:
    """No key is known to a ring without keys."""
    assert KeyRing([]).find("a key") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "does not exist; add one with"),
        ("", "holds no key; add one with"),
        ("# nothing\n", "holds no key; add one with"),
        ("keys = [", "is not a TOML file"),
        ("\xff", "is not a TOML file"),
        ("keys = " + "[" * 5000, "is not a TOML file"),
        ("key = 1", "may hold [[keys]] tables only"),
        ("keys = 1", "may hold [[keys]] tables only"),
        ("keys = [1]", "number 1 of"),
        (row() + row(name="two", role="owner"), "number 2 of"),
        (row(hash="00"), "number 1 of"),
        (row(name="a b"), "number 1 of"),
        (row(limit="7"), "number 1 of"),
        (row(other="7"), "number 1 of"),
        (row(old_hash="00"), "number 1 of"),
        (row() + "limit = -1\n", "number 1 of"),
        (row() + "limit = true\n", "number 1 of"),
        (row() + "unstable_limit = 1.5\n", "number 1 of"),
        (row() + "disabled = 1\n", "number 1 of"),
        (row(role="read") + "limit = 1\n", "number 1 of"),
        ("[[keys]]\nname = 1\nrole = 'query'\nhash = '00'\n", "number 1 of"),
        (row() + row(), "names two keys alike"),
        (row() + row(name="two"), "has one key under two names"),
        (row(old_hash=HASH), "has one key under two names"),
    ],
)
def test_refuses_a_file_that_holds_no_keys(tmp_path: Path, text: str | None, problem: str) -> None:
    """A missing, empty or broken file is one line that names the setting."""
    path = tmp_path / "keys.toml"
    if text is not None:
        path.write_text(text, encoding="latin-1")
    with pytest.raises(ConfigurationError, match=r"^server\.keys_file: ") as refused:
        read_key_ring(path)
    assert problem in refused.value.problem


def test_refuses_a_folder(tmp_path: Path) -> None:
    """What cannot be read says why, in the system's words."""
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        read_key_ring(tmp_path)


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        (Role.QUERY, {Role.QUERY}),
        (Role.READ, {Role.READ}),
        (Role.ADMIN, {Role.QUERY, Role.READ, Role.ADMIN}),
    ],
)
def test_admin_includes_the_roles_that_exclude_each_other(role: Role, allowed: set[Role]) -> None:
    """Roles query and read do not include each other."""
    assert {needed for needed in Role if role.allows(needed)} == allowed


def settings(host: str, keys_file: str | None, oidc: object = None) -> Any:
    """Return the settings that the rule reads."""
    server = SimpleNamespace(host=host, keys_file=keys_file, oidc=oidc)
    return cast("Any", SimpleNamespace(server=server))


@pytest.mark.parametrize(
    ("host", "keys_file", "oidc", "is_demo"),
    [
        ("127.0.0.1", None, None, False),
        ("0.0.0.0", "keys.toml", None, False),  # noqa: S104 -- the cases
        ("0.0.0.0", None, "a provider", False),  # noqa: S104 -- the cases
        ("0.0.0.0", None, None, True),  # noqa: S104 -- the cases
    ],
)
def test_serves_where_nobody_is_let_in_by_mistake(
    host: str,
    keys_file: str | None,
    oidc: str | None,
    is_demo: bool,  # noqa: FBT001 -- a table
) -> None:
    """Loopback, keys, tokens, or public data: any of them is enough."""
    require_safe_binding(settings(host, keys_file, oidc), is_demo=is_demo)


def test_refuses_private_data_without_keys_on_the_network() -> None:
    """The line says what to mount."""
    with pytest.raises(ConfigurationError) as refused:
        require_safe_binding(settings("0.0.0.0", None), is_demo=False)  # noqa: S104 -- what must be refused
    assert str(refused.value) == (
        "server.keys_file: not set, and server.host '0.0.0.0' can be reached from other machines; "
        "mount a keys file (`conclave keys add --role query --name NAME` writes one) and set "
        "CONCLAVE_SERVER__KEYS_FILE to its path, or listen on 127.0.0.1"
    )
