"""Bearer tokens of an OpenID provider that runs: let in, refused, and while it is down."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import re
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from joserfc import jwk, jwt
from structlog.testing import capture_logs

from app.errors import ConfigurationError, OpeningError, UnauthorizedError
from app.http.access.access_control import ENDED, SEND_EITHER, Caller
from app.http.access.keys import KeyRing, Role
from app.http.access.tokens import (
    ANOTHER,
    ANOTHER_ISSUER,
    DISCOVERY,
    KEYS_OF_ID_MAX,
    KNOWN_KEYS_SECONDS,
    NO_KEYS_ADDRESS,
    NO_SIGNING_KEY,
    NOT_INSTALLED,
    REFUSED_CLAIMS,
    TOO_LONG,
    UNKNOWN_KEY_SECONDS,
    UNREACHED,
    UNREADABLE,
    UNSIGNED,
    SigningKeys,
    Tokens,
    VerifiedToken,
    tokens_of,
)
from app.http.limits import Limits
from app.settings.server_sections import OidcSettings
from tests.builders.server.issuer import AUDIENCE, Issuer
from tests.http.doubles import JSON, KEY_RING, KEYS, Http, assert_problem, problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOUR = 3600
SECONDS_MAX = 60
ROUTES = {Role.QUERY: "/schema", Role.READ: "/budget", Role.ADMIN: "/keys/usage"}
SECRETS = ("ada-lovelace", "charles-babbage")


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    """Return a provider that no test changes; it signs by RSA, and others by a curve."""
    with Issuer() as issuer:
        issuer.rotate(keep=True)
        yield issuer


class Clock:
    """A clock that a test sets."""

    seconds = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.seconds


def named(subject: str) -> str:
    """Return a name that hides no subject; its issuer stands before it."""
    return f"oidc:{subject.rpartition(' ')[2]}"


def taking(address: str, clock: Callable[[], float] = time.monotonic, **more: Any) -> Http:
    """Return an application that takes keys of a ring, and tokens of a provider."""
    settings = OidcSettings(issuer=address, audience=AUDIENCE, **more)
    tokens = Tokens(settings, SigningKeys(address, clock=clock), named)
    return Http(keys=KEY_RING, tokens=tokens)


def ask(http: Http, token: str, path: str = "/schema") -> httpx.Response:
    """Read a route with a token."""
    return http.get(path, headers={"Authorization": f"Bearer {token}"})


def unauthorized(detail: str) -> dict[str, object]:
    """Return the refusal of a token."""
    return problem("unauthorized", "No valid key", 401, detail + ANOTHER)


@pytest.mark.parametrize(
    ("named", "roles"),
    [
        (["query"], {Role.QUERY}),
        (["read", "query"], {Role.QUERY, Role.READ}),
        (["admin"], set(Role)),
        ("read", {Role.READ}),
        ("openid query", {Role.QUERY}),
        (["Admin", "queries", 1, ["read"], None], set()),
        ({"admin": True}, set()),
        (True, set()),
        (None, set()),
    ],
)
def test_the_claim_of_roles_opens_their_routes(
    issuer: Issuer, named: object, roles: set[Role]
) -> None:
    """A list or a text with spaces between; what is no role is left aside."""
    with taking(issuer.address) as http:
        token = issuer.token(roles=named)
        opened = {role for role, path in ROUTES.items() if ask(http, token, path).is_success}
        assert opened == roles
        if not roles:
            detail = "this route needs the role query, and the token has none; send another token"
            expected = problem("forbidden", "Role does not allow this", 403, detail)
            assert_problem(ask(http, token), expected)


def test_another_claim_may_name_the_roles(issuer: Issuer) -> None:
    """The setting says which one; the default one then grants nothing."""
    claim = "https://conclave.example/roles"
    with taking(issuer.address, roles_claim=claim) as http:
        assert ask(http, issuer.token(**{claim: ["query"]}, roles=None)).status_code == 200
        assert ask(http, issuer.token()).status_code == 403


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"exp": int(time.time()) - HOUR}, REFUSED_CLAIMS["exp"]),
        ({"exp": None}, REFUSED_CLAIMS["exp"]),
        ({"exp": "tomorrow"}, REFUSED_CLAIMS["exp"]),
        # Later than the end of the slowest run of all tests, which began before this line was read.
        ({"nbf": int(time.time()) + 1000 * HOUR}, REFUSED_CLAIMS["nbf"]),
        ({"iat": int(time.time()) + 1000 * HOUR}, REFUSED_CLAIMS["iat"]),
        ({"aud": "another"}, REFUSED_CLAIMS["aud"]),
        ({"aud": ["another", "conclave-not"]}, REFUSED_CLAIMS["aud"]),
        ({"aud": None}, REFUSED_CLAIMS["aud"]),
        ({"iss": "https://charles-babbage.example"}, REFUSED_CLAIMS["iss"]),
        ({"iss": None}, REFUSED_CLAIMS["iss"]),
        ({"sub": None}, REFUSED_CLAIMS["sub"]),
        ({"sub": ""}, REFUSED_CLAIMS["sub"]),
        ({"sub": 7}, REFUSED_CLAIMS["sub"]),
    ],
)
def test_a_token_whose_claims_do_not_hold_is_refused(
    issuer: Issuer, changes: dict[str, object], detail: str
) -> None:
    """Each claim has a text of its own, which repeats nothing of the token."""
    with taking(issuer.address) as http:
        assert_problem(ask(http, issuer.token(**changes)), unauthorized(detail))


def test_one_audience_of_several_is_enough(issuer: Issuer) -> None:
    """A list names everybody whom the token is for."""
    with taking(issuer.address) as http:
        assert ask(http, issuer.token(aud=["another", AUDIENCE])).status_code == 200


def encoded(document: object) -> str:
    """Return a part of a token."""
    text = document if isinstance(document, str) else json.dumps(document)
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def forgeries(issuer: Issuer) -> dict[str, tuple[str, str]]:
    """Return tokens that the provider's key did not sign, and what is said to each."""
    claims, published = issuer.claims(roles=["admin"]), issuer.public_key()
    body, kid = encoded(claims), published["kid"]
    public = jwk.RSAKey.import_key(published).as_pem(private=False)
    own = jwk.generate_key("RSA", 2048, {"kid": kid})

    def signed(**header: Any) -> str:
        return jwt.encode({"alg": "RS256", "kid": kid, **header}, claims, own)

    def shared(secret: bytes, kid: str) -> str:
        text = f"{encoded({'alg': 'HS256', 'kid': kid})}.{body}"
        mark = hmac.digest(secret, text.encode(), "sha256")
        return f"{text}.{base64.urlsafe_b64encode(mark).rstrip(b'=').decode()}"

    head, _, signature = issuer.token().split(".")
    return {
        "none": (f"{encoded({'alg': 'none', 'kid': kid})}.{body}.", UNSIGNED),
        "None": (f"{encoded({'alg': 'None', 'kid': kid})}.{body}.", UNSIGNED),
        "a mark by the public key": (shared(public, kid), UNSIGNED),
        "a mark by a shared key": (shared(b"secret", "shared"), UNSIGNED),
        "another key of that id": (signed(), UNSIGNED),
        "its own key in the header": (signed(jwk=own.as_dict(private=False)), UNREADABLE),
        "an unknown id": (signed(kid="unknown"), UNSIGNED),
        "another body": (f"{head}.{body}.{signature}", UNSIGNED),
        "no signature": (f"{head}.{body}.", UNSIGNED),
        "another algorithm": (
            f"{encoded({'alg': 'ES256', 'kid': kid})}.{body}.{signature}",
            UNSIGNED,
        ),
        "an id that is no text": (f"{encoded({'alg': 'RS256', 'kid': 1})}.{body}.x", UNREADABLE),
        "no algorithm": (f"{encoded({'kid': kid})}.{body}.x", UNREADABLE),
        "a header that is a list": (f"{encoded([])}.{body}.x", UNREADABLE),
        "deep nesting": (f"{encoded('[' * 9000)}.{body}.x", UNREADABLE),
        "an encrypted token": (f"{head}.a.b.c.d", UNREADABLE),
        "points": ("..", UNREADABLE),
        "letters beyond": ("\xe9.\xe9.\xe9", UNREADABLE),
    }


def test_no_forged_token_opens_a_door(issuer: Issuer) -> None:
    """Neither none, nor a shared secret, nor another key; nothing of it is told or logged."""
    forged = forgeries(issuer)
    replies = {}
    with taking(issuer.address) as http, capture_logs() as logged:
        for name, (token, _) in forged.items():
            headers = [(b"authorization", f"Bearer {token}".encode("latin-1"))]
            replies[name] = http.get("/schema", headers=headers)
        assert ask(http, issuer.token()).status_code == 200
    assert {name: reply.json() for name, reply in replies.items()} == {
        name: unauthorized(detail) for name, (_, detail) in forged.items()
    }
    said = " ".join([*map(str, logged), *(reply.text for reply in replies.values())])
    assert not [word for word in (*SECRETS, "eyJ") if word in said]


def test_what_is_no_token_is_asked_for_either(issuer: Issuer) -> None:
    """A server that takes tokens says so; a token is no password of Basic."""
    expected = problem("unauthorized", "No valid key", 401, SEND_EITHER)
    basic = base64.b64encode(f":{issuer.token()}".encode()).decode()
    with taking(issuer.address) as http:
        for given in ({}, {"Authorization": "Bearer nothing"}, {"Authorization": f"Basic {basic}"}):
            assert_problem(http.get("/schema", headers=given), expected)


def test_a_key_of_the_file_opens_beside(issuer: Issuer) -> None:
    """Keys are looked for first, and ask no provider."""
    before = issuer.fetch_count()
    with taking(issuer.address) as http:
        assert ask(http, KEYS[Role.READ], "/budget").status_code == 200
    assert issuer.fetch_count() == before


def test_a_new_key_of_the_provider_is_fetched_once_a_minute_at_most() -> None:
    """A rotation is followed at its first token; unknown ids do not make the server ask on."""
    clock = Clock()
    with Issuer() as issuer, taking(issuer.address, clock) as http:
        old = issuer.token()
        assert ask(http, old).status_code == 200
        issuer.rotate()
        assert ask(http, issuer.token()).status_code == 200
        assert issuer.fetch_count() == 2
        assert_problem(ask(http, old), unauthorized(UNSIGNED))
        issuer.rotate(keep=True)
        newest = issuer.token()
        for _ in range(3):
            assert_problem(ask(http, newest), unauthorized(UNSIGNED))
        assert issuer.fetch_count() == 2
        clock.seconds += UNKNOWN_KEY_SECONDS
        assert ask(http, newest).status_code == 200
        assert issuer.fetch_count() == 3


def test_known_keys_are_fetched_again_while_tokens_come() -> None:
    """A key that the provider withdrew opens nothing any more, and nobody waits for that."""
    clock = Clock()
    with Issuer() as issuer, taking(issuer.address, clock) as http:
        token = issuer.token()
        assert ask(http, token).status_code == 200
        issuer.rotate()
        clock.seconds += KNOWN_KEYS_SECONDS - 1
        assert ask(http, token).status_code == 200
        assert issuer.fetch_count() == 1
        clock.seconds += 1
        deadline = time.monotonic() + SECONDS_MAX
        while ask(http, token).status_code == 200:
            assert time.monotonic() < deadline
        # Once since it was time, and once for an id that is unknown since then.
        assert issuer.fetch_count() == 3


def test_a_token_of_a_withdrawn_key_ends_its_stream() -> None:
    """An open stream follows a rotation too: it asks for the keys itself, and then says why."""
    clock = Clock()

    async def follow(issuer: Issuer) -> list[str]:
        settings = OidcSettings(issuer=issuer.address, audience=AUDIENCE)
        tokens = Tokens(settings, SigningKeys(issuer.address, clock=clock), named)
        found = await tokens.find(issuer.token())
        caller = Caller(found, Role.QUERY, found.now)
        caller.found_now()
        issuer.rotate()
        clock.seconds += KNOWN_KEYS_SECONDS
        refusals: list[str] = []
        async with asyncio.timeout(SECONDS_MAX):
            while not refusals:
                await asyncio.sleep(0.001)
                try:
                    caller.found_now()
                except UnauthorizedError as error:
                    refusals.append(str(error))
        assert (await tokens.find(issuer.token())).now() is not None
        return refusals

    with Issuer() as issuer:
        assert asyncio.run(follow(issuer)) == [ENDED]


def test_a_set_may_have_keys_that_nobody_understands() -> None:
    """Whatever is no usable key is left aside, and keys of one id are told apart by trying."""
    with Issuer() as issuer:
        token, key_id = issuer.token(), issuer.public_key()["kid"]
        twin = jwk.generate_key("RSA", 2048, {"kid": key_id}).as_dict(private=False)
        other = jwk.generate_key("EC", "P-256", {"kid": key_id}).as_dict(private=False)
        issuer.publish_beside(
            twin, other, 1, None, [], {"kty": ["EC"]}, {"kty": {}}, other | {"kid": ["a"]}
        )
        with taking(issuer.address) as http:
            assert ask(http, token).status_code == 200
            assert_problem(ask(http, issuer.token(aud="x")), unauthorized(REFUSED_CLAIMS["aud"]))


def test_of_many_keys_with_one_id_few_are_tried() -> None:
    """A check of a token takes a bounded time, whatever the provider publishes."""
    with Issuer() as issuer:
        token, key_id = issuer.token(), issuer.public_key()["kid"]
        other = jwk.generate_key("EC", "P-256", {"kid": key_id}).as_dict(private=False)
        issuer.publish_beside(*[other] * KEYS_OF_ID_MAX)
        with taking(issuer.address) as http:
            assert_problem(ask(http, token), unauthorized(UNSIGNED))


def test_a_private_key_that_is_published_is_read_as_a_public_one() -> None:
    """Checking a private key takes tens of milliseconds, and its public part is all it needs."""
    private = jwk.generate_key("RSA", 2048, {"kid": "open"})
    with Issuer() as issuer:
        issuer.publish_beside(private.as_dict(private=True))

        async def published() -> list[bool]:
            keys = SigningKeys(issuer.address)
            return [key.is_private for key in await keys.find("open")]

        assert asyncio.run(published()) == [False]


def test_a_provider_that_does_not_answer_delays_nobody_else() -> None:
    """While a token waits for the provider's keys, a key of the file is answered."""

    async def listen(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await released.wait()
        writer.close()
        await writer.wait_closed()
        ended.set()

    async def play(http: Http) -> None:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(http.application), base_url="http://127.0.0.1:8000"
        ) as client:
            token = {"Authorization": f"Bearer {encoded({'alg': 'RS256', 'kid': 'a'})}.e30.x"}
            key = {"Authorization": f"Bearer {KEYS[Role.QUERY]}"}
            waiting = asyncio.create_task(client.get("/schema", headers=token))
            await asked.wait()
            for _ in range(20):
                assert (await client.get("/schema", headers=key)).status_code == 200
            assert not waiting.done()
            released.set()
            assert (await waiting).status_code == 503
            await ended.wait()

    async def serve() -> None:
        server = await asyncio.start_server(listen, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with taking(f"http://127.0.0.1:{port}") as http:
                await play(http)

    asked, released, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    asyncio.run(serve())


def test_a_provider_that_is_down_stops_nobody_once_its_keys_are_known() -> None:
    """Tokens that were seen before and tokens that were not go on; unknown keys are refused."""
    with Issuer() as issuer, taking(issuer.address) as http:
        seen, unseen = issuer.token(), issuer.token(sub="charles-babbage")
        issuer.rotate()
        unknown = issuer.token()
        issuer.rotate(keep=True)
        assert ask(http, issuer.token()).status_code == 200
        assert ask(http, unknown).status_code == 200
        issuer.end()
        assert ask(http, unknown).status_code == 200
        for token in (seen, unseen):
            assert_problem(ask(http, token), unauthorized(UNSIGNED))


def test_a_provider_that_is_down_from_the_start_is_waited_for() -> None:
    """503 with a time to wait while no key is known; keys of the file open all the same."""
    with Issuer() as first:
        port, token = first.port, first.token()
    forged = f"{encoded({'alg': 'none'})}.{token.split('.')[1]}."
    clock = Clock()
    with taking(f"http://127.0.0.1:{port}", clock) as http:
        expected = problem("issuer-unavailable", "OpenID provider unavailable", 503, UNREACHED)
        with capture_logs() as logged:
            for _ in range(3):
                reply = ask(http, token)
                assert_problem(reply, expected)
        assert [line["event"] for line in logged].count("issuer_not_reached") == 1
        assert ask(http, KEYS[Role.QUERY]).status_code == 200
        assert_problem(ask(http, forged), unauthorized(UNSIGNED))
        with Issuer(port) as issuer:
            clock.seconds += int(reply.headers["retry-after"])
            assert ask(http, issuer.token()).status_code == 200


def test_a_document_that_is_not_the_issuers_is_not_followed() -> None:
    """Another issuer's, one whose keys anybody could answer for, and one without an end."""
    with Issuer() as issuer:
        token = issuer.token()
        wrong: tuple[tuple[dict[str, object], str], ...] = (
            ({"issuer": "https://elsewhere.example"}, ANOTHER_ISSUER),
            ({"issuer": f"{issuer.address}/"}, ANOTHER_ISSUER),
            ({"jwks_uri": "http://192.0.2.1/keys"}, NO_KEYS_ADDRESS),
            ({"jwks_uri": None}, NO_KEYS_ADDRESS),
            ({"jwks_uri": "file:///etc/passwd"}, NO_KEYS_ADDRESS),
            ({"jwks_uri": f"{issuer.address}{DISCOVERY}"}, NO_SIGNING_KEY),
            ({"padding": "x" * 2**20}, TOO_LONG),
        )
        for changes, reason in wrong:
            issuer.publish(**changes)
            with taking(issuer.address) as http, capture_logs() as logged:
                assert ask(http, token).status_code == 503
            assert [line.get("reason") for line in logged if "error" in line][:1] == [reason]
        issuer.publish()
        with taking(issuer.address) as http:
            assert ask(http, token).status_code == 200


def test_a_subject_has_limits_and_a_name_that_does_not_tell_it(issuer: Issuer) -> None:
    """Replies say what is left, and lines of the log name the digest."""
    with taking(issuer.address, limit=5) as http, capture_logs() as logged:
        headers = JSON | {"Authorization": f"Bearer {issuer.token()}"}
        reply = http.request("POST", "/query", content=b"{", headers=headers)
    assert reply.headers["ratelimit"] == '"answers";r=5'
    assert [line.get("key") for line in logged if line["event"] == "request_refused"] == [
        "oidc:ada-lovelace"
    ]


def unnamed(subject: str) -> str:
    """Name nobody, as a release that is not open does."""
    raise OpeningError(subject)


def test_events_need_no_name_of_their_subject(issuer: Issuer) -> None:
    """A stream ends with its token alone, and not because nobody names it any more."""
    settings = OidcSettings(issuer=issuer.address, audience=AUDIENCE)
    token = issuer.token(roles=["read"])

    async def listen(http: Http) -> None:
        async with http.wire("GET", "/budget/events", Authorization=f"Bearer {token}") as wire:
            await wire.receive()
            for _ in range(2):
                assert (await wire.receive_body()).startswith(b"event: budget")
                http.service.announce()

    limits = Limits(event_interval_seconds=0.01)
    with Http(keys=KEY_RING, tokens=tokens_of(settings, unnamed), limits=limits) as http:
        http.runner.run(listen(http))


def test_while_the_release_opens_a_subject_has_no_name(issuer: Issuer) -> None:
    """The ledger's secret names it; a token is checked before anything else is said."""
    settings = OidcSettings(issuer=issuer.address, audience=AUDIENCE, limit=5)
    tokens = tokens_of(settings, unnamed)
    with (
        Http(keys=KeyRing(()), tokens=tokens, is_open=False) as opening,
        capture_logs() as logged,
    ):
        assert ask(opening, issuer.token()).status_code == 503
        assert ask(opening, issuer.token(aud="another")).status_code == 401
        read = ask(opening, issuer.token(roles=["read"]), "/metrics")
    assert read.status_code == 200
    assert read.headers["ratelimit-policy"] == '"answers";q=5'
    assert [line.get("key") for line in logged if line["event"] == "request_refused"] == [
        "oidc",
        None,
    ]


def test_a_token_that_ends_ends_its_stream() -> None:
    """What is asked on a connection that is open goes by the token of now."""
    token = VerifiedToken(
        roles=frozenset({Role.QUERY}),
        limits=(None, None),
        subject="ada",
        until=time.time() + HOUR,
        name_of=str,
        is_signed=lambda: True,
    )
    assert Caller(token, Role.QUERY, token.now).found_now().asker.name == "ada"
    late = replace(token, until=time.time() - 1)
    unsigned = replace(token, is_signed=lambda: False)
    for ended in (late, unsigned):
        with pytest.raises(UnauthorizedError, match=re.escape(ENDED)):
            Caller(token, Role.QUERY, ended.now).found_now()


def test_without_the_extra_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the setting and what to install."""
    monkeypatch.setitem(sys.modules, "joserfc.jws", None)
    settings = OidcSettings(issuer="https://accounts.example.com", audience=AUDIENCE)
    with pytest.raises(ConfigurationError) as refused:
        tokens_of(settings, str)
    assert str(refused.value) == f"server.oidc: {NOT_INSTALLED}"
    assert tokens_of(None, str) is None
