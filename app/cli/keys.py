"""``conclave keys``: manage the API keys of a server and their limits on answers."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from app.http.access.keys import Key
    from app.ledger.head.replaced_file import ReplacedFile

KEY_BYTES: Final = 32
KEY_PREFIX: Final = "conclave_"
OWNER_ONLY: Final = 0o600
KEYS_FILE_DEFAULT: Final = Path("keys.toml")
KEYS_FILE_VARIABLE: Final = "CONCLAVE_SERVER__KEYS_FILE"
STANDARD_OUTPUT: Final = "standard output"
NOTHING_CHANGED: Final = "the new key was not shown, so the file of keys stays as it was"

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
    _append(path, _limited(key, limit, unstable_limit), secret)
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
    _change(path, name, lambda key: _limited(key, limit, unstable_limit))
    typer.echo(f"limits of {name}: {_or_dash(limit)}, unstable {_or_dash(unstable_limit)}")


def disable(name: Name, keys_file: KeysFile = None, config: Config = None) -> None:
    """Disable an API key until it is enabled again."""
    path = _keys_path(keys_file, config)
    _change(path, name, lambda key: replace(key, disabled=True))
    typer.echo(f"disabled {name}")


def enable(name: Name, keys_file: KeysFile = None, config: Config = None) -> None:
    """Enable a disabled API key with its former role."""
    path = _keys_path(keys_file, config)
    _change(path, name, lambda key: replace(key, disabled=False))
    typer.echo(f"enabled {name}")


def remove(name: Name, keys_file: KeysFile = None, config: Config = None) -> None:
    """Remove an API key; its answers stay counted under its name."""
    path = _keys_path(keys_file, config)
    _change(path, name, lambda _: None)
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
    secret = _new_secret()

    def rotated(key: Key) -> Key:
        return replace(key, hash=hash_of(secret), old_hash=None if at_once else key.hash)

    _change(path, name, rotated, secret)
    told = "is gone" if at_once else "goes on until `conclave keys retire-old`"
    typer.echo(f"rotated {name}; the key is shown this once, and the old one {told}", err=True)


def retire_old(name: Name, keys_file: KeysFile = None, config: Config = None) -> None:
    """End a rotation: the old API key is no longer accepted."""
    path = _keys_path(keys_file, config)
    _change(path, name, lambda key: replace(key, old_hash=None))
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


def _append(path: Path, key: Key, secret: str) -> None:
    """Append a row to a keys file that is whole, readable by its owner only, and show the key.

    Raises:
        ConfigurationError: the file has a key of that name, cannot be written, or the key cannot be
            shown; the file stays as it was.

    """
    from app.http.access.keys import parse_keys, read_text, row_of

    with _locked(path) as file:
        before = read_text(path) if path.exists() else b""
        known = parse_keys(before, path)
        if key.name in {each.name for each in known}:
            raise ConfigurationError("--name", f"{path} has a key named {key.name}; choose another")
        kept = before.decode("utf-8") if known else ""
        separator = "\n" if kept and not kept.endswith("\n") else ""
        file.replace(kept + separator + row_of(key), secret)


def _change(
    path: Path, name: str, change: Callable[[Key], Key | None], secret: str | None = None
) -> None:
    """Rewrite the keys file with one API key changed, or without it.

    Args:
        path: the keys file.
        name: the name of the API key.
        change: returns the changed key, or None to remove the key.
        secret: the new text of the key, which is shown; None where it stays the same.

    Raises:
        ConfigurationError: the file has no such key, cannot be written, or the key cannot be shown;
            the file stays as it was.

    """
    from app.http.access.keys import read_keys

    with _locked(path) as file:
        keys = read_keys(path)
        if name not in {key.name for key in keys}:
            raise ConfigurationError("--name", f"{path} has no key named {name}")
        changed = [change(key) if key.name == name else key for key in keys]
        file.replace(_text_of([key for key in changed if key is not None]), secret)


def write_keys(path: Path, keys: Sequence[Key]) -> None:
    """Rewrite the whole keys file with the given API keys; its comments are lost."""
    with _locked(path) as file:
        file.replace(_text_of(keys))


def _text_of(keys: Sequence[Key]) -> str:
    """Return the text of a keys file; one of no key lets nobody ask."""
    from app.http.access.keys import NO_KEY_LEFT, row_of

    return "".join(map(row_of, keys)) or NO_KEY_LEFT


class _LockedFile:
    """A keys file that no other command changes until its lock is released."""

    def __init__(self, file: ReplacedFile, folder: int) -> None:
        """Keep the file and the descriptor of its locked folder."""
        self._file: Final = file
        self._folder: Final = folder

    def replace(self, text: str, secret: str | None = None) -> None:
        """Replace the text of the file in one step, readable by its owner only.

        A new key is shown as the last step before that, so that no key is kept unseen.

        Args:
            text: the new text of the file.
            secret: the API key to show; None for none.

        Raises:
            ConfigurationError: the key cannot be shown; the file stays as it was.
            OSError: the file cannot be written in its folder.

        """
        self._file.replace(
            text.encode(),
            self._folder,
            prepare=partial(_keep_owner, target=self._file.path),
            confirm=None if secret is None else partial(_show, secret),
        )


@contextmanager
def _locked(path: Path) -> Iterator[_LockedFile]:
    """Lock a keys file against other commands, from before it is read until it is written.

    A server that reads the file takes no lock, and finds the old text or the new one.

    Raises:
        ConfigurationError: another command holds the lock for long, or the file cannot be written.

    """
    from app.http.access.keys import SETTING
    from app.ledger.head.replaced_file import ReplacedFile

    file = ReplacedFile(path.resolve())
    try:
        with file.locked() as folder:
            yield _LockedFile(file, folder)
    except BlockingIOError:
        problem = f"another command is changing {path}; try again"
        raise ConfigurationError(SETTING, problem) from None
    except OSError as error:
        raise ConfigurationError(SETTING, f"{path} cannot be written: {error.strerror}") from None


def _show(secret: str) -> None:
    """Print a new API key on standard output.

    Raises:
        ConfigurationError: standard output is closed or cannot be written.

    """
    if sys.stdout is None:
        raise ConfigurationError(STANDARD_OUTPUT, f"is closed; {NOTHING_CHANGED}")
    try:
        typer.echo(secret)  # which flushes
    except OSError as error:
        _give_up_output()
        problem = f"cannot be written: {error.strerror}; {NOTHING_CHANGED}"
        raise ConfigurationError(STANDARD_OUTPUT, problem) from None


def _give_up_output() -> None:
    """Let the end of the process not fail at what standard output still holds."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
