"""Coordination with other servers: the ledger is read again before its state is used.

If several servers share a ledger, each keeps the release's state (counts of answers, and the phase)
in memory, and another server may have changed this state in the ledger.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app.errors import IntegrityError, LedgerUnavailableError, UnavailableError
from app.ledger.database.driver import UNAVAILABLE

if TYPE_CHECKING:
    from app.answering.answer_query import QueryAnswerer
    from app.answering.queries import IdentifiedQueries
    from app.answering.writer import Writer
    from app.ledger.entries.fold import LedgerState
    from app.privacy.voting.query_decision import Phase


class Abreast:
    """A reader of the committed state of a release whose ledger several servers share.

    A caller gets the state at the time of its call, or a later state, so that a client that got an
    answer from one server finds this answer counted by every other server. All calls during a read
    of the database share the next read.
    """

    def __init__(self, answerer: QueryAnswerer, writer: Writer) -> None:
        """Read the ledger of a release; stop ``writer`` if the ledger was altered."""
        self._release = answerer.release
        self._replays = answerer.replays
        self._writer = writer
        self._under_way: asyncio.Task[LedgerState] | None = None
        self._next: asyncio.Task[LedgerState] | None = None

    async def state(self) -> LedgerState:
        """Return the newest committed state, from memory if no other server shares the ledger.

        Raises:
            LedgerUnavailableError: the ledger cannot be read.
            IntegrityError: the ledger was altered, and the release has stopped.

        """
        if not self._release.is_shared:
            return self._release.state
        try:
            found = await self._read()
        except IntegrityError as error:
            self._writer.stop(error)
            raise
        # This server may have committed since the moment that was read.
        newest = self._release.state
        return newest if newest.head.sequence > found.head.sequence else found

    async def phase_for(self, queries: IdentifiedQueries) -> Phase | UnavailableError:
        """Return the phase (ensemble or classifier) in which the release answers these queries.

        Once another server has switched to the classifier, the recorded answers in this server's
        memory are no longer valid. The ledger is therefore read before such an answer is given. For
        all other queries the writer reads the ledger. The method returns the error, and does not
        raise it, if the ledger cannot be read.

        Raises:
            IntegrityError: the ledger was altered, and the release has stopped.

        """
        replays, release = self._replays, self._release
        if not (release.is_shared and release.may_switch):
            return release.phase
        if replays.know_any(queries.key_digests, queries.vector_digests):
            try:
                await self._note_switch()
            except UnavailableError as unavailable:
                return unavailable
        return release.phase

    async def _note_switch(self) -> None:
        """Adopt the switch of another server, if there was one."""
        if self._release.phase_at(await self.state()) is self._release.phase:
            return
        await self._writer.catch_up()
        if self._release.may_switch:  # and could not be told what follows
            raise LedgerUnavailableError(UNAVAILABLE)

    async def _read(self) -> LedgerState:
        if self._next is None:
            self._next = asyncio.create_task(self._read_after(self._under_way))
            self._next.add_done_callback(_look_at)
        return await asyncio.shield(self._next)

    async def _read_after(self, under_way: asyncio.Task[LedgerState] | None) -> LedgerState:
        if under_way is not None:
            await asyncio.wait({under_way})
        self._under_way, self._next = self._next, None
        return await asyncio.to_thread(self._release.ledger.read_state)


def _look_at(task: asyncio.Task[LedgerState]) -> None:
    """Take note of an error, whose callers may all have hung up."""
    if not task.cancelled():
        task.exception()
