"""Each problem of the catalogue is met through HTTP, with the catalogue's slug and status."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from app.errors import (
    ContainedError,
    KeyLimitError,
    LedgerUnavailableError,
    SwitchingError,
    UnavailableError,
    WaitingError,
)
from app.http.access.keys import Role
from app.http.access.tokens import tokens_of
from app.http.limits import Limits
from app.http.problems import TYPE_PREFIX
from app.settings.server_sections import OidcSettings
from tests.http.doubles import JSON, KEY_RING, KEYS, Http

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import httpx

# Nobody listens on the first port, and the token says which kind of key it asks for.
NOBODY = OidcSettings(issuer="http://127.0.0.1:1", audience="conclave")
TOKEN = "Bearer eyJhbGciOiJFUzI1NiJ9.e30.c2lnbmF0dXJl"
READ = {"Authorization": f"Bearer {KEYS[Role.READ]}"}
ROW = re.compile(r"^\| `([a-z-]+)` \| ([0-9]{3}) \| (.+) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
# What is said before any application is asked is met on real sockets.
ON_SOCKETS = {
    "malformed-request",
    "request-timeout",
    "headers-too-large",
    "too-many-connections",
}
SOCKET_TESTS = "tests/http/end_to_end/test_slow_clients.py"


def meet(
    method: str = "POST",
    path: str = "/query",
    content: bytes = b'{"features": [1, null]}',
    *,
    headers: dict[str, str] = JSON,
    prepare: Callable[[Http], object] = lambda _: None,
    **server: object,
) -> Callable[[], httpx.Response]:
    """Return what sends one request to a server that was prepared."""

    def send() -> httpx.Response:
        with Http(**server) as http:  # type: ignore[arg-type]  # its own options
            prepare(http)
            return http.request(method, path, content=content, headers=headers)

    return send


def failing(failure: Exception) -> Callable[[], httpx.Response]:
    """Return what meets a failure of the service."""
    return meet(prepare=lambda http: setattr(http.service, "failure", failure))


def conflict(http: Http) -> None:
    """Use a key with another vector."""
    http.ask([2, None], **{"Idempotency-Key": "k"})


def publish(http: Http) -> None:
    """Publish a classifier and a table."""
    http.service.published = http.service.table = b"{}"


MEETINGS: dict[str, Callable[[], httpx.Response]] = {
    "malformed-body": meet(content=b"{"),
    "invalid-parameter": meet(headers=JSON | {"Idempotency-Key": "two words"}),
    "unauthorized": meet(keys=KEY_RING),
    "forbidden": meet(keys=KEY_RING, headers=JSON | READ),
    "cross-site": meet(headers=JSON | {"Origin": "http://elsewhere.example"}),
    "not-found": meet("GET", "/nowhere"),
    "not-published": meet("GET", "/classifier"),
    "no-statistics": meet(
        "GET",
        "/statistics/table",
        prepare=lambda http: setattr(http.service, "statistics_share", 0),
    ),
    "method-not-allowed": meet("PUT"),
    "not-acceptable": meet("GET", "/classifier", headers={"Accept": "image/png"}, prepare=publish),
    "idempotency-conflict": meet(headers=JSON | {"Idempotency-Key": "k"}, prepare=conflict),
    "statistics-not-open": meet("GET", "/statistics/table"),
    "budget-exhausted": meet(queries_max=0),
    "too-large": meet(limits=Limits(body_bytes_max=10)),
    "unsupported-media-type": meet(headers={"Content-Type": "text/html"}),
    "misdirected-request": meet(loopback_only=True, headers={"Host": "elsewhere.example"}),
    "invalid-features": meet(content=b'{"features": [1]}'),
    "invalid-hypothesis": meet(
        path="/statistics", content=b'{"hypotheses": [{}]}', prepare=publish
    ),
    "key-limit": failing(KeyLimitError("reached")),
    "release-stopped": failing(ContainedError("stopped")),
    "internal-error": failing(ValueError("unforeseen")),
    "ledger-unavailable": failing(LedgerUnavailableError("full")),
    "issuer-unavailable": meet(
        keys=KEY_RING, tokens=tokens_of(NOBODY, str), headers=JSON | {"Authorization": TOKEN}
    ),
    "switching": failing(SwitchingError("drawn")),
    "waiting": failing(WaitingError("few")),
    "opening": meet(is_open=False),
    "too-many-streams": meet("GET", "/budget/events", limits=Limits(streams_max=0)),
    "unavailable": failing(UnavailableError("draining")),
}


@pytest.fixture(scope="module")
def catalogue(repository: Path) -> dict[str, tuple[str, ...]]:
    """Return status, what happened, what to do, whether again and what was charged, by slug."""
    page = (repository / "docs/errors.md").read_text("utf-8")
    return {slug: tuple(cells) for slug, *cells in ROW.findall(page)}


def test_every_problem_of_the_catalogue_is_met(catalogue: dict[str, tuple[str, ...]]) -> None:
    """None is left out here, and none is met that the catalogue does not have."""
    assert set(catalogue) == set(MEETINGS) | ON_SOCKETS
    assert not set(MEETINGS) & ON_SOCKETS


@pytest.mark.parametrize("slug", MEETINGS)
def test_a_problem_is_what_the_catalogue_says(
    catalogue: dict[str, tuple[str, ...]], slug: str
) -> None:
    """Slug and status are the row's, and what is to be tried again says when."""
    reply = MEETINGS[slug]()
    problem = reply.json()
    assert problem["type"] == TYPE_PREFIX + slug
    assert str(reply.status_code) == catalogue[slug][0] == str(problem["status"])
    assert reply.headers["content-type"] == "application/problem+json"
    assert ("retry-after" in reply.headers) == (reply.status_code == 503)


@pytest.mark.parametrize("slug", sorted(ON_SOCKETS))
def test_the_others_are_met_on_sockets(repository: Path, slug: str) -> None:
    """A test on real sockets asserts this very slug."""
    assert f'"{slug}"' in (repository / SOCKET_TESTS).read_text("utf-8")


def test_every_row_answers_the_four_questions(catalogue: dict[str, tuple[str, ...]]) -> None:
    """What happened, what to do, whether again, and what was charged: none is empty."""
    agains = {"yes", "no", "later", "after a change", "with a key", "with another key"}
    for slug, (_, happened, to_do, again, charged) in catalogue.items():
        assert happened != to_do, slug
        assert again in agains, slug
        assert charged, slug
