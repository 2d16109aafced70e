"""Reading request bodies: media types, encodings, sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.errors import TooLargeError, UnsupportedMediaTypeError

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.requests import Request

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
JSON_TYPES: Final = frozenset({JSON})
LINE_TYPES: Final = frozenset({NDJSON, "application/ndjson", "application/jsonl"})


def check_media_type(headers: Headers, accepted: frozenset[str]) -> None:
    """Accept a listed type, or none at all; where JSON is listed, any ``+json`` too.

    Raises:
        UnsupportedMediaTypeError: another type, or a compressed body.

    """
    if headers.get("content-encoding", "identity").lower() != "identity":
        text = "this server takes bodies that are not compressed; leave out Content-Encoding"
        raise UnsupportedMediaTypeError(text)
    declared = headers.get("content-type", "").partition(";")[0].strip().lower()
    if not declared or declared in accepted or (JSON in accepted and declared.endswith("+json")):
        return
    wanted = " or ".join(sorted(accepted))
    raise UnsupportedMediaTypeError(f"send the body with `Content-Type: {wanted}`")


async def read_body(request: Request, *, bytes_max: int) -> bytes:
    """Return the whole body, reading no more than ``bytes_max`` bytes of it.

    Raises:
        TooLargeError: it is longer, by its own account or in fact.

    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > bytes_max:
        raise _too_large(bytes_max)
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > bytes_max:
            raise _too_large(bytes_max)
    return body


def _too_large(bytes_max: int) -> TooLargeError:
    return TooLargeError(
        f"the body is longer than {bytes_max} bytes; one query takes far less, and "
        "POST /query/stream takes many"
    )
