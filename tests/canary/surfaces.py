"""Everything that the project emits, as one list: whatever adds a surface adds itself here.

A surface drives a real server or a real command, well and badly, and returns all the
bytes that came out of it.  ``tests/tidy/test_surfaces.py`` holds the list against the
routes and the commands; the canary tests look for private values in all of it.
"""

from __future__ import annotations

import json
import multiprocessing
import shutil
import ssl
import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import grpc
import httpx

from app.http.dashboard.page import page_responses
from app.http.openapi.swagger_page import swagger_responses
from app.http.protocols.v2_grpc.calls import METHODS, SERVICE
from app.http.protocols.v2_grpc.messages import MESSAGES
from app.main import open_from_settings
from app.noise.system import SystemNoise
from tests.builders.server.asking_statistics import QUESTION, question
from tests.builders.server.http_learning import public_points
from tests.builders.server.http_release import SmallRelease
from tests.canary.doubled import run_into
from tests.canary.marked_release import MARKED_AGE, MARKED_GROUP, MARKED_KEY, QUERIES
from tests.http.end_to_end.test_errors_of_neighbours import BAD_REQUESTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tests.builders.server.server_process import ServerProcess
    from tests.http.collector import Collector

Options: TypeAlias = "Sequence[str | Path]"
Contents: TypeAlias = "Sequence[Mapping[str, object]]"

SECONDS_MAX = 120
PAUSE_SECONDS = 0.05
# Asked last, so that its span comes last.
LAST_TRACED = "/ledger"
JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}
CSV = {"Content-Type": "text/csv"}
ONNX = {"Accept": "application/onnx"}
# A length is a function of the body, which is searched, and a whole number of its own.
UNSEARCHED_HEADERS = frozenset({b"content-length"})
# None is used: it spares every client the reading of the certificates.
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
# A process of its own for every run of commands, which need not import everything anew.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["__main__", "app.auditing.audit", "tests.canary.doubled"])
PAIRS = (MARKED_AGE, MARKED_GROUP)
REFUSED = (
    {"features": [MARKED_AGE]},
    {"features": {"age": str(MARKED_AGE), "group": MARKED_GROUP}},
    {"features": [MARKED_GROUP, MARKED_AGE]},
    {"rows": [PAIRS]},
)
UNFINISHED = f'{{"features": [{MARKED_AGE}, "{MARKED_GROUP}"'


@dataclass
class Scene:
    """What a surface is driven in.

    Attributes:
        release: whose configuration and rows they are.
        doubles: the file that tells ``tests.canary.doubled`` what to double.
        process: the server; None where a scene has commands alone.
        collector: where its traces go; None with the server.

    """

    release: SmallRelease
    doubles: Path
    process: ServerProcess | None = None
    collector: Collector | None = None

    @property
    def server(self) -> ServerProcess:
        """The server, which must be there."""
        assert self.process is not None
        return self.process

    @property
    def model(self) -> str:
        """The release's name."""
        return self.release.settings().release.name

    def send(self, method: str, path: str, **options: object) -> bytes:
        """Send one request, and return status, headers and body."""
        with httpx.Client(base_url=self.server.address, timeout=SECONDS_MAX, verify=TLS) as client:
            return whole(client.request(method, path, **options))  # type: ignore[arg-type]  # httpx's own

    def run(self, command: str, *runs: Options, bare: bool = False) -> bytes:
        """Run a command on the release, once for each list of options; return both streams."""
        config = () if bare else ("--config", self.release.config)
        arguments = [[*command.split(), *map(str, (*config, *options))] for options in runs]
        output = self.release.folder / "output"
        process = CONTEXT.Process(target=run_into, args=(output, self.doubles, arguments))
        process.start()
        process.join(SECONDS_MAX)
        assert process.exitcode == 0
        return output.read_bytes()


@dataclass(frozen=True)
class Surface:
    """One way out.

    Attributes:
        name: its own.
        covers: routes as ``GET /path``, calls as ``gRPC Method``, commands as ``conclave name``.
        emit: drives it and returns what it emitted.

    """

    name: str
    covers: tuple[str, ...]
    emit: Callable[[Scene], bytes]

    @property
    def is_command(self) -> bool:
        """Whether it needs no server."""
        return self.covers[:1] not in {(), ("conclave serve",), ("conclave query",)} and (
            self.covers[0].startswith("conclave ")
        )


def whole(reply: httpx.Response) -> bytes:
    """Return status, headers and body of a reply."""
    headers = [
        b"%s: %s" % (name.lower(), text)
        for name, text in reply.headers.raw
        if name.lower() not in UNSEARCHED_HEADERS
    ]
    return b"\n".join([b"%d" % reply.status_code, *headers, b"", reply.content, b""])


def _read(path: str, *more: str, **options: object) -> Surface:
    """Return the surface of a route that is read."""

    def emit(scene: Scene) -> bytes:
        return b"".join(scene.send("GET", path + query, **options) for query in ("", *more))

    return Surface(path, (f"GET {path}",), emit)


def _page(path: str, installed: bytes) -> Surface:
    """Return the surface of a file, whose own numbers are any; what else comes is searched."""
    return Surface(
        path,
        (f"GET {path}",),
        lambda scene: scene.send("GET", path).replace(installed, b"as installed"),
    )


def _query(scene: Scene) -> bytes:
    said = [
        scene.send(
            "POST",
            "/query",
            json={"features": features},
            headers={"Idempotency-Key": MARKED_KEY} if features is QUERIES[0] else {},
        )
        for features in QUERIES[:4]
    ]
    said += [scene.send("POST", "/query", json=body) for body in REFUSED]
    return b"".join([*said, scene.send("POST", "/query", content=UNFINISHED, headers=JSON)])


def _stream(scene: Scene) -> bytes:
    bodies = [{"features": features} for features in QUERIES[4:6]]
    lines = [*map(json.dumps, (*bodies, *REFUSED)), UNFINISHED]
    return scene.send("POST", "/query/stream", content="\n".join(lines), headers=NDJSON)


def _infer(scene: Scene) -> bytes:
    """Ask rows by the V2 protocol, and badly; its errors have a form of their own."""
    path = f"/v2/models/{scene.model}/infer"
    ages, groups = zip(*QUERIES[5:8], strict=True)
    asked = _tensors(list(ages), list(groups))
    bad = (_tensors(list(ages), groups[:2]), _tensors([str(MARKED_AGE)], [MARKED_GROUP]), PAIRS)
    said = [scene.send("POST", path, json=body) for body in (asked, *bad)]
    said += [scene.send(method, f"/v2/{MARKED_GROUP}") for method in ("GET", "DELETE")]
    said += [scene.send("POST", f"/v2/models/{MARKED_GROUP}/infer", json=asked)]
    return b"".join([*said, scene.send("POST", path, content=UNFINISHED, headers=JSON)])


def _tensors(ages: Sequence[object], groups: Sequence[object]) -> dict[str, object]:
    columns = (("age", "FP64", ages), ("group", "BYTES", groups))
    return {
        "inputs": [
            {"name": name, "shape": [len(values)], "datatype": datatype, "data": values}
            for name, datatype, values in columns
        ]
    }


def _calls(scene: Scene) -> bytes:
    """Call every method of gRPC, well and badly, and ask rows in both forms."""
    ages, groups = zip(*QUERIES[5:8], strict=True)
    texts = [each.encode() for each in groups]
    raw = [
        struct.pack(f"<{len(ages)}d", *ages),
        b"".join(struct.pack("<I", len(each)) + each for each in texts),
    ]
    contents: Contents = [{"fp64_contents": ages}, {"bytes_contents": texts}]
    marked: Contents = [
        {"fp64_contents": [MARKED_AGE] * 3},
        {"bytes_contents": [MARKED_GROUP.encode()] * 2},
    ]
    swapped: Contents = [
        {"bytes_contents": [str(MARKED_AGE).encode()] * 3},
        {"fp64_contents": ages},
    ]
    asked = [
        _inference(scene.model, len(ages), raw_input_contents=raw),
        *(_inference(scene.model, len(ages), held) for held in (contents, marked, swapped)),
        _inference(MARKED_GROUP, len(ages), contents),
        MARKED_GROUP.encode(),
    ]
    named = [
        MESSAGES["ModelReadyRequest"](name=name).SerializeToString()
        for name in (scene.model, MARKED_GROUP)
    ]
    with grpc.insecure_channel(scene.server.grpc_address) as channel:
        said = [_called(channel, "ModelInfer", message) for message in asked]
        said += [_called(channel, method, message) for method in METHODS for message in named]
        return b"".join([*said, _called(channel, MARKED_GROUP, b"")])


def _inference(model: str, count: int, contents: Contents = ({}, {}), **more: object) -> bytes:
    """Return a request of rows of an age and a group, with the contents of each."""
    columns = zip((("age", "FP64"), ("group", "BYTES")), contents, strict=True)
    inputs = [
        {"name": name, "shape": [count, 1], "datatype": datatype}
        | ({"contents": held} if held else {})
        for (name, datatype), held in columns
    ]
    request = MESSAGES["ModelInferRequest"](model_name=model, inputs=inputs, **more)
    encoded: bytes = request.SerializeToString()
    return encoded


def _called(channel: grpc.Channel, method: str, message: bytes) -> bytes:
    """Return everything that a call ends with."""
    try:
        reply, call = channel.unary_unary(f"/{SERVICE}/{method}").with_call(
            message, timeout=SECONDS_MAX
        )
    except grpc.RpcError as refused:
        reply, call = b"", refused
    said = (call.code(), call.details(), call.initial_metadata(), call.trailing_metadata())
    return b"\n".join([reply, *(str(each).encode() for each in said), b""])


def _model(*more: str) -> Callable[[Scene], bytes]:
    """Return what reads a path below the model, and below one that is not there."""

    def emit(scene: Scene) -> bytes:
        names = (scene.model, MARKED_GROUP)
        return b"".join(scene.send("GET", "/".join(["/v2/models", name, *more])) for name in names)

    return emit


def _invocations(scene: Scene) -> bytes:
    """Ask rows as MLflow does, in a form of each kind, and badly."""
    rows = [list(each) for each in QUERIES[7:9]]
    bodies = (
        {"dataframe_split": {"columns": ["age", "group"], "data": rows}},
        {"dataframe_records": [{"age": str(MARKED_AGE), "group": MARKED_GROUP}]},
        {"instances": [[MARKED_AGE]]},
        {"inputs": {"age": [MARKED_AGE], "group": []}},
    )
    said = [scene.send("POST", "/invocations", json=body) for body in bodies]
    for table in ("age,group\n20,common\n", f"age,group\n{MARKED_GROUP},{MARKED_AGE}\n"):
        said += [scene.send("POST", "/invocations", content=table, headers=CSV)]
    return b"".join(said)


def _events(scene: Scene) -> bytes:
    """Return the event stream as far as its first event."""
    with (
        httpx.Client(base_url=scene.server.address, timeout=SECONDS_MAX, verify=TLS) as client,
        client.stream("GET", "/budget/events") as events,
    ):
        first = next(events.iter_bytes(), b"")
        return whole(httpx.Response(events.status_code, headers=events.headers, content=first))


def _statistics(scene: Scene) -> bytes:
    tree = {"feature": 0, "at_least": MARKED_AGE, "true": {"label": MARKED_GROUP}}
    bodies = (QUESTION, {"hypotheses": [{"tree": tree}]}, {"rows": [PAIRS]})
    return b"".join(scene.send("POST", "/statistics", json=body) for body in bodies)


def _problems(scene: Scene) -> bytes:
    """Return every refusal that neighbours are compared on, and those of hostile headers."""
    said = [scene.send(method, path, **more) for method, path, more in BAD_REQUESTS.values()]
    for headers in ({"Host": "elsewhere.example"}, {"Origin": "http://elsewhere.example"}):
        said += [scene.send("GET", "/schema", headers=headers)]
        said += [scene.send("POST", "/query", json=REFUSED[0], headers=headers)]
    return b"".join(said)


def _unserved(scene: Scene) -> bytes:
    """Return what is said where other servers have traces and dumps."""
    paths = ("/trace", "/redoc", "/debug", "/favicon.ico", "/conclave.db")
    return b"".join(scene.send("GET", path) for path in paths)


def _log(scene: Scene) -> bytes:
    """Return what the server has written by now, at debug level."""
    return scene.server.errors().encode("utf-8", "surrogateescape")


def _traces(scene: Scene) -> bytes:
    """Return what a collector was sent by now: of every request and batch so far, a span."""
    assert scene.collector is not None
    scene.send("GET", LAST_TRACED)
    started = time.monotonic()
    while not any(b"GET /ledger" in body for body in scene.collector.bodies):
        assert time.monotonic() - started < SECONDS_MAX
        time.sleep(PAUSE_SECONDS)
    return b"\n".join(scene.collector.bodies)


def _ask(scene: Scene) -> bytes:
    """Ask about a table by the command line; what comes back has the table's own columns."""
    table = scene.release.folder / "queries.csv"
    table.write_text("age,group\n20,common\n80,rare\n", encoding="utf-8")
    options = ("--url", scene.server.address)
    return scene.run("query", [table, *options], bare=True)


def _on_points(command: str) -> Callable[[Scene], bytes]:
    def emit(scene: Scene) -> bytes:
        asked: Options = [question(scene.release)] if command == "statistics" else []
        points: Options = ["--public", public_points(scene.release)]
        runs: tuple[Options, ...] = (
            [*points, *asked],
            asked,
            ["--public", scene.release.source, *asked],
        )
        return scene.run(command, *runs)

    return emit


def _append(scene: Scene) -> bytes:
    """Append, erase and correct rows of a release that grows, the marked one, well and badly."""
    folder = scene.release.folder / "growing"
    changes = {
        **scene.release.changes,
        "shares": {"relabel": "0.2", "answers": "0.8", "classifier": "0"},
        "answers": {**scene.release.changes["answers"], "after": '"halt"'},
    }
    growing = SmallRelease(folder, changes)
    folder.mkdir()
    header, *rows = scene.release.source.read_text(encoding="utf-8").splitlines(keepends=True)
    header, named = f"record,{header}", [f"r{index},{row}" for index, row in enumerate(rows)]
    growing.source.write_text("".join([header, *named]), encoding="utf-8")
    text = growing.text().replace("[data]\n", '[data]\nid = "record"\n')
    growing.config.write_text(text + '[generations]\ntick = "1d"\n', encoding="utf-8")
    open_from_settings(growing.settings(), noise=SystemNoise()).ledger.close()
    further, bad, other = folder / "further.csv", folder / "bad.csv", folder / "other.csv"
    further.write_text("".join([header, *(f"s{row}" for row in named[:-1])]), encoding="utf-8")
    bad.write_text(f"{header}b,{MARKED_AGE},{MARKED_GROUP},{MARKED_GROUP}\n", encoding="utf-8")
    other.write_text(f"{header}r0,{rows[-1]}", encoding="utf-8")
    config: Options = ["--config", growing.config]
    told = scene.run("append", *([*config, each] for each in (further, further, bad)), bare=True)
    listed = scene.run("generations", config, [*config, "--json"], bare=True)
    told += scene.run("append", [further])
    changed = scene.run(
        "correct", [*config, other], [*config, bad], [*config, "--now", other], bare=True
    )
    last = f"r{len(named) - 1}"
    names: tuple[Options, ...] = (["--id", last], ["--id", last], ["--id", "r1", "--now"])
    return (
        told
        + listed
        + changed
        + scene.run("erase", *([*config, *each] for each in names), bare=True)
    )


def _export(scene: Scene) -> bytes:
    return scene.run("export", *(["--format", form] for form in ("json", "onnx", "csv")))


def _verify(scene: Scene) -> bytes:
    return scene.run("verify", [], ["--expect-head", "ab" * 32])


def _simulate(scene: Scene) -> bytes:
    votes = scene.release.folder / "votes.csv"
    votes.write_text("5000,3\n2,5001\n", encoding="utf-8")
    return scene.run("simulate", ["--votes", votes, "--trials", "10"])


def _keys(scene: Scene) -> bytes:
    file: Options = ["--keys-file", scene.release.folder / "keys.toml"]
    named = ["--name", "one"]
    runs = (["add", "--role", "query", *named], ["limit", "--limit", "7", *named])
    rest = ([word, *named] for word in ("disable", "enable", "rotate", "retire-old", "remove"))
    told = scene.run("keys", *([*each, *file] for each in (*runs, ["list"], *rest)), bare=True)
    return told + scene.run("keys usage", [])


def _ledger(scene: Scene) -> bytes:
    """Copy the ledger, put copies elsewhere, and retire it; each again where it is refused."""
    elsewhere, moved = (scene.release.folder / name for name in ("elsewhere", "moved"))
    for folder in (elsewhere, moved):
        folder.mkdir()
    restored, served = (shutil.copy(scene.release.config, each) for each in (elsewhere, moved))
    copy = elsewhere / "copy.db"
    addresses = (f"sqlite:///{folder / 'conclave.db'}" for folder in (scene.release.folder, moved))
    options: dict[str, tuple[Options, ...]] = {
        "backup --config": ([scene.release.config, "--output", copy],),
        "restore --config": ([restored, copy], [restored, copy, "--code", "ab" * 32]),
        "copy --from": ([next(addresses), "--to", next(addresses)],),
        "retire --config": ([served, "--move"],),
    }
    return b"".join(
        scene.run(f"ledger {name}", *runs, *runs, bare=True) for name, runs in options.items()
    )


KEYS_COMMANDS: Final = (
    "add",
    "list",
    "limit",
    "disable",
    "enable",
    "remove",
    "rotate",
    "retire-old",
    "usage",
)
SURFACES: Final = (
    Surface("/query", ("POST /query",), _query),
    Surface("/query/stream", ("POST /query/stream",), _stream),
    Surface("inference", ("POST /v2/models/{name}/infer",), _infer),
    Surface("gRPC", tuple(f"gRPC {method}" for method in METHODS), _calls),
    Surface("invocations", ("POST /invocations",), _invocations),
    Surface("the V2 model", ("GET /v2/models/{name}",), _model()),
    Surface("its readiness", ("GET /v2/models/{name}/ready",), _model("ready")),
    _read("/server"),
    _read("/v2"),
    _read("/v2/health/live"),
    _read("/v2/health/ready"),
    _read("/ping"),
    _read("/budget"),
    Surface("/budget/events", ("GET /budget/events",), _events),
    _read("/budget/outlook"),
    _read("/budget/history"),
    _read("/parameters"),
    _read("/ledger", "?limit=1000", "?after=3&limit=2", "?limit=none"),
    _read("/ledger/head"),
    _read("/ledger/storage"),
    _read("/keys/usage"),
    _read("/classifier"),
    Surface(
        "the model", ("GET /classifier",), lambda at: at.send("GET", "/classifier", headers=ONNX)
    ),
    Surface("/statistics", ("POST /statistics",), _statistics),
    _read("/statistics/table"),
    _read("/metrics"),
    _read("/schema"),
    _read("/openapi.json"),
    *(_read(path) for path in page_responses()),
    *(_page(path, bytes(reply.body)) for path, reply in swagger_responses().items()),
    _read("/healthz"),
    _read("/readyz"),
    Surface("problems", (), _problems),
    Surface("nothing served", (), _unserved),
    Surface("conclave query", ("conclave query",), _ask),
    Surface("conclave serve", ("conclave serve",), _log),
    Surface("traces", (), _traces),
    Surface("conclave statistics", ("conclave statistics",), _on_points("statistics")),
    Surface("conclave learn", ("conclave learn",), _on_points("learn")),
    Surface(
        "conclave append",
        ("conclave append", "conclave generations", "conclave erase", "conclave correct"),
        _append,
    ),
    Surface("conclave export", ("conclave export",), _export),
    Surface("conclave verify", ("conclave verify",), _verify),
    Surface(
        "conclave audit", ("conclave audit",), lambda at: at.run("audit", ["--quick", "--json"])
    ),
    Surface(
        "conclave statement",
        ("conclave statement",),
        lambda at: at.run("statement", [], ["--json"]),
    ),
    Surface("conclave plan", ("conclave plan",), lambda at: at.run("plan", ["--json"])),
    Surface("conclave check", ("conclave check",), lambda at: at.run("check", [], ["--json"])),
    Surface("conclave simulate", ("conclave simulate",), _simulate),
    Surface(
        "conclave ledger",
        (
            "conclave ledger prepare",
            "conclave ledger backup",
            "conclave ledger copy",
            "conclave ledger restore",
            "conclave ledger retire",
        ),
        _ledger,
    ),
    Surface("conclave keys", tuple(f"conclave keys {word}" for word in KEYS_COMMANDS), _keys),
)
COMMANDS: Final = tuple(surface for surface in SURFACES if surface.is_command)
SERVED: Final = tuple(surface for surface in SURFACES if not surface.is_command)
# What cannot emit a private value, and why.
WITHOUT_PRIVATE_ROWS: Final = {
    "conclave demo": "serves the embedded public rows alone, by the server of `conclave serve`",
    "conclave init": "reads no row: tests/unit/cli/init/test_header_line.py counts the bytes",
}
