"""Who may use a route: keys, roles, and what a browser must not be tricked into.

Where a server without keys may listen.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from app.errors import ConfigurationError, ForbiddenError, UnauthorizedError
from app.http.access.keys import Role
from app.http.problems import CrossSiteError, MisdirectedRequestError
from app.settings.addresses import is_loopback

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import Scope

    from app.answering.types import Asker
    from app.http.access.keys import Found, Keys
    from app.settings.settings import Settings


def require_safe_binding(settings: Settings, *, is_demo: bool) -> None:
    """Refuse to serve private data without keys where other machines can connect.

    Raises:
        ConfigurationError: says what to mount.

    """
    if is_demo or settings.server.keys_file is not None or is_loopback(settings.server.host):
        return
    raise ConfigurationError(
        "server.keys_file",
        f"not set, and server.host {settings.server.host!r} can be reached from other machines; "
        "mount a keys file (`conclave keys add --role query --name NAME` writes one) and set "
        "CONCLAVE_SERVER__KEYS_FILE to its path, or listen on 127.0.0.1",
    )


SEND_A_KEY: Final = (
    "send a key of this server as `Authorization: Bearer KEY`, or as the password of Basic"
)
CROSS_SITE: Final = (
    "a browser sent this for a page of another site, which may not spend this server's "
    "budget; call it from a program, or with a Bearer key"
)
MISDIRECTED: Final = (
    "this server has no keys and answers to loopback names only; use http://127.0.0.1 or "
    "http://localhost with its port"
)


CALLER: Final = "conclave.caller"
"""Where a request's scope has its caller, if the server has keys."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sent a request with a key: a stream may go on while the keys change.

    Attributes:
        keys: where it is looked up again.
        found: the key when the request came.
        needed: the role of the route.

    """

    keys: Keys
    found: Found
    needed: Role

    def require_role(self) -> None:
        """Let the request go on.

        Raises:
            ForbiddenError: the key has another role.

        """
        _allowed(self.found, self.needed)

    def asker(self) -> Asker:
        """Return by whom queries are counted, with the limits of now.

        Raises:
            UnauthorizedError: the key opens nothing any more.
            ForbiddenError: it has another role now.

        """
        return _allowed(self.keys.known(self.found.digest), self.needed).asker


def caller_of(scope: Scope) -> Caller | None:
    """Return who sent a request; None on a server without keys, or while nobody is known."""
    caller: Caller | None = scope.get(CALLER)
    return caller


def asker_of(scope: Scope) -> Asker | None:
    """Return by whom the queries of a request are counted; None on a server without keys."""
    caller = caller_of(scope)
    return None if caller is None else caller.found.asker


def key_field(caller: Caller | None) -> dict[str, str]:
    """Return what a log line says of who sent a request: the name of a key, where one came."""
    return {} if caller is None else {"key": caller.found.asker.name}


@dataclass(frozen=True, slots=True)
class Access:
    """The door of every route that has a role.

    Attributes:
        keys: the known keys; None grants every role to everyone who can connect.
        loopback_only: whether the server listens on loopback without keys.  Its
            ``Host`` must then be a loopback name, so that no web page reaches it
            through a name of its own (DNS rebinding).

    """

    keys: Keys | None
    loopback_only: bool = False

    def identify(self, headers: Headers, needed: Role, *, writes: bool) -> Caller | None:
        """Return who sent a request, whatever its role; None where the server has no keys.

        Args:
            headers: of the request.
            needed: the role of the route.
            writes: whether it can spend budget.

        Raises:
            UnauthorizedError: no key, or an unknown one.
            CrossSiteError: a browser's request for another site.
            MisdirectedRequestError: a ``Host`` that is not a loopback name.

        """
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
        if found is None:
            raise UnauthorizedError(SEND_A_KEY)
        return Caller(self.keys, found, needed)


def _allowed(found: Found | None, needed: Role) -> Found:
    if found is None:
        raise UnauthorizedError(SEND_A_KEY)
    role = found.key.role
    if not role.allows(needed):
        text = f"this route needs the role {needed}, and the key has {role}; send another key"
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
