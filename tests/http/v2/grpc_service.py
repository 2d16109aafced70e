"""The server of gRPC around a small service in memory, asked over a socket of loopback.

Calls carry bytes: messages are made by the unmodified client's own classes, where a test
does not want others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import grpc.aio
from tritonclient.grpc import service_pb2

from app.cli.web_server import listen
from app.http.access.access_control import Access
from app.http.limits import Limits
from app.http.protocols.v2_grpc.inference_server import InferenceServer
from app.http.route_handling import Api
from tests.http.doubles import Http

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Mapping

    from app.http.access.keys import Keys

SERVICE: Final = "/inference.GRPCInferenceService"
MODEL: Final = "adult-income"


class Ended(NamedTuple):
    """How a call ended: its code, its message or its detail, and the metadata that trail."""

    code: str
    reply: Any
    detail: str
    trailing: dict[str, str]


class Grpc:
    """A server, and a channel to it, on the event loop of an application.

    Attributes:
        http: the application, its slot and its service.
        server: the server of gRPC.
        under_way: the requests that are answered.
        address: the host and port of the server.

    """

    def __init__(
        self, *, keys: Keys | None = None, limits: Limits | None = None, **more: Any
    ) -> None:
        """Build the application; ``more`` is for it."""
        self.http = Http(keys=keys, limits=limits, **more)
        self.api: Api = self.http.application.api  # type: ignore[attr-defined]  # of our application
        self.server = InferenceServer(self.api, Access(keys))
        self.under_way: set[asyncio.Task[Any]] = set()

    def __enter__(self) -> Self:
        """Listen on a free port, and connect."""
        self.http.runner.run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.http.runner.run(self._stop())
        self.http.runner.close()

    def call(self, method: str, message: Any, metadata: Mapping[str, str] | None = None) -> Ended:
        """Call a method, and wait for its end."""
        return self.http.runner.run(self.ended(method, message, metadata))

    def infer(self, message: Any, metadata: Mapping[str, str] | None = None) -> Ended:
        """Ask for an inference."""
        return self.call("ModelInfer", message, metadata)

    async def ended(
        self,
        method: str,
        message: Any,
        metadata: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Ended:
        """Call a method; several of these may run at once."""
        reply_class: Any = getattr(service_pb2, f"{method}Response", None)
        call = self.channel.unary_unary(f"{SERVICE}/{method}")
        sent = message if isinstance(message, bytes) else message.SerializeToString()
        under_way = call(sent, metadata=tuple((metadata or {}).items()), **options)
        try:
            reply = reply_class.FromString(await under_way)
        except grpc.aio.AioRpcError as error:
            trailing = {name: str(text) for name, text in error.trailing_metadata() or ()}
            return Ended(error.code().name, None, error.details() or "", trailing)
        trailing = {name: str(text) for name, text in await under_way.trailing_metadata()}
        return Ended("OK", reply, "", trailing)

    async def _start(self) -> None:
        reserved = reserved_socket()
        host, port = self.address = reserved.getsockname()
        await self.server.start(reserved, self.under_way)
        self.channel = grpc.aio.insecure_channel(f"{host}:{port}")

    async def _stop(self) -> None:
        await self.channel.close()
        await self.server.stop()


def reserved_socket() -> socket.socket:
    """Return a socket that is bound to a free port, as the web server makes one."""
    return listen("127.0.0.1", 0)


def inference(*rows: tuple[float, str], **members: Any) -> Any:
    """Return a request of rows of an age and a class of work, in typed contents."""
    ages, works = zip(*rows, strict=True)
    age = {"name": "age", "datatype": "FP64", "shape": [len(rows), 1]}
    work = {"name": "workclass", "datatype": "BYTES", "shape": [len(rows), 1]}
    typed = [
        age | {"contents": {"fp64_contents": ages}},
        work | {"contents": {"bytes_contents": [each.encode() for each in works]}},
    ]
    return service_pb2.ModelInferRequest(**{"model_name": MODEL, "inputs": typed} | members)


def raw_inference(*pieces: bytes, rows: int, **members: Any) -> Any:
    """Return a request of so many rows whose values are raw."""
    inputs = [
        {"name": name, "datatype": datatype, "shape": [rows, 1]}
        for name, datatype in (("age", "FP64"), ("workclass", "BYTES"))
    ]
    named = {"model_name": MODEL, "inputs": inputs, "raw_input_contents": pieces}
    return service_pb2.ModelInferRequest(**named | members)
