"""``conclave keys``: manage the API keys of a server and their limits on answers."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.http.access.keys import Key

KEY_BYTES: Final = 32
KEY_PREFIX: Final = "conclave_"
OWNER_ONLY: Final = 0o600
KEYS_FILE_DEFAULT: Final = Path("keys.toml")
KEYS_FILE_VARIABLE: Final = "CONCLAVE_SERVER__KEYS_FILE"

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
Name = Annotated[str, typer.Option("--name", help="Name of the key.")]
Limit = Annotated[int | None, typer.Option("--limit", min=0, help="Maximum number of new answers.")]
UnstableLimit = Annotated[
    int | None,
    typer.Option("--unstable-limit", min=0, help="Maximum number of unstable answers."),
]


def register(application: typer.Typer) -> None:
    """Add the commands ``conclave keys ...`` to the application."""
    keys = typer.Typer(help="The API keys of a server, and their limits.", no_args_is_help=True)
    keys.command("add")(add)
    keys.command("list")(list_keys)
    keys.command("limit")(limit_key)
    keys.command("disable")(disable)
    keys.command("enable")(enable)
    keys.command("remove")(remove)
    keys.command("rotate")(rotate)
    keys.command("retire-old")(retire_old)
    keys.command("usage")(usage)
    application.add_typer(keys, name="keys")


def add(
    role: Annotated[str, typer.Option("--role", help="query, read or admin.")],
    name: Annotated[str, typer.Option("--name", help="Name of the key's holder: a-z, 0-9, . _ -")],
    limit: Limit = None,
    unstable_limit: UnstableLimit = None,
    keys_file: KeysFile = None,
    config: Config = None,
) -> None:
    """Make an API key, print it once, and append its hash to the file of keys."""
    path = _keys_path(keys_file, config)
    secret = _new_secret()
    key = _new_key(secret, role=role, name=name)
    _append(path, _limited(key, limit, unstable_limit))
    typer.echo(secret)
    typer.echo(f"added {name} ({role}) to {path}; the key is shown this once", err=True)


def list_keys(keys_file: KeysFile = None, config: Config = None) -> None:
    """List API keys: names, roles, limits and states, separated by tabs; a dash for no limit."""
    from app.http.access.keys import read_keys

    for key in read_keys(_keys_path(keys_file, config)):
        typer.echo("\t".join([key.name, key.role, *map(_or_dash, _limits(key)), _state(key)]))


def limit_key(
    name: Name,
    limit: Limit = None,
    unstable_limit: UnstableLimit = None,
    keys_file: KeysFile = None,
    config: Config = None,
) -> None:
    """Set the limits of an API key; a limit that is not given is removed."""
    path = _keys_path(keys_file, config)
    _change(path, _limited(_named(path, name), limit, unstable_limit))
    typer.echo(f"limits of {name}: {_or_dash(limit)}, unstable {_or_dash(unstable_limit)}")


def disable(name: Name, keys_file: KeysFile = None, config: Config = None) -> None:
    """Disable an API key until it is enabled again."""
    path = _keys_path(keys_file, config)
    _change(path, replace(_named(path, name), disabled=True))
    typer.echo(f"disabled {name}")


def enable(name: Name, keys_file: KeysFile = None, config: Config = None) -> None:
    """Enable a disabled API key with its former role."""
    path = _keys_path(keys_file, config)
    _change(path, replace(_named(path, name), disabled=False))
    typer.echo(f"enabled {name}")


def remove(name: Name, keys_file: KeysFile = None, config: Config = None) -> None:
    """Remove an API key; its answers stay counted under its name."""
    from app.http.access.keys import read_keys

    path = _keys_path(keys_file, config)
    gone = _named(path, name)
    write_keys(path, [key for key in read_keys(path) if key.name != gone.name])
    typer.echo(f"removed {name}")


def rotate(
    name: Name,
    at_once: Annotated[bool, typer.Option("--at-once", help="End the old key at once.")] = False,
    keys_file: KeysFile = None,
    config: Config = None,
) -> None:
    """Make a new API key of the same name, role and limits, and print it once.

    The old key is accepted in addition until `conclave keys retire-old`.
    """
    from app.http.access.keys import hash_of

    path = _keys_path(keys_file, config)
    key, secret = _named(path, name), _new_secret()
    _change(path, replace(key, hash=hash_of(secret), old_hash=None if at_once else key.hash))
    typer.echo(secret)
    told = "is gone" if at_once else "goes on until `conclave keys retire-old`"
    typer.echo(f"rotated {name}; the key is shown this once, and the old one {told}", err=True)


def retire_old(name: Name, keys_file: KeysFile = None, config: Config = None) -> None:
    """End a rotation: the old API key is no longer accepted."""
    path = _keys_path(keys_file, config)
    _change(path, replace(_named(path, name), old_hash=None))
    typer.echo(f"retired the old key of {name}")


def usage(
    config: Annotated[
        Path | None, typer.Option(help="Configuration file; without one, the embedded demo.")
    ] = None,
) -> None:
    """Print the answer counts of each API key: name, new answers, unstable answers, with tabs."""
    from app.ledger.ledger import open_ledger
    from app.settings.settings import demo_settings, load_settings

    environment = dict(os.environ)
    settings = demo_settings(environment) if config is None else load_settings(config, environment)
    ledger = open_ledger(settings.ledger_url, create=False, name=settings.release.name)
    try:
        for name, (answered, unstable) in sorted(ledger.key_counts().items()):
            typer.echo(f"{name}\t{answered}\t{unstable}")
    finally:
        ledger.close()


def _keys_path(keys_file: Path | None, config: Path | None) -> Path:
    """Return the file that is meant, the nearest source first."""
    if keys_file is not None:
        return keys_file
    if config is None:
        return Path(os.environ.get(KEYS_FILE_VARIABLE, KEYS_FILE_DEFAULT))
    from app.settings.settings import load_settings

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
    from app.http.access.keys import NAME_PATTERN, Key, Role, hash_of

    if role not in set(Role):
        raise ConfigurationError("--role", f"{role!r} is none of {', '.join(Role)}")
    if not NAME_PATTERN.fullmatch(name):
        raise ConfigurationError("--name", "1 to 64 of the characters a-z A-Z 0-9 . _ -")
    return Key(name=name, role=Role(role), hash=hash_of(secret))


def _limited(key: Key, limit: int | None, unstable_limit: int | None) -> Key:
    """Return a key with limits, which it must be able to reach.

    Raises:
        ConfigurationError: a key that asks nothing, or a limit beyond all numbers.

    """
    from app.http.access.keys import LIMIT_MAX, Role

    given = {"--limit": limit, "--unstable-limit": unstable_limit}
    for option, number in given.items():
        if number is not None and key.role is Role.READ:
            raise ConfigurationError(option, "a key of role read asks nothing; leave it out")
        if number is not None and number > LIMIT_MAX:
            raise ConfigurationError(option, f"is at most {LIMIT_MAX}")
    return replace(key, limit=limit, unstable_limit=unstable_limit)


def _named(path: Path, name: str) -> Key:
    """Return the key of that name.

    Raises:
        ConfigurationError: the file has none.

    """
    from app.http.access.keys import read_keys

    found = [key for key in read_keys(path) if key.name == name]
    if not found:
        raise ConfigurationError("--name", f"{path} has no key named {name}")
    return found[0]


def _append(path: Path, key: Key) -> None:
    """Append a row to a keys file that is whole, readable by its owner only."""
    from app.http.access.keys import parse_keys, read_text, row_of

    before = read_text(path) if path.exists() else b""
    known = parse_keys(before, path)
    if key.name in {each.name for each in known}:
        raise ConfigurationError("--name", f"{path} has a key named {key.name}; choose another")
    kept = before.decode("utf-8") if known else ""
    separator = "\n" if kept and not kept.endswith("\n") else ""
    _replace_text(path, kept + separator + row_of(key))


def _change(path: Path, changed: Key) -> None:
    """Write the file with one key changed."""
    from app.http.access.keys import read_keys

    write_keys(path, [changed if key.name == changed.name else key for key in read_keys(path)])


def write_keys(path: Path, keys: Sequence[Key]) -> None:
    """Rewrite the whole keys file with the given API keys; its comments are lost."""
    from app.http.access.keys import NO_KEY_LEFT, row_of

    _replace_text(path, "".join(map(row_of, keys)) or NO_KEY_LEFT)


def _replace_text(path: Path, text: str) -> None:
    """Replace the text of a file in one step, readable by its owner only.

    Raises:
        ConfigurationError: the file cannot be written in its folder.

    """
    from app.http.access.keys import SETTING
    from app.ledger.head.replaced_file import ReplacedFile

    file = ReplacedFile(path.resolve())
    try:
        with file.locked() as folder:
            file.replace(text.encode(), folder, prepare=partial(_keep_owner, target=file.path))
    except OSError as error:
        raise ConfigurationError(SETTING, f"{path} cannot be written: {error.strerror}") from None


def _keep_owner(descriptor: int, target: Path) -> None:
    """Close a file to all but its owner, who stays whoever it was, where that is allowed."""
    os.fchmod(descriptor, OWNER_ONLY)
    with suppress(FileNotFoundError, PermissionError):
        known = target.stat()
        os.fchown(descriptor, known.st_uid, known.st_gid)


def _limits(key: Key) -> tuple[int | None, int | None]:
    return key.limit, key.unstable_limit


def _or_dash(limit: int | None) -> str:
    return "-" if limit is None else str(limit)


def _state(key: Key) -> str:
    if key.disabled:
        return "disabled"
    return "active" if key.old_hash is None else "rotating"
