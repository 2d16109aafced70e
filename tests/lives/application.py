"""The one door to the application: whatever moves in ``app/``, only this file follows.

Everything else in this folder knows the application from outside: its configuration, its
ASGI messages, its tables, its command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.cli import application as commands
from app.cli import run
from app.cli.logs import configure_logs, level_of
from app.cli.web_server import WebServer, listen
from app.errors import ConclaveError, OpeningError
from app.estimator import PrivateQueryClassifier
from app.main import Server
from app.noise import system as noise_door
from app.settings.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fastapi import FastAPI

__all__ = [
    "ConclaveError",
    "Opened",
    "PrivateQueryClassifier",
    "commands",
    "noise_door",
    "run",
    "serve_on_a_socket",
]


class Opened:
    """One server without its web server.

    Attributes:
        application: what a web server calls.

    """

    def __init__(
        self,
        config: Path,
        environ: dict[str, str],
        warn: Callable[[str], None],
        *,
        even_if_hopeless: bool = False,
    ) -> None:
        """Read the configuration as ``conclave serve`` does.

        Raises:
            ConclaveError: why nothing can be served.

        """
        self._server = _server(config, environ, warn)
        self._server.even_if_hopeless = even_if_hopeless
        self.application: FastAPI = self._server.application()

    def is_open(self) -> bool:
        """Return whether the release has opened.

        Raises:
            ConclaveError: why it cannot be opened.

        """
        if self._server.failure is not None:
            raise self._server.failure
        try:
            self._server.slot.check_open()
        except OpeningError:
            return False
        return True

    def lifespan(self) -> Any:
        """Return the context in which the application serves."""
        return self.application.router.lifespan_context(self.application)


def serve_on_a_socket(
    config: Path, environ: dict[str, str], announce: Callable[[int], None]
) -> None:
    """Serve by the web server until a signal; ``announce`` gets the port once it is open."""
    server = _server(config, environ, lambda _: None)
    listening = listen("127.0.0.1", 0)
    server.on_open = lambda: announce(listening.getsockname()[1])
    WebServer(server.application(), server, listening).serve_until_stopped()


def _server(config: Path, environ: dict[str, str], warn: Callable[[str], None]) -> Server:
    settings = load_settings(config, environ)
    logs = settings.logs
    configure_logs(level=level_of(logs.level), console=logs.format == "console")
    return Server(settings, warn=warn)
