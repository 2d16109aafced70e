"""``conclave keys``: who may use a server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from app.api.key_ring import Key

KEY_BYTES: Final = 32
KEY_PREFIX: Final = "conclave_"
KEYS_FILE_DEFAULT: Final = Path("keys.toml")
KEYS_FILE_VARIABLE: Final = "CONCLAVE_SERVER__KEYS_FILE"
OWNER_ONLY: Final = 0o600

KeysFile = Annotated[
    Path | None,
    typer.Option(
        "--keys-file",
        help="The file of keys. Default: server.keys_file of --config or of "
        f"{KEYS_FILE_VARIABLE}, else ./{KEYS_FILE_DEFAULT}.",
    ),
]
Config = Annotated[
    Path | None, typer.Option("--config", help="A configuration that names the file of keys.")
]


def register(application: typer.Typer) -> None:
    """Add ``conclave keys`` and its subcommands."""
    keys = typer.Typer(help="Add and list the keys of a server.", no_args_is_help=True)
    keys.command("add")(add)
    keys.command("list")(list_keys)
    application.add_typer(keys, name="keys")


def add(
    role: Annotated[str, typer.Option("--role", help="query, read or admin.")],
    name: Annotated[str, typer.Option("--name", help="Who the key is for: a-z, 0-9, . _ -")],
    keys_file: KeysFile = None,
    config: Config = None,
) -> None:
    """Make a key, print it once, and append its hash to the file of keys."""
    path = _keys_path(keys_file, config)
    secret = _new_secret()
    key = _new_key(secret, role=role, name=name)
    _append(path, key)
    typer.echo(secret)
    typer.echo(f"added {name} ({role}) to {path}; the key is shown this once", err=True)


def list_keys(keys_file: KeysFile = None, config: Config = None) -> None:
    """List names and roles."""
    from app.api.key_ring import read_keys

    for key in read_keys(_keys_path(keys_file, config)):
        typer.echo(f"{key.name}\t{key.role}")


def _keys_path(keys_file: Path | None, config: Path | None) -> Path:
    """Return the file that is meant, the nearest source first."""
    if keys_file is not None:
        return keys_file
    if config is None:
        return Path(os.environ.get(KEYS_FILE_VARIABLE, KEYS_FILE_DEFAULT))
    from app.settings import load_settings

    named = load_settings(config, os.environ).server.keys_file
    if named is None:
        raise ConfigurationError(
            "server.keys_file", f"{config} does not set it; set it, or give --keys-file"
        )
    return named


def _new_secret() -> str:
    """Return a fresh key of 256 random bits, marked so that scanners find a leaked one."""
    from app.noise.system import SystemNoise

    return KEY_PREFIX + SystemNoise().secret(KEY_BYTES).hex()


def _new_key(secret: str, *, role: str, name: str) -> Key:
    from app.api.key_ring import NAME_PATTERN, Key, Role, hash_of

    if role not in set(Role):
        raise ConfigurationError("--role", f"{role!r} is none of {', '.join(Role)}")
    if not NAME_PATTERN.fullmatch(name):
        raise ConfigurationError("--name", "1 to 64 of the characters a-z A-Z 0-9 . _ -")
    return Key(name=name, role=Role(role), hash=hash_of(secret))


def _append(path: Path, key: Key) -> None:
    """Append a row to a keys file that is whole, readable by its owner only."""
    from app.api.key_ring import read_keys

    known = read_keys(path) if path.exists() else []
    if key.name in {each.name for each in known}:
        raise ConfigurationError("--name", f"{path} has a key named {key.name}; choose another")
    row = f'[[keys]]\nname = "{key.name}"\nrole = "{key.role}"\nhash = "{key.hash}"\n\n'
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, OWNER_ONLY)
    with os.fdopen(descriptor, "a", encoding="utf-8") as file:
        os.fchmod(file.fileno(), OWNER_ONLY)
        file.write(row)
