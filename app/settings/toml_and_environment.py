"""Reading of a TOML file and environment variables into one nested table of settings.

This module only validates what is necessary for merging; the models in ``app/settings/settings.py``
validate the settings. Numbers with a point or an exponent stay exact decimals.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from app.data.demo_data import DEMO_SOURCE
from app.errors import ConfigurationError

Tables = dict[str, object]

PREFIX = "CONCLAVE_"
DELIMITER = "__"
FILE_BYTES_MAX = 16 * 2**20
SECTION_LIKENESS = 0.75
PATH_KEYS = (
    ("data", "source"),
    ("hypotheses", "path"),
    ("classifier", "public"),
    ("ledger", "url"),
    ("ledger", "head_file"),
    ("server", "keys_file"),
)
SECRET_KEYS = (("data", "source"), ("ledger", "url"))
FILE_SUFFIX = "_file"
SECRET_BYTES_MAX = 2**16
SQLITE_FILE = re.compile(r"^(sqlite(?:\+\w+)?:///)([^?]+)(.*)$", re.DOTALL)


def read_file(path: Path) -> Tables:
    """Return the tables of a TOML file; relative paths become relative to the file's folder.

    Raises:
        ConfigurationError: the file cannot be read or is not TOML.

    """
    text = _read_text(path)
    try:
        tables = tomllib.loads(text, parse_float=_decimal)
    except RecursionError:
        raise ConfigurationError(str(path), "is nested too deeply") from None
    except (ValueError, InvalidOperation) as error:
        raise ConfigurationError(str(path), f"is not valid TOML: {_one_line(error)}") from None
    return resolve_paths(tables, folder=path.absolute().parent)


def read_environment(
    environ: Mapping[str, str],
    *,
    sections: frozenset[str],
    is_text: Callable[[tuple[str, ...]], bool],
    folder: Path,
) -> list[tuple[tuple[str, ...], object]]:
    """Return settings from environment variables, as pairs: (section and keys, value).

    For example, ``CONCLAVE_PRIVACY__SHARES__RELABEL=0.1`` gives the key (privacy, shares, relabel).
    A value is parsed as JSON; it is taken as text if it is no JSON or if the setting is a text.
    Shorter keys come first, so that a whole table given as JSON does not overwrite a single key of
    the table. Names without ``__``, and names of unknown sections, are ignored.
    ``CONCLAVE_LEDGER__URL_FILE`` and ``CONCLAVE_DATA__SOURCE_FILE`` name a file that contains the
    address, in the way in which container platforms mount secrets, and take precedence over the
    address itself.

    Args:
        environ: the names and values of environment variables.
        sections: the names of the sections of a configuration.
        is_text: a function that returns whether the setting with a given key is a plain text.
        folder: the folder to which relative paths are relative.

    Raises:
        ConfigurationError: the name of a section looks misspelt, or the file of a secret cannot be
            read.

    """
    found: list[tuple[tuple[str, ...], object]] = []
    secrets: list[tuple[tuple[str, ...], object]] = []
    for name in sorted(environ):
        if not name.startswith(PREFIX) or DELIMITER not in name:
            continue
        keys = tuple(name.removeprefix(PREFIX).lower().split(DELIMITER))
        secret = _secret_of(keys)
        if secret is not None:
            address = _read_secret(name, folder / environ[name])
            secrets.append((secret, _resolve(secret, address, folder)))
        elif keys[0] in sections:
            text = environ[name]
            value: object = text if is_text(keys) else _json_or_text(text)
            found.append((keys, _resolve(keys, value, folder)))
        else:
            _refuse_misspelt_section(name, keys[0], sections)
    return sorted(found, key=lambda item: len(item[0])) + secrets


def overlay(tables: Tables, changes: list[tuple[tuple[str, ...], object]]) -> Tables:
    """Return a copy of nested settings with some values replaced.

    Raises:
        ConfigurationError: a key leads into a value that is not a table.

    """
    for keys, value in changes:
        tables = _with_value(tables, keys, value, depth=0)
    return tables


def resolve_paths(tables: Tables, *, folder: Path) -> Tables:
    """Return settings whose relative paths are resolved against a folder."""
    changes: list[tuple[tuple[str, ...], object]] = []
    for section, key in PATH_KEYS:
        table = tables.get(section)
        if isinstance(table, dict) and key in table:
            changes.append(((section, key), _resolve((section, key), table[key], folder)))
    return overlay(tables, changes)


def sqlite_address(path: Path) -> str:
    """Return the SQLAlchemy address of an SQLite file, whatever characters its path has."""
    return f"sqlite:///{quote(str(path))}"


def with_placeholders(tables: Tables) -> Tables:
    """Return settings, with placeholders for those that ``conclave simulate`` does not use."""
    defaults: dict[str, Tables] = {
        "release": {"name": "simulation"},
        "data": {
            "source": "simulation.csv",
            "label": "simulated label",
            "features": [{"name": "simulated feature", "kind": "numeric", "bounds": [0, 1]}],
        },
        "hypotheses": {"class": "trees"},
    }
    filled = dict(tables)
    for section, values in defaults.items():
        given = tables.get(section, {})
        filled[section] = {**values, **given} if isinstance(given, dict) else given
    return filled


def _read_text(path: Path) -> str:
    """Read the file as UTF-8, up to a limit."""
    try:
        with path.open("rb") as file:
            body = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise ConfigurationError(str(path), "no such file") from None
    except OSError as error:
        raise ConfigurationError(str(path), f"cannot be read: {error.strerror}") from None
    if len(body) > FILE_BYTES_MAX:
        raise ConfigurationError(str(path), f"is larger than {FILE_BYTES_MAX} bytes")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigurationError(str(path), "is not UTF-8 text") from None


def _secret_of(keys: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the setting that a name of a secret's file stands for; None for other names."""
    secret = (*keys[:-1], keys[-1].removesuffix(FILE_SUFFIX))
    return secret if secret != keys and secret in SECRET_KEYS else None


def _read_secret(name: str, path: Path) -> str:
    """Read the one line of a secret's file; what it holds is never quoted."""
    try:
        with path.open("rb") as file:
            body = file.read(SECRET_BYTES_MAX + 1)
    except (OSError, ValueError):
        raise ConfigurationError(name, f"{str(path)!r} cannot be read") from None
    lines = body.decode("utf-8", "replace").strip().splitlines()
    if len(body) > SECRET_BYTES_MAX or len(lines) != 1 or "\ufffd" in lines[0]:
        raise ConfigurationError(name, f"{str(path)!r} must hold one line of text")
    return lines[0]


def _with_value(tables: Tables, keys: tuple[str, ...], value: object, *, depth: int) -> Tables:
    """Return a copy with the value at ``keys[depth:]``."""
    key = keys[depth]
    if depth == len(keys) - 1:
        return {**tables, key: value}
    inner = tables.get(key, {})
    if not isinstance(inner, dict):
        name = ".".join(keys[: depth + 1])
        raise ConfigurationError(
            name, f"has no key {'.'.join(keys[depth + 1 :])}; give the whole of it as JSON"
        )
    return {**tables, key: _with_value(inner, keys, value, depth=depth + 1)}


def _resolve(keys: tuple[str, ...], value: object, folder: Path) -> object:
    """Make a path absolute, whether plain or in an SQLite address."""
    if keys not in PATH_KEYS or not isinstance(value, str) or not value:
        return value
    address = SQLITE_FILE.match(value)
    if address and not address[2].startswith((":", "file:")):
        # What is written is part of an address already; the folder is not.
        return f"{address[1]}{PurePosixPath(quote(str(folder))) / address[2]}{address[3]}"
    if keys == ("ledger", "url") or "://" in value or value == DEMO_SOURCE:
        return value
    return str(folder / value)


def _json_or_text(text: str) -> object:
    """Decode JSON with exact decimals; what is no JSON is a text."""
    try:
        return json.loads(text, parse_float=_decimal, parse_constant=Decimal)
    except (ValueError, InvalidOperation, RecursionError):
        return text


def _decimal(text: str) -> Decimal:
    """Read a decimal exactly."""
    return Decimal(text)


def _refuse_misspelt_section(name: str, section: str, sections: frozenset[str]) -> None:
    """Refuse a name whose section is nearly one of ours: it was meant for us."""
    extended = [known for known in sorted(sections) if section.startswith(f"{known}_")]
    near = extended or get_close_matches(section, sorted(sections), n=1, cutoff=SECTION_LIKENESS)
    if near:
        raise ConfigurationError(
            name, f"names no section; did you mean {PREFIX}{near[0].upper()}{DELIMITER}...?"
        )


def _one_line(error: Exception) -> str:
    """Return an error's text without line breaks."""
    return " ".join(str(error).split())
