"""Access to the answering service, which is absent while a release opens and after it stopped."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from app.errors import ContainedError, IntegrityError, OpeningError

if TYPE_CHECKING:
    from app.answering.service import ConclaveService

OPENING: Final = "the release is being opened; try again in a few seconds"
STATES: Final = ("opening", "open", "draining", "stopped")
STOPPED: Final = (
    "the release has stopped because something that must hold does not; nothing more "
    "is answered until its operator has looked at the server's log and restarted it"
)


class ServiceSlot:
    """A container for the server's answering service, which is empty unless the release is open.

    Every method is called on the event loop's thread.
    """

    def __init__(self) -> None:
        """Start without a service: requests other than probes get "try again later"."""
        self._service: ConclaveService | None = None
        self._stopped = False
        self._draining = asyncio.Event()

    @property
    def service(self) -> ConclaveService:
        """The running service of the open release; an error if there is none.

        Raises:
            OpeningError: the release is not open yet.
            ContainedError: the release has stopped; the error's text is fixed.

        """
        if self._stopped:
            raise ContainedError(STOPPED)
        if self._service is None:
            raise OpeningError(OPENING)
        return self._service

    @property
    def state(self) -> str:
        """The state of the server: one of the names in ``STATES``."""
        if self._stopped:
            return "stopped"
        if self.draining:
            return "draining"
        return "opening" if self._service is None else "open"

    @property
    def draining(self) -> bool:
        """Whether the process has been asked to end."""
        return self._draining.is_set()

    def check_open(self) -> None:
        """Raise an error unless the release is open and has not stopped.

        Raises:
            OpeningError: the release is not open yet.
            ContainedError: the release has stopped; the error's text is fixed.

        """
        _ = self.service

    def note_refused(self, count: int) -> None:
        """Count refused requests in the running service, if there is one."""
        if self._service is not None:
            self._service.note_refused(count)

    def fill(self, service: ConclaveService) -> None:
        """Make ``service`` the service that answers requests from now on."""
        self._service = service

    def stop(self, error: IntegrityError | None = None) -> None:
        """Refuse every later request; ``error`` is not kept, because its text may be private."""
        del error
        self._stopped = True

    def drain(self) -> None:
        """Tell streams of answers and of budget events to end; answers in progress are sent."""
        self._draining.set()

    async def drained(self) -> None:
        """Wait until the server is asked to end (until :meth:`drain` is called)."""
        await self._draining.wait()
