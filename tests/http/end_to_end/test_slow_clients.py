"""Slow, greedy and broken clients on real sockets: they are cut off, and others are served."""

from __future__ import annotations

import json
import resource
import select
import socket
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.builders.server.http_release import SmallRelease, agreed
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.builders.server.server_process import ServerProcess

SECONDS = 1.0
# The server looks twice a second, and this machine may be busy.
SECONDS_MAX = 30.0
IDLE_CONNECTIONS = 1000
STREAMS = 3
OWN_FILES = 200
HEAD = "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
LIMITS = {
    "HEADER_SECONDS_MAX": SECONDS,
    "BODY_SECONDS_MAX": SECONDS,
    "STALLED_SECONDS_MAX": SECONDS,
    "STREAM_IDLE_SECONDS_MAX": SECONDS,
    "HEADER_BYTES_MAX": 4096,
    "STREAMS_MAX": STREAMS,
}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> SmallRelease:
    """Return a release to be served."""
    return SmallRelease(tmp_path_factory.mktemp("slow")).write()


@contextmanager
def limited(release: SmallRelease, **limits: object) -> Iterator[ServerProcess]:
    """Serve a release with limits of the server."""
    environ = {f"CONCLAVE_SERVER__{name}": str(limit) for name, limit in limits.items()}
    with serving(release.config, environ=environ) as server:
        yield server


@pytest.fixture(scope="module")
def server(release: SmallRelease) -> Iterator[ServerProcess]:
    """Serve with limits of a second."""
    with limited(release, **LIMITS) as server:
        yield server


@contextmanager
def connected(
    server: ServerProcess, *, receive_bytes: int | None = None
) -> Iterator[socket.socket]:
    """Connect, as plainly as can be."""
    host, port = server.address.removeprefix("http://").split(":")
    with socket.socket() as client:
        if receive_bytes is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        client.settimeout(SECONDS_MAX)
        client.connect((host, int(port)))
        yield client


def rest_of(client: socket.socket) -> bytes:
    """Read until the server closes; what it resets is closed too."""
    said = b""
    try:
        while piece := client.recv(65536):
            said += piece
    except ConnectionResetError:
        pass
    return said


def problem_in(said: bytes) -> dict[str, Any]:
    """Return the problem of a whole reply that was read raw."""
    head, _, body = said.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head.lower()
    assert b"connection: close" in head.lower()
    problem: dict[str, Any] = json.loads(body)
    assert head.startswith(b"HTTP/1.1 %d " % problem["status"])
    return problem


def slug_in(said: bytes) -> str:
    """Return the last part of the type of the problem in a raw reply."""
    return str(problem_in(said)["type"].rpartition(":")[2])


def answered(server: ServerProcess) -> int:
    """Return how many answers were charged."""
    budget = httpx.get(f"{server.address}/budget", timeout=SECONDS_MAX).json()
    return int(budget["queries"]["answered"])


def drip(
    client: socket.socket, *, begun: bytes = b"", piece: bytes = b"a", seconds: float = 0.2
) -> float:
    """Send the beginning, and a byte now and then until the server has closed; return how long."""
    started = time.monotonic()
    client.sendall(begun)
    client.settimeout(0)
    while time.monotonic() < started + SECONDS_MAX:
        time.sleep(seconds)
        try:
            client.send(piece)
            if client.recv(1, socket.MSG_PEEK) is not None:
                break
        except BlockingIOError:
            continue
        except OSError:
            break
    client.settimeout(SECONDS_MAX)
    return time.monotonic() - started


def test_headers_that_drip_are_cut_off(server: ServerProcess) -> None:
    """Bytes of a header, however regular, do not keep a connection: 408, and it closes."""
    with connected(server) as client:
        taken = drip(client, begun=HEAD.format(path="/query").encode() + b"X-Slow: ")
        assert slug_in(rest_of(client)) == "request-timeout"
    assert SECONDS * 0.9 < taken < SECONDS_MAX


def test_a_connection_that_says_nothing_is_closed(server: ServerProcess) -> None:
    """Without a byte there is no request to answer."""
    with connected(server) as client:
        assert rest_of(client) == b""


def test_empty_lines_do_not_keep_a_connection(server: ServerProcess) -> None:
    """After a reply, blank lines are no request, and the time for one runs."""
    with connected(server) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert client.recv(15) == b"HTTP/1.1 200 OK"
        client.recv(65536)
        assert drip(client, piece=b"\r\n") < SECONDS_MAX


def test_a_body_that_drips_is_cut_off(server: ServerProcess) -> None:
    """A body must be whole in its time: 408, and nothing was charged."""
    before = answered(server)
    with connected(server) as client:
        head = HEAD.format(path="/query") + "Content-Length: 1000\r\n\r\n"
        taken = drip(client, begun=head.encode() + b'{"features": [', piece=b" ")
        assert slug_in(rest_of(client)) == "request-timeout"
    assert SECONDS * 0.9 < taken < SECONDS_MAX
    assert answered(server) == before


def test_an_inference_that_drips_is_cut_off_in_its_own_form(server: ServerProcess) -> None:
    """Below /v2 a request that is cut off is told so as that protocol tells errors."""
    with connected(server) as client:
        head = HEAD.format(path="/v2/models/members/infer") + "Content-Length: 1000\r\n\r\n"
        client.sendall(head.encode() + b'{"inputs": [')
        drip(client, piece=b" ")
        head_said, _, body = rest_of(client).partition(b"\r\n\r\n")
    assert head_said.startswith(b"HTTP/1.1 408 ")
    assert b"content-type: application/json\r\n" in head_said
    assert set(json.loads(body)) == {"error"}


def test_the_rest_of_a_refused_body_is_not_waited_for(server: ServerProcess) -> None:
    """A client that got its refusal and drips on is closed without another word."""
    with connected(server) as client:
        head = HEAD.format(path="/query") + "Content-Type: text/plain\r\nContent-Length: 999\r\n"
        client.sendall(head.encode() + b"\r\n{")
        assert b" 415 " in client.recv(65536)
        assert drip(client) < SECONDS_MAX


@pytest.mark.parametrize("at_once", [True, False])
def test_long_headers_are_refused(server: ServerProcess, at_once: bool) -> None:  # noqa: FBT001 -- a table
    """431, whether they come in one piece or the end never comes."""
    headers = "".join(f"X-{number}: {'a' * 90}\r\n" for number in range(60))
    with connected(server) as client:
        whole = HEAD.format(path="/query") + headers
        if at_once:
            client.sendall((whole + "\r\n").encode())
        else:
            for number in range(0, len(whole), 500):
                with suppress(OSError):
                    client.sendall(whole[number : number + 500].encode())
                time.sleep(0.005)
        assert slug_in(rest_of(client)) == "headers-too-large"


def test_a_long_request_line_is_refused(server: ServerProcess) -> None:
    """The address counts as the headers do."""
    with connected(server) as client:
        client.sendall(b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert slug_in(rest_of(client)) == "headers-too-large"


@pytest.mark.parametrize(
    "sent",
    [
        b"NOT HTTP\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"POST /query HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST /query HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET \xff HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_not_http_gets_a_problem_too(server: ServerProcess, sent: bytes) -> None:
    """400 in the one error shape, for TLS on a plain port as for smuggled lengths."""
    with connected(server) as client:
        client.sendall(sent)
        assert slug_in(rest_of(client)) == "malformed-request"


def test_a_client_that_does_not_read_is_cut_off(server: ServerProcess) -> None:
    """A stream whose replies nobody reads ends, once the client sends nothing either."""
    # A refusal of 250 bytes each: 10 MB, more than the buffers of the system hold.
    with connected(server, receive_bytes=4096) as client:
        head = HEAD.format(path="/query/stream") + "Content-Type: application/x-ndjson\r\n"
        started = time.monotonic()
        client.sendall(head.encode() + b"Content-Length: 99999999\r\n\r\n")
        client.sendall(b"1\n" * 40_000)
        watch = select.poll()
        watch.register(client, 0)  # only errors, and the end
        assert watch.poll(SECONDS_MAX * 1000)
        assert time.monotonic() - started > SECONDS * 0.5


def test_a_silent_stream_ends_with_a_word(server: ServerProcess) -> None:
    """Lines before are answered; the last line of the reply says why it ends."""
    line = json.dumps({"features": agreed(1)}).encode() + b"\n"
    with connected(server) as client:
        head = HEAD.format(path="/query/stream") + "Content-Type: application/x-ndjson\r\n"
        client.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        client.sendall(b"%x\r\n%s\r\n" % (len(line), line))
        drip(client, piece=b"1\r\n \r\n", seconds=0.1)
        said = rest_of(client)
    lines = [json.loads(each) for each in said.splitlines() if each.startswith(b"{")]
    assert lines[0]["label"] == "no"
    assert lines[-1]["type"] == "urn:conclave:problem:request-timeout"


def test_streams_are_bounded(server: ServerProcess) -> None:
    """Beyond the limit a stream is refused, and there is room again when one ends."""
    with ExitStack() as held:
        client = held.enter_context(httpx.Client(base_url=server.address, timeout=SECONDS_MAX))
        for _ in range(STREAMS):
            held.enter_context(client.stream("GET", "/budget/events"))
        refused = httpx.get(f"{server.address}/budget/events", timeout=SECONDS_MAX)
        assert refused.json()["type"] == "urn:conclave:problem:too-many-streams"
        assert refused.headers["retry-after"] == "5"
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        with httpx.stream("GET", f"{server.address}/budget/events") as again:
            if again.status_code == 200:
                return
        time.sleep(0.1)
    pytest.fail("the places of streams that ended were not given again")


def test_a_thousand_idle_connections_hold_nobody_up(release: SmallRelease, tmp_path: Path) -> None:
    """A good client is served beside them; one address has its limit, and so has the server."""
    copy = release.copy_to(tmp_path / "idle")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, IDLE_CONNECTIONS + OWN_FILES), hard))
    try:
        with (
            limited(
                copy, CONNECTIONS_PER_CLIENT_MAX=IDLE_CONNECTIONS + 1, HEADER_SECONDS_MAX=120
            ) as server,
            ExitStack() as held,
        ):
            for _ in range(IDLE_CONNECTIONS):
                held.enter_context(connected(server))
            with httpx.Client(base_url=server.address, timeout=SECONDS_MAX) as client:
                for number in range(5):
                    reply = client.post("/query", json={"features": agreed(number)})
                    assert reply.status_code == 200
                with connected(server) as one_more:
                    said = rest_of(one_more)
                assert slug_in(said) == "too-many-connections"
                assert b"retry-after: 5" in said
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_server_has_a_limit_of_its_own(release: SmallRelease, tmp_path: Path) -> None:
    """Places are given again when connections end."""
    copy = release.copy_to(tmp_path / "few")
    with limited(copy, CONNECTIONS_MAX=2) as server:
        with connected(server), connected(server), connected(server) as third:
            assert slug_in(rest_of(third)) == "too-many-connections"
        deadline = time.monotonic() + SECONDS_MAX
        while httpx.get(f"{server.address}/healthz", timeout=SECONDS_MAX).status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)
