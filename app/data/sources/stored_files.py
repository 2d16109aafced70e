"""The files of a source on a local disk or in an object store.

An object store is read through the library fsspec, with a further library for each kind of store.
That library finds its credentials in the environment; an address never contains them. The message
of a store's error may repeat a key or a name, so only the kind of the error is passed on.
"""

from __future__ import annotations

import glob
import importlib
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Protocol

from app.data.sources.row_blocks import SOURCE
from app.errors import ConfigurationError, DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SEPARATOR: Final = "/"
SCHEME_END: Final = "://"
WILDCARDS: Final = "*?["
BAD_PATH: Final = "bad path"
GONE: Final = "is gone since the parts were listed"
CHANGED: Final = "has changed since the parts were listed"
IN_ADDRESS: Final = "holds a user or a password: give credentials in the environment"
# Of a store: what says that an object is another one than it was.
VERSION_KEYS: Final = ("ETag", "etag", "generation", "LastModified", "last_modified", "mtime")
READ_AHEAD_BYTES: Final = 8 * 2**20


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a source, with its size and version at the time when it was listed.

    Attributes:
        path: the path of the file, or the address of the object.
        size: the size in bytes.
        version: a tag that changes when the file changes.

    """

    path: str
    size: int
    version: str


@dataclass(frozen=True, slots=True)
class StoreKind:
    """The Python library for one kind of object store.

    Attributes:
        module: the module that fsspec needs for this kind.
        extra: the optional dependency of this project that installs the module.
        errors: the library's own error classes, as ``module:class``.

    """

    module: str
    extra: str
    errors: tuple[str, ...]


_AZURE: Final = StoreKind("adlfs", "abfs", ("azure.core.exceptions:AzureError",))
_GOOGLE: Final = StoreKind(
    "gcsfs", "gs", ("google.auth.exceptions:GoogleAuthError", "aiohttp:ClientError")
)
STORES: Final[Mapping[str, StoreKind]] = {
    "s3": StoreKind(
        "s3fs",
        "s3",
        (
            "botocore.exceptions:BotoCoreError",
            "botocore.exceptions:ClientError",
            "aiohttp:ClientError",
        ),
    ),
    "gs": _GOOGLE,
    "abfs": _AZURE,
    "abfss": _AZURE,
}


class Storage(Protocol):
    """The interface of a file storage: the local disk or an object store."""

    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder."""
        ...

    def file(self, path: str) -> StoredFile:
        """Return the file at a path, with its present size and version."""
        ...

    def below(self, folder: str) -> dict[str, StoredFile]:
        """Return every file in a folder and its subfolders, by its path relative to the folder."""
        ...

    def matching(self, pattern: str) -> list[StoredFile]:
        """Return every file whose path matches a pattern; ``**`` means any number of folders."""
        ...

    def open(self, path: str, *, in_order: bool) -> IO[bytes]:
        """Open a file for reading.

        Args:
            path: the path of the file.
            in_order: whether the file is read from start to end.

        """
        ...


def store_scheme(source: str) -> str | None:
    """Return the scheme of an object store's address, such as s3; None for any other source."""
    scheme, found, _ = source.partition(SCHEME_END)
    return scheme if found and scheme in STORES else None


def is_database(source: str) -> bool:
    """Return whether a source is an SQLAlchemy URL (the address of a database)."""
    return SCHEME_END in source and store_scheme(source) is None


def check_address(source: str) -> None:
    """Refuse the address of an object store that contains credentials.

    Raises:
        ConfigurationError: the address contains a user name or a password.

    """
    scheme = store_scheme(source)
    user, found, _ = source.partition(SCHEME_END)[2].partition(SEPARATOR)[0].rpartition("@")
    # In Azure's addresses the container stands before the account.
    if scheme and found and (":" in user or STORES[scheme] is not _AZURE):
        raise ConfigurationError(SOURCE, IN_ADDRESS)


def has_wildcard(source: str) -> bool:
    """Return whether a source is a path pattern with wildcards, and not an existing file."""
    if not any(mark in source for mark in WILDCARDS):
        return False
    return store_scheme(source) is not None or not Path(source).exists()


def storage_of(source: str) -> Storage:
    """Return the file storage of a source: the local disk or an object store.

    Raises:
        DataError: the library of the object store is not installed.

    """
    scheme = store_scheme(source)
    return LocalStorage() if scheme is None else object_storage(scheme, os.getpid())


class FileSystem(Protocol):
    """The part of the fsspec library's file system interface that Conclave uses."""

    def isdir(self, path: str) -> bool:
        """Return whether there are files below a path of the object store."""
        ...

    def info(self, path: str) -> Mapping[str, object]:
        """Return the object store's metadata of a file."""
        ...

    def find(self, path: str, *, detail: bool) -> Mapping[str, Mapping[str, object]]:
        """Return the object store's metadata of every file below a path, by path."""
        ...

    def glob(self, path: str, *, detail: bool) -> Mapping[str, Mapping[str, object]]:
        """Return the object store's metadata of every file that matches a pattern."""
        ...

    def open(self, path: str, mode: str, *, block_size: int, cache_type: str) -> IO[bytes]:
        """Return an open file of the object store."""
        ...


class LocalStorage:
    """File storage on the disks of this machine."""

    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder."""
        return Path(path).is_dir()

    def file(self, path: str) -> StoredFile:
        """Return the file at a path, with its present size and version."""
        found = Path(path).stat()
        return StoredFile(path, found.st_size, str(found.st_mtime_ns))

    def below(self, folder: str) -> dict[str, StoredFile]:
        """Return every file in a folder and its subfolders, by its path relative to the folder.

        Links to folders are followed.
        """
        found: dict[str, StoredFile] = {}
        for entry in Path(folder).iterdir():
            if entry.is_dir():
                within = self.below(str(entry))
                found |= {f"{entry.name}{SEPARATOR}{name}": each for name, each in within.items()}
            else:
                found[entry.name] = self.file(str(entry))
        return found

    def matching(self, pattern: str) -> list[StoredFile]:
        """Return every file whose path matches a pattern."""
        paths = glob.glob(pattern, recursive=True)  # noqa: PTH207 -- a whole path is the pattern
        return [self.file(path) for path in paths if not self.is_folder(path)]

    def open(self, path: str, *, in_order: bool) -> IO[bytes]:
        """Return an open file; ``in_order`` has no effect on a local disk."""
        del in_order
        return Path(path).open("rb")


@dataclass(frozen=True, slots=True)
class ObjectStorage:
    """File storage in an object store such as S3.

    Attributes:
        scheme: the scheme of the store's addresses, for example ``s3``.
        system: the file system of fsspec for the store.

    """

    scheme: str
    system: FileSystem = field(repr=False)

    def is_folder(self, path: str) -> bool:
        """Return whether there are objects whose address begins with the path of a folder."""
        return bool(self.system.isdir(path))

    def file(self, path: str) -> StoredFile:
        """Return the object at an address, with its present size and version."""
        return self._stored(self.system.info(path))

    def below(self, folder: str) -> dict[str, StoredFile]:
        """Return every object below a folder, by its path relative to the folder."""
        # A store gives paths without a scheme; that of Azure leaves out the account too.
        root = folder.partition(SCHEME_END)[2].rstrip(SEPARATOR)
        container, _, within = root.partition(SEPARATOR)
        root = SEPARATOR.join([container.partition("@")[0], *([within] if within else []), ""])
        found = self.system.find(folder, detail=True)
        return {path.removeprefix(root): self._stored(info) for path, info in found.items()}

    def matching(self, pattern: str) -> list[StoredFile]:
        """Return every object whose path matches a pattern."""
        found = self.system.glob(pattern, detail=True)
        return [self._stored(info) for info in found.values() if info["type"] == "file"]

    def open(self, path: str, *, in_order: bool) -> IO[bytes]:
        """Open an object for reading.

        Args:
            path: the address of the object.
            in_order: whether the object is read from start to end; if so, it is fetched ahead.

        """
        cache = "readahead" if in_order else "none"
        return self.system.open(path, "rb", block_size=READ_AHEAD_BYTES, cache_type=cache)

    def _stored(self, info: Mapping[str, object]) -> StoredFile:
        """Return what a store says of an object."""
        tags = (info[key] for key in VERSION_KEYS if info.get(key))
        version = str(next(tags, "")).strip('"')
        size = int(str(info["size"]))
        return StoredFile(f"{self.scheme}{SCHEME_END}{info['name']}", size, version)


@lru_cache
def object_storage(scheme: str, process: int) -> ObjectStorage:
    """Return the object store of an address scheme, with credentials from the environment.

    Args:
        scheme: the scheme, a key of ``STORES``, for example ``s3``.
        process: the number of this process, since two processes must not share a connection.

    Raises:
        DataError: the library of the object store is not installed.

    """
    del process
    kind = STORES[scheme]
    try:
        importlib.import_module(kind.module)
        fsspec = importlib.import_module("fsspec")
    except ImportError:
        problem = f"{scheme}:// needs {kind.module}: pip install 'conclave[{kind.extra}]'"
        raise DataError(SOURCE, problem) from None
    # What was listed once is asked for again: a part may be gone meanwhile.
    fresh = {"skip_instance_cache": True, "use_listings_cache": False}
    return ObjectStorage(scheme, fsspec.filesystem(scheme, **fresh))


@contextmanager
def reaching(source: str, path: str, *, gone: str) -> Iterator[None]:
    """Turn an object store's errors into Conclave's own error, without the store's text.

    Args:
        source: the path or address that is read.
        path: the name of the file or source in the message.
        gone: the message for a file that does not exist.

    Raises:
        DataError: the file cannot be read.

    """
    try:
        yield
    except FileNotFoundError:
        raise DataError(SOURCE, gone) from None
    except store_errors(source) as error:
        if store_scheme(source) is None:
            raise _unreadable(path, error) from None
        raise DataError(SOURCE, f"{path}: {store_problem(error)}") from None


def store_problem(error: Exception) -> str:
    """Return a description of an object store's error, without the store's own text."""
    kind = type(error).__name__
    if isinstance(error, PermissionError):
        return "the store refuses access: check the credentials in the environment"
    if isinstance(error, FileNotFoundError):
        return GONE
    if "Credentials" in kind:
        return "no credentials were found in the environment"
    if "Expired" in kind:
        return CHANGED
    return f"the store does not answer, or breaks off ({kind})"


def _unreadable(path: str, error: Exception) -> DataError:
    """Return the refusal of a local file, in the words of the system."""
    problem = getattr(error, "strerror", None) or BAD_PATH
    return DataError(SOURCE, f"{path} cannot be read: {problem}")


def store_errors(source: str) -> tuple[type[Exception], ...]:
    """Return the classes of all errors that may be raised when a source is read."""
    scheme = store_scheme(source)
    found: list[type[Exception]] = [OSError, ValueError]
    for name in () if scheme is None else STORES[scheme].errors:
        module, _, error = name.partition(":")
        with suppress(ImportError, AttributeError):
            found.append(getattr(importlib.import_module(module), error))
    return tuple(found)
