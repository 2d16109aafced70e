"""Retries: when an HTTP request is sent again, and which lines of a stream still need a reply.

This module sends nothing; the two clients do so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from conclave_client.errors import (
    NO_CONCLAVE,
    PASSING_STATUSES,
    ConclaveError,
    NotConclaveError,
    UnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Reply = dict[str, Any]
"""The members of an answer, or of a problem."""

RETRY_AFTER_SECONDS_MAX: Final = 60.0
REPLY_BYTES_MAX: Final = 1 << 20
DOUBLINGS_MAX: Final = 30
STOPPED: Final = "the server stopped answering"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """The settings for retries: number of attempts, and pauses between them.

    A request is sent again if it or its reply was lost, or if the server or a proxy asks the client
    to send it later. This is safe because a vector that was answered before gets its recorded
    answer, so that nothing is charged twice.

    Attributes:
        attempts_max: the largest number of failed attempts in a row, the first included; 1
            means no retry.
        pause_seconds: half of the first pause, in seconds; every later pause is twice as long as
            the one before it.
        pause_seconds_max: the longest pause, in seconds, unless the server asks for a longer one of
            up to 60 seconds.

    """

    attempts_max: int = 8
    pause_seconds: float = 0.25
    pause_seconds_max: float = 8.0

    def __post_init__(self) -> None:
        """Refuse what makes no sense.

        Raises:
            ValueError: names the argument.

        """
        if self.attempts_max < 1:
            raise ValueError("attempts_max must be 1 or more")
        if self.pause_seconds < 0 or self.pause_seconds_max < 0:
            raise ValueError("pauses must not be negative")

    def pause_after(self, failures: int, asked_seconds: float | None) -> float:
        """Return the seconds to wait after this many failures; at least what the server asks."""
        doubled = self.pause_seconds * (1 << min(failures, DOUBLINGS_MAX))
        own = min(doubled, self.pause_seconds_max)
        return max(own, min(asked_seconds or 0.0, RETRY_AFTER_SECONDS_MAX))


class Attempts:
    """The attempts at one HTTP request so far."""

    def __init__(self, retries: Retries) -> None:
        """Begin without a failure."""
        self._retries = retries
        self._failures = 0

    def pause_seconds(self, error: ConclaveError) -> float:
        """Return the number of seconds to wait before the next attempt.

        Raises:
            ConclaveError: the given error, if a retry cannot help or there were enough attempts.

        """
        self._failures += 1
        if not isinstance(error, UnavailableError) or not self.are_left:
            raise error
        return self._retries.pause_after(self._failures, error.retry_after_seconds)

    @property
    def are_left(self) -> bool:
        """Whether the request may be attempted once more."""
        return self._failures < self._retries.attempts_max

    def begin_anew(self) -> None:
        """Set the count of failed attempts to zero, since the last attempt brought a reply."""
        self._failures = 0


class Window:
    """Lines of a stream that are sent together, with the replies received so far."""

    def __init__(self, lines: Sequence[bytes], retries: Retries) -> None:
        """Begin with all lines waiting for a reply.

        Args:
            lines: queries of ``POST /query/stream``, each with its newline.
            retries: the number of attempts, and the pauses between them.

        """
        self._lines = lines
        self._attempts = Attempts(retries)
        self._replies: list[Reply | None] = [None] * len(lines)
        self._given_count = 0
        self._open = list(range(len(lines)))
        self._asked: Iterator[int] = iter(())
        self._rest = b""

    def body(self) -> bytes:
        """Return the body of the next request: every line that still needs a reply."""
        self._asked, self._rest = iter(self._open), b""
        return b"".join(self._lines[index] for index in self._open)

    def feed(self, chunk: bytes) -> list[Reply]:
        """Accept a part of the response; return replies that are next in order and need no retry.

        The response is split only at newlines, because a label may contain other characters that
        Unicode treats as the end of a line.

        Raises:
            NotConclaveError: a line is no JSON object, or is too long.

        """
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > REPLY_BYTES_MAX:
            raise NotConclaveError(NO_CONCLAVE)
        for line in filter(bytes.strip, lines):
            index = next(self._asked, None)
            if index is not None:
                self._replies[index] = document_of(line)
        return list(self._next())

    def pause_seconds(self, error: ConclaveError | None) -> float | None:
        """Return the seconds to wait before the next request; None if none is needed.

        Args:
            error: the error that ended the last request; None if its response was complete.

        Raises:
            ConclaveError: the given error, if a retry cannot help.

        """
        still_open = [index for index in self._open if _is_open(self._replies[index])]
        if len(still_open) < len(self._open):
            self._attempts.begin_anew()
        self._open = still_open
        if not still_open:
            return None
        try:
            return self._attempts.pause_seconds(error or UnavailableError(STOPPED))
        except UnavailableError:
            # What a line was told last stands, unless it was told nothing.
            if any(self._replies[index] is None for index in still_open):
                raise
            return None

    def rest(self) -> list[Reply]:
        """Return the replies not returned so far, including refusals that get no other attempt."""
        left = [reply for reply in self._replies[self._given_count :] if reply is not None]
        self._given_count = len(self._replies)
        return left

    def _next(self) -> Iterator[Reply]:
        while self._given_count < len(self._replies):
            reply = self._replies[self._given_count]
            if reply is None or _is_open(reply):
                return
            self._given_count += 1
            yield reply


def document_of(body: bytes) -> Reply:
    """Return the JSON object in a reply's body.

    Raises:
        NotConclaveError: the body is no JSON object.

    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise NotConclaveError(NO_CONCLAVE) from None
    if not isinstance(document, dict):
        raise NotConclaveError(NO_CONCLAVE)
    return document


def _is_open(reply: Reply | None) -> bool:
    """Return whether a line has no reply yet, or one that asks to come back."""
    return reply is None or ("stable" not in reply and reply.get("status") in PASSING_STATUSES)
