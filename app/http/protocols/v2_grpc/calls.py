"""The gRPC methods of the Open Inference Protocol, with access control and error handling.

A gRPC call is an HTTP/2 POST request: its method is the path, and its metadata are the headers. So
the API key, role, limits, request id, trace, counts and refusals of a call are the same as those of
an HTTP route; the reply has a gRPC status code in place of an HTTP status.

In this protocol the release is a model, whose name is the release's name. Its inputs are the
features; its outputs are the label, whether the answer is stable, and the answer's number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import grpc
import structlog
from grpc import StatusCode
from starlette.requests import ClientDisconnect

from app.answering.answer_query import Edge, Step
from app.errors import IntegrityError, MachineError, UnavailableError
from app.http.access.access_control import asker_of
from app.http.access.keys import Role
from app.http.monitoring.request_ids_and_times import known_identity
from app.http.problems import (
    NotFoundError,
    TooManyConnectionsError,
    kind_of,
    public_detail,
    slug_of,
)
from app.http.protocols.mlflow import answer_rows, as_queries
from app.http.protocols.v2 import PLATFORM, service_of_model
from app.http.protocols.v2_body import checked_inference
from app.http.protocols.v2_grpc.messages import (
    PACKAGE,
    inference_body,
    inference_reply,
    model_metadata,
    plain_message,
    read_message,
)
from app.http.query.query_body import idempotency_key
from app.http.route_handling import Api, RouteEdge
from app.http.version import VERSION
from app.http.wire.headers_and_bodies import NamedRequest

if TYPE_CHECKING:
    from starlette.requests import Request

    from app.http.access.access_control import Access

SERVICE: Final = f"{PACKAGE}.GRPCInferenceService"
CODES: Final = {
    HTTPStatus.BAD_REQUEST: StatusCode.INVALID_ARGUMENT,
    HTTPStatus.UNAUTHORIZED: StatusCode.UNAUTHENTICATED,
    HTTPStatus.FORBIDDEN: StatusCode.PERMISSION_DENIED,
    HTTPStatus.NOT_FOUND: StatusCode.NOT_FOUND,
    HTTPStatus.CONFLICT: StatusCode.ALREADY_EXISTS,
    HTTPStatus.GONE: StatusCode.RESOURCE_EXHAUSTED,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: StatusCode.RESOURCE_EXHAUSTED,
    HTTPStatus.UNPROCESSABLE_ENTITY: StatusCode.INVALID_ARGUMENT,
    HTTPStatus.TOO_MANY_REQUESTS: StatusCode.RESOURCE_EXHAUSTED,
    HTTPStatus.INTERNAL_SERVER_ERROR: StatusCode.INTERNAL,
    HTTPStatus.SERVICE_UNAVAILABLE: StatusCode.UNAVAILABLE,
}
"""The code of each status that a call may end with."""

PROBLEM: Final = b"conclave-problem"
"""Metadata with the slug of a refusal, since several refusals have one code."""

MESSAGE: Final = "conclave.message"
"""Where the scope of a call has the bytes of its message."""

ENDING: Final = "the server is shutting down; nothing was charged, send the call again in a moment"
FULL: Final = "the server has as many requests under way as it takes; try again"
log = structlog.get_logger("conclave.api")


@dataclass(slots=True)
class CallReply:
    """The result of a gRPC call: a message, or a status with a text.

    Attributes:
        message: the encoded message; empty if the call is refused.
        code: the gRPC status code.
        detail: a text for people that describes the error.
        status_code: the HTTP status of the same result.
        raw_headers: the metadata that follow the reply.

    """

    message: bytes
    code: StatusCode = StatusCode.OK
    detail: str = ""
    status_code: int = 200
    raw_headers: list[tuple[bytes, bytes]] = field(default_factory=list)


def refused(error: Exception, path: str) -> CallReply:
    """Return the gRPC reply for an error."""
    del path
    status = kind_of(error).status
    headers = [(PROBLEM, slug_of(error).encode())]
    if isinstance(error, UnavailableError):
        headers.append((b"retry-after", b"%d" % error.retry_after_seconds))
    return CallReply(b"", CODES[status], public_detail(error), int(status), headers)


async def server_live(api: Api, call: Request) -> CallReply:
    """Report that the process is running."""
    del api, call
    return CallReply(plain_message("ServerLiveResponse", live=True))


async def server_ready(api: Api, call: Request) -> CallReply:
    """Report whether the release is open, in any phase."""
    del call
    return CallReply(plain_message("ServerReadyResponse", ready=_holds(api.slot.check_open)))


async def model_ready(api: Api, call: Request) -> CallReply:
    """Report whether the release is open and has the given model name."""
    name = read_message("ModelReadyRequest", call.scope[MESSAGE]).name
    is_ready = _holds(lambda: service_of_model(api, name))
    return CallReply(plain_message("ModelReadyResponse", ready=is_ready))


async def server_metadata(api: Api, call: Request) -> CallReply:
    """Return the server's name and version; no protocol extensions are offered."""
    del api, call
    return CallReply(plain_message("ServerMetadataResponse", name=PLATFORM, version=VERSION))


async def model_metadata_of(api: Api, call: Request) -> CallReply:
    """Return the declared inputs and outputs of the model."""
    name = read_message("ModelMetadataRequest", call.scope[MESSAGE]).name
    schema = service_of_model(api, name).schema
    return CallReply(model_metadata(name, PLATFORM, schema))


async def infer(api: Api, call: Request) -> CallReply:
    """Validate all rows of a batch; return their answers once they are committed to the ledger."""
    request = read_message("ModelInferRequest", call.scope[MESSAGE])
    service = service_of_model(api, request.model_name)
    key = idempotency_key(call.headers)
    api.observe(Step.VALIDATE, Edge.BEFORE)
    body, binary = inference_body(request)
    rows_max = api.limits.batch_rows_max
    asked = await checked_inference(service.schema, body, binary, rows_max=rows_max)
    queries = as_queries(asked.vectors, key, asker_of(call.scope))
    api.observe(Step.VALIDATE, Edge.AFTER)
    answers = await answer_rows(service, queries)
    is_raw = bool(request.raw_input_contents)
    return CallReply(inference_reply(service.release_name, asked, answers, is_raw=is_raw))


def _holds(check: Callable[[], object]) -> bool:
    """Return whether a check of the release passes."""
    try:
        check()
    except (NotFoundError, UnavailableError, IntegrityError):
        return False
    return True


class Method(NamedTuple):
    """A gRPC method: its handler, and the role that a caller needs (None for no role)."""

    role: Role | None
    handler: Callable[[Api, Request], Awaitable[CallReply]]


METHODS: Final = {
    "ServerLive": Method(None, server_live),
    "ServerReady": Method(None, server_ready),
    "ModelReady": Method(None, model_ready),
    "ServerMetadata": Method(Role.QUERY, server_metadata),
    "ModelMetadata": Method(Role.QUERY, model_metadata_of),
    "ModelInfer": Method(Role.QUERY, infer),
}


class Calls:
    """The gRPC methods that one server offers.

    Attributes:
        is_ending: whether new calls are refused because the server is ending.

    """

    def __init__(self, api: Api, access: Access, under_way: set[asyncio.Task[Any]]) -> None:
        """Start with no methods registered.

        Args:
            api: the parts of the server that every handler may use.
            access: access control by API keys and tokens.
            under_way: the process's requests in progress. Calls add themselves, so that the server
                waits for them when it ends, for a limited time.

        """
        self.is_ending = False
        self._api = api
        self._access = access
        self._under_way = under_way

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return the object in which the gRPC library looks up the handler of a call."""
        methods = {name: self._method(name, method) for name, method in METHODS.items()}
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    def _method(self, name: str, method: Method) -> grpc.RpcMethodHandler:
        """Return a method that takes and gives bytes: what they hold is read within the edge."""
        path = f"/{SERVICE}/{name}"

        async def handle(api: Api, request: Request) -> CallReply:
            return await self._handle(api, method, request)

        times = self._api.meter.route("POST", path)
        edge = RouteEdge(self._api, self._access, path, method.role, handle, refused, "POST", times)

        async def behave(message: bytes, context: Any) -> bytes:  # noqa: ANN401 -- the library's
            return await self._call(edge, message, context)

        return grpc.unary_unary_rpc_method_handler(behave)

    async def _handle(self, api: Api, method: Method, request: Request) -> CallReply:
        """Answer a call that may come in."""
        if self.is_ending:
            raise UnavailableError(ENDING)
        if len(self._under_way) > api.limits.connections_max:
            raise TooManyConnectionsError(FULL)
        try:
            return await method.handler(api, request)
        except asyncio.CancelledError:
            if self.is_ending:
                raise
            raise ClientDisconnect from None
        except OSError:  # which the edge takes for a connection's
            raise MachineError from None

    async def _call(self, edge: RouteEdge[CallReply], message: bytes, context: Any) -> bytes:  # noqa: ANN401 -- as above
        """Return the message that a call is answered by, or end it with a code."""
        scope = {"type": "http", "method": "POST", "path": edge.path, MESSAGE: message}
        scope["headers"] = [
            # The library reads texts as UTF-8 where it can, and clients may send any bytes.
            (name.encode(), text if isinstance(text, bytes) else text.encode())
            for name, text in context.invocation_metadata() or ()
        ]
        reply = await self._reply(edge, NamedRequest(scope))
        identity = known_identity(scope)
        headers = reply.raw_headers + ([] if identity is None else identity.headers)
        trailing = tuple((name.decode(), text.decode()) for name, text in headers)
        if reply.code is not StatusCode.OK:
            await context.abort(reply.code, reply.detail, trailing)
        if trailing:
            context.set_trailing_metadata(trailing)
        return reply.message

    async def _reply(self, edge: RouteEdge[CallReply], request: Request) -> CallReply:
        """Return the reply of the edge, under way until then; no error's text escapes."""
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._under_way.add(task)
        try:
            return await edge.reply(request)
        except ClientDisconnect:
            raise asyncio.CancelledError from None
        except Exception as error:  # noqa: BLE001 -- the edge; its text may be private
            log.error(  # noqa: TRY400 -- a traceback may be private too
                "reply_aborted", path=edge.path, error=type(error).__name__
            )
            return refused(error, edge.path)
        finally:
            self._under_way.discard(task)
