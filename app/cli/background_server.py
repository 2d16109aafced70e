"""A real server on a thread of this process, which the demo queries over HTTP."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from app.cli.web_server import END_SECONDS, WebServer, address_of, listen
from app.errors import ConclaveError, InvariantError, OpeningError
from app.main import Server

if TYPE_CHECKING:
    from app.release.progress import Progress
    from app.settings.settings import Settings

POLL_SECONDS: Final = 0.05


class BackgroundServer:
    """The demo's Conclave server, which runs on a thread of this process until it is stopped."""

    def __init__(self, settings: Settings) -> None:
        """Bind a port; if the default port is taken and none was configured, bind a free one."""
        self._settings = settings
        self._listening = listen(
            settings.server.host,
            settings.server.port,
            any_free=not settings.server.port_is_set,
        )
        self.address = address_of(self._listening)
        self._web_server: WebServer | None = None
        self._thread: threading.Thread | None = None

    def start(self, progress: Progress) -> None:
        """Start the demo's server, and wait until the release is open.

        Args:
            progress: receives the stages of the opening.

        Raises:
            ConclaveError: the reason why the release could not open.

        """
        server = Server(self._settings, progress=progress)
        self._web_server = WebServer(server.application(), server, self._listening)
        self._thread = threading.Thread(target=self._serve, name="conclave-server", daemon=True)
        self._thread.start()
        while not _is_open(server):
            if server.failure is not None:
                raise server.failure
            if not self._thread.is_alive():
                raise InvariantError("the server ended while its release opened")
            time.sleep(POLL_SECONDS)

    def _serve(self) -> None:
        if self._web_server is not None:
            try:
                self._web_server.serve_until_stopped()
            except ConclaveError:
                return  # start() tells of it

    def wait_for_interrupt(self) -> None:
        """Keep the demo's server running until Ctrl-C or SIGTERM."""
        try:
            while self._thread is not None and self._thread.is_alive():
                time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            return

    def stop(self) -> None:
        """End the demo's server and its thread; a thread that hangs is abandoned."""
        if self._web_server is not None and self._thread is not None:
            self._web_server.stop()
            self._thread.join(END_SECONDS)


def _is_open(server: Server) -> bool:
    try:
        server.slot.check_open()
    except OpeningError:
        return False
    return True
