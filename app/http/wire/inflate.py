"""Compressed request bodies, read no further than the limit of a plain one."""

from __future__ import annotations

import zlib
from typing import Final

from app.errors import MalformedBodyError, TooLargeError

IDENTITY: Final = "identity"
# Window bits, as zlib names its three formats.
WINDOW_BITS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
ENCODINGS: Final = frozenset({IDENTITY, *WINDOW_BITS})


def inflate(body: bytes, encoding: str, *, bytes_max: int) -> bytes:
    """Return the body without its compression.

    Args:
        body: as it was sent, whole.
        encoding: one of ``ENCODINGS``.
        bytes_max: of the result; not a byte more than one over it is ever made.

    Raises:
        MalformedBodyError: it is not of that encoding, or not one whole stream of it.
        TooLargeError: it is longer than ``bytes_max``.

    """
    if encoding == IDENTITY:
        return body
    decompressor = zlib.decompressobj(WINDOW_BITS[encoding])
    try:
        inflated = decompressor.decompress(body, bytes_max + 1)
    except zlib.error:
        raise MalformedBodyError(f"the body is not {encoding}, as Content-Encoding says") from None
    if len(inflated) > bytes_max:
        raise TooLargeError(f"the body is longer than {bytes_max} bytes once decompressed")
    if not decompressor.eof or decompressor.unused_data:
        raise MalformedBodyError(f"the body is not one whole {encoding} stream")
    return inflated
