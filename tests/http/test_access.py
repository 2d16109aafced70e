"""Keys, roles, and what a browser must not be tricked into."""

from __future__ import annotations

import base64

import pytest

from app.http.access.access_control import CROSS_SITE, MISDIRECTED, SEND_A_KEY
from app.http.access.keys import Role
from app.http.route_handling import EdgeRoute
from app.http.routes import ROUTES
from tests.http.doubles import JSON, KEY_RING, KEYS, Http, assert_problem, path_of, problem

UNAUTHORIZED = problem("unauthorized", "No valid key", 401, SEND_A_KEY)
WHOLE_REPLIES = [entry for entry in ROUTES if entry.path != "/budget/events"]
WITH_ROLE = [entry for entry in ROUTES if entry.role is not None]


def bearer(role: Role) -> dict[str, str]:
    """Return the header of a client with this role."""
    return {"Authorization": f"Bearer {KEYS[role]}"}


def basic(user: str, password: str) -> dict[str, str]:
    """Return the header of a client that sends a user and a password."""
    credentials = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {credentials}"}


@pytest.mark.parametrize("entry", WITH_ROLE, ids=lambda entry: entry.path)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer no-such-key"},
        {"Authorization": "Basic !"},
        {"Authorization": "Basic " + base64.b64encode(b"no colon").decode()},
        {"Authorization": "Digest x"},
        basic("key-of-admin", ""),
    ],
)
def test_every_route_with_a_role_wants_a_key(entry: EdgeRoute, headers: dict[str, str]) -> None:
    """No key, an unknown one or a mangled one: 401 that offers both schemes."""
    with Http(keys=KEY_RING) as http:
        reply = http.request(entry.method, path_of(entry), headers=headers)
    assert_problem(reply, UNAUTHORIZED)
    challenges = reply.headers.get_list("www-authenticate")
    assert [challenge.split()[0] for challenge in challenges] == ["Bearer", "Basic"]


@pytest.mark.parametrize("entry", WHOLE_REPLIES, ids=lambda entry: entry.path)
@pytest.mark.parametrize("role", Role)
def test_a_route_opens_to_its_role_and_to_admin(entry: EdgeRoute, role: Role) -> None:
    """Roles query and read exclude each other; admin includes both; probes ask for nothing."""
    with Http(keys=KEY_RING) as http:
        http.service.published = http.service.table = b"{}"
        reply = http.request(entry.method, path_of(entry), headers=bearer(role))
    if entry.role in {None, role} or role is Role.ADMIN:
        assert reply.status_code in {200, 400}
    else:
        detail = f"this route needs the role {entry.role}, and the key has {role}; send another key"
        expected = problem("forbidden", "Role does not allow this", 403, detail)
        assert_problem(reply, expected)


def test_the_roles_are_those_of_the_contract() -> None:
    """The table of routes grants what the interface says, path by path."""
    assert {entry.path: entry.role for entry in ROUTES} == {
        "/query": Role.QUERY,
        "/query/stream": Role.QUERY,
        "/budget": Role.READ,
        "/budget/events": Role.READ,
        "/ledger": Role.ADMIN,
        "/ledger/head": Role.READ,
        "/ledger/storage": Role.ADMIN,
        "/server": Role.READ,
        "/keys/usage": Role.ADMIN,
        "/classifier": Role.QUERY,
        "/statistics": Role.QUERY,
        "/statistics/table": Role.QUERY,
        "/budget/outlook": Role.READ,
        "/budget/history": Role.READ,
        "/parameters": Role.READ,
        "/schema": Role.QUERY,
        "/metrics": Role.READ,
        "/v2": Role.QUERY,
        "/v2/models/{name}": Role.QUERY,
        "/v2/models/{name}/infer": Role.QUERY,
        "/v2/health/live": None,
        "/v2/health/ready": None,
        "/v2/models/{name}/ready": None,
        "/invocations": Role.QUERY,
        "/ping": Role.QUERY,
        "/healthz": None,
        "/readyz": None,
    }


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_read_in_any_case(scheme: str) -> None:
    """HTTP's scheme names have no case."""
    with Http(keys=KEY_RING) as http:
        headers = {"Authorization": f"{scheme} {KEYS[Role.READ]}"}
        assert http.get("/budget", headers=headers).status_code == 200


@pytest.mark.parametrize("user", ["", "anyone"])
def test_a_key_may_travel_as_the_basic_password(user: str) -> None:
    """The user's name does not matter."""
    with Http(keys=KEY_RING) as http:
        assert http.get("/budget", headers=basic(user, KEYS[Role.READ])).status_code == 200


def test_a_key_is_checked_before_anything_else_is_said() -> None:
    """Without a key nobody learns that the release is still opening."""
    with Http(keys=KEY_RING, is_open=False) as http:
        assert_problem(http.get("/budget"), UNAUTHORIZED)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8000", "localhost:8000", "LOCALHOST", "[::1]:8000", "127.8.8.8", "a.localhost"],
)
def test_a_loopback_server_answers_to_loopback_names(host: str) -> None:
    """Every way to say this machine reaches a server without keys."""
    with Http(loopback_only=True) as http:
        assert http.get("/budget", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "10.0.0.1", "localhost.evil", "["]
)
def test_a_loopback_server_answers_to_no_other_name(host: str) -> None:
    """A web page cannot reach a server without keys by pointing its own name at it."""
    expected = problem("misdirected-request", "Not a name of this server", 421, MISDIRECTED)
    with Http(loopback_only=True) as http:
        assert_problem(http.get("/budget", headers={"Host": host}), expected)
        assert http.get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:3000"])
def test_another_site_cannot_spend_the_budget(origin: str) -> None:
    """A POST that a browser sends for another site's page is refused without keys."""
    expected = problem("cross-site", "Request from another site", 403, CROSS_SITE)
    with Http() as http:
        assert_problem(http.ask([1, None], Origin=origin), expected)
        assert http.ask([1, None], Origin="http://127.0.0.1:8000").status_code == 200
        assert http.get("/budget", headers={"Origin": origin}).status_code == 200


def test_another_site_cannot_use_a_password_that_a_browser_kept() -> None:
    """Browsers add Basic credentials by themselves, and never a Bearer key."""
    body = {"content": b'{"features": [1, null]}'}
    with Http(keys=KEY_RING) as http:
        headers = JSON | basic("", KEYS[Role.QUERY]) | {"Origin": "http://evil.example"}
        kept = http.request("POST", "/query", headers=headers, **body)
        headers = JSON | bearer(Role.QUERY) | {"Origin": "http://front.example"}
        sent = http.request("POST", "/query", headers=headers, **body)
    assert_problem(kept, problem("cross-site", "Request from another site", 403, CROSS_SITE))
    assert sent.status_code == 200
