"""Access control of a route: API keys, roles, and refusal of browsers' cross-site requests.

The module also decides on which addresses a server without API keys may listen.

A request may have a bearer token of an OpenID provider in place of an API key. Queries are counted
and logged under a name: for an API key it is the key's name; for a token it is a hash with the
secret of the open release's ledger, so no token has a name while no release is open.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

from app.errors import ConclaveError, ConfigurationError, ForbiddenError, UnauthorizedError
from app.http.access.keys import Role
from app.http.access.tokens import is_token
from app.http.problems import CrossSiteError, MisdirectedRequestError
from app.settings.addresses import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.datastructures import Headers
    from starlette.types import Scope

    from app.answering.queries import Asker
    from app.http.access.keys import Keys
    from app.http.access.tokens import Tokens
    from app.settings.settings import Settings


def require_safe_binding(settings: Settings, *, is_demo: bool) -> None:
    """Refuse to serve private data without API keys on an address that other machines reach.

    Args:
        settings: the configuration.
        is_demo: whether the served rows are the generated ones of the demo.

    Raises:
        ConfigurationError: the address is not safe; the error says which file of keys to provide.

    """
    server = settings.server
    has_door = server.keys_file is not None or server.oidc is not None
    if is_demo or has_door or is_loopback(server.host):
        return
    raise ConfigurationError(
        "server.keys_file",
        f"not set, and server.host {server.host!r} can be reached from other machines; "
        "mount a keys file (`conclave keys add --role query --name NAME` writes one) and set "
        "CONCLAVE_SERVER__KEYS_FILE to its path, or listen on 127.0.0.1",
    )


SEND_A_KEY: Final = (
    "send a key of this server as `Authorization: Bearer KEY`, or as the password of Basic"
)
SEND_EITHER: Final = (
    "send a token of this server's OpenID provider as `Authorization: Bearer TOKEN`, or a key of "
    "this server so, or as the password of Basic"
)
ENDED: Final = (
    "the token has expired, or the key that signed it was withdrawn; send another one, or a key of "
    "this server"
)
CROSS_SITE: Final = (
    "a browser sent this for a page of another site, which may not spend this server's "
    "budget; call it from a program, or with a Bearer key"
)
MISDIRECTED: Final = (
    "this server has no keys and answers to loopback names only; use http://127.0.0.1 or "
    "http://localhost with its port"
)


UNNAMED_SUBJECT: Final = "oidc"
CALLER: Final = "conclave.caller"
"""Where a request's scope has its caller, if the server has keys."""


class Found(Protocol):
    """The interface of a request's credential: an API key or a token."""

    @property
    def noun(self) -> str:
        """The word for the kind of credential: key or token."""

    @property
    def roles(self) -> frozenset[Role]:
        """The roles that the request's key or token grants."""

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """The key's or token's limits on new answers and on unstable answers; None for no limit."""

    @property
    def asker(self) -> Asker:
        """The name under which the sender's queries are counted.

        Raises:
            OpeningError: the sender sent a token, and no release is open yet.
            ContainedError: the sender sent a token, and the release has stopped.

        """


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request, whose key or token may change while a long stream is open.

    Attributes:
        found: the API key or token at the time of the request.
        needed: the role that the route requires.
        now: a function that returns the key or token as it is now, for example with changed roles;
            None once it is no longer accepted.

    """

    found: Found
    needed: Role
    now: Callable[[], Found | None]

    def require_role(self) -> None:
        """Let the request continue if its key or token has the role, or else raise an error.

        Raises:
            ForbiddenError: the key or token does not have the role.

        """
        _allowed(self.found, self.needed)

    def found_now(self) -> Found:
        """Return the request's key or token as it is now, for example with changed roles.

        Raises:
            UnauthorizedError: the key is no longer accepted, or the token has expired, or the
                provider has withdrawn the key that signed it.
            ForbiddenError: the key or token has lost the required role.

        """
        found = self.now()
        if found is None:
            raise UnauthorizedError(ENDED if self.found.noun == "token" else SEND_A_KEY)
        return _allowed(found, self.needed)

    @property
    def name(self) -> str:
        """The sender's name in the log; it is "oidc" for any token while no release is open."""
        try:
            return self.found.asker.name
        except ConclaveError:
            return UNNAMED_SUBJECT


def caller_of(scope: Scope) -> Caller | None:
    """Return a request's sender; None without API keys, or before access is checked."""
    caller: Caller | None = scope.get(CALLER)
    return caller


def asker_of(scope: Scope) -> Asker | None:
    """Return the name under which a request's queries are counted; None without API keys."""
    caller = caller_of(scope)
    return None if caller is None else caller.found.asker


def key_field(caller: Caller | None) -> dict[str, str]:
    """Return the log field with the name of a request's sender; empty if it is unknown."""
    return {} if caller is None else {"key": caller.name}


@dataclass(frozen=True, slots=True)
class Access:
    """Access control for every route that needs a role.

    Attributes:
        keys: the known API keys; None grants every role to everyone who can connect.
        loopback_only: whether the server listens on loopback without API keys. The header ``Host``
            must then be a loopback name, so that no web page can reach the server through a domain
            name of its own (DNS rebinding).
        tokens: the verifier of an OpenID provider's tokens, which are accepted in addition to keys;
            None if tokens are not accepted.

    """

    keys: Keys | None
    loopback_only: bool = False
    tokens: Tokens | None = None

    async def identify(self, headers: Headers, needed: Role, *, writes: bool) -> Caller | None:
        """Return the sender of a request, whether it has the role or not; None without API keys.

        Args:
            headers: the headers of the request.
            needed: the role that the route requires.
            writes: whether the request can spend budget.

        Raises:
            UnauthorizedError: the request has no key, an unknown key, or an invalid token.
            IssuerUnavailableError: the token cannot be checked now.
            CrossSiteError: a browser sent the request on behalf of another site's page.
            MisdirectedRequestError: the ``Host`` is not a loopback name.

        """
        found = self.identify_by_key(headers, needed, writes=writes)
        if self.tokens is None or not isinstance(found, str):
            return found if isinstance(found, Caller) else None
        token = await self.tokens.find(found)
        return Caller(token, needed, token.now)

    def identify_by_key(
        self, headers: Headers, needed: Role, *, writes: bool
    ) -> Caller | str | None:
        """Return the sender of a request by its API key, or a token's text for later checks."""
        scheme, credentials = _authorization(headers)
        if self.loopback_only and not _is_loopback_host(headers.get("host", "")):
            raise MisdirectedRequestError(MISDIRECTED)
        # A browser adds a Basic password on its own, but never a Bearer key.
        if writes and (self.keys is None or scheme == "basic"):
            _refuse_cross_site(headers)
        if self.keys is None:
            return None
        presented = _presented_key(scheme, credentials)
        found = None if presented is None else self.keys.find(presented)
        if found is not None:
            return Caller(found, needed, partial(self.keys.known, found.digest))
        if self.tokens is None:
            raise UnauthorizedError(SEND_A_KEY)
        if presented is None or scheme != "bearer" or not is_token(presented):
            raise UnauthorizedError(SEND_EITHER)
        return presented


def _allowed(found: Found, needed: Role) -> Found:
    if not any(role.allows(needed) for role in found.roles):
        noun, has = found.noun, " and ".join(sorted(found.roles)) or "none"
        text = f"this route needs the role {needed}, and the {noun} has {has}; send another {noun}"
        raise ForbiddenError(text)
    return found


def _authorization(headers: Headers) -> tuple[str, str]:
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    return scheme.lower(), credentials.strip()


def _presented_key(scheme: str, credentials: str) -> str | None:
    if scheme == "bearer":
        return credentials
    return _basic_password(credentials) if scheme == "basic" else None


def _basic_password(credentials: str) -> str | None:
    try:
        text = base64.b64decode(credentials, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    return text.partition(":")[2]


@lru_cache(maxsize=64)
def _is_loopback_host(host: str) -> bool:
    """Return whether a ``Host`` header, name and port, is a loopback name."""
    try:
        return is_loopback(urlsplit("//" + host).hostname or "")
    except ValueError:
        return is_loopback("")


def _refuse_cross_site(headers: Headers) -> None:
    """Compare ``Origin``, which browsers send with every POST, with ``Host``."""
    origin = headers.get("origin")
    if origin is None:
        return
    if origin.partition("://")[2].lower() != headers.get("host", "").lower():
        raise CrossSiteError(CROSS_SITE)
