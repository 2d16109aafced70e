"""One run of a whole release for an audit, seen from outside: real servers and a client.

The audited server is the real one, with a ledger of its own; uvicorn serves it on a loopback
socket, and it is stopped and started again between queries. Everything that it sends is recorded:
answers, counters, ledger entries, refusals and headers. A channel is one part of what a server
process sends, for example its third answer, or a counter after that answer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from app.auditing.transcripts.http_audit import Heard
from app.auditing.transcripts.reply_checks import Answer, Life
from app.auditing.transcripts.transcripts import readings_of
from app.cli.audit.neighbours import ABOVE
from app.cli.loopback_client import LoopbackClient, Reply, connected
from app.cli.web_server import WebServer, listen
from app.errors import InvariantError, OpeningError
from app.main import Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from app.settings.settings import Settings

Document: TypeAlias = dict[str, Any]
"""A decoded body."""

PROCESSES: Final = 2
"""Servers that one release has, one after the other."""
NEW_QUESTIONS: Final = 4
"""Distinct vectors that are asked first after a restart."""
STEP: Final = 1e-4
POLL_SECONDS: Final = 0.001
QUERY: Final = "/query"
STREAM: Final = "/query/stream"
JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
KEY: Final = {"Idempotency-Key": "first"}
NO_HEADERS: Final[Mapping[str, str]] = {}
UNSAID: Final = -1
"""In place of a counter that a server did not give: a release that has stopped gives none."""
REFUSALS: Final = range(400, 500)
BUDGET: Final = "/budget"
LEDGER: Final = "/ledger?limit=1000"
READS: Final = (BUDGET, LEDGER, "/classifier", "/statistics/table", "/metrics", "/readyz")
REFUSED: Final = {"features": [ABOVE, ABOVE]}


async def hear(settings: Settings, *, questions: int, opening: asyncio.Lock) -> Heard:
    """Return everything that a release sends while it is opened, queried, restarted and ended.

    Args:
        settings: the settings of a release whose rows exist and whose ledger does not exist yet.
        questions: the number of distinct vectors to query before the restart.
        opening: a lock under which one release opens at a time, because a database migration keeps
            its state in global variables.

    Raises:
        ConclaveError: the reason why the release could not open.

    """
    visits = []
    for number in range(1, PROCESSES + 1):
        count = questions + NEW_QUESTIONS * (number - 1)
        async with _client_of(settings, opening) as client:
            visit = Visit(f"process {number}", client)
            await visit.ask(range(count))
        visits.append(visit)
    readings = {channel: each for visit in visits for channel, each in visit.readings.items()}
    lives = tuple(visit.life for visit in visits)
    return Heard({**readings, **_summary(lives)}, lives)


@asynccontextmanager
async def _client_of(settings: Settings, opening: asyncio.Lock) -> AsyncIterator[LoopbackClient]:
    """Serve until the end of the block, which drains the server like a signal."""
    listening = listen(settings.server.host, settings.server.port)
    # An audit asks worst-case releases on purpose, in ledgers of its own.
    server = Server(settings, even_if_hopeless=True)
    web_server = WebServer(server.application(), server, listening)
    async with opening:
        serving = asyncio.create_task(web_server.serve(sockets=[listening]))
        await _opened(server, serving)
    if serving.done():
        await serving  # raises why it ended, if it can tell
        raise InvariantError("the server ended before its client connected")
    try:
        async with connected(listening) as client:
            yield client
    finally:
        web_server.stop()
        await serving


async def _opened(server: Server, serving: asyncio.Task[None]) -> None:
    """Wait until the release is open, or raise why it is not."""
    while True:
        try:
            server.slot.check_open()
        except OpeningError:
            if serving.done():
                await serving
                if server.failure is not None:
                    raise server.failure from None
                raise
            await asyncio.sleep(POLL_SECONDS)
        else:
            return


@dataclass
class Visit:
    """The queries to one server process, and the replies that it sent.

    Attributes:
        name: the name of the server process, with which the name of each of its channels begins.
        readings: the received values, by channel.

    """

    name: str
    _client: LoopbackClient
    readings: dict[str, str] = field(default_factory=dict)
    _answers: list[Answer] = field(default_factory=list)
    _budget: Document = field(default_factory=dict)
    _entries: tuple[str, ...] = ()

    async def ask(self, questions: Sequence[int]) -> None:
        """Send numbered test queries, the first one alone, then read every other public route."""
        asked = [_query(number) for number in questions]
        self._hear(questions[:1], await self._post(QUERY, asked[:1], headers=KEY))
        self._hear(questions[1:], await self._post(STREAM, asked[1:], kind=NDJSON))
        await self._post(QUERY, [REFUSED])
        told = {
            path: self._keep("GET", path, await self._client.send("GET", path)) for path in READS
        }
        (self._budget,), (page,) = told[BUDGET], told[LEDGER]
        self._entries = tuple(entry["hash"] for entry in page.get("entries", ()))

    @property
    def life(self) -> Life:
        """The answers, counters and ledger hashes that this server process sent."""
        counts = (
            self._budget.get(table, {}).get(count, UNSAID)
            for table, count in (("queries", "answered"), ("unstable", "count"))
        )
        answered, unstable = counts
        return Life(tuple(self._answers), answered, unstable, self._entries)

    def _hear(self, questions: Sequence[int], replies: Sequence[Document]) -> None:
        """Keep what are answers among replies; what is refused whole has one for all."""
        self._answers += [
            Answer(
                question=question,
                query_id=reply["query_id"],
                label=reply["label"],
                stable=reply["stable"],
                replayed=reply["replayed"],
            )
            for question, reply in zip(questions, replies, strict=False)
            if "stable" in reply
        ]

    async def _post(
        self,
        path: str,
        bodies: Sequence[object],
        *,
        kind: str = JSON,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> list[Document]:
        body = b"\n".join(map(msgspec.json.encode, bodies))
        given = {"Content-Type": kind, **headers}
        reply = await self._client.send("POST", path, headers=given, body=body)
        return self._keep("POST", path, reply)

    def _keep(self, method: str, path: str, reply: Reply) -> list[Document]:
        """Keep all of a reply, and return the documents of its body."""
        decoded = _decoded(reply)
        is_refused = path == QUERY and reply.status in REFUSALS
        channel = f"{self.name}, {method} {path}{' refused' if is_refused else ''}"
        self.readings[f"{channel}, status"] = str(reply.status)
        self.readings |= readings_of(reply.headers, f"{channel}, headers")
        self.readings |= readings_of(decoded, channel)
        parts = decoded if isinstance(decoded, list) else [decoded]
        return [part for part in parts if isinstance(part, dict)]


def _query(number: int) -> dict[str, object]:
    return {"features": [round(ABOVE + number * STEP, 6)]}


def _decoded(reply: Reply) -> object:
    """Return a body as it was meant: a document, a document a line, or lines of text."""
    match reply.header("content-type"):
        case "application/x-ndjson":
            return [msgspec.json.decode(line) for line in reply.body.splitlines()]
        case "application/json" | "application/problem+json":
            return msgspec.json.decode(reply.body)
    return reply.body.decode("utf-8", "backslashreplace").splitlines()


def _summary(lives: Sequence[Life]) -> dict[str, str]:
    """Return the answers as a whole, which one reply alone may not show."""
    answers = [answer for life in lives for answer in life.answers]
    fresh = [answer for answer in answers if answer.is_fresh]
    labels = Counter(answer.label or "none" for answer in fresh)
    return {
        "the answers": repr([(answer.label, answer.stable) for answer in answers]),
        "the fresh answers": repr([(answer.label, answer.stable) for answer in fresh]),
        "the unstable answers, counted": repr(sum(not answer.stable for answer in fresh)),
        "the labels, counted": repr(sorted(labels.items())),
    }
