"""A small service in memory, and an application around it, to be asked without a socket."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self, cast

import httpx
from msgspec import structs

from app.answering.answers import Answer, Bin, ScoredAnswer
from app.answering.hourly_counts import Workload
from app.answering.queries import Query
from app.answering.service import NO_STATISTICS, STATISTICS_NOT_OPEN, Budget
from app.answering.service_slot import ServiceSlot
from app.data.schema import CategoricalFeature, NumericFeature, Schema
from app.data.vectors import decode_key
from app.errors import (
    BudgetExhaustedError,
    IdempotencyConflictError,
    NoStatisticsError,
    NotExportableError,
    NotPublishedError,
    RequestError,
    StatisticsNotOpenError,
    UnavailableError,
)
from app.http.access.access_control import Access
from app.http.access.keys import Key, KeyRing, Role, hash_of
from app.http.application import create_application
from app.http.limits import Limits
from app.http.monitoring.monitoring_options import Watching
from app.http.openapi.read_models import History, Outlook
from app.ledger.api_key_counts import KeyCount
from app.ledger.disk_and_backups import NewestBackup, Storage
from app.release.statistics.posted_hypotheses import parse_hypotheses
from app.release.statistics.released_table import StatisticsAnswer
from tests.http.wire import Wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from fastapi import FastAPI

    from app.answering.queries import Queries
    from app.answering.service import ConclaveService
    from app.data.vectors import Vector
    from app.http.access.keys import Keys
    from app.http.access.tokens import Tokens
    from app.http.route_handling import EdgeRoute

SCHEMA = Schema(
    label="income",
    classes=("<=50K", ">50K"),
    features=(
        NumericFeature(name="age", lower=17.0, upper=90.0),
        CategoricalFeature(name="workclass", categories=("Private", "State-gov")),
    ),
    missing=("?",),
)
JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}
HEAD = "ab" * 32
OUTLOOK: dict[str, Any] = cast("Any", Outlook.model_config)["json_schema_extra"]["examples"][0]
HISTORY: dict[str, Any] = cast("Any", History.model_config)["json_schema_extra"]["examples"][0]
EXHAUSTED = "the release has halted"
CONFLICT = "this Idempotency-Key was used with another feature vector"
KEYS = {role: f"key-of-{role}" for role in Role}
KEY_RING = KeyRing([Key(name=role, role=role, hash=hash_of(KEYS[role])) for role in Role])


class MemoryService:
    """Answers by age, replays by vector and key, halts after ``queries_max`` answers.

    Attributes:
        precision: of scores that are not asked for in bins of their own; None answers
            labels.
        failure: raised in place of the next answers, or returned for each.
        held: what all but the first query of a stream's window wait for.
        windows: the sizes of the batches that came.
        work: what waits, and what was counted.

    """

    schema = SCHEMA
    release_name = "adult-income"

    def __init__(self, *, queries_max: int = 1000) -> None:
        """Start with nothing answered."""
        self.queries_max = queries_max
        self.precision: int | None = None
        self.work = Workload(waiting=0, waiting_max=10)
        self.failure: Exception | None = None
        self.held: asyncio.Event | None = None
        self.published: bytes | None = None
        self.model: bytes | None = None
        self.composed: dict[str, float] | None = None
        self.statistics_share = 1
        self.table: bytes | None = None
        self.windows: list[int] = []
        self.answers: dict[Vector, int] = {}
        self.vector_of_key: dict[str, Vector] = {}
        self.counts: dict[str, KeyCount] = {}
        self.subscribers: set[asyncio.Queue[bool]] = set()

    async def answer_many(self, queries: Queries) -> list[Answer | RequestError | UnavailableError]:
        """Answer in order, as the service's interface has it."""
        await asyncio.sleep(0)
        self.windows.append(len(queries))
        if isinstance(self.failure, UnavailableError):
            return [self.failure] * len(queries)
        if self.failure is not None:
            raise self.failure
        rows = zip(*structs.astuple(queries), strict=True)
        outcomes: list[Answer | RequestError | UnavailableError] = [
            self._answer(Query(decode_key(vector), *others)) for vector, *others in rows
        ]
        self.announce()
        return outcomes

    async def answer_in_turn(
        self, queries: Queries
    ) -> AsyncIterator[list[Answer | RequestError | UnavailableError]]:
        """Answer the first query, and the others once they are let go."""
        at_once = len(queries) if self.held is None else 1
        yield await self.answer_many(queries.part(0, at_once))
        if self.held is not None:
            await self.held.wait()
            yield await self.answer_many(queries.part(at_once, len(queries)))

    def _answer(self, query: Query) -> Answer | RequestError:
        key = query.idempotency_key
        if key is not None and self.vector_of_key.get(key, query.vector) != query.vector:
            return IdempotencyConflictError(CONFLICT)
        replayed = query.vector in self.answers
        if not replayed and len(self.answers) >= self.queries_max:
            return BudgetExhaustedError(EXHAUSTED)
        query_id = self.answers.setdefault(query.vector, len(self.answers) + 1)
        if key is not None:
            self.vector_of_key[key] = query.vector
        age = query.vector[0]
        label = None if age is None else SCHEMA.classes[isinstance(age, float) and age >= 40]
        answer = Answer(query_id, label, age is not None, "ensemble", replayed)
        if self.precision is None:
            return answer
        return self._scored(answer, query.precision or self.precision)

    def _scored(self, answer: Answer, precision: int) -> ScoredAnswer:
        """Put a stable answer into the first bin or the last."""
        lower = (precision - 1) / precision if answer.label == SCHEMA.classes[1] else 0.0
        known = Bin(lower, lower + 1 / precision) if answer.stable else None
        return ScoredAnswer(
            answer.query_id,
            answer.label,
            answer.stable,
            answer.phase,
            answer.replayed,
            lower + 1 / (2 * precision) if answer.stable else None,
            known,
            precision,
        )

    def budget(self) -> Budget:
        """Return what changes with every answer, in the members of a real budget."""
        answered = len(self.answers)
        return Budget.model_validate(
            {
                "release": {"name": self.release_name},
                "unit": "row",
                "phase": "ensemble",
                "student": False,
                "switching": False,
                "epsilon": 1.0,
                "delta": 1e-6,
                "composed": self.composed,
                "charged": [{"mechanism": "answers", "epsilon": 0.6, "delta": 1e-6}],
                "reserved": [],
                "left": {"epsilon": 0.4, "delta": 0.0},
                "queries": {"answered": answered, "limit": None, "left": None},
                "with_scores": self.precision is not None,
                "follows": {"limit": "halt", "cutoff": "halt"},
                "unstable": {"count": 0, "cutoff": 5, "left": 5},
                "ensemble": {"size": 100},
                "accounting": "sum",
                "closed": None,
                "hopeless": False,
                "generations": [],
                "erased": None,
                "quorum": None,
                "tick": None,
                "ledger": {"sequence": answered, "head": HEAD},
            },
            strict=False,
        )

    async def read_budget(self) -> Budget:
        """Return the budget, which nobody else changes."""
        return self.budget()

    def key_count(self, name: str) -> KeyCount:
        """Return what a key was given."""
        return self.counts.get(name, KeyCount())

    async def key_counts(self) -> dict[str, KeyCount]:
        """Return what every key was given."""
        return dict(self.counts)

    async def history(self) -> dict[str, object]:
        """Return a history by hour."""
        return HISTORY

    def note_refused(self, count: int) -> None:
        """Count what was refused nowhere."""

    async def outlook(self) -> dict[str, object]:
        """Return a whole outlook, with how many entries are checked."""
        chain = OUTLOOK["chain"] | {"checked_to": len(self.answers)}
        return OUTLOOK | {"chain": chain}

    def parameters(self) -> list[dict[str, str]]:
        """Return one parameter."""
        return [{"name": "epsilon", "value": "1", "meaning": "a promise", "formula": "e^1"}]

    def noted_sequence(self) -> int | None:
        """Return the entry that a head file notes, one behind."""
        return max(0, len(self.answers) - 1)

    async def storage(self) -> Storage:
        """Return a backup that is two entries behind, and the room of a small disk."""
        return Storage(NewestBackup(1_767_225_600, max(0, len(self.answers) - 2)), 2**30)

    def workload(self) -> Workload:
        """Return what a test set, or that nothing waits."""
        return self.work

    async def ledger_entries(self, *, after: int, limit: int) -> list[dict[str, object]]:
        """Return one entry an answer."""
        numbers = range(after + 1, min(after + limit, len(self.answers)) + 1)
        return [{"sequence": number, "hash": HEAD} for number in numbers]

    async def ledger_head(self) -> dict[str, object]:
        """Return a head of fixed hash."""
        return {"sequence": len(self.answers), "hash": HEAD}

    async def classifier(self) -> bytes:
        """Return what was published, if anything was."""
        if self.published is None:
            raise NotPublishedError("no classifier is published yet")
        return self.published

    async def classifier_onnx(self) -> bytes:
        """Return the model of what was published, if it has one."""
        if self.model is None:
            raise NotExportableError("it is code")
        return self.model

    async def statistics(self, raw: Sequence[object]) -> StatisticsAnswer:
        """Answer every hypothesis alike, where there is a table."""
        count = len(parse_hypotheses(SCHEMA, raw))
        await self.statistics_document()
        return StatisticsAnswer([0.5] * count, [0.75] * count, alpha=0.1, beta=0.05)

    async def statistics_document(self) -> bytes:
        """Return the table, if there is one."""
        if self.statistics_share == 0:
            raise NoStatisticsError(NO_STATISTICS)
        if self.table is None:
            raise StatisticsNotOpenError(STATISTICS_NOT_OPEN)
        return self.table

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[AsyncIterator[None]]:
        """Yield on every announcement until the service closes."""
        queue: asyncio.Queue[bool] = asyncio.Queue()
        self.subscribers.add(queue)
        try:
            yield _changes(queue)
        finally:
            self.subscribers.discard(queue)

    def announce(self, *, more: bool = True) -> None:
        """Tell every subscriber of a change; ``more=False`` closes the service."""
        for queue in self.subscribers:
            queue.put_nowait(more)


async def _changes(queue: asyncio.Queue[bool]) -> AsyncIterator[None]:
    while await queue.get():
        yield


class Http:
    """An application, its service, and a client of it, on an event loop of their own."""

    def __init__(
        self,
        *,
        keys: Keys | None = None,
        tokens: Tokens | None = None,
        limits: Limits | None = None,
        is_open: bool = True,
        loopback_only: bool = False,
        queries_max: int = 1000,
        watching: Watching | None = None,
    ) -> None:
        """Build all three; ``is_open=False`` leaves the slot empty."""
        self.slot = ServiceSlot()
        self.service = MemoryService(queries_max=queries_max)
        if is_open:
            self.slot.fill(cast("ConclaveService", self.service))
        self.application: FastAPI = create_application(
            self.slot,
            Access(keys, loopback_only=loopback_only, tokens=tokens),
            limits=limits or Limits(),
            watching=watching or Watching(),
        )
        self.runner = asyncio.Runner()

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the event loop."""
        self.runner.close()

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send one request and read the whole reply."""

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.application)
            base = "http://127.0.0.1:8000"
            async with httpx.AsyncClient(transport=transport, base_url=base) as client:
                return await client.request(method, path, **options)

        return self.runner.run(send())

    def get(self, path: str, **options: Any) -> httpx.Response:
        """Send a GET."""
        return self.request("GET", path, **options)

    def ask(self, features: object, **headers: str) -> httpx.Response:
        """Post one query."""
        body = json.dumps({"features": features})
        return self.request("POST", "/query", content=body, headers=JSON | headers)

    def stream(self, *lines: object) -> list[dict[str, Any]]:
        """Post lines, raw where they are bytes, and return the reply's lines."""
        raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        reply = self.request("POST", "/query/stream", content=b"\n".join(raw), headers=NDJSON)
        assert reply.status_code == 200
        assert reply.headers["content-type"] == "application/x-ndjson"
        return [json.loads(line) for line in reply.content.splitlines()]

    def wire(self, method: str, path: str, **headers: str) -> Wire:
        """Open a request whose body and reply are handled message by message."""
        return Wire(self.application, method, path, headers)


async def wait_until(holds: Any) -> None:
    """Wait a second at most until ``holds`` returns true."""
    async with asyncio.timeout(1.0):
        while not holds():  # noqa: ASYNC110 -- the service has no event for it
            await asyncio.sleep(0.001)


def problem(slug: str, title: str, status: int, detail: str, **more: str) -> dict[str, object]:
    """Return the body that a refusal must have, to the last member."""
    kind = f"urn:conclave:problem:{slug}"
    return {"type": kind, "title": title, "status": status, "detail": detail, **more}


def path_of(entry: EdgeRoute) -> str:
    """Return the path of a route, the release's name where it has a place for one."""
    return entry.path.replace("{name}", MemoryService.release_name)


def assert_problem(reply: httpx.Response, expected: dict[str, object]) -> None:
    """Check status, media type and the whole body of a refusal, which V2 has its own form of."""
    if reply.request.url.path.startswith("/v2"):
        assert reply.json() == {"error": expected["detail"]}
        assert reply.headers["content-type"] == "application/json"
    else:
        assert reply.json() == expected
        assert reply.headers["content-type"] == "application/problem+json"
    assert reply.status_code == expected["status"]
    assert ("retry-after" in reply.headers) == (reply.status_code == 503)
