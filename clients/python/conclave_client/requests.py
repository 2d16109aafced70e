"""HTTP requests of the blocking and the asyncio client as bytes, and the parsing of replies.

Statistics are the mean outcomes of hypotheses over the private rows. A hypothesis is a rule with
two outcomes, of which the mean counts the first as -1 and the second as 1.
"""

from __future__ import annotations

import json
import math
import re
import ssl
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import httpx

from conclave_client.answers import Answer, Budget, Schema, Statistics
from conclave_client.errors import (
    NO_CONCLAVE,
    ConclaveError,
    NotConclaveError,
    UnavailableError,
    error_of,
)
from conclave_client.retries import document_of

if TYPE_CHECKING:
    from conclave_client.retries import Reply

Value: TypeAlias = float | str | None
Features: TypeAlias = Sequence[Value] | Mapping[str, Value]
"""A vector: values in schema order, or by the names of features."""

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
STREAM: Final = "query/stream"
# A query may wait 30 s while the classifier is drawn.
TIMEOUT_SECONDS: Final = 60.0
CONNECT_SECONDS: Final = 5.0
ROWS_A_REQUEST: Final = 500
KEY: Final = re.compile(r"[\x20-\x7e]{1,255}")
# What OpenSSL says of a reply that is no TLS: of any bytes, and of HTTP's first ones.
NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST"})
WITHOUT_TLS: Final = "the server answers without TLS: write http:// in place of https://"
INVALID_CERTIFICATE: Final = "the server's certificate is not accepted"
PLAIN_KEY: Final = re.compile(r"[\x21\x23-\x7e][\x21-\x7e]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One HTTP request, which may be sent again unchanged."""

    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def method(self) -> str:
        """The HTTP method: POST if the request has a body, else GET."""
        return "GET" if self.body is None else "POST"


def options_of(url: str, key: str | None, timeout_seconds: float) -> dict[str, object]:
    """Return the options with which both kinds of httpx clients are created.

    Raises:
        ValueError: ``url`` is no valid address, or the API key cannot be sent in a header.

    """
    if key is not None and not KEY.fullmatch(key):
        raise ValueError("a key is visible ASCII characters")
    try:
        httpx.URL(url)
    except httpx.InvalidURL:
        raise ValueError(f"{url!r} is not an address") from None
    return {
        "base_url": url,
        "headers": {} if key is None else {"Authorization": f"Bearer {key}"},
        "timeout": httpx.Timeout(timeout_seconds, connect=CONNECT_SECONDS),
    }


def query_call(features: Features, *, key: str | None, precision: int | None) -> Call:
    """Return the HTTP request of one query, with a new idempotency key if none is given."""
    headers = {"Content-Type": JSON, "Idempotency-Key": _written_key(key or fresh_key())}
    return Call(
        path="query", body=json.dumps(_query(features, precision)).encode(), headers=headers
    )


def statistics_call(hypotheses: Iterable[Mapping[str, object]]) -> Call:
    """Return the HTTP request for the mean outcomes of hypotheses."""
    body = json.dumps({"hypotheses": list(hypotheses)}).encode()
    return Call(path="statistics", body=body, headers={"Content-Type": JSON})


def windows(
    rows: Iterable[Features],
    keys: Iterable[str] | None,
    precision: int | None,
    rows_a_request: int,
) -> Iterator[list[bytes]]:
    """Yield the lines of a query stream in groups, one group for each HTTP request.

    Raises:
        ValueError: a row cannot be written as JSON (the error gives its number from 0, and the row
            is not sent), or there are fewer idempotency keys than
            rows.

    """
    if rows_a_request < 1:
        raise ValueError("rows_a_request must be 1 or more")
    run = fresh_key()
    taken = (f"{run}-{number}" for number in count()) if keys is None else iter(keys)
    numbered = enumerate(rows)
    while window := list(islice(numbered, rows_a_request)):
        keys_of_window = list(islice(taken, len(window)))
        if len(keys_of_window) < len(window):
            raise ValueError("there are fewer keys than rows")
        yield [
            _line(number, row, key, precision)
            for (number, row), key in zip(window, keys_of_window, strict=True)
        ]


def _line(number: int, row: Features, key: str, precision: int | None) -> bytes:
    try:
        members = {**_query(row, precision), "idempotency_key": _written_key(key)}
    except ValueError as error:
        raise ValueError(f"row {number}: {error}") from None
    return json.dumps(members).encode() + b"\n"


def _query(features: Features, precision: int | None) -> dict[str, object]:
    asked = {} if precision is None else {"precision": precision}
    if isinstance(features, Mapping):
        named = {str(name): _plain(value, str(name)) for name, value in features.items()}
        return {"features": named, **asked}
    listed = [_plain(value, f"value {place}") for place, value in enumerate(features)]
    return {"features": listed, **asked}


def _plain(value: object, name: str) -> object:
    """Return a value as JSON has it: NaN is missing, and a number of numpy is a number."""
    item = getattr(value, "item", None)
    plain = item() if callable(item) else value
    if isinstance(plain, float) and not math.isfinite(plain):
        if math.isnan(plain):
            return None
        raise ValueError(f"{name} is infinite")
    if plain is None or isinstance(plain, str | int | float):
        return plain
    raise ValueError(f"{name} is neither a number nor a string nor None")


def fresh_key() -> str:
    """Return a new random idempotency key."""
    return uuid.uuid4().hex


def _written_key(key: str) -> str:
    """Return a key as a header and a line write it: quoted where it could be misread."""
    if not KEY.fullmatch(key):
        raise ValueError("an idempotency key is 1 to 255 visible ASCII characters or spaces")
    if PLAIN_KEY.fullmatch(key):
        return key
    return '"' + re.sub(r'(["\\])', r"\\\1", key) + '"'


def refusal_of(response: httpx.Response) -> ConclaveError:
    """Return the error for an HTTP reply that is a refusal."""
    try:
        problem = document_of(response.content)
    except NotConclaveError:
        problem = {}
    wait = response.headers.get("retry-after", "")
    return error_of(
        problem,
        status=response.status_code,
        request_id=response.headers.get("x-request-id"),
        retry_after_seconds=float(wait) if wait.isascii() and wait.isdigit() else None,
    )


def lost(error: httpx.TransportError | httpx.InvalidURL, url: httpx.URL) -> ConclaveError:
    """Return the error for an HTTP request that got no reply.

    Raises:
        UnavailableError: the address can never be reached, however often the request is sent.
        NotConclaveError: the program at the address uses no TLS, or its certificate is not
            accepted.

    """
    refusal = _refusal_of_tls(error)
    if isinstance(refusal, ssl.SSLCertVerificationError):
        raise NotConclaveError(f"{INVALID_CERTIFICATE}: {refusal.verify_message}") from None
    if refusal is not None and refusal.reason in NO_TLS:
        raise NotConclaveError(WITHOUT_TLS) from None
    gone = UnavailableError(f"no server answers at {str(url).rstrip('/')}")
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        raise gone from None
    return gone


def _refusal_of_tls(error: BaseException) -> ssl.SSLError | None:
    """Return the error of TLS that is behind another one; None where there is none."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    return cause


def read_reply(reply: Reply) -> Answer | ConclaveError:
    """Return the answer or the refusal in one line of a stream's reply."""
    return Answer.read(reply) if "stable" in reply else error_of(reply)


def read_schema(content: bytes) -> Schema:
    """Return the schema in an HTTP reply."""
    return cast("Schema", _having(content, "features", list))


def read_budget(content: bytes) -> Budget:
    """Return the budget in an HTTP reply."""
    return cast("Budget", _having(content, "queries", dict))


def read_answer(content: bytes) -> Answer:
    """Return the answer in an HTTP reply."""
    return Answer.read(document_of(content))


def read_statistics(content: bytes) -> Statistics:
    """Return the statistics in an HTTP reply."""
    return Statistics.read(document_of(content))


def _having(content: bytes, member: str, kind: type) -> Reply:
    document = document_of(content)
    if not isinstance(document.get(member), kind):
        raise NotConclaveError(NO_CONCLAVE)
    return document
