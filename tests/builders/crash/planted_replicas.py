"""Faults that are planted in servers that share a ledger, and that their campaign must find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.answering import writer
from app.answering.replicas import forwarding
from app.answering.replicas.other_servers import Abreast
from app.answering.service import ConclaveService
from app.answering.writer import Writer
from app.ledger.database import postgresql

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from app.answering.queries import IdentifiedQueries
    from app.answering.service import Budget
    from app.privacy.voting.query_decision import Phase

SHORT_TURNS = "short turns"
NO_TURNS = "no turns"
ALONE = "alone"
STALE_READS = "stale reads"
STALE_REPLAYS = "stale replays"
SHORT_IDLE_SECONDS = 3


def _take_short_turns() -> None:
    """Let PostgreSQL end a transaction that asks for nothing after 3 seconds; no fault."""
    long = f"'{postgresql.IDLE_SECONDS_MAX}s'"
    _begin_with(lambda begin: begin.replace(long, f"'{SHORT_IDLE_SECONDS}s'"))


def _commit_alone() -> None:
    """Let each server commit its own batches, as behind a pooler of connections; no fault."""
    forwarding.FORWARDED_MAX = 0  # type: ignore[misc]  # a constant elsewhere


def _take_no_turns() -> None:
    """Write without the lock, so that two servers decide on the same state."""
    _begin_with(lambda begin: begin.rpartition(",")[0])


def _begin_with(change: Callable[[str], str]) -> None:
    """Begin transactions otherwise from the moment on that the release is open."""
    start = Writer.start

    def starting(self: Writer) -> None:
        changed = change(postgresql._BEGIN)
        assert changed != postgresql._BEGIN
        postgresql._BEGIN = changed  # type: ignore[misc]  # a constant elsewhere
        start(self)

    Writer.start = starting  # type: ignore[method-assign]  # as above


def _read_stale() -> None:
    """Show the budget as this server knows it."""

    async def stale(self: ConclaveService) -> Budget:
        return self.budget()

    ConclaveService.read_budget = stale  # type: ignore[method-assign]  # the fault


def _replay_stale() -> None:
    """Answer from memory without looking whether another server has switched.

    Nor does it look by itself from time to time, which would hide the fault by chance.
    """

    async def stale(self: Abreast, queries: IdentifiedQueries) -> Phase:
        del queries
        return self._release.phase

    writer.FOLLOW_SECONDS = 3600.0  # type: ignore[misc]  # a constant elsewhere
    Abreast.phase_for = stale  # type: ignore[method-assign]  # the fault


PLANTING: Final[Mapping[str, Callable[[], None]]] = {
    SHORT_TURNS: _take_short_turns,
    NO_TURNS: _take_no_turns,
    ALONE: _commit_alone,
    STALE_READS: _read_stale,
    STALE_REPLAYS: _replay_stale,
}
