"""The two clients: what is sent again, in what order answers come, and what is raised."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, get_type_hints

import httpx
import numpy as np
import pytest

from app import errors
from app.http import problems
from app.http.openapi import query_models, read_models
from app.release.views import budget
from conclave_client import (
    AccessError,
    Answer,
    AsyncClient,
    Bin,
    Budget,
    Client,
    ConclaveError,
    InvalidRequestError,
    LimitReachedError,
    NotConclaveError,
    NotPublishedError,
    Retries,
    Schema,
    ServerFailedError,
    Statistics,
    UnavailableError,
    UnsupportedClassifierError,
)
from conclave_client.answers import (
    Composed,
    Ensemble,
    Feature,
    Follows,
    Ledger,
    Queries,
    Share,
    Unstable,
)
from conclave_client.errors import FAMILIES, NO_CONCLAVE
from tests.docs.test_pages import slugs
from tests.unit.clients.test_classifier import DOCUMENT, LABELS, ROWS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from pydantic import BaseModel

URL = "http://server.example"
PREFIX = "urn:conclave:problem:"
INVALID = {
    "type": "urn:conclave:problem:invalid-features",
    "status": 422,
    "detail": "age: must be a number",
    "feature": "age",
}
ATTEMPTS_MAX = Retries().attempts_max
EXHAUSTED = {"type": "urn:conclave:problem:budget-exhausted", "status": 410, "detail": "halted"}
OPENING = {"type": "urn:conclave:problem:opening", "status": 503, "detail": "opening"}


class Broken(httpx.SyncByteStream, httpx.AsyncByteStream):
    """Lines of a stream, which breaks off after a number of them if it is given one."""

    def __init__(self, lines: Iterator[bytes], break_after: int | None) -> None:
        """Send ``lines`` up to the break."""
        self._lines = lines
        self._break_after = break_after

    def __iter__(self) -> Iterator[bytes]:
        """Yield lines, then break as a network does."""
        for number, line in enumerate(self._lines):
            if number == self._break_after:
                raise httpx.ReadError("gone")
            yield line

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the same."""
        for line in self:
            yield line


class Server:
    """Answers by position, after going through its list of misfortunes.

    Attributes:
        misfortunes: one a request, first to last: a reply in its place, an error, or the number
            of lines after which a stream breaks off.
        asked: every query that reached it, in order, with its key.
        pauses: what the client waited.

    """

    def __init__(self, *misfortunes: httpx.Response | httpx.TransportError | int) -> None:
        """Start healthy but for ``misfortunes``."""
        self.misfortunes = list(misfortunes)
        self.refused: set[object] = set()
        self.asked: list[tuple[list[object], str]] = []
        self.pauses: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Serve the two routes that take queries."""
        misfortune = self.misfortunes.pop(0) if self.misfortunes else None
        if isinstance(misfortune, httpx.Response):
            return misfortune
        if isinstance(misfortune, httpx.TransportError):
            raise misfortune
        if request.url.path == "/query":
            key = request.headers["idempotency-key"]
            return httpx.Response(200, json=self._reply(json.loads(request.read()), key))
        lines = request.read().splitlines()
        return httpx.Response(200, stream=Broken(self._replies(lines), misfortune))

    def _replies(self, lines: list[bytes]) -> Iterator[bytes]:
        for line in lines:
            query = json.loads(line)
            yield json.dumps(self._reply(query, query["idempotency_key"])).encode() + b"\n"

    def _reply(self, query: dict[str, Any], key: str) -> dict[str, Any]:
        features = query["features"]
        self.asked.append((features, key))
        if features[0] in self.refused:
            return EXHAUSTED
        return {
            "query_id": len(self.asked),
            "label": "a\u2028",
            "stable": True,
            "phase": "ensemble",
            "replayed": False,
            "said by a later server": 1,
        }


class Waiting:
    """The client that waits, on a server of a test."""

    def __init__(self, server: Server, **options: Any) -> None:
        """Note pauses instead of taking them."""
        transport = httpx.MockTransport(server)
        self.client = Client(URL, transport=transport, pause=server.pauses.append, **options)

    def stream(self, rows: Any, **options: Any) -> list[Answer | ConclaveError]:
        """Return what the stream yields."""
        return list(self.client.stream(rows, **options))

    def query(self, features: Any, **options: Any) -> Answer:
        """Return an answer."""
        return self.client.query(features, **options)

    def call(self, name: str, *arguments: object) -> Any:
        """Return what a method gives."""
        return getattr(self.client, name)(*arguments)


class OnALoop:
    """The client for an event loop, likewise."""

    def __init__(self, server: Server, **options: Any) -> None:
        """Note pauses instead of taking them."""

        async def pause(seconds: float) -> None:
            server.pauses.append(seconds)

        transport = httpx.MockTransport(server)
        self.client = AsyncClient(URL, transport=transport, pause=pause, **options)

    def stream(self, rows: Any, **options: Any) -> list[Answer | ConclaveError]:
        """Return what the stream yields."""

        async def taken() -> list[Answer | ConclaveError]:
            async with self.client as client:
                return [reply async for reply in client.stream(rows, **options)]

        return asyncio.run(taken())

    def query(self, features: Any, **options: Any) -> Answer:
        """Return an answer."""
        return asyncio.run(self.client.query(features, **options))

    def call(self, name: str, *arguments: object) -> Any:
        """Return what a method gives."""
        return asyncio.run(getattr(self.client, name)(*arguments))


both = pytest.mark.parametrize("asking", [Waiting, OnALoop])


def rows(count: int) -> list[list[float]]:
    """Return so many vectors."""
    return [[float(number)] for number in range(count)]


def numbers(replies: list[Answer | ConclaveError]) -> list[int | None]:
    """Return the numbers of answers."""
    return [reply.query_id for reply in replies if isinstance(reply, Answer)]


@both
def test_a_stream_goes_on_where_it_broke(asking: Callable[..., Waiting | OnALoop]) -> None:
    """The first row without a reply is the next that is asked, by the key that it had."""
    server = Server(2, 0, httpx.Response(503, json=OPENING))
    assert numbers(asking(server).stream(rows(4))) == [1, 2, 5, 6]
    assert [features[0] for features, _ in server.asked] == [0, 1, 2, 2, 2, 3]
    assert len({key for _, key in server.asked}) == 4
    assert server.pauses == [0.5, 1.0, 2.0]


def test_answers_come_as_soon_as_they_are_there() -> None:
    """Who takes one answer at a time gets it before the next row's."""
    server = Server(1)
    taken = Waiting(server).client.stream(rows(3))
    next(taken)
    assert len(server.asked) == 1


@both
def test_progress_gives_all_attempts_again(asking: Callable[..., Waiting | OnALoop]) -> None:
    """A connection that breaks after every row is no reason to give up."""
    count = 3 * ATTEMPTS_MAX
    server = Server(*[1] * (count - 1))
    assert len(numbers(asking(server).stream(rows(count)))) == count
    assert set(server.pauses) == {0.5}


@both
def test_refused_rows_stand_in_their_places(asking: Callable[..., Waiting | OnALoop]) -> None:
    """A refusal is yielded, not raised, and the rows behind it are answered."""
    server = Server()
    server.refused = {1.0}
    first, second, third = asking(server).stream(rows(3))
    assert isinstance(first, Answer)
    assert isinstance(third, Answer)
    assert isinstance(second, LimitReachedError)
    assert (second.slug, second.status, str(second)) == ("budget-exhausted", 410, "halted")


@both
def test_a_row_that_may_come_back_is_asked_again(asking: Callable[..., Waiting | OnALoop]) -> None:
    """A 503 in a row's place is not its last word, and answers behind it wait for their turn."""
    second = {"query_id": 7, "label": "a", "stable": True, "phase": "ensemble", "replayed": False}
    stream = b"".join(json.dumps(each).encode() + b"\n" for each in (OPENING, second))
    server = Server(httpx.Response(200, content=stream))
    assert numbers(asking(server).stream(rows(2))) == [1, 7]
    assert [features[0] for features, _ in server.asked] == [0]


@both
def test_rows_are_read_a_request_at_a_time(asking: Callable[..., Waiting | OnALoop]) -> None:
    """An endless iterator is fine; no more is read of it than is asked."""
    read: list[int] = []

    def endless() -> Iterator[list[float]]:
        while len(read) < 100:
            read.append(len(read))
            yield [float(len(read))]

    taken = asking(Server()).stream(endless(), rows_a_request=30)
    assert numbers(taken) == list(range(1, 101))


def test_what_is_not_taken_is_not_asked() -> None:
    """A stream that is left early has read one request's rows."""
    server = Server()
    source = iter(rows(100))
    assert isinstance(next(Waiting(server).client.stream(source, rows_a_request=10)), Answer)
    assert next(source) == [10.0]


@both
def test_a_query_is_sent_again_by_its_key(asking: Callable[..., Waiting | OnALoop]) -> None:
    """A lost reply, a proxy's 502 and a 503 are followed by the same query; the pause is heeded."""
    server = Server(
        httpx.ReadError("gone"),
        httpx.Response(502, text="<html>"),
        httpx.Response(503, json=OPENING, headers={"Retry-After": "5"}),
    )
    answer = asking(server).query([1.0])
    assert answer == Answer(
        query_id=1, label="a\u2028", stable=True, phase="ensemble", replayed=False
    )
    assert server.pauses == [0.5, 1.0, 5.0]
    asking(server).query([1.0])
    assert len({key for _, key in server.asked}) == 2


@both
def test_own_keys_are_written_as_http_has_them(asking: Callable[..., Waiting | OnALoop]) -> None:
    """A key with spaces or quotes is quoted, in the header and in a line alike."""
    server = Server()
    asking(server).query([1.0], key='my "17"')
    asking(server).stream(rows(2), keys=iter(["row-0", "row 1"]))
    assert [key for _, key in server.asked] == [r'"my \"17\""', "row-0", '"row 1"']


@both
@pytest.mark.parametrize(
    ("status", "body", "kind", "slug", "detail"),
    [
        (410, EXHAUSTED, LimitReachedError, "budget-exhausted", "halted"),
        (422, INVALID, InvalidRequestError, "invalid-features", "age: must be a number"),
        (401, {"status": 401, "detail": "no"}, AccessError, None, "no"),
        (418, {"type": f"{PREFIX}teapot", "detail": "tea"}, InvalidRequestError, "teapot", "tea"),
        (500, {"type": f"{PREFIX}odd", "detail": "odd"}, ServerFailedError, "odd", "odd"),
        (200, "<html>", NotConclaveError, None, NO_CONCLAVE),
        (200, [], NotConclaveError, None, NO_CONCLAVE),
        (200, {"a": 1}, NotConclaveError, None, NO_CONCLAVE),
        (404, "nothing", NotConclaveError, None, NO_CONCLAVE),
    ],
)
def test_what_does_not_pass_is_raised_at_once(
    asking: Callable[..., Waiting | OnALoop],
    status: int,
    body: object,
    kind: type[ConclaveError],
    slug: str | None,
    detail: str,
) -> None:
    """A refusal has its slug, its status and its detail, and is not asked again."""
    text = body if isinstance(body, str) else json.dumps(body)
    server = Server(httpx.Response(status, text=text, headers={"X-Request-Id": "r-1"}))
    with pytest.raises(kind) as raised:
        asking(server).query([1.0])
    error = raised.value
    assert (error.slug, error.detail, str(error)) == (slug, detail, detail)
    assert error.feature == ("age" if body is INVALID else None)
    assert (error.status, error.request_id) == ((None, None) if status == 200 else (status, "r-1"))
    assert not server.asked
    assert not server.pauses


@both
@pytest.mark.parametrize("ways", ["a query", "a stream"])
def test_attempts_come_to_an_end(asking: Callable[..., Waiting | OnALoop], ways: str) -> None:
    """After the last attempt the last problem is raised."""
    server = Server(*[httpx.ConnectError("refused")] * ATTEMPTS_MAX)
    with pytest.raises(UnavailableError, match=f"^no server answers at {URL}$") as raised:
        asking(server).query([1.0]) if ways == "a query" else asking(server).stream(rows(1))
    assert raised.value.slug is None
    assert len(server.pauses) == ATTEMPTS_MAX - 1
    assert max(server.pauses) == Retries().pause_seconds_max


@both
def test_a_refusal_that_stays_is_given(asking: Callable[..., Waiting | OnALoop]) -> None:
    """A row that is refused with 503 to the end keeps that refusal; others have answers."""
    stream = json.dumps(OPENING).encode() + b"\n"
    server = Server(*[httpx.Response(200, content=stream) for _ in range(2)])
    (refused,) = asking(server, retries=Retries(attempts_max=2)).stream(rows(1))
    assert isinstance(refused, UnavailableError)
    assert refused.slug == "opening"


@both
def test_a_stream_that_no_server_may_have_is_raised(
    asking: Callable[..., Waiting | OnALoop],
) -> None:
    """A refusal of the whole stream, and lines that are no answers, end it."""
    forbidden = {"type": "urn:conclave:problem:forbidden", "status": 403, "detail": "role"}
    with pytest.raises(AccessError, match="role"):
        asking(Server(httpx.Response(403, json=forbidden))).stream(rows(1))
    with pytest.raises(NotConclaveError):
        asking(Server(httpx.Response(200, text="hello\n"))).stream(rows(1))
    with pytest.raises(NotConclaveError):
        asking(Server(httpx.Response(200, content=b"a" * (2 << 20)))).stream(rows(1))


@both
def test_values_are_written_as_json_has_them(asking: Callable[..., Waiting | OnALoop]) -> None:
    """NaN is missing, and numpy's numbers are numbers; a row may be an array."""
    server = Server()
    asking(server).stream([[np.nan, np.int64(3), "a"], np.array([1.5, 2.0])])
    assert [features for features, _ in server.asked] == [[None, 3, "a"], [1.5, 2.0]]


@both
@pytest.mark.parametrize(
    ("row", "told"),
    [
        ([float("inf")], "row 1: value 0 is infinite"),
        ({"age": object()}, "row 1: age is neither a number nor a string nor None"),
    ],
)
def test_a_row_of_something_else_is_not_asked(
    asking: Callable[..., Waiting | OnALoop], row: object, told: str
) -> None:
    """What JSON cannot hold is one line that names the row and the feature."""
    server = Server()
    with pytest.raises(ValueError, match=f"^{told}$"):
        asking(server).stream([[1.0], row])
    assert not server.asked


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: Client("http://a:b", "k"), "is not an address"),
        (lambda: Client(URL, "ä"), "a key is visible ASCII"),
        (lambda: Retries(attempts_max=0), "attempts_max must be 1 or more"),
        (lambda: Retries(pause_seconds=-1), "pauses must not be negative"),
        (lambda: Waiting(Server()).query([1.0], key="ä"), "an idempotency key is 1 to 255"),
        (lambda: Waiting(Server()).stream(rows(2), keys=["a"]), "fewer keys than rows"),
        (lambda: Waiting(Server()).stream(rows(2), rows_a_request=0), "must be 1 or more"),
    ],
)
def test_wrong_arguments_are_one_line(wrong: Callable[[], object], told: str) -> None:
    """A value that makes no sense is refused before anything is sent."""
    with pytest.raises(ValueError, match=told):
        wrong()


def test_a_key_is_sent_as_bearer() -> None:
    """Every request has the key; without one it has none."""
    seen: list[str | None] = []

    def note(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("authorization"))
        return httpx.Response(200, json={"features": []})

    for key in ("secret", None):
        with Client(URL, key, transport=httpx.MockTransport(note)) as client:
            assert client.schema()["features"] == []
    assert seen == ["Bearer secret", None]


@both
def test_other_retries_use_the_same_connections(asking: Callable[..., Waiting | OnALoop]) -> None:
    """A client with other retries leaves the one that it was made of as it is."""
    server = Server(httpx.Response(503, json=OPENING), httpx.Response(503, json=OPENING))
    asked = asking(server)
    once = asked.client.with_retries(Retries(attempts_max=1))
    before, asked.client = asked.client, once
    with pytest.raises(UnavailableError, match="opening"):
        asked.query([1.0])
    asked.client = before
    assert asked.query([1.0]).query_id == 1


@both
def test_what_is_no_such_document_is_refused(asking: Callable[..., Waiting | OnALoop]) -> None:
    """Any JSON object is not yet a schema, a budget, statistics or a classifier."""
    asked: dict[str, list[object]] = {"schema": [], "budget": [], "statistics": [[]]}
    for name, arguments in asked.items():
        with pytest.raises(NotConclaveError):
            asking(Server(httpx.Response(200, json={"a": 1}))).call(name, *arguments)
    with pytest.raises(UnsupportedClassifierError):
        asking(Server(httpx.Response(200, json={"a": 1}))).call("classifier")


@both
def test_statistics_are_asked_by_trees(asking: Callable[..., Waiting | OnALoop]) -> None:
    """Hypotheses are posted as they are, and means come back in their order."""
    seen: list[Any] = []
    told = {"values": [-0.5, 1.0], "fractions": [0.25, 1.0], "alpha": 0.1, "beta": 0.05}

    class Telling(Server):
        def __call__(self, request: httpx.Request) -> httpx.Response:
            seen.append((request.method, request.url.path, json.loads(request.read())))
            return httpx.Response(200, json=told)

    tree = {"tree": {"label": "yes"}}
    found = asking(Telling()).call("statistics", iter([tree, tree]))
    assert seen == [("POST", "/statistics", {"hypotheses": [tree, tree]})]
    assert found == Statistics(values=(-0.5, 1.0), fractions=(0.25, 1.0), alpha=0.1, beta=0.05)


@both
def test_the_classifier_is_read_or_not_there(asking: Callable[..., Waiting | OnALoop]) -> None:
    """Once it is published it predicts here; before, that has a class of its own."""
    unpublished = {"type": f"{PREFIX}not-published", "status": 404, "detail": "later"}
    with pytest.raises(NotPublishedError, match="later"):
        asking(Server(httpx.Response(404, json=unpublished))).call("classifier")
    classifier = asking(Server(httpx.Response(200, json=DOCUMENT))).call("classifier")
    assert classifier.predict(ROWS).tolist() == LABELS


@pytest.mark.parametrize(
    ("typed", "model"),
    [
        (Budget, budget.Budget),
        (Queries, budget.Queries),
        (Unstable, budget.Unstable),
        (Share, budget.Share),
        (Composed, budget.Composed),
        (Follows, budget.Follows),
        (Ensemble, budget.Ensemble),
        (Ledger, budget.Ledger),
        (Schema, read_models.Schema),
        (Feature, read_models.Feature),
        (Answer, query_models.Answer),
        (Statistics, query_models.StatisticsAnswer),
    ],
)
def test_what_is_typed_is_what_the_server_gives(typed: type, model: type[BaseModel]) -> None:
    """Each of the client's types has the members of the server's body."""
    assert set(get_type_hints(typed)) == set(model.model_fields)


def test_scores_are_read_with_their_bins() -> None:
    """An answer of a release of scores has a bin, or none where it is unstable."""
    told = {"query_id": 1, "label": None, "stable": False, "phase": "ensemble", "replayed": True}
    scored = {"score": 0.25, "bin": {"lower": 0.0, "upper": 0.5}, "precision": 2}
    assert Answer.read({**told, **scored}).bin == Bin(0.0, 0.5)
    assert Answer.read({**told, **scored, "bin": None}).bin is None


def test_every_problem_has_a_family() -> None:
    """The client's table names every problem that a server can send, and no other."""
    of_bases = {errors.UnavailableError.slug, problems.INTERNAL_SLUG}
    assert set(FAMILIES) == slugs() | of_bases
