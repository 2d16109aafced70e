"""The head file: the number and hash of a ledger's newest entry, kept outside the database.

If a whole database is restored from an older copy, it looks valid by itself, but charges and
answers are lost. The head file, rewritten after commits, reveals this: a ledger that ends before
the noted entry, or has a different entry in its place, is not the newest. Each note has the random
id of its release, so that one file serves all releases of one database, and no other database.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
import structlog

from app.errors import ConfigurationError, HeadFileError
from app.ledger.database.database import is_shared
from app.ledger.database.locks import DRAW_SUFFIX
from app.ledger.database.sqlite import URL_KEY, database_path
from app.ledger.disk_and_backups import NOTE_SUFFIX
from app.ledger.head.replaced_file import ReplacedFile
from app.ledger.server_lock import LOCK_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from app.ledger.entries.fold import LedgerState

HEAD_SUFFIX: Final = ".head"
OFF: Final = False
"""The setting that keeps no head file."""

NOWHERE: Final = "is no path of a file: it has a zero byte, or links that lead nowhere"
FILE_BYTES_MAX: Final = 2**20
_TAKEN_SUFFIXES: Final = ("", "-wal", "-shm", "-journal", LOCK_SUFFIX, NOTE_SUFFIX)

_Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_Identifier = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Sequence = Annotated[int, msgspec.Meta(ge=1)]


class NotedHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A note, kept outside the database, of one release's newest ledger entry.

    It reveals whether an older copy of the database was restored.

    Attributes:
        release_id: the random id of the release, hexadecimal.
        name: the operator's name for the release.
        sequence: the number of the newest entry.
        hash: the hash of the newest entry.
        answered: the number of new answers given up to this entry.

    """

    release_id: _Identifier
    name: str
    sequence: _Sequence
    hash: _Hash
    answered: _Count


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    format: Literal["conclave-head-file"]
    version: Literal[1]
    releases: list[NotedHead]


def noted_head(state: LedgerState) -> NotedHead | None:
    """Return the note of a ledger's newest entry; None before its release is open.

    The note is in a file outside the database, and reveals whether an older copy of the database
    was restored.
    """
    if state.release is None:
        return None
    return NotedHead(
        release_id=state.release.release_id,
        name=state.release.name,
        sequence=state.head.sequence,
        hash=state.head.hash,
        answered=state.answered,
    )


def head_file_of(url: str, setting: Path | Literal[False] | None) -> HeadFile | None:
    """Return the file outside the database in which a ledger's newest entry is noted.

    Args:
        url: the address of the ledger.
        setting: the setting ``ledger.head_file``: a path, or False for no file; None for a file
            next to the database's file, or for no file if the database is on a server.

    Raises:
        HeadFileError: the ledger needs the path for its own files, or the path cannot exist.
        ConfigurationError: the address is malformed, or leads to no database.

    """
    if setting is False:
        return None
    if is_shared(url):
        return None if setting is None else HeadFile(_resolved(setting, HeadFileError(NOWHERE)))
    database = _resolved(database_path(url), ConfigurationError(URL_KEY, NOWHERE))
    if setting is None:
        return HeadFile(database.with_name(database.name + HEAD_SUFFIX))
    path = _resolved(setting, HeadFileError(NOWHERE))
    taken = {database.with_name(database.name + suffix) for suffix in _TAKEN_SUFFIXES}
    turns = str(database.with_name(database.name + DRAW_SUFFIX))
    if path in taken or str(path).startswith(turns):
        raise HeadFileError(f"{path} is a file of the ledger itself; name another")
    return HeadFile(path)


class HeadFile:
    """A file that notes newest ledger entries, read and written atomically by any process.

    The notes reveal whether an older copy of the database was restored.
    """

    def __init__(self, path: Path) -> None:
        """Store the path of the file, which need not exist; its folder must."""
        self.path: Final = path
        self._file: Final = ReplacedFile(path)

    def read(self) -> dict[str, NotedHead]:
        """Return the notes of newest ledger entries by release id; empty if there is no file.

        Raises:
            HeadFileError: the file's folder does not exist, or the file cannot be read or is not a
                head file.

        """
        try:
            with self.path.open("rb") as file:
                body = file.read(FILE_BYTES_MAX + 1)
        except FileNotFoundError:
            if not self.path.parent.is_dir():
                raise HeadFileError(
                    f"there is no folder {self.path.parent}; mount or create it"
                ) from None
            return {}
        except OSError as error:
            raise HeadFileError(f"{self.path} cannot be read: {_reason(error)}") from None
        return self._decoded(body)

    def note(self, head: NotedHead) -> NotedHead:
        """Write one release's newest entry to the file, keeping the notes of other releases.

        If another process has noted a newer entry already, that note stays.

        Returns:
            The note of the release that is in the file now.

        Raises:
            HeadFileError: the existing file is not a head file, or notes another hash for the entry
                of this number; it is not changed.
            OSError: the file cannot be written; the previous notes stay.

        """
        with self._file.locked() as folder:
            noted = self.read()
            before = noted.get(head.release_id)
            if before is not None and before.sequence >= head.sequence:
                if before.sequence == head.sequence and before.hash != head.hash:
                    raise HeadFileError(f"{self.path} notes another history of this release")
                return before
            self._file.replace(_encoded(noted | {head.release_id: head}), folder)
            return head

    def _decoded(self, body: bytes) -> dict[str, NotedHead]:
        try:
            document = msgspec.json.decode(body[:FILE_BYTES_MAX], type=_Document)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise HeadFileError(
                f"{self.path} is no head file of this version, or is damaged; restore it, or "
                "name another path"
            ) from None
        return {head.release_id: head for head in document.releases}


def _encoded(noted: Mapping[str, NotedHead]) -> bytes:
    """Return the whole file with these notes."""
    document = _Document("conclave-head-file", 1, list(noted.values()))
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _resolved(path: Path, refusal: ConfigurationError) -> Path:
    """Return a path with its links followed, or raise the refusal of one that leads nowhere."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        raise refusal from None


def _reason(error: OSError) -> str:
    return error.strerror or "the system refuses"


INTERVAL_SECONDS: Final = 1.0
CLOSE_SECONDS_MAX: Final = 1.0
"""How long an end waits for the last note; a disk that hangs keeps no process."""

log = structlog.get_logger("conclave.ledger")


class HeadKeeper:
    """A thread that notes a ledger's newest entry in a file, after each commit.

    A commit only hands its newest entry to the thread. The thread writes the entry at once if it
    has written none for a second, and otherwise once a second. So no reply waits for the disk on
    which the head file is.

    A note that fails is tried again every second. The first of a series of failures logs a warning,
    and so does the end of the series. The warnings contain only the class of the error, and no
    answer depends on the notes.
    """

    def __init__(self, head_file: HeadFile, *, interval_seconds: float = INTERVAL_SECONDS) -> None:
        """Start the thread that writes the head file."""
        self._file = head_file
        self._interval_seconds = interval_seconds
        self._newest: LedgerState | None = None
        self._written: NotedHead | None = None
        self._noted_sequence: int | None = None
        self._changed = threading.Event()
        self._closing = threading.Event()
        self._is_failing = False
        self._thread = threading.Thread(target=self._run, name="conclave-head-file", daemon=True)
        self._thread.start()

    @property
    def noted_sequence(self) -> int | None:
        """The number of the ledger entry that was noted last; None before the first note."""
        return self._noted_sequence

    def committed(self, state: LedgerState) -> None:
        """Accept a newly committed ledger entry, to be noted in the file soon."""
        self._newest = state
        # Set as yet, it is cleared before the thread looks at the newest, and so at this one.
        if not self._changed.is_set():
            self._changed.set()

    def close(self) -> None:
        """Write the last note and end the thread; give up on a disk that hangs."""
        self._closing.set()
        self._changed.set()
        self._thread.join(CLOSE_SECONDS_MAX)

    def _run(self) -> None:
        while not self._closing.is_set():
            self._changed.wait()
            self._changed.clear()
            self._write()
            self._closing.wait(self._interval_seconds)
        self._write()

    def _write(self) -> None:
        newest = None if self._newest is None else noted_head(self._newest)
        if newest is None or newest == self._written:
            return
        try:
            self._noted_sequence = self._file.note(newest).sequence
        except (OSError, HeadFileError) as error:
            self._changed.set()  # try again after the pause
            if not self._is_failing:
                log.warning("head_file_not_written", error=type(error).__name__)
            self._is_failing = True
            return
        self._written = newest
        if self._is_failing:
            log.warning("head_file_written_again", entry_number=newest.sequence)
        self._is_failing = False
