"""A reader who types what a page says, in a folder of their own, against real servers."""

from __future__ import annotations

import logging
import re
import shlex
import subprocess
from typing import TYPE_CHECKING, Final

import structlog

from app import cli
from app.cli.background_server import BackgroundServer
from app.release.progress import no_progress
from app.settings.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from _pytest.capture import CaptureResult

PRINTED_ADDRESS: Final = "http://127.0.0.1:8000"
SERVE: Final = re.compile(r"^((?:[A-Z_]+=\S+ )*)conclave serve --config (\S+)$")
REDIRECTED: Final = re.compile(r"^(conclave .*) > (\S+)$")
FREE_PORT: Final = {"CONCLAVE_SERVER__PORT": "0"}


class Reader:
    """Follows commands one by one; a server that one starts runs until the end.

    ``conclave`` runs in this process, where its modules are imported already; everything
    else, curl above all, runs in a shell.

    Attributes:
        folder: where everything is typed, the working directory of this process too.
        variables: what the shell knows besides.
        told: what each ``conclave`` command said besides, on standard error.

    """

    def __init__(self, folder: Path, heard: Callable[[], CaptureResult[str]]) -> None:
        """Begin in a folder; ``heard`` returns what was printed since it was asked last."""
        self.folder = folder
        self.variables: dict[str, str] = {}
        self.told: dict[str, str] = {}
        self._heard = heard
        self._servers: list[BackgroundServer] = []

    def serve(self, config: str, **environ: str) -> str:
        """Start a server on a free port and return its address.

        It logs errors alone: its lines could come between what a command in this process prints.
        """
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
        settings = load_settings(self.folder / config, {**FREE_PORT, **environ})
        server = BackgroundServer(settings)
        self._servers.append(server)
        server.start(no_progress)
        return server.address

    def follow(self, command: str) -> str:
        """Run one command, which must end well, and return what it printed."""
        started, redirected = SERVE.match(command), REDIRECTED.match(command)
        if started is not None:
            self.serve(started[2], **dict(each.split("=", 1) for each in started[1].split()))
            return ""
        if self._servers:
            command = command.replace(PRINTED_ADDRESS, self._servers[-1].address)
        if redirected is not None:
            printed = self.follow(redirected[1])
            (self.folder / redirected[2]).write_text(printed, encoding="utf-8")
            return ""
        return self._run(command) if command.startswith("conclave ") else self._type(command)

    def _run(self, command: str) -> str:
        """Run ``conclave`` here."""
        self._heard()
        assert cli.run(shlex.split(command)[1:]) == 0, (command, self._heard())
        heard = self._heard()
        self.told[command] = heard.err
        return heard.out

    def _type(self, command: str) -> str:
        """Run anything else in a shell."""
        done = subprocess.run(
            ["bash", "-c", f"set -eo pipefail; {command}"],
            cwd=self.folder,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", **self.variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def leave(self) -> None:
        """End every server that was started."""
        for server in self._servers:
            server.stop()
