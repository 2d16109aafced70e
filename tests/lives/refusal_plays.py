"""Lives that are refused: bad requests in every phase, bad openings, and a real socket."""

from __future__ import annotations

import csv
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.lives.bad_requests import bad_requests
from tests.lives.exchange import Request
from tests.lives.people import questions
from tests.lives.plays import AFTERWARDS, QUESTION_COUNT, answer_to_the_end, ask_every_way

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.lives.catalogue import Life
    from tests.lives.stage import Serving, Stage

ROOT: Final = Path(__file__).parents[2]
SECONDS_MAX: Final = 60.0
LINE: Final = b"POST /query HTTP/1.1\r\nhost: 127.0.0.1\r\n"
BODY: Final = b'{"features": [1.5, 2, "common"]}'
# What a web server refuses before the application sees a request, and some that it passes on.
RAW: Final = (
    b"\r\n\r\n",
    b"nonsense\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.0\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n",
    b"GET  /healthz  HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    b"GET http://127.0.0.1/healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nbad header: x\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n: x\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nx: " + b"a" * 40_000 + b"\r\n\r\n",
    b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n",
    LINE + b"content-length: x\r\n\r\n",
    LINE + b"content-length: -1\r\n\r\n",
    LINE + b"content-length: 5\r\ncontent-length: 6\r\n\r\nabcde",
    LINE + b"content-length: 99999999999999999999\r\n\r\n",
    LINE + b"transfer-encoding: chunked\r\n\r\nzz\r\n\r\n",
    LINE + b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n0\r\n\r\n",
    LINE + b"transfer-encoding: nonsense\r\n\r\n",
    LINE + b"upgrade: websocket\r\nconnection: upgrade\r\ncontent-length: 0\r\n\r\n",
    LINE + b"upgrade: h2c\r\nconnection: close, upgrade\r\ncontent-length: 0\r\n\r\n",
    LINE + b"expect: 100-continue\r\nconnection: close\r\ncontent-length: 32\r\n\r\n" + BODY,
    LINE + b"connection: close\r\ncontent-length: 32\r\n\r\n" + BODY,
    LINE
    + b"content-type: application/json\r\nconnection: close\r\ncontent-length: 32\r\n\r\n"
    + BODY,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
)

# Terms that a release is bound to, each other than before.
OTHER_TERMS: Final = {
    "PRIVACY__EPSILON": "61",
    "PRIVACY__DELTA": "2e-6",
    "ANSWERS__QUERIES": "25",
    "ANSWERS__CUTOFF": "7",
    "ANSWERS__ENSEMBLE": "59",
    "ANSWERS__UNSTABLE": "coin",
    "HYPOTHESES__DEPTH": "3",
    "HYPOTHESES__CLASS": "stumps",
    "LEARNER__RULE": "halving",
    "RELEASE__NAME": "others",
    "DATA__CLASSES": '["yes", "no"]',
    "PRIVACY__CALIBRATION": "svt",
    "DATA__SOURCE": "/nowhere/rows.csv",
}


def bad(life: Life, stage: Stage) -> None:
    """Send every bad request to a fresh release, and again once the ensemble has ended."""
    asked = questions(len(life.name), QUESTION_COUNT)
    with stage.serving("fresh") as served:
        served.get("/openapi.json")
        _keep_operations(stage, served)
        _send_all(served)
        ask_every_way(served, asked)
    with stage.serving("ended") as served:
        answer_to_the_end(life, served, asked)
        _send_all(served)
        served.get("/metrics")
    stage.keep_ledger("at the end")


def bad_with_keys(life: Life, stage: Stage) -> None:
    """Send them without a key, with one of each role, and with one that is none."""
    del life
    file = str(stage.folder / "keys.toml")
    secrets = []
    for role in ("query", "read"):
        given = ("--name", role, "--role", role, "--keys-file", file)
        secrets.append(stage.command("keys", "add", *given).decode().split()[-1])
    stage.environ["CONCLAVE_SERVER__KEYS_FILE"] = file
    with stage.serving("with keys") as served:
        served.get("/openapi.json")
        _keep_operations(stage, served)
        for authorization in (None, "Bearer none", *(f"Bearer {each}" for each in secrets)):
            _send_all(served, authorization)
    stage.keep_ledger("at the end")


def _send_all(served: Serving, authorization: str | None = None) -> None:
    for request in bad_requests():
        headers = (
            [*request.headers.items()] if isinstance(request.headers, dict) else [*request.headers]
        )
        if authorization is not None:
            headers.append(("authorization", authorization))
        first_only = request.path.startswith("/budget/events")
        served.ask(Request(request.method, request.path, headers, request.body, first_only))


def _keep_operations(stage: Stage, served: Serving) -> None:
    """Keep the ids of all operations by themselves, so that a lost one is named."""
    paths: dict[str, dict[str, Any]] = served.look("/openapi.json")["paths"]
    lines = [
        f"{method.upper()} {path} {operation.get('operationId')}"
        for path, methods in sorted(paths.items())
        for method, operation in sorted(methods.items())
        if isinstance(operation, dict)
    ]
    stage.keep("operation ids", "\n".join(lines).encode())


def refused_openings(life: Life, stage: Stage) -> None:
    """Open on rows that do not fit, on other terms than before, and on other rows."""
    rows = stage.folder / "rows.csv"
    good = rows.read_text("utf-8")
    header, first, *rest = good.splitlines()
    for name, text in {
        "empty": "",
        "header only": header + "\n",
        "no label": good.replace("answer", "reply", 1),
        "a feature less": good.replace("income", "wage", 1),
        "a column twice": good.replace("income", "age", 1),
        "a number that is none": good.replace(first, "old,1,rare,no", 1),
        "a label that is none": good.replace(first, "1,1,rare,perhaps", 1),
        "a row too short": good.replace(first, "1,1", 1),
        "few rows": "\n".join([header, first, *rest[:20], ""]),
        "an endless number": good.replace(first, "inf,1,rare,no", 1),
    }.items():
        rows.write_text(text, encoding="utf-8")
        stage.refused(name)
    rows.write_text(good, encoding="utf-8")
    with stage.serving("opened") as served:
        for vector in questions(len(life.name), QUESTION_COUNT)[:AFTERWARDS]:
            served.post("/query", {"features": vector})
    rows.write_text("\n".join([header, *rest, ""]), encoding="utf-8")
    stage.refused("a row less")
    rows.write_text(good, encoding="utf-8")
    for key, value in OTHER_TERMS.items():
        stage.environ[f"CONCLAVE_{key}"] = value
        stage.refused(f"with {key}")
        del stage.environ[f"CONCLAVE_{key}"]
    stage.keep_ledger("at the end")


def hopeless(life: Life, stage: Stage) -> None:
    """Be refused, then open all the same, and restart without the wish."""
    asked = questions(len(life.name), QUESTION_COUNT)
    stage.configured("plan", "--populations", "0")
    stage.refused("without the wish")
    for options in ((), ("--even-if-hopeless",)):
        stage.configured("learn", *options)
    for wish in (True, False):
        with stage.serving(f"wish {wish}", even_if_hopeless=wish) as served:
            ask_every_way(served, asked)
            for path in ("/budget", "/parameters", "/ledger", "/metrics"):
                served.get(path)
    stage.configured("verify")
    stage.keep_ledger("at the end")


def over_a_socket(life: Life, stage: Stage) -> None:
    """Serve by the web server, and send it bytes; then ask by ``conclave query``."""
    command = [sys.executable, "-m", "tests.lives.served", str(stage.config), life.name]
    with (
        (stage.folder / "log").open("wb") as log,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log) as server,
    ):
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            for raw in RAW:
                stage.keep(f"sent {raw[:100]!r}", _sent(port, raw))
            table = stage.folder / "asked.csv"
            with table.open("w", encoding="utf-8", newline="") as file:
                rows = questions(len(life.name), QUESTION_COUNT)[:20]
                csv.writer(file).writerows([("age", "income", "group"), *rows, ("x", 1, "rare")])
            address = f"http://127.0.0.1:{port}"
            stage.command("query", "--url", address, str(table))
            stage.command("query", "--url", address, "--precision", "4", str(table))
            stage.command("query", "--url", f"{address}/none", str(table))
        finally:
            server.terminate()
            server.wait(SECONDS_MAX)
    stage.keep("web server's exit code", b"%d" % server.returncode)
    stage.configured("verify")


def _sent(port: int, raw: bytes) -> bytes:
    """Return all that a server says to some bytes before it closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX) as connection:
        connection.sendall(raw)  # and not closed, which would tell the server to forget it
        said = b""
        try:
            while piece := connection.recv(65536):
                said += piece
        except ConnectionResetError:
            said += b"<reset>"
        return said


PLAYS: Final[Mapping[str, Callable[[Life, Stage], None]]] = {
    "bad": bad,
    "bad_with_keys": bad_with_keys,
    "refused_openings": refused_openings,
    "hopeless": hopeless,
    "over_a_socket": over_a_socket,
}
