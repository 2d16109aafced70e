"""The Open Inference Protocol over gRPC: messages, the door, limits, and the code of a refusal."""

from __future__ import annotations

import asyncio
import re
import socket
import struct
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from structlog.testing import capture_logs
from tritonclient.grpc import service_pb2

from app.answering.answers import Answer
from app.errors import (
    ConfigurationError,
    ContainedError,
    IdempotencyConflictError,
    KeyLimitError,
    LedgerUnavailableError,
    SwitchingError,
    UnavailableError,
)
from app.http.access.access_control import Access
from app.http.access.keys import Key, KeyRing, Role, hash_of
from app.http.limits import Limits
from app.http.problems import INTERNAL_DETAIL
from app.http.protocols.v2_grpc.calls import ENDING, METHODS, SERVICE
from app.http.protocols.v2_grpc.inference_server import InferenceServer
from app.http.protocols.v2_grpc.messages import DESCRIPTORS, MESSAGES
from app.ledger.api_key_counts import KeyCount
from app.main import NO_GRPC, Server
from app.settings.settings import demo_settings
from tests.http.doubles import KEY_RING, KEYS
from tests.http.v2.grpc_service import MODEL, Grpc, inference, raw_inference, reserved_socket
from tests.tidy.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.http.v2.grpc_service import Ended

ROWS = ((41.0, "Private"), (20.0, "State-gov"))
NAMED = {name: {"authorization": f"Bearer {key}"} for name, key in KEYS.items()}
ROW = re.compile(r"^\| ([0-9]{3}) \| (`[a-z-`, ]+`) \| `([A-Z_]+)` \|$", re.MULTILINE)
PAGE = ROOT / "docs" / "protocols.md"


def outputs(ended: Ended) -> dict[str, list[Any]]:
    """Return the typed values of an answer by the names of its outputs."""
    assert ended.code == "OK", ended.detail
    found: dict[str, list[Any]] = {}
    for each in ended.reply.outputs:
        ((_, values),) = each.contents.ListFields() or [(None, [])]
        found[each.name] = [v.decode() if isinstance(v, bytes) else v for v in values]
    return found


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_messages_are_those_of_a_client(name: str) -> None:
    """Every field has the number and the type that the unmodified client's own has."""
    theirs = getattr(service_pb2, name).DESCRIPTOR
    pairs = [(MESSAGES[name].DESCRIPTOR, theirs)]
    while pairs:
        mine, peer = pairs.pop()
        pairs += [(each, peer.nested_types_by_name[each.name]) for each in mine.nested_types]
        for field in mine.fields:
            other = peer.fields_by_name[field.name]
            assert (field.number, field.type) == (other.number, other.type)
            assert field.is_repeated == other.is_repeated


def test_the_descriptors_are_those_of_the_file() -> None:
    """What is read at the start has the fields and the methods that the file of messages has."""
    written = (DESCRIPTORS.parent / "grpc_predict_v2.proto").read_text(encoding="utf-8")
    (file,) = FileDescriptorSet.FromString(DESCRIPTORS.read_bytes()).file
    messages, fields = list(file.message_type), Counter[tuple[str, str]]()
    while messages:
        message = messages.pop()
        if not message.options.map_entry:
            fields.update((field.name, str(field.number)) for field in message.field)
        messages += message.nested_type
    assert Counter(re.findall(r"(\w+) = (\d+);", written)) == fields
    methods = [method.name for method in file.service[0].method]
    assert re.findall(r"rpc (\w+)", written) == methods == list(METHODS)


def test_every_method_is_served() -> None:
    """A method of the description is there, and another one is not."""
    with Grpc() as served:
        codes = {name: served.call(name, b"").code for name in (*METHODS, "ModelConfig")}
    assert codes.pop("ModelConfig") == "UNIMPLEMENTED"
    assert "UNIMPLEMENTED" not in codes.values()


def test_tells_the_server_and_the_model() -> None:
    """Name, inputs and outputs are those that HTTP tells."""
    with Grpc() as served:
        server = served.call("ServerMetadata", b"").reply
        told = served.call("ModelMetadata", service_pb2.ModelMetadataRequest(name=MODEL)).reply
        inputs = served.http.get(f"/v2/models/{MODEL}").json()["inputs"]
    assert server.name == "conclave"
    assert [
        {"name": each.name, "datatype": each.datatype, "shape": list(each.shape)}
        for each in told.inputs
    ] == inputs
    assert [each.name for each in told.outputs] == ["label", "stable", "query_id"]


@pytest.mark.parametrize("is_open", [True, False])
def test_probes_follow_the_release(*, is_open: bool) -> None:
    """Live is always said; ready only of an open release, to whoever asks, by its name."""
    with Grpc(keys=KEY_RING, is_open=is_open) as served:
        assert served.call("ServerLive", b"").reply.live
        assert served.call("ServerReady", b"").reply.ready is is_open
        named = (service_pb2.ModelReadyRequest(name=name) for name in (MODEL, "another"))
        assert [served.call("ModelReady", each).reply.ready for each in named] == [is_open, False]
        served.http.slot.stop()
        assert not served.call("ServerReady", b"").reply.ready
        assert served.call("ServerLive", b"").reply.live


def test_answers_typed_contents_with_typed_contents() -> None:
    """Labels, whether they are stable, and numbers come in the order of the rows, with the id."""
    with Grpc() as served:
        ended = served.infer(inference(*ROWS, id="a-1"))
        single = served.http.ask(list(ROWS[0])).json()
    assert outputs(ended) == {
        "label": [">50K", "<=50K"],
        "stable": [True, True],
        "query_id": [1, 2],
    }
    assert (ended.reply.model_name, ended.reply.id) == (MODEL, "a-1")
    assert not ended.reply.raw_output_contents
    assert single["replayed"]


def test_answers_raw_contents_with_raw_contents() -> None:
    """Values that come as bytes are answered as bytes, which hold the same."""
    ages = struct.pack("<2d", 41, 20)
    works = b"".join(struct.pack("<I", len(text)) + text for text in (b"Private", b"State-gov"))
    with Grpc() as served:
        reply = served.infer(raw_inference(ages, works, rows=2)).reply
        again = served.infer(inference(*ROWS))
    labels, stable, numbers = reply.raw_output_contents
    assert labels == b"\x04\0\0\0>50K\x05\0\0\0<=50K"
    assert stable == b"\1\1"
    assert struct.unpack("<2q", numbers) == (1, 2)
    assert outputs(again)["query_id"] == [1, 2]
    assert not any(each.HasField("contents") for each in reply.outputs)


def test_gives_the_outputs_that_are_asked_for() -> None:
    """Outputs are selected and ordered by the request."""
    chosen = [{"name": "query_id"}, {"name": "label"}]
    with Grpc() as served:
        assert list(outputs(served.infer(inference(*ROWS, outputs=chosen)))) == [
            "query_id",
            "label",
        ]


@pytest.mark.parametrize(
    ("datatype", "contents"),
    [
        ("FP32", "fp32_contents"),
        ("INT8", "int_contents"),
        ("INT64", "int64_contents"),
        ("UINT16", "uint_contents"),
        ("UINT64", "uint64_contents"),
    ],
)
def test_a_number_of_every_type_is_the_same_query(datatype: str, contents: str) -> None:
    """A vector is charged once, whichever type its numbers have."""
    request = inference(ROWS[0])
    request.inputs[0].datatype = datatype
    request.inputs[0].ClearField("contents")
    getattr(request.inputs[0].contents, contents).append(41)
    with Grpc() as served:
        assert outputs(served.infer(inference(ROWS[0])))["query_id"] == [1]
        assert outputs(served.infer(request))["query_id"] == [1]


def other_contents(request: Any) -> None:
    """Put numbers where another type's belong."""
    request.inputs[0].contents.fp32_contents.append(41)


def half_precision(request: Any) -> None:
    """Say a type whose values have no contents."""
    request.inputs[0].datatype = "FP16"


def too_large_a_number(request: Any) -> None:
    """Put a number into INT8 that it does not hold."""
    request.inputs[0].CopyFrom(
        service_pb2.ModelInferRequest.InferInputTensor(
            name="age", datatype="INT8", shape=[1], contents={"int_contents": [1000]}
        )
    )


def no_text(request: Any) -> None:
    """Put bytes where UTF-8 is expected."""
    request.inputs[1].contents.bytes_contents[0] = b"\xff"


def raw_beside(request: Any) -> None:
    """Send values twice."""
    request.raw_input_contents.extend([b"", b""])


def too_few_raw(request: Any) -> None:
    """Send raw values of one input alone."""
    for each in request.inputs:
        each.ClearField("contents")
    request.raw_input_contents.append(struct.pack("<d", 41))


def shared_memory(request: Any) -> None:
    """Leave the values in memory that the client would share."""
    request.inputs[0].ClearField("contents")
    request.inputs[0].parameters["shared_memory_region"].string_param = "here"


def classes(request: Any) -> None:
    """Ask for an output in the form of classes."""
    output = request.outputs.add(name="label")
    output.parameters["classification"].int64_param = 2


def another_output(request: Any) -> None:
    """Ask for an output that is not there."""
    request.outputs.add(name="score")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (other_contents, "the input age has values in fp32_contents, fp64_contents; FP64 takes"),
        (half_precision, "FP16 takes raw_input_contents alone"),
        (too_large_a_number, "age: holds a number that INT8 cannot hold"),
        (no_text, "workclass: must be UTF-8 text"),
        (raw_beside, "raw_input_contents holds the values of every input"),
        (too_few_raw, "raw_input_contents holds the values of every input"),
        (shared_memory, "shared memory and classification are not supported"),
        (classes, "shared memory and classification are not supported"),
        (another_output, "outputs are label, stable, query_id"),
        (lambda request: request.inputs.pop(), "workclass: is an input that is absent"),
    ],
)
def test_refuses_what_does_not_fit(spoil: Callable[[Any], object], said: str) -> None:
    """What is wrong is said in one line, and nothing is asked."""
    request = inference(ROWS[0])
    spoil(request)
    with Grpc() as served:
        ended = served.infer(request)
        assert served.http.service.windows == []
    assert ended.code == "INVALID_ARGUMENT"
    assert said in ended.detail


def meeting(metadata: dict[str, str] | None = None, **server: Any) -> Callable[[], Ended]:
    """Return what asks for one row, of a server that was made for it."""
    message = server.pop("message", inference((41.0, "Private")))
    failure = server.pop("failure", None)

    def meet() -> Ended:
        with Grpc(**server) as served:
            served.http.service.failure = failure
            return served.infer(message, metadata)

    return meet


MEETINGS = {
    "malformed-body": meeting(message=b"\xff"),
    "invalid-parameter": meeting({"idempotency-key": "two words"}),
    "unauthorized": meeting(keys=KEY_RING),
    "forbidden": meeting(NAMED[Role.READ], keys=KEY_RING),
    "cross-site": meeting({"origin": "http://elsewhere.example"}),
    "not-found": meeting(message=inference((1.0, "Private"), model_name="another")),
    "idempotency-conflict": meeting(failure=IdempotencyConflictError("used")),
    "budget-exhausted": meeting(queries_max=0),
    "too-large": meeting(message=inference(*ROWS), limits=Limits(batch_rows_max=1)),
    "invalid-features": meeting(message=inference((float("nan"), "Private"))),
    "key-limit": meeting(failure=KeyLimitError("no more")),
    "release-stopped": meeting(failure=ContainedError("secret")),
    "internal-error": meeting(failure=OSError("secret")),
    "ledger-unavailable": meeting(failure=LedgerUnavailableError("down")),
    "switching": meeting(failure=SwitchingError("drawing")),
    "opening": meeting(is_open=False),
    "too-many-connections": meeting(limits=Limits(connections_max=0)),
    "unavailable": meeting(failure=UnavailableError("full")),
}


def documented() -> dict[str, tuple[str, str]]:
    """Return the status and the code of each problem, as the page has them."""
    return {
        slug.strip("` "): (status, code)
        for status, slugs, code in ROW.findall(PAGE.read_text(encoding="utf-8"))
        for slug in slugs.split(",")
    }


def test_the_page_has_a_row_for_every_refusal() -> None:
    """The table lists every problem that a call can meet, and no other."""
    assert documented().keys() == MEETINGS.keys()


@pytest.mark.parametrize("slug", MEETINGS)
def test_every_refusal_has_its_code(slug: str) -> None:
    """A refusal has the code of the page, its slug, an id, and no secret."""
    ended = MEETINGS[slug]()
    _, code = documented()[slug]
    assert (ended.code, ended.trailing["conclave-problem"]) == (code, slug)
    assert ended.trailing["x-request-id"]
    assert ("retry-after" in ended.trailing) == (code == "UNAVAILABLE")
    assert "secret" not in ended.detail


def test_an_unknown_failure_has_a_fixed_text() -> None:
    """What nobody foresaw is told by one text."""
    assert MEETINGS["internal-error"]().detail == INTERNAL_DETAIL


def test_a_refusal_is_counted_and_logged_as_over_http() -> None:
    """The counters, the times and the log are those of every route."""
    with Grpc() as served, capture_logs() as logged:
        served.infer(inference((float("nan"), "Private")), {"x-request-id": "mine"})
        served.infer(inference(ROWS[0]))
        metrics = served.http.get("/metrics").text
    path = f"/{SERVICE}/ModelInfer"
    (line,) = [each for each in logged if each["event"] == "request_refused"]
    assert (line["path"], line["problem"], line["request_id"]) == (path, "invalid-features", "mine")
    assert 'conclave_refusals_total{problem="invalid-features"} 1.0' in metrics
    for status in (200, 422):
        counted = f'count{{method="POST",route="{path}",status="{status}"}} 1.0'
        assert f"conclave_request_duration_seconds_{counted}" in metrics


def test_a_limited_key_is_told_what_is_left() -> None:
    """Quota and remainder trail the reply, and the queries are counted by the key."""
    ring = KeyRing([Key(name="web", role=Role.QUERY, hash=hash_of("web"), limit=5)])
    with Grpc(keys=ring) as served:
        served.http.service.counts["web"] = KeyCount(3)
        ended = served.infer(inference(ROWS[0]), {"authorization": "Bearer web"})
    assert ended.code == "OK"
    assert ended.trailing["ratelimit-policy"] == '"answers";q=5'
    assert ended.trailing["ratelimit"] == '"answers";r=2'


def test_a_request_id_and_a_trace_are_given_back() -> None:
    """A call that names itself is named by its reply; one that does not has no metadata."""
    parent = f"00-{'ab' * 16}-{'cd' * 8}-01"
    with Grpc() as served:
        named = served.infer(inference(ROWS[0]), {"x-request-id": "mine", "traceparent": parent})
        plain = served.infer(inference(ROWS[0]))
    assert named.trailing["x-request-id"] == "mine"
    assert named.trailing["traceresponse"].startswith(f"00-{'ab' * 16}-")
    assert plain.trailing == {}


def test_a_key_is_for_one_row() -> None:
    """An idempotency key binds one vector, in metadata as in a header."""
    key = {"idempotency-key": "k"}
    with Grpc() as served:
        assert outputs(served.infer(inference(ROWS[0]), key))["query_id"] == [1]
        assert served.infer(inference(ROWS[1]), key).code == "ALREADY_EXISTS"
        assert served.infer(inference(*ROWS), key).code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_a_message_is_bounded_once_it_is_decompressed(compression: grpc.Compression) -> None:
    """A message over the limit is refused, also where it comes in a few bytes."""
    bomb = inference(ROWS[0], id="x" * 200_000)
    with Grpc(limits=Limits(body_bytes_max=100_000)) as served:
        ended = served.http.runner.run(served.ended("ModelInfer", bomb, compression=compression))
        small = served.http.runner.run(
            served.ended("ModelInfer", inference(ROWS[0]), compression=compression)
        )
    assert ended.code == "RESOURCE_EXHAUSTED"
    assert outputs(small)["query_id"] == [1]


def test_metadata_are_bounded() -> None:
    """A call with longer metadata than headers may be is refused."""
    with Grpc(limits=Limits(header_bytes_max=4096)) as served:
        assert served.infer(inference(ROWS[0]), {"x-long": "x" * 10_000}).code == (
            "RESOURCE_EXHAUSTED"
        )


def test_metadata_of_any_bytes_are_refused_in_fixed_words() -> None:
    """What no client library sends, such as a key that is no ASCII, shows no exception."""

    def piece(kind: int, flags: int, stream: int, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))[1:] + struct.pack(">BBI", kind, flags, stream) + content
        )

    async def call(served: Grpc) -> bytes:
        named = {
            ":method": "POST",
            ":scheme": "http",
            ":path": f"/{SERVICE}/ModelInfer",
            ":authority": "here",
            "te": "trailers",
            "content-type": "application/grpc",
            "authorization": "Bearer \u4e2d",
        }
        pairs = [(name.encode(), text.encode()) for name, text in named.items()]
        # Literals without an index, and lengths of one byte.
        heads = b"".join(b"\0%c%b%c%b" % (len(a), a, len(b), b) for a, b in pairs)
        reader, writer = await asyncio.open_connection(*served.address)
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + piece(4, 0, 0, b"")
        writer.write(preface + piece(1, 4, 1, heads) + piece(0, 1, 1, bytes(5)))
        said = b""
        async with asyncio.timeout(10):
            while b"grpc-status" not in said:
                said += await reader.read(65_536)
        writer.close()
        return said

    with Grpc(keys=KEY_RING) as served, capture_logs() as logged:
        said = served.http.runner.run(call(served))
    assert b"unauthorized" in said
    assert b"Unicode" not in said
    assert [line["event"] for line in logged] == ["request_refused"]


def test_a_client_that_gives_up_changes_nothing() -> None:
    """A call whose time is over is not logged as the server's doing, and is under way no more."""

    async def give_up(served: Grpc) -> Ended:
        begun = asyncio.Event()

        async def wait(queries: object) -> list[Answer]:
            del queries
            begun.set()
            await asyncio.Event().wait()
            return []

        served.http.service.answer_many = wait  # type: ignore[assignment,method-assign]  # for ever
        ended = asyncio.create_task(served.ended("ModelInfer", inference(ROWS[0]), timeout=0.2))
        await begun.wait()
        told = await ended
        async with asyncio.timeout(10):
            while served.under_way:  # noqa: ASYNC110 -- nothing tells of it
                await asyncio.sleep(0.001)
        return told

    with Grpc() as served, capture_logs() as logged:
        assert served.http.runner.run(give_up(served)).code == "DEADLINE_EXCEEDED"
    assert logged == []


def test_a_server_that_ends_answers_or_refuses() -> None:
    """A call under way is answered, or told that it is given up; later ones are refused."""

    async def end(served: Grpc) -> tuple[Ended, Ended, Ended]:
        answer_many = served.http.service.answer_many
        go_on, begun = asyncio.Event(), asyncio.Semaphore(0)

        async def hold(queries: Any) -> Any:
            begun.release()
            await go_on.wait()
            return await answer_many(queries)

        served.http.service.answer_many = hold  # type: ignore[method-assign]  # until it may
        calls = []
        for row in ROWS:
            calls.append(asyncio.create_task(served.ended("ModelInfer", inference(row))))
            await begun.acquire()
        served.server.drain()
        refused = await served.ended("ModelInfer", inference(ROWS[0]))
        next(iter(served.under_way)).cancel()
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        go_on.set()
        answered, given_up = sorted([await each for each in calls], key=lambda each: each.code)
        return answered, given_up, refused

    with Grpc() as served:
        answered, given_up, refused = served.http.runner.run(end(served))
    assert answered.code == "OK"
    assert (given_up.code, "gave this request up" in given_up.detail) == ("UNAVAILABLE", True)
    assert (refused.code, refused.detail) == ("UNAVAILABLE", ENDING)


def test_a_port_is_for_one_server() -> None:
    """Whoever comes second is told, rather than given some of the calls."""
    with Grpc() as served:
        first, second = reserved_socket(), socket.socket()
        second.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        second.bind(first.getsockname())
        others = [InferenceServer(served.api, Access(None)) for _ in range(2)]
        served.http.runner.run(others[0].start(first, set()))
        with pytest.raises(ConfigurationError, match=r"server\.grpc_port: cannot listen on"):
            served.http.runner.run(others[1].start(second, set()))
        served.http.runner.run(others[0].stop())


def test_the_extra_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its library one line names the setting and the extra, where a port is set."""
    monkeypatch.delitem(sys.modules, InferenceServer.__module__)
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(ConfigurationError) as refused:
        Server(demo_settings({"CONCLAVE_SERVER__GRPC_PORT": "8081"})).application()
    assert str(refused.value) == f"server.grpc_port: {NO_GRPC}"
    server = Server(demo_settings({}))
    server.application()
    assert server.inference is None
