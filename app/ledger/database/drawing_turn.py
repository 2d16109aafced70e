"""One process at a time draws what a release publishes once, where its ledger is a file.

A server, ``conclave learn`` and ``conclave statistics`` may want to draw at the same time.
Of two draws the first to finish would be published, chosen by how long it took, and that
may depend on what comes out: one draw is what the proofs are of.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from app.errors import LedgerUnavailableError
from app.ledger.database.locks import lock_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DRAW_SUFFIX: Final = ".draw-"
ANOTHER_DRAWS: Final = "another process draws what is published; try again"
NO_TURN: Final = "the file of the turn to draw cannot be locked; nothing was drawn"


@contextmanager
def turn_to_draw(path: Path, release_number: int) -> Iterator[Callable[[], bool]]:
    """Be the one process that draws; the turn ends with the block, or with the process.

    Args:
        path: of the database's file.
        release_number: of the release.

    Yields:
        What tells whether the turn is still this process's, which it is.

    Raises:
        LedgerUnavailableError: another process draws.

    """
    path = path.resolve()
    try:
        lock = lock_file(path.with_name(f"{path.name}{DRAW_SUFFIX}{release_number}"))
    except BlockingIOError:
        raise LedgerUnavailableError(ANOTHER_DRAWS) from None
    except OSError:
        raise LedgerUnavailableError(NO_TURN) from None
    try:
        yield lambda: True
    finally:
        lock.release()
