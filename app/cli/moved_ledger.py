"""The head files of a ledger that ``conclave ledger copy`` moves."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from app.errors import HeadFileError

if TYPE_CHECKING:
    from pathlib import Path

    from app.ledger.head.head_file import HeadFile


def check_heads(source: str, target: str, head_file: Path | None) -> None:
    """Refuse to move a ledger that is older than was noted of it, here or at its new place.

    Args:
        source: the ledger's address.
        target: the one that it is to have.
        head_file: where its head is noted; None for the file beside it, if it is one.

    Raises:
        HeadFileError: entries that were noted are missing.
        ConfigurationError: there is no ledger to move.

    """
    from app.ledger.head.head_file import head_file_of
    from app.ledger.head.rollback import check_head_file
    from app.ledger.ledger import open_ledger
    from app.ledger.moving import FROM, TO, told_as

    with told_as(FROM):
        noted_here = head_file_of(source, head_file)
    with told_as(TO):
        noted_there = head_file_of(target, None)
    with told_as(FROM), closing(open_ledger(source, create=False)) as ledger:
        for noted in (noted_here, noted_there):
            if noted is not None:
                check_head_file(ledger, noted)


def note_heads(source: str, target: str, head_file: Path | None) -> list[str]:
    """Note where both ledgers end; return what could not be noted, which undoes nothing."""
    from app.ledger.head.head_file import head_file_of

    return [
        *_note(source, head_file_of(source, head_file)),
        *_note(target, head_file_of(target, None)),
    ]


def _note(url: str, head_file: HeadFile | None) -> list[str]:
    """Note the head of every release of a ledger."""
    from app.ledger.head.head_file import noted_head
    from app.ledger.ledger import open_ledger

    if head_file is None:
        return []
    try:
        with closing(open_ledger(url, create=False)) as first, first.snapshot():
            names = [opened.name for opened in first.openings]
        for name in names:
            with closing(open_ledger(url, create=False, name=name)) as ledger:
                head = noted_head(ledger.read_state())
            if head is not None:
                head_file.note(head)
    except (OSError, HeadFileError) as error:
        problem = error.strerror if isinstance(error, OSError) else str(error)
        return [f"{head_file.path} is not written: {problem}"]
    return []
