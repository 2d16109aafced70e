"""The HTTP client of ``conclave query``, built on ``clients/python``."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self

from app.errors import ConfigurationError
from conclave_client import Client, ConclaveError, Retries, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    import httpx

Reply = dict[str, Any]
"""An answer's members, or a problem's; :func:`is_answer` tells which."""

RETRIES: Final = Retries()
ATTEMPTS_MAX: Final = RETRIES.attempts_max
# The first request has to find the server where it is said to be.
AT_ONCE: Final = Retries(attempts_max=1)
URL: Final = "--url"


def without_password(url: str) -> str:
    """Return an address as errors may show it, without the user and password in it."""
    scheme, mark, rest = url.partition("://")
    place, slash, path = (rest if mark else scheme).partition("/")
    host = place.rpartition("@")[2]
    return (scheme + mark if mark else "") + host + slash + path


def is_answer(reply: Reply) -> bool:
    """Return whether a reply is an answer rather than a problem document (an error)."""
    return "stable" in reply


class QueryClient:
    """An HTTP client for one server, with one API key."""

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        transport: httpx.BaseTransport | None = None,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        """Prepare a client for ``url``; nothing is sent yet.

        Raises:
            ConfigurationError: ``url`` is no valid address, or ``key`` cannot be sent in a header.

        """
        self._url = without_password(url)
        try:
            self._client = Client(url, key, retries=RETRIES, transport=transport, pause=pause)
        except ValueError as error:
            said = str(error).replace(repr(url), repr(self._url))
            raise ConfigurationError(URL, said) from None

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
        self._client.close()

    def schema(self) -> dict[str, object]:
        """Return the public schema of the server's release.

        Raises:
            ConfigurationError: no server answers at this address, or the server refuses the client.

        """
        with self._refusing(f"no server answers at {self._url}"):
            return {**self._client.with_retries(AT_ONCE).schema()}

    def ask(self, lines: Sequence[bytes]) -> list[Reply]:
        """Return the server's reply to each of ``lines``, in order.

        Raises:
            ConfigurationError: the server no longer answers after several attempts, or it refuses
                the client.

        """
        with self._refusing(f"the server at {self._url} stopped answering"):
            return list(self._client.replies(lines))

    @contextmanager
    def _refusing(self, away: str) -> Iterator[None]:
        """Turn an error of the client into one line; ``away`` says that nothing answered."""
        try:
            yield
        except UnavailableError as error:
            told = f"{self._url}: {error.detail}" if error.slug else away
            raise ConfigurationError(URL, told) from None
        except ConclaveError as error:
            raise ConfigurationError(URL, f"{self._url}: {error.detail}") from None
