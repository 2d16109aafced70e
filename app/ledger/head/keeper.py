"""Notes the head of a ledger after its commits, beside whatever else the process does.

A commit only leaves its head here; a thread of its own writes it, at once after a
pause and otherwise once a second, so that no reply ever waits for this disk.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import structlog

from app.errors import HeadFileError
from app.ledger.head.head_file import noted_head

if TYPE_CHECKING:
    from app.ledger.entries.fold import LedgerState
    from app.ledger.head.head_file import HeadFile, NotedHead

INTERVAL_SECONDS: Final = 1.0
CLOSE_SECONDS_MAX: Final = 1.0
"""How long an end waits for the last note; a disk that hangs keeps no process."""

log = structlog.get_logger("conclave.ledger")


class HeadKeeper:
    """Keeps one head file up to date with one ledger.

    A note that fails is tried again, every second; the first failure of a row is one
    warning, and so is the end of it.  Neither says more than the class of the error,
    and nothing that is served depends on it.
    """

    def __init__(self, head_file: HeadFile, *, interval_seconds: float = INTERVAL_SECONDS) -> None:
        """Start the thread."""
        self._file = head_file
        self._interval_seconds = interval_seconds
        self._newest: NotedHead | None = None
        self._written: NotedHead | None = None
        self._noted_sequence: int | None = None
        self._changed = threading.Event()
        self._closing = threading.Event()
        self._is_failing = False
        self._thread = threading.Thread(target=self._run, name="conclave-head-file", daemon=True)
        self._thread.start()

    @property
    def noted_sequence(self) -> int | None:
        """Number of the entry that the file noted last; None before this process has noted any."""
        return self._noted_sequence

    def committed(self, state: LedgerState) -> None:
        """Take over what is committed, to be noted soon."""
        self._newest = noted_head(state)
        # Set as yet, it is cleared before the thread looks at the newest, and so at this one.
        if not self._changed.is_set():
            self._changed.set()

    def close(self) -> None:
        """Note what is committed, and end the thread; give up on a disk that hangs."""
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
        newest = self._newest
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
