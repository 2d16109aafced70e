"""POST /query: answers and their shape, replays, and every refusal to the letter."""

from __future__ import annotations

import asyncio
import json

import pytest
from structlog.testing import capture_logs

from app.answering.service_slot import OPENING, STOPPED
from app.errors import (
    InvariantError,
    LedgerUnavailableError,
    NotPublishedError,
    SwitchingError,
)
from app.http.limits import Limits
from app.http.problems import INTERNAL_DETAIL
from app.http.query.query_body import KEY_SHAPE, REPEATED, SHAPE
from app.http.route_handling import GIVEN_UP
from tests.http.doubles import CONFLICT, EXHAUSTED, JSON, Http, assert_problem, problem

ANSWER = {
    "query_id": 1,
    "label": ">50K",
    "stable": True,
    "phase": "ensemble",
    "replayed": False,
}


def malformed(detail: str) -> dict[str, object]:
    """Return the problem of a body that is not what the route takes."""
    return problem("malformed-body", "Malformed body", 400, detail)


def invalid(feature: str, wrong: str) -> dict[str, object]:
    """Return the problem of a vector that does not fit the schema."""
    detail = f"{feature}: {wrong}"
    return problem("invalid-features", "Invalid features", 422, detail, feature=feature)


def test_answers_a_list_and_an_object_alike() -> None:
    """A vector in schema order and one by name are the same vector."""
    with Http() as http:
        first = http.ask([41, "Private"])
        again = http.ask({"workclass": "Private", "age": 41.0})
    assert first.status_code == 200
    assert first.headers["content-type"] == "application/json"
    assert first.json() == ANSWER
    assert list(first.json()) == list(ANSWER)
    assert again.json() == ANSWER | {"replayed": True}


def test_an_unstable_answer_has_no_label() -> None:
    """Null stands for the label of an unstable answer."""
    with Http() as http:
        assert http.ask([None, "Private"]).json() == ANSWER | {"label": None, "stable": False}


@pytest.mark.parametrize("kind", [None, "application/json; charset=utf-8", "application/ld+json"])
def test_takes_json_by_any_of_its_names(kind: str | None) -> None:
    """A missing type, a charset and a +json type are all JSON."""
    headers = {} if kind is None else {"Content-Type": kind}
    with Http() as http:
        reply = http.request("POST", "/query", content=b'{"features": [1, null]}', headers=headers)
    assert reply.status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"features": [1, "Private"]} trailing',
        b'{"features": [1, "Private"],}',
        b"{'features': [1]}",
        b'{"features": [1, "\xff"]}',
        b'\xef\xbb\xbf{"features": [1, "Private"]}',
        b'{"features":' + b"[" * 20_000,
        b"NaNN",
    ],
)
def test_refuses_what_is_not_json(body: bytes) -> None:
    """A body that does not parse is malformed."""
    with Http() as http:
        reply = http.request("POST", "/query", content=body, headers=JSON)
        assert_problem(reply, malformed(f"the body is not JSON; {SHAPE}"))


@pytest.mark.parametrize("body", [b"", b" \n"])
def test_says_that_a_body_is_empty(body: bytes) -> None:
    """A body that was forgotten is not called broken."""
    with Http() as http:
        reply = http.request("POST", "/query", content=body, headers=JSON)
        assert_problem(reply, malformed(f"the body is empty; {SHAPE}"))


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"null",
        b"{}",
        b'"features"',
        b'{"features": 1}',
        b'{"features": null}',
        b'{"features": "1,Private"}',
        b'{"features": [1, "Private"], "idempotency_key": "a"}',
        b'{"features": [1, "\\ud800"]}',
        b"[NaN]",
    ],
)
def test_refuses_json_of_another_shape(body: bytes) -> None:
    """Anything but one object with the one member features is malformed."""
    with Http() as http:
        reply = http.request("POST", "/query", content=body, headers=JSON)
        assert_problem(reply, malformed(SHAPE))


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"feature": [1]}', '"feature" is no member of a query; did you mean features?'),
        (b'{"features": [1, "Private"], "n": NaN}', '"n" is no member of a query'),
        (b'{"\\u001b\\n": 1}', '"\\x1b\\n" is no member of a query'),
        (b'{"%s": 1}' % (b"x" * 99), f'"{"x" * 60}" is no member of a query'),
    ],
)
def test_an_unknown_member_is_named(body: bytes, told: str) -> None:
    """Its name is cut and printable, and a member that is like it is named."""
    with Http() as http:
        reply = http.request("POST", "/query", content=body, headers=JSON)
        assert_problem(reply, malformed(f"{told}; {SHAPE}"))


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"features": [[1, "Private"], [2, "Private"]]}', 422),
        (b'[{"features": [1, "Private"]}]', 400),
        (b'{"features": [1, "Private"]}\n{"features": [2, "Private"]}', 400),
    ],
)
def test_many_vectors_are_told_where_to_go(body: bytes, status: int) -> None:
    """Lists of lists, of queries, and lines in one body are sent to the stream."""
    with Http() as http:
        reply = http.request("POST", "/query", content=body, headers=JSON)
        assert reply.status_code == status
        assert "send many to POST /query/stream" in reply.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"features": [1, "Private"], "features": [2, "Private"]}',
        b'{"features": {"age": 1, "age": 2, "workclass": "Private"}}',
    ],
)
def test_refuses_a_member_named_twice(body: bytes) -> None:
    """A body with two meanings is refused rather than read by its last one."""
    with Http() as http:
        reply = http.request("POST", "/query", content=body, headers=JSON)
        assert_problem(reply, malformed(REPEATED))


FINITE = "must be a finite number"
NUMBER = "must be a number or null"
NAME = "must be a string or null"


@pytest.mark.parametrize(
    ("features", "feature", "wrong"),
    [
        ('[NaN, "Private"]', "age", FINITE),
        ('[Infinity, "Private"]', "age", FINITE),
        ('[-Infinity, "Private"]', "age", FINITE),
        ('[1e999, "Private"]', "age", FINITE),
        (f'[{"9" * 400}, "Private"]', "age", FINITE),
        (f'[{"9" * 5000}, "Private"]', "age", FINITE),
        ('{"age": NaN, "workclass": "Private"}', "age", FINITE),
        ('[true, "Private"]', "age", NUMBER),
        ('[[1], "Private"]', "age", NUMBER),
        ('["39", "Private"]', "age", "must be a number, not a string"),
        ("[1, NaN]", "workclass", NAME),
        ("[1, [2]]", "workclass", NAME),
        ("[1, {}]", "workclass", NAME),
        ("[1]", "features", "must be 2 values, got 1"),
        ('[1, "Private", 2]', "features", "must be 2 values, got 3"),
        ('{"age": 1}', "workclass", "is absent; null is a missing value"),
        (
            '{"age": 1, "workclass": "Private", "height": 2}',
            "height",
            "is not a feature of the schema",
        ),
    ],
)
def test_names_the_feature_that_does_not_fit(features: str, feature: str, wrong: str) -> None:
    """Each invalid vector is refused by the feature at fault, and nothing is asked."""
    with Http() as http:
        content = f'{{"features": {features}}}'.encode()
        reply = http.request("POST", "/query", content=content, headers=JSON)
        assert_problem(reply, invalid(feature, wrong))
        assert http.service.windows == []


def test_escapes_and_cuts_what_a_client_named() -> None:
    """A name that UTF-8 cannot carry, or a huge one, still gives a problem."""
    with Http() as http:
        surrogate = http.request(
            "POST", "/query", content=b'{"features": {"\\ud800": NaN}}', headers=JSON
        )
        huge = http.ask({"x" * 10_000: 1, "age": 1, "workclass": None})
    assert surrogate.status_code == 422
    assert huge.status_code == 422
    assert len(huge.content) < 2000


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/x-ndjson"},
    ],
)
def test_refuses_another_media_type(headers: dict[str, str]) -> None:
    """Only JSON is read."""
    detail = "send the body with `Content-Type: application/json`"
    expected = problem("unsupported-media-type", "Unsupported media type", 415, detail)
    with Http() as http:
        assert_problem(
            http.request("POST", "/query", content=b'{"features": []}', headers=headers), expected
        )


def test_refuses_a_compressed_body() -> None:
    """A content coding is refused by name rather than read as broken JSON."""
    detail = "this route takes bodies that are not compressed; leave out Content-Encoding"
    expected = problem("unsupported-media-type", "Unsupported media type", 415, detail)
    with Http() as http:
        assert_problem(http.ask([1, None], **{"Content-Encoding": "gzip"}), expected)


@pytest.mark.parametrize("declared", [True, False])
def test_refuses_a_body_over_the_limit(declared: bool) -> None:  # noqa: FBT001 -- two cases
    """A body is refused by its declared length, or as soon as it is too long."""
    content = b"x" * 100

    async def pieces() -> object:
        yield content

    detail = (
        "the body is longer than 99 bytes; one query takes far less, and POST /query/stream "
        "takes many"
    )
    with Http(limits=Limits(body_bytes_max=99)) as http:
        body = content if declared else pieces()
        reply = http.request("POST", "/query", content=body, headers=JSON)
    assert_problem(reply, problem("too-large", "Too large", 413, detail))


def test_a_key_replays_and_conflicts() -> None:
    """A key is bound to its vector; quoted or plain, it is the same key."""
    with Http() as http:
        first = http.ask([41, "Private"], **{"Idempotency-Key": "a-1"})
        again = http.ask([41, "Private"], **{"Idempotency-Key": '"a-1"'})
        other = http.ask([42, "Private"], **{"Idempotency-Key": "a-1"})
    assert first.json() == ANSWER
    assert again.json() == ANSWER | {"replayed": True}
    expected = problem("idempotency-conflict", "Idempotency key used before", 409, CONFLICT)
    assert_problem(other, expected)


@pytest.mark.parametrize("key", ["", "x" * 256, "two words", '"open', '""', "é"])
def test_refuses_a_key_that_is_none(key: str) -> None:
    """A key is 1 to 255 visible ASCII characters."""
    expected = problem("invalid-parameter", "Invalid parameter", 400, KEY_SHAPE)
    with Http() as http:
        headers = [("Content-Type", "application/json"), ("Idempotency-Key", key.encode("latin-1"))]
        content = b'{"features": [1, null]}'
        assert_problem(http.request("POST", "/query", content=content, headers=headers), expected)


def test_refuses_two_keys() -> None:
    """A query has one key at most."""
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    expected = problem("invalid-parameter", "Invalid parameter", 400, KEY_SHAPE)
    with Http() as http:
        content = b'{"features": [1, null]}'
        assert_problem(http.request("POST", "/query", content=content, headers=headers), expected)


def test_refuses_new_vectors_after_a_halt() -> None:
    """A halted release gives recorded answers and refuses the rest."""
    with Http(queries_max=1) as http:
        assert http.ask([41, "Private"]).status_code == 200
        refused = http.ask([42, "Private"])
        assert http.ask([41, "Private"]).json()["replayed"] is True
    assert_problem(refused, problem("budget-exhausted", "Privacy budget exhausted", 410, EXHAUSTED))


@pytest.mark.parametrize(
    ("failure", "slug", "title", "retry_after"),
    [
        (LedgerUnavailableError("the disk is full"), "ledger-unavailable", "Ledger unavailable", 1),
        (SwitchingError("being drawn"), "switching", "Switching to the classifier", 5),
    ],
)
def test_says_when_to_come_back(
    failure: LedgerUnavailableError | SwitchingError, slug: str, title: str, retry_after: int
) -> None:
    """What passes is 503 with Retry-After."""
    with Http() as http:
        http.service.failure = failure
        reply = http.ask([1, None])
    assert_problem(reply, problem(slug, title, 503, failure.detail))
    assert reply.headers["retry-after"] == str(retry_after)


def test_refuses_while_opening() -> None:
    """Before the release is open every route but the liveness probe says so."""
    expected = problem("opening", "Release is opening", 503, OPENING)
    with Http(is_open=False) as http:
        assert_problem(http.ask([1, None]), expected)
        for path in ("/budget", "/budget/events", "/ledger", "/ledger/head", "/schema", "/readyz"):
            assert_problem(http.get(path), expected)
        assert_problem(http.request("POST", "/query/stream"), expected)
        assert http.get("/healthz").json() == {"status": "alive"}


def test_a_refusal_is_logged_and_a_probe_is_not() -> None:
    """A request that is refused is one line; who waits for the opening leaves none."""
    with Http(is_open=False) as http, capture_logs() as lines:
        http.get("/readyz")
        assert lines == []
        http.get("/budget")
    assert [(line["event"], line["path"]) for line in lines] == [("request_refused", "/budget")]


def test_an_integrity_error_stops_the_service() -> None:
    """The first integrity error is told in fixed words, and nothing is answered after it."""
    expected = problem("release-stopped", "Release stopped", 500, STOPPED)
    with Http() as http:
        http.service.failure = InvariantError("17 votes for 18 chunks")
        assert_problem(http.ask([1, None]), expected)
        http.service.failure = None
        assert_problem(http.ask([1, None]), expected)
        assert_problem(http.get("/readyz"), expected)
        assert_problem(http.get("/budget"), expected)
        assert http.get("/healthz").status_code == 200


def test_a_request_that_a_shutdown_gives_up_is_told_so() -> None:
    """A body that never came whole is refused as unavailable when the server ends."""

    async def converse(http: Http) -> None:
        async with http.wire("POST", "/query", **JSON) as wire:
            wire.send(b'{"features": [4,')
            await asyncio.sleep(0.01)
            wire.task.cancel()
            assert (await wire.receive())["status"] == 503
            body = json.loads(await wire.receive_body())
        assert body == problem("unavailable", "Unavailable", 503, GIVEN_UP)

    with Http() as http:
        http.runner.run(converse(http))


def test_an_unknown_error_says_nothing_of_itself() -> None:
    """An exception that is not Conclave's own is told in fixed words."""
    with Http() as http:
        http.service.failure = RuntimeError("a private value")
        reply = http.ask([1, None])
    assert_problem(reply, problem("internal-error", "Internal error", 500, INTERNAL_DETAIL))


@pytest.mark.parametrize("path", ["/queries", "/query/", "/docs/", "/docs/none", "/redoc", "/v3"])
def test_refuses_a_path_that_is_none(path: str) -> None:
    """An unknown path gets the one error shape, and is not redirected."""
    detail = "there is no such path; GET /openapi.json lists the routes"
    with Http() as http:
        assert_problem(http.get(path), problem("not-found", "Not found", 404, detail))


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/query", "POST"),
        ("DELETE", "/query/stream", "POST"),
        ("POST", "/budget", "GET, HEAD"),
        ("OPTIONS", "/ledger", "GET, HEAD"),
    ],
)
def test_refuses_a_method_and_lists_the_right_ones(method: str, path: str, allow: str) -> None:
    """A wrong method gets the methods that the path takes."""
    expected = problem("method-not-allowed", "Method not allowed", 405, f"this path takes {allow}")
    with Http() as http:
        reply = http.request(method, path)
    assert_problem(reply, expected)
    assert reply.headers["allow"] == allow


def test_a_refused_publication_is_not_found() -> None:
    """The classifier's route is there, and says that nothing is published yet."""
    detail = str(NotPublishedError("no classifier is published yet"))
    with Http() as http:
        assert_problem(
            http.get("/classifier"), problem("not-published", "No classifier yet", 404, detail)
        )
