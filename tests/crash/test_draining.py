"""A wish to end finds requests anywhere between a client and the server: each has its reply.

The server is paused while they are sent, so that they lie with the system, unread, when the
wish comes; what the system has acknowledged to a client had reached the machine.
"""

from __future__ import annotations

import json
import re
import resource
import signal
import socket
import termios
import time
from array import array
from contextlib import ExitStack
from fcntl import ioctl
from http import HTTPStatus
from http.client import HTTPResponse
from typing import TYPE_CHECKING

import pytest

from tests.builders.server.http_release import agreed
from tests.builders.server.nursery import started

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.builders.server.server_process import ServerProcess
    from tests.http.end_to_end.conftest import OpenedRelease

pytestmark = pytest.mark.crash

END_SECONDS_MAX = 10.0
REPLY_SECONDS_MAX = 60.0
POLL_SECONDS = 0.005
KEPT_COUNT = 20
# More than a server accepts in half a second on a busy machine.
NEW_COUNT = 900
OWN_FILES = 200
STREAM_LINES = 500
ANSWERED_OR_REFUSED = {HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE}
REPLY = re.compile(
    rb"HTTP/1\.1 (?P<status>\d{3}) [^\r]*\r\n(?P<headers>(?:[^\r]+\r\n)*)\r\n", re.MULTILINE
)
LENGTH = re.compile(rb"content-length: (\d+)")


@pytest.fixture
def server(opened: OpenedRelease) -> Iterator[ServerProcess]:
    """Serve a release."""
    process = started(opened().config).wait_until_ready()
    yield process
    if process.is_running():
        process.kill()


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process have as many sockets as it has clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = KEPT_COUNT + NEW_COUNT + OWN_FILES
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, wanted)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connected(server: ServerProcess, held: ExitStack) -> socket.socket:
    """Connect; the system alone may have accepted the connection."""
    host, port = server.address.removeprefix("http://").split(":")
    client = held.enter_context(socket.create_connection((host, int(port)), REPLY_SECONDS_MAX))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def query(number: int) -> bytes:
    """Return a whole request of one query."""
    body = json.dumps({"features": agreed(number)}).encode()
    return head("/query", len(body)) + body


def head(path: str, length: int, media_type: str = "application/json") -> bytes:
    """Return the head of a request."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {media_type}\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def wait_until_received(clients: Sequence[socket.socket]) -> None:
    """Wait until the system has acknowledged every byte that was sent."""
    unacknowledged = array("i", [0])
    for client in clients:
        ioctl(client, termios.TIOCOUTQ, unacknowledged)
        while unacknowledged[0]:
            time.sleep(POLL_SECONDS)
            ioctl(client, termios.TIOCOUTQ, unacknowledged)


def said_to(client: socket.socket) -> bytes:
    """Return everything that comes until the server ends the connection; a reset fails."""
    said = b""
    while piece := client.recv(65536):
        said += piece
    return said


def statuses_in(said: bytes) -> list[int]:
    """Return the statuses of whole replies; a refusal at the end says that it is the last."""
    statuses, start = [], 0
    while reply := REPLY.match(said, start):
        statuses.append(int(reply["status"]))
        length = LENGTH.search(reply["headers"])
        assert length is not None, said
        start = reply.end() + int(length[1])
        if start == len(said) and statuses[-1] == HTTPStatus.SERVICE_UNAVAILABLE:
            assert b"connection: close\r\n" in reply["headers"]
    assert start == len(said), said
    return statuses


def end_paused(server: ServerProcess, clients: Sequence[socket.socket]) -> float:
    """Ask a paused server to end once everything sent has reached it; return when."""
    wait_until_received(clients)
    asked = time.monotonic()
    server.terminate()
    server.signal(signal.SIGCONT)
    return asked


def check_ended(server: ServerProcess, asked: float) -> None:
    """Check that the process ended as it should, and in time."""
    assert server.wait() == 0
    assert time.monotonic() - asked < END_SECONDS_MAX
    assert "Traceback" not in server.errors()


@pytest.mark.usefixtures("many_files")
def test_requests_that_lay_with_the_system_have_replies(server: ServerProcess) -> None:
    """On connections in use, and on those that no one had accepted, each gets 200 or 503."""
    with ExitStack() as held:
        kept = [connected(server, held) for _ in range(KEPT_COUNT)]
        for number, client in enumerate(kept):
            client.sendall(query(number))
            reply = HTTPResponse(client)
            reply.begin()
            reply.read()
            assert reply.status == HTTPStatus.OK
        server.signal(signal.SIGSTOP)
        clients = [*kept, *(connected(server, held) for _ in range(NEW_COUNT))]
        for number, client in enumerate(clients):
            client.sendall(query(1000 + number))
        asked = end_paused(server, clients)
        statuses = [statuses_in(said_to(client)) for client in clients]
        assert [each for each in statuses if len(each) != 1] == []
        assert {each[0] for each in statuses} <= ANSWERED_OR_REFUSED
        check_ended(server, asked)


def test_pipelined_requests_have_replies(server: ServerProcess) -> None:
    """Of three requests in one piece none is lost, and no reply but the last says that it is."""
    with ExitStack() as held:
        server.signal(signal.SIGSTOP)
        client = connected(server, held)
        client.sendall(query(1) + query(2) + query(3))
        asked = end_paused(server, [client])
        said = said_to(client)
        assert len(statuses_in(said)) == 3
        assert said.count(b"connection: close") <= 1
        assert set(statuses_in(said)) <= ANSWERED_OR_REFUSED
        check_ended(server, asked)


@pytest.mark.parametrize("is_whole", [True, False], ids=["whole", "unfinished"])
def test_lines_that_lay_with_the_system_have_replies(
    server: ServerProcess,
    is_whole: bool,  # noqa: FBT001 -- a table
) -> None:
    """Each line of a stream is answered or refused, whether the stream had its end or not."""
    lines = [json.dumps({"features": agreed(number)}) + "\n" for number in range(STREAM_LINES)]
    body = "".join(lines).encode()
    with ExitStack() as held:
        server.signal(signal.SIGSTOP)
        client = connected(server, held)
        client.sendall(head("/query/stream", len(body) + (not is_whole), "application/x-ndjson"))
        client.sendall(body)
        asked = end_paused(server, [client])
        said = said_to(client)
        assert said.startswith(b"HTTP/1.1 200 ")
        assert said.endswith(b"\r\n0\r\n\r\n")
        replies = [json.loads(line) for line in said.splitlines() if line.startswith(b"{")]
        assert len(replies) == STREAM_LINES
        refused = {reply.get("status") for reply in replies} - {None}
        assert refused <= {HTTPStatus.SERVICE_UNAVAILABLE}
        check_ended(server, asked)


@pytest.mark.parametrize("sent", ["half a head", "half a body"])
def test_a_request_that_does_not_come_whole_is_refused(server: ServerProcess, sent: str) -> None:
    """It gets 503 within the ten seconds, and reads it though it still sends."""
    with ExitStack() as held:
        server.signal(signal.SIGSTOP)
        client = connected(server, held)
        whole = head("/query", 1_000_000)
        client.sendall(whole[:-20] if sent == "half a head" else whole + b'{"features": ')
        asked = end_paused(server, [client])
        client.recv(1, socket.MSG_PEEK)
        if sent == "half a body":
            client.sendall(b" " * 10_000)
        assert statuses_in(said_to(client)) == [HTTPStatus.SERVICE_UNAVAILABLE]
        check_ended(server, asked)


def test_the_rest_of_a_request_is_waited_for(server: ServerProcess) -> None:
    """A request that had begun, and comes whole soon after, is answered or refused."""
    with ExitStack() as held:
        server.signal(signal.SIGSTOP)
        client = connected(server, held)
        whole = query(1)
        client.sendall(whole[:30])
        asked = end_paused(server, [client])
        client.sendall(whole[30:])
        assert set(statuses_in(said_to(client))) <= ANSWERED_OR_REFUSED
        check_ended(server, asked)
