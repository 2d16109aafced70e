"""A release that has ended, or rows not recognised: what is still given, and what is refused."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from app.errors import VerificationError
from app.ledger.entries.fold import BACKUP, RETIRED
from app.privacy.voting.universal import Phase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from app.ledger.entries.fold import LedgerState
    from app.release.release import Release

CLOSED: Final = {
    BACKUP: "this ledger is a backup, and the one that it was made of may have gone on",
    RETIRED: "this ledger is retired",
}
SOURCE: Final = "data.source"
UNKNOWN_ROWS: Final = (
    "holds other rows than those that the ledger's release was opened on, or rows that the "
    "earlier version, which opened it, read otherwise where a column has values of several types"
)
HALTED: Final = "this release has halted for good"
DRAWS_NOTHING: Final = "it casts no vote and draws nothing any more"
REPLAYS: Final = "recorded answers are given again, and new queries are refused"
CLASSIFIER_SERVES: Final = "the published classifier goes on answering"


def refuse_closed(state: LedgerState) -> None:
    """Refuse to draw for a release whose ledger is closed.

    Raises:
        VerificationError: it is.

    """
    if state.closed is not None:
        raise VerificationError(f"{CLOSED[state.closed.reason]}: {DRAWS_NOTHING}")


@contextmanager
def ending_where_closed(release: Release) -> Iterator[None]:
    """Let a halt follow where the ledger was closed before what the block would publish.

    Whoever closes or moves a ledger may do it between a server's last answer and its draw.

    Raises:
        VerificationError: of the block, for another reason.

    """
    try:
        yield
    except VerificationError:
        state = release.ledger.read_state()
        if state.closed is None:
            raise
        release.adopt(state)


def warn_if_ended(release: Release, warn: Callable[[str], None]) -> None:
    """Tell the operator, in a line each, what a release serves that draws nothing any more."""
    halted, closed = release.state.halted, release.state.closed
    serves = CLASSIFIER_SERVES if release.phase is Phase.CLASSIFIER else REPLAYS
    if halted is not None:
        warn(f"{HALTED} ({halted.reason}): {REPLAYS}")
    if closed is not None:
        warn(f"{CLOSED[closed.reason]}: {serves}")
    elif release.has_unknown_rows:
        warn(f"{SOURCE} {UNKNOWN_ROWS}: {DRAWS_NOTHING}; {serves}")
