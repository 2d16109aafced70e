"""Two clients of a Conclave server: a blocking one, and one for asyncio.

The two clients differ only in how they wait; requests, replies, retries and errors are in the other
modules of this package. An idempotency key is a text that is sent with a query: if the query is
sent again with the same key, the server repeats its answer. A hypothesis is a rule with two
outcomes; its mean outcome counts the first outcome as -1 and the second as 1.
"""

from __future__ import annotations

import asyncio
import time
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import httpx

from conclave_client.requests import (
    NDJSON,
    ROWS_A_REQUEST,
    STREAM,
    TIMEOUT_SECONDS,
    Call,
    lost,
    options_of,
    query_call,
    read_answer,
    read_budget,
    read_reply,
    read_schema,
    read_statistics,
    refusal_of,
    statistics_call,
    windows,
)
from conclave_client.retries import Attempts, Retries, Window

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Awaitable,
        Callable,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )
    from types import TracebackType

    from conclave_client.answers import Answer, Budget, Schema, Statistics
    from conclave_client.classifier import Classifier
    from conclave_client.errors import ConclaveError
    from conclave_client.requests import Features
    from conclave_client.retries import Reply

RETRIES = Retries()


class Client:
    """A blocking client of one server with one API key; usable as a context manager.

    Every method repeats requests that are safe to repeat, and raises a ``ConclaveError`` if the
    server refuses the request or cannot be reached.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        retries: Retries = RETRIES,
        timeout_seconds: float = TIMEOUT_SECONDS,
        transport: httpx.BaseTransport | None = None,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        """Prepare to talk to ``url``; nothing is sent yet.

        Args:
            url: the address of the server.
            key: an API key with the required roles; None for a server without API keys.
            retries: the number of attempts for a request, and the pauses between them.
            timeout_seconds: the longest time without data on a connection, in seconds.
            transport: an httpx transport in place of the network, for certificates, proxies or
                tests.
            pause: the function that waits between attempts.

        Raises:
            ValueError: ``url`` is no valid address, or ``key`` cannot be sent in a header.

        """
        options: dict[str, Any] = options_of(url, key, timeout_seconds)
        self._http = httpx.Client(**options, transport=transport)
        self._retries = retries
        self._pause = pause

    def __enter__(self) -> Self:
        """Return the client itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close its connections."""
        self.close()

    def close(self) -> None:
        """Close the client's connections."""
        self._http.close()

    def with_retries(self, retries: Retries) -> Self:
        """Return a client on the same connections with other retry settings."""
        other = copy(self)
        other._retries = retries  # noqa: SLF001 -- its own copy
        return other

    def query(
        self, features: Features, *, key: str | None = None, precision: int | None = None
    ) -> Answer:
        """Return the server's answer to one feature vector.

        Args:
            features: the feature values in the order of the schema, or by name; None or NaN for a
                missing value.
            key: an idempotency key; if None, the client makes one and sends it with every attempt.
            precision: the number of bins of the score, for a release that answers scores; None for
                the server's default.

        """
        call = query_call(features, key=key, precision=precision)
        return read_answer(self._content(call))

    def stream(
        self,
        rows: Iterable[Features],
        *,
        keys: Iterable[str] | None = None,
        precision: int | None = None,
        rows_a_request: int = ROWS_A_REQUEST,
    ) -> Iterator[Answer | ConclaveError]:
        """Yield the answer to each row, in order, as soon as it arrives.

        For a refused row the error is yielded in place of the answer, and not raised, and the
        stream continues. After a lost connection, the stream continues with the first row that has
        no reply.

        Args:
            rows: the feature vectors, each in a form that :meth:`query` accepts.
            keys: an idempotency key for each row; if None, the client makes its own.
            precision: the number of bins of the score, for a release that answers scores; None for
                the server's default.
            rows_a_request: the number of rows that are read and sent together.

        Raises:
            ConclaveError: the server refuses the client, or cannot be reached.
            ValueError: a row contains an infinite number, or something other than feature values.

        """
        for lines in windows(rows, keys, precision, rows_a_request):
            yield from map(read_reply, self.replies(lines))

    def replies(self, lines: Sequence[bytes]) -> Iterator[Reply]:
        """Yield the reply to each line of a query stream, in order, as JSON values.

        Args:
            lines: bodies of ``POST /query``, each with its newline; all are sent in one request.

        Raises:
            ConclaveError: the server refuses the client, or cannot be reached.

        """
        window = Window(lines, self._retries)
        wait: float | None = 0.0 if lines else None
        while wait is not None:
            error: ConclaveError | None = None
            try:
                with self._http.stream(
                    "POST", STREAM, content=window.body(), headers={"Content-Type": NDJSON}
                ) as response:
                    if response.is_success:
                        for chunk in response.iter_bytes():
                            yield from window.feed(chunk)
                    else:
                        response.read()
                        error = refusal_of(response)
            except (httpx.TransportError, httpx.InvalidURL) as failure:
                error = lost(failure, self._http.base_url)
            wait = window.pause_seconds(error)
            if wait is not None:
                self._pause(wait)
        yield from window.rest()

    def schema(self) -> Schema:
        """Return the public schema: features in order, labels, and texts that mean "missing"."""
        return read_schema(self._content(Call(path="schema")))

    def budget(self) -> Budget:
        """Return the release's promised, charged and remaining privacy budget."""
        return read_budget(self._content(Call(path="budget")))

    def classifier(self) -> Classifier:
        """Return the published classifier, to be evaluated without the server.

        Raises:
            NotPublishedError: no classifier is published yet.
            UnsupportedClassifierError: rows cannot be predicted with the classifier's document
                alone.

        """
        from conclave_client.classifier import Classifier

        return Classifier.read(self._content(Call(path="classifier")))

    def statistics(self, hypotheses: Iterable[Mapping[str, object]]) -> Statistics:
        """Return the mean outcomes of hypotheses (rules) over the private rows.

        Args:
            hypotheses: the hypotheses; each is a classifier document with a tree, or
                ``{"tree": ...}``.

        Raises:
            NotPublishedError: the release has no statistics, or has not published them yet.

        """
        return read_statistics(self._content(statistics_call(hypotheses)))

    def _content(self, call: Call) -> bytes:
        """Send a request until it is answered; return the body."""
        attempts = Attempts(self._retries)
        while True:
            try:
                response = self._http.request(
                    call.method, call.path, content=call.body, headers=call.headers
                )
            except (httpx.TransportError, httpx.InvalidURL) as failure:
                error = lost(failure, self._http.base_url)
            else:
                if response.is_success:
                    return response.content
                error = refusal_of(response)
            self._pause(attempts.pause_seconds(error))


class AsyncClient:
    """A client of one server with one API key for asyncio; usable in ``async with``.

    Its methods have the same arguments, results and errors as the methods of :class:`Client`.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        retries: Retries = RETRIES,
        timeout_seconds: float = TIMEOUT_SECONDS,
        transport: httpx.AsyncBaseTransport | None = None,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Prepare to talk to ``url``; the arguments are those of :class:`Client`.

        Raises:
            ValueError: ``url`` is no valid address, or ``key`` cannot be sent in a header.

        """
        options: dict[str, Any] = options_of(url, key, timeout_seconds)
        self._http = httpx.AsyncClient(**options, transport=transport)
        self._retries = retries
        self._pause = pause

    async def __aenter__(self) -> Self:
        """Return the client itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close its connections."""
        await self.close()

    async def close(self) -> None:
        """Close the client's connections."""
        await self._http.aclose()

    def with_retries(self, retries: Retries) -> Self:
        """Return a client on the same connections with other retry settings."""
        other = copy(self)
        other._retries = retries  # noqa: SLF001 -- its own copy
        return other

    async def query(
        self, features: Features, *, key: str | None = None, precision: int | None = None
    ) -> Answer:
        """Return the server's answer to one feature vector."""
        call = query_call(features, key=key, precision=precision)
        return read_answer(await self._content(call))

    async def stream(
        self,
        rows: Iterable[Features],
        *,
        keys: Iterable[str] | None = None,
        precision: int | None = None,
        rows_a_request: int = ROWS_A_REQUEST,
    ) -> AsyncIterator[Answer | ConclaveError]:
        """Yield the answer to each row, in order, as soon as it arrives."""
        for lines in windows(rows, keys, precision, rows_a_request):
            async for reply in self.replies(lines):
                yield read_reply(reply)

    async def replies(self, lines: Sequence[bytes]) -> AsyncIterator[Reply]:
        """Yield the reply to each line of a query stream, in order, as JSON values."""
        window = Window(lines, self._retries)
        wait: float | None = 0.0 if lines else None
        while wait is not None:
            error: ConclaveError | None = None
            try:
                async with self._http.stream(
                    "POST", STREAM, content=window.body(), headers={"Content-Type": NDJSON}
                ) as response:
                    if response.is_success:
                        async for chunk in response.aiter_bytes():
                            for reply in window.feed(chunk):
                                yield reply
                    else:
                        await response.aread()
                        error = refusal_of(response)
            except (httpx.TransportError, httpx.InvalidURL) as failure:
                error = lost(failure, self._http.base_url)
            wait = window.pause_seconds(error)
            if wait is not None:
                await self._pause(wait)
        for reply in window.rest():
            yield reply

    async def schema(self) -> Schema:
        """Return the public schema: features in order, labels, and texts that mean "missing"."""
        return read_schema(await self._content(Call(path="schema")))

    async def budget(self) -> Budget:
        """Return the release's promised, charged and remaining privacy budget."""
        return read_budget(await self._content(Call(path="budget")))

    async def classifier(self) -> Classifier:
        """Return the published classifier, to be evaluated without the server."""
        from conclave_client.classifier import Classifier

        return Classifier.read(await self._content(Call(path="classifier")))

    async def statistics(self, hypotheses: Iterable[Mapping[str, object]]) -> Statistics:
        """Return the mean outcomes of hypotheses (rules) over the private rows."""
        return read_statistics(await self._content(statistics_call(hypotheses)))

    async def _content(self, call: Call) -> bytes:
        """Send a request until it is answered; return the body."""
        attempts = Attempts(self._retries)
        while True:
            try:
                response = await self._http.request(
                    call.method, call.path, content=call.body, headers=call.headers
                )
            except (httpx.TransportError, httpx.InvalidURL) as failure:
                error = lost(failure, self._http.base_url)
            else:
                if response.is_success:
                    return response.content
                error = refusal_of(response)
            await self._pause(attempts.pause_seconds(error))
