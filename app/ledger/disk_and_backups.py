"""The state of the machine that holds the ledger: newest backup, and free disk space.

These facts are for the operator only. A backup leaves a note next to an SQLite database; the later
fate of the backup is not known here. For a database on a server neither fact is known, since
backups and disks are that server's own.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from app.ledger.database.database import is_shared
from app.ledger.database.sqlite import database_path
from app.ledger.head.replaced_file import ReplacedFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NOTE_SUFFIX: Final = ".backup"
NOTE_BYTES_MAX: Final = 2**20
GRAIN_BYTES: Final = 2**20
"""Room is told in whole mebibytes: the length of private state is nobody's business."""

_Count = Annotated[int, msgspec.Meta(ge=0)]


class _Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole note: when the newest backup was made, and the last entry of each release."""

    format: Literal["conclave-backup-note"]
    version: Literal[1]
    made_at: _Count
    sequences: dict[str, _Count]


@dataclass(frozen=True, slots=True)
class NewestBackup:
    """The newest backup of a release that was made on this machine.

    Attributes:
        made_at: the time of the backup, in whole seconds since 1970.
        sequence: the number of the newest entry in the backup.

    """

    made_at: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Storage:
    """Known facts about the machine that holds the ledger; None for unknown ones.

    Attributes:
        backup: the newest backup; None if none is known.
        bytes_free: the free space on the database's disk, rounded down to mebibytes; None if
            unknown.

    """

    backup: NewestBackup | None
    bytes_free: int | None


def read_storage(file: Path | None, release_id: str) -> Storage:
    """Return present facts about the machine that holds the ledger; None for unknown ones.

    Args:
        file: the path of the database's file; None if the database is on a server.
        release_id: the random id of the release, hexadecimal.

    """
    if file is None:
        return Storage(None, None)
    return Storage(_newest_backup(file, release_id), _bytes_free(file))


def note_backup(url: str, sequences: Mapping[str, int]) -> None:
    """Record the time of a backup next to an SQLite database; do nothing for other databases.

    Args:
        url: the address of the ledger.
        sequences: for each release, by its id, the number of the newest entry in the backup.

    Raises:
        OSError: the note cannot be written; the previous note stays.

    """
    if is_shared(url):
        return
    file = ReplacedFile(_note_of(database_path(url).resolve()))
    note = _Note("conclave-backup-note", 1, int(time.time()), dict(sequences))
    with file.locked() as folder:
        file.replace(msgspec.json.encode(note), folder)


def _note_of(file: Path) -> Path:
    return file.with_name(file.name + NOTE_SUFFIX)


def _newest_backup(file: Path, release_id: str) -> NewestBackup | None:
    try:
        with _note_of(file).open("rb") as opened:
            note = msgspec.json.decode(opened.read(NOTE_BYTES_MAX), type=_Note)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    sequence = note.sequences.get(release_id)
    return None if sequence is None else NewestBackup(note.made_at, sequence)


def _bytes_free(file: Path) -> int | None:
    try:
        free = shutil.disk_usage(file.parent).free
    except OSError:
        return None
    return free // GRAIN_BYTES * GRAIN_BYTES
