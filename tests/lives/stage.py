"""Where a life is lived: a folder, a ledger, a server or none, and all that comes out."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from tests.lives.application import ConclaveError, Opened, run
from tests.lives.exchange import JSON, Request, reply_to
from tests.lives.ledgers import file_bytes, kinds, ledger_bytes
from tests.lives.masks import masked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OPENING_SECONDS_MAX = 300.0
SETTLING_SECONDS_MAX = 120.0
PAUSE_SECONDS = 0.002
SENT_SHOWN_MAX = 160
LINE_FOR_PEOPLE = re.compile(r"\S+ \[\w+ *\] (\w+)")


@dataclass
class Stage:
    """What one life has, and what came out of it so far.

    Attributes:
        folder: with its configuration and its rows.
        url: address of its ledger.
        environ: settings beside the configuration.
        items: what came out, each by a name that says of what.

    """

    folder: Path
    url: str
    environ: dict[str, str] = field(default_factory=dict)
    items: list[tuple[str, bytes]] = field(default_factory=list)

    @property
    def config(self) -> Path:
        """The configuration."""
        return self.folder / "conclave.toml"

    def keep(self, name: str, said: bytes) -> None:
        """Keep what came out, without what is this run's alone."""
        own = {str(self.folder): "<folder>", self.url: "<ledger>"}
        database = self.url.rpartition("/")[2]
        if not self.url.startswith("sqlite"):
            own[database] = "<database>"
        self.items.append((masked(name.encode(), own).decode(), masked(said, own)))

    # -- without a server ------------------------------------------------------

    def command(self, *arguments: str, environ: dict[str, str] | None = None) -> bytes:
        """Run a command, keep its output and exit code, and return what it printed."""
        out, told = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
        given = {**os.environ, **self.environ, **(environ or {}), "COLUMNS": "100"}
        with patch.dict(os.environ, given), redirect_stdout(out), redirect_stderr(told):
            code = run([*arguments])
        out.flush()
        printed = out.buffer.getvalue()
        name = f"conclave {' '.join(arguments)}"
        self.keep(name, b"exit code %d\n%s" % (code, told.getvalue().encode()))
        self.keep(f"{name}: printed", printed)
        return printed

    def configured(self, command: str, *options: str) -> bytes:
        """Run a command on the life's own configuration."""
        return self.command(*command.split(), "--config", str(self.config), *options)

    def keep_ledger(self, moment: str) -> None:
        """Keep every row of the ledger, and the file that notes its head."""
        self.keep(f"ledger {moment}", ledger_bytes(self.url))
        if self.url.startswith("sqlite"):
            self.keep(f"head file {moment}", file_bytes(self.folder / "conclave.db.head"))

    # -- with one --------------------------------------------------------------

    @contextmanager
    def serving(self, moment: str, *, even_if_hopeless: bool = False) -> Iterator[Serving]:
        """Serve until the block ends; keep what was logged, event by event."""
        log, loop = io.StringIO(), asyncio.new_event_loop()
        warnings: list[str] = []
        try:
            with redirect_stderr(log):
                opened = Opened(
                    self.config, self.environ, warnings.append, even_if_hopeless=even_if_hopeless
                )
                serving, lifespan = Serving(self, opened, loop), opened.lifespan()
                loop.run_until_complete(lifespan.__aenter__())
                try:
                    loop.run_until_complete(serving.opened())
                    yield serving
                finally:
                    loop.run_until_complete(lifespan.__aexit__(None, None, None))
                    loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()
            self.keep(f"warnings {moment}", "\n".join(warnings).encode())
            self._keep_log(moment, log.getvalue())

    def refused(self, moment: str) -> None:
        """Serve, which must be refused, and keep why."""
        try:
            with self.serving(moment):
                self.keep(f"opening {moment}", b"opened")
        except ConclaveError as refusal:
            said = f"{type(refusal).__name__}: {refusal}"
            self.keep(f"opening {moment}", said.encode())

    def _keep_log(self, moment: str, log: str) -> None:
        """Keep lines by their event, since a commit is told of a moment after its replies."""
        by_event: dict[str, list[str]] = {}
        for line in log.splitlines():
            by_event.setdefault(_event_of(line), []).append(line)
        for event in sorted(by_event):
            self.keep(f"log {moment} {event}", "\n".join(by_event[event]).encode())


def _event_of(line: str) -> str:
    """Return the event of a line of the log, which is JSON or for people."""
    if line.startswith("{"):
        return str(json.loads(line).get("event", ""))
    found = LINE_FOR_PEOPLE.match(line)
    return found[1] if found else ""


class Serving:
    """A server without a web server, and a client of it."""

    def __init__(self, stage: Stage, opened: Opened, loop: asyncio.AbstractEventLoop) -> None:
        """Ask ``opened`` on a loop of its own."""
        self._stage = stage
        self._opened = opened
        self._loop = loop

    async def opened(self) -> None:
        """Wait until the release is open; raise why it cannot be."""
        async with asyncio.timeout(OPENING_SECONDS_MAX):
            while not self._opened.is_open():  # noqa: ASYNC110 -- it is asked from outside
                await asyncio.sleep(PAUSE_SECONDS)

    def ask(self, request: Request, name: str = "") -> tuple[int, bytes]:
        """Send a request, keep the reply, and return status and body."""
        status, reply, body = self._reply(request)
        sent = request.body if isinstance(request.body, bytes) else b"".join(request.body)
        shown = sent[:SENT_SHOWN_MAX].decode("utf-8", "backslashreplace")
        if masked(body, {}) != body:  # so is its length this run's alone
            reply = reply.replace(
                b"content-length: %d\n" % len(body), b"content-length: <length>\n"
            )
        self._stage.keep(f"{name or request.method} {request.path} {shown}".strip(), reply)
        return status, body

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        """Read a path."""
        return self.ask(Request("GET", path, headers))

    def post(self, path: str, document: object, **headers: str) -> tuple[int, bytes]:
        """Post a JSON document."""
        body = json.dumps(document).encode()
        return self.ask(Request("POST", path, {**JSON, **headers}, body))

    def budget(self) -> dict[str, Any]:
        """Return the budget, and keep nothing of it."""
        return self.look("/budget")

    def look(self, path: str) -> dict[str, Any]:
        """Return a document, and keep nothing of it."""
        found: dict[str, Any] = json.loads(self._reply(Request("GET", path))[2])
        return found

    def settle(self, *, statistics: bool) -> None:
        """Wait until nothing is under way that an answer has set off."""
        self._loop.run_until_complete(self._settled(statistics=statistics))

    async def _settled(self, *, statistics: bool) -> None:
        async with asyncio.timeout(SETTLING_SECONDS_MAX):
            while True:
                request = Request("GET", "/budget")
                told = json.loads((await reply_to(self._opened.application, request))[2])
                if not told["switching"]:
                    recorded = kinds(self._stage.url)
                    has_ended = told["phase"] != "ensemble"
                    due = statistics and has_ended and "StatisticsReleased" not in recorded
                    if not due and told["ledger"]["sequence"] == len(recorded):
                        return
                await asyncio.sleep(PAUSE_SECONDS)

    def _reply(self, request: Request) -> tuple[int, bytes, bytes]:
        return self._loop.run_until_complete(reply_to(self._opened.application, request))
