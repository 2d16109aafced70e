"""Reading request bodies: media types, encodings, sizes."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from starlette.requests import ClientDisconnect

from app.errors import TooLargeError, UnsupportedMediaTypeError

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.requests import Request

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
CSV: Final = "text/csv"
OCTETS: Final = "application/octet-stream"
JSON_TYPES: Final = frozenset({JSON})
LENGTH_DIGITS_MAX: Final = 18
DISCARD_BYTES_MAX: Final = 16 << 20
DISCARD_SECONDS_MAX: Final = 2.0
UNCOMPRESSED: Final = frozenset({"identity"})
LINE_TYPES: Final = frozenset({NDJSON, "application/ndjson", "application/jsonl"})


def check_media_type(
    headers: Headers, accepted: frozenset[str], *, encodings: frozenset[str] = UNCOMPRESSED
) -> None:
    """Accept a listed type, or none at all; where JSON is listed, any ``+json`` too.

    Raises:
        UnsupportedMediaTypeError: another type, or an encoding that is not listed.

    """
    if content_encoding(headers) not in encodings:
        raise UnsupportedMediaTypeError(
            "this route takes bodies that are not compressed; leave out Content-Encoding"
            if encodings == UNCOMPRESSED
            else "this route takes bodies as they are, or one Content-Encoding, gzip or deflate"
        )
    declared = media_type(headers)
    if not declared or declared in accepted or (JSON in accepted and declared.endswith("+json")):
        return
    wanted = " or ".join(sorted(accepted))
    raise UnsupportedMediaTypeError(f"send the body with `Content-Type: {wanted}`")


def media_type(headers: Headers) -> str:
    """Return the declared type without its parameters, in lower case; empty where none is."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def content_encoding(headers: Headers) -> str:
    """Return how the body is compressed, in lower case; ``identity`` where it is not."""
    return headers.get("content-encoding", "identity").strip().lower()


async def read_body(request: Request, *, bytes_max: int) -> bytes:
    """Return the whole body, reading no more than ``bytes_max`` bytes of it.

    Raises:
        TooLargeError: it is longer, by its own account or in fact.
        ClientDisconnect: the client hung up.

    """
    more = True
    if not _declares_more(request.headers, bytes_max):
        body, more = await _next_part(request)
        while more and len(body) <= bytes_max:
            part, more = await _next_part(request)
            body += part
        if len(body) <= bytes_max:
            return body
    if more and "expect" not in request.headers:
        await _discard(request)
    raise TooLargeError(
        f"the body is longer than {bytes_max} bytes; one query takes far less, and "
        "POST /query/stream takes many"
    )


async def _next_part(request: Request) -> tuple[bytes, bool]:
    """Return the bytes that came next, and whether more follow."""
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), message.get("more_body", False)


def _declares_more(headers: Headers, bytes_max: int) -> bool:
    declared = headers.get("content-length", "")
    return declared.isdecimal() and int(declared[:LENGTH_DIGITS_MAX]) > bytes_max


async def _discard(request: Request) -> None:
    """Read on for a while: a client that is still sending misses an early reply."""
    discarded_bytes, more = 0, True
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS_MAX):
            while more and discarded_bytes <= DISCARD_BYTES_MAX:
                part, more = await _next_part(request)
                discarded_bytes += len(part)
