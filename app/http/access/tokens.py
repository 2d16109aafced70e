"""Bearer tokens of an OpenID provider, accepted like API keys after checks of their claims.

A token is a signed JSON Web Token (RFC 7519), which the library joserfc (of the extra ``oidc``)
checks. A claim is one named value in a token, for example its time of expiry or its audience (the
server that it is meant for). The provider's public keys are found by OpenID Connect Discovery 1.0:
the provider's document names the address of its public keys, which are fetched when a token first
needs them, and then kept.

Neither the text of a token nor any of its claims is logged or shown. The subject of a token (the
user or program that it identifies) is counted and logged under a keyed hash, which needs the
ledger's secret.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from app.answering.queries import Asker
from app.errors import ConfigurationError, UnauthorizedError
from app.http.access.keys import Role
from app.http.problems import IssuerUnavailableError
from app.settings.addresses import is_loopback, is_secure_address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import httpx
    from joserfc.jwk import Key as SigningKey

    from app.settings.server_sections import OidcSettings

# Signatures alone: no key of a provider's is a shared secret, and "none" signs nothing.
ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
)
KEY_TYPES: Final = frozenset({"RSA", "EC", "OKP"})
DISCOVERY: Final = "/.well-known/openid-configuration"
LEEWAY_SECONDS: Final = 30
FETCH_SECONDS_MAX: Final = 5.0
DOCUMENT_BYTES_MAX: Final = 2**20
KEYS_OF_ID_MAX: Final = 8
"""Signing keys with one id, of which each is tried."""

PRIVATE_MEMBERS: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth"})
"""What no provider should publish, and a check of a signature does not need."""

# How often keys that are known are fetched again, at a token whose key is unknown and without.
UNKNOWN_KEY_SECONDS: Final = 60.0
KNOWN_KEYS_SECONDS: Final = 600.0
VERIFIED_MAX: Final = 4096

NOT_INSTALLED: Final = (
    "needs the extra `oidc`, which is not installed; install it, or remove the setting"
)
UNREADABLE: Final = "the token is not one that this server reads: a signed JSON Web Token"
UNSIGNED: Final = "the token is not signed by a key of this server's OpenID provider"
REFUSED_CLAIMS: Final = {
    "iss": "the token is of another issuer",
    "aud": "the token is for another audience",
    "exp": "the token has expired, or has no time at which it does",
    "nbf": "the token is not valid yet",
    "iat": "the token is not valid yet",
    "sub": "the token has no subject",
}
ANOTHER: Final = "; send another one, or a key of this server"
UNREACHED: Final = (
    "the keys of this server's OpenID provider cannot be fetched, so that no token can be "
    "checked; try again in a few seconds, or send a key of this server"
)
ANOTHER_ISSUER: Final = (
    "its discovery document names another issuer; both must be equal, also in a slash at the end"
)
NO_KEYS_ADDRESS: Final = "its discovery document names no https address of signing keys"
NO_SIGNING_KEY: Final = "it publishes no signing key that this server can use"
TOO_LONG: Final = f"a document of it is longer than {DOCUMENT_BYTES_MAX} bytes"
log = structlog.get_logger("conclave.api")


class _ProviderError(Exception):
    """What a provider published is of no use; the text is a fixed one."""


def is_token(presented: str) -> bool:
    """Return whether a bearer credential looks like a token: it has dots and is no API key."""
    return "." in presented


@dataclass(frozen=True, slots=True)
class VerifiedToken:
    """A token of a request, after its signature and claims were checked.

    Attributes:
        roles: the roles that the token grants.
        limits: the largest numbers of new answers and of unstable answers for the token's subject;
            None for no limit.
        subject: the user or program that the token identifies, with the token's issuer.
        until: the time of expiry, in seconds since 1970.
        name_of: a function that returns the name under which a subject is counted.
        is_signed: a function that returns whether the provider still publishes the key that signed
            the token, as far as this server knows.

    """

    roles: frozenset[Role]
    limits: tuple[int | None, int | None]
    subject: str = field(repr=False)
    until: float
    name_of: Callable[[str], str]
    is_signed: Callable[[], bool]

    @property
    def noun(self) -> str:
        """The word for the kind of credential, which is a token."""
        return "token"

    @property
    def asker(self) -> Asker:
        """The name under which the queries of this token's subject are counted.

        Raises:
            OpeningError: no release is open, so that the secret that hashes the name is missing.
            ContainedError: the release has stopped.

        """
        return Asker(self.name_of(self.subject), *self.limits)

    def now(self) -> VerifiedToken | None:
        """Return this token, or None once it has expired or its signing key was withdrawn."""
        return self if time.time() < self.until and self.is_signed() else None


class SigningKeys:
    """The public signing keys of one OpenID provider, as last fetched.

    All waiting requests share one fetch. If the provider cannot be reached, the known keys remain
    in use; if no key is known yet, the fetch is repeated after a pause.

    Attributes:
        fetch_count: the number of times that the keys were fetched.

    """

    def __init__(self, issuer: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with no keys fetched."""
        import httpx  # noqa: F401, PLC0415 -- loaded now, as no request should wait for it

        self.fetch_count = 0
        self._issuer = issuer
        self._clock = clock
        self._keys: Mapping[str | None, Sequence[SigningKey]] = {}
        self._prints: frozenset[str] = frozenset()
        self._fetching: asyncio.Task[None] | None = None
        self._tried_at = self._asked_again_at = -math.inf

    async def find(self, key_id: str | None) -> Sequence[SigningKey]:
        """Return the signing keys with an id, or the only signing key if the token names no id.

        A set may have keys of different kinds under one id. The result is empty if no key has it.

        Raises:
            IssuerUnavailableError: no signing key is known, and none can be fetched.

        """
        if not self._keys:
            await self._fetch_first()
            return self._known(key_id)
        found, now = self._known(key_id), self._clock()
        if found:
            return found
        if now >= self._asked_again_at + UNKNOWN_KEY_SECONDS:
            self._asked_again_at = now
            self._fetching = self._fetch_soon()
        if self._fetching is not None:
            await asyncio.shield(self._fetching)
        return self._known(key_id)

    def refresh(self) -> None:
        """Fetch the provider's signing keys again if they are old, without delaying a request."""
        if self._keys and self._clock() >= self._tried_at + KNOWN_KEYS_SECONDS:
            self._fetching = self._fetch_soon()

    def is_published(self, print_of_key: str) -> bool:
        """Return whether a signing key, given by its thumbprint (RFC 7638), is still known.

        Known keys that are old are fetched again, without waiting for them.
        """
        self.refresh()
        return print_of_key in self._prints

    def _known(self, key_id: str | None) -> Sequence[SigningKey]:
        if key_id is not None:
            return self._keys.get(key_id, ())[:KEYS_OF_ID_MAX]
        every = [key for keys in self._keys.values() for key in keys]
        return every if len(every) == 1 else ()

    async def _fetch_first(self) -> None:
        is_pause = self._clock() < self._tried_at + IssuerUnavailableError.retry_after_seconds
        if self._fetching is not None or not is_pause:
            await asyncio.shield(self._fetch_soon())
        if not self._keys:
            raise IssuerUnavailableError(UNREACHED)

    def _fetch_soon(self) -> asyncio.Task[None]:
        """Return the fetch that is under way, which may begin now."""
        if self._fetching is None:
            self._tried_at = self._clock()
            self._fetching = asyncio.create_task(self._fetch())
        return self._fetching

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(FETCH_SECONDS_MAX):
                keys = await _published_keys(self._issuer)
        except _ProviderError as error:
            log.warning("issuer_not_reached", error="ProviderError", reason=str(error))
        except Exception as error:  # noqa: BLE001 -- whatever a provider says or does not
            log.warning("issuer_not_reached", error=type(error).__name__)
        else:
            by_id: dict[str | None, list[SigningKey]] = {}
            for key in keys:
                by_id.setdefault(key.kid, []).append(key)
            self._keys, self._prints = by_id, frozenset(key.thumbprint() for key in keys)
            self.fetch_count += 1
            log.info("signing_keys_fetched", count=len(keys))
        finally:
            self._fetching = None


async def _published_keys(issuer: str) -> tuple[SigningKey, ...]:
    """Return the keys that a provider signs tokens with.

    Raises:
        Exception: it cannot be reached, or what it says is not of OpenID Connect.

    """
    import httpx  # noqa: PLC0415 -- loaded by now

    # Reading the certificates takes tens of milliseconds, in which nothing would be answered.
    context = await asyncio.to_thread(httpx.create_ssl_context)
    # A proxy that the environment names is not asked for what only this machine reaches.
    through_proxy = not is_loopback(httpx.URL(issuer).host)
    async with httpx.AsyncClient(
        verify=context, timeout=FETCH_SECONDS_MAX, trust_env=through_proxy
    ) as client:
        document = await _document(client, issuer.rstrip("/") + DISCOVERY)
        address = document.get("jwks_uri")
        if document.get("issuer") != issuer:
            raise _ProviderError(ANOTHER_ISSUER)
        if not is_secure_address(str(address)):
            raise _ProviderError(NO_KEYS_ADDRESS)
        published = await _document(client, str(address))
    # A megabyte of keys takes tenths of a second to read.
    keys = await asyncio.to_thread(_signing_keys, published.get("keys"))
    if not keys:
        raise _ProviderError(NO_SIGNING_KEY)
    return keys


def _signing_keys(published: object) -> tuple[SigningKey, ...]:
    """Return the usable signing keys of a published set."""
    every = published if isinstance(published, list) else []
    return tuple(key for each in every if (key := _signing_key(each)) is not None)


async def _document(client: httpx.AsyncClient, address: str) -> dict[str, Any]:
    body = bytearray()
    async with client.stream("GET", address) as response:
        response.raise_for_status()
        async for part in response.aiter_bytes():
            body += part
            if len(body) > DOCUMENT_BYTES_MAX:
                raise _ProviderError(TOO_LONG)
    return msgspec.json.decode(bytes(body), type=dict[str, Any])


def _signing_key(published: object) -> SigningKey | None:
    """Return a key of a published set; None where it signs nothing, or is not understood."""
    from joserfc.jwk import import_key  # noqa: PLC0415 -- an extra's

    if not isinstance(published, dict) or published.get("use", "sig") != "sig":
        return None
    kind, key_id = published.get("kty"), published.get("kid")
    if not isinstance(kind, str) or kind not in KEY_TYPES or not isinstance(key_id, str | None):
        return None
    public: Any = {name: each for name, each in published.items() if name not in PRIVATE_MEMBERS}
    try:
        return import_key(public)
    except Exception:  # noqa: BLE001 -- a set may hold keys of a later standard
        return None


class Tokens:
    """A verifier of the bearer tokens that one OpenID provider signs."""

    def __init__(
        self, settings: OidcSettings, keys: SigningKeys, name_of: Callable[[str], str]
    ) -> None:
        """Accept tokens of one OpenID provider.

        Args:
            settings: the provider's address, the expected audience, the claim that contains roles,
                and the limits.
            keys: the provider's public signing keys.
            name_of: a function that returns the name under which a subject is counted.

        """
        from joserfc.jws import JWSRegistry  # noqa: PLC0415 -- an extra's
        from joserfc.jwt import JWTClaimsRegistry  # noqa: PLC0415 -- an extra's

        self._settings = settings
        self._keys = keys
        self._name_of = name_of
        # Providers add members of their own to a header, which mean nothing here.
        self._headers = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
        self._claims = JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": settings.issuer},
            aud={"essential": True, "value": settings.audience},
            exp={"essential": True},
            sub={"essential": True},
        )
        self._verified: dict[bytes, VerifiedToken] = {}
        self._verified_by = 0

    async def find(self, presented: str) -> VerifiedToken:
        """Return the token of a request after checking its signature, audience and expiry.

        Raises:
            UnauthorizedError: the text is no token, or the token is not valid for this server now.
            IssuerUnavailableError: the token cannot be checked, because no signing key of the
                provider is known.

        """
        self._keys.refresh()
        if self._verified_by != self._keys.fetch_count or len(self._verified) >= VERIFIED_MAX:
            self._verified.clear()
            self._verified_by = self._keys.fetch_count
        digest = hashlib.sha256(presented.encode("utf-8", "surrogateescape")).digest()
        known = self._verified.get(digest)
        if known is not None and known.now() is not None:
            return known
        keys = await self._keys.find(self._key_id(presented))
        token = self._read(presented, keys)
        self._verified[digest] = token
        return token

    def _key_id(self, presented: str) -> str | None:
        """Return the id of the key that a token says it is signed with."""
        from joserfc.jws import extract_compact  # noqa: PLC0415 -- loaded by now

        try:
            header = extract_compact(presented.encode("ascii")).headers()
            algorithm, key_id = header["alg"], header.get("kid")
        except Exception:  # noqa: BLE001 -- whatever a client sends
            raise UnauthorizedError(UNREADABLE + ANOTHER) from None
        if algorithm not in ALGORITHMS:
            raise UnauthorizedError(UNSIGNED + ANOTHER)
        if not isinstance(key_id, str | None):
            raise UnauthorizedError(UNREADABLE + ANOTHER)
        return key_id

    def _read(self, presented: str, keys: Sequence[SigningKey]) -> VerifiedToken:
        """Return a token that one of these keys has signed and whose claims hold."""
        from joserfc.errors import ClaimError, JoseError  # noqa: PLC0415 -- loaded by now

        try:
            claims, signer = self._signed(presented, keys)
            self._claims.validate(claims)
            return self._of(claims, signer)
        except ClaimError as error:
            text = REFUSED_CLAIMS.get(str(error.claim).partition(",")[0], UNREADABLE)
            raise UnauthorizedError(text + ANOTHER) from None
        except JoseError:
            raise UnauthorizedError(UNSIGNED + ANOTHER) from None
        except UnauthorizedError:
            raise
        except Exception:  # noqa: BLE001 -- whatever a client sends
            raise UnauthorizedError(UNREADABLE + ANOTHER) from None

    def _signed(
        self, presented: str, keys: Sequence[SigningKey]
    ) -> tuple[dict[str, Any], SigningKey]:
        """Return the claims of a token, with the first of some keys that has signed it."""
        from joserfc.errors import JoseError  # noqa: PLC0415 -- loaded by now
        from joserfc.jwt import decode  # noqa: PLC0415 -- loaded by now

        for key in keys:
            with suppress(JoseError):
                return decode(presented, key, registry=self._headers).claims, key
        raise UnauthorizedError(UNSIGNED + ANOTHER)

    def _of(self, claims: dict[str, Any], signer: SigningKey) -> VerifiedToken:
        settings = self._settings
        named = claims.get(settings.roles_claim)
        words = named.split() if isinstance(named, str) else named
        told = {each for each in words if isinstance(each, str)} if isinstance(words, list) else ()
        return VerifiedToken(
            roles=frozenset(role for role in Role if role in told),
            limits=(settings.limit, settings.unstable_limit),
            subject=f"{settings.issuer} {claims['sub']}",
            until=float(claims["exp"]) + LEEWAY_SECONDS,
            name_of=self._name_of,
            is_signed=partial(self._keys.is_published, signer.thumbprint()),
        )


def tokens_of(settings: OidcSettings | None, name_of: Callable[[str], str]) -> Tokens | None:
    """Return the token verifier of a server; None if no OpenID provider is configured.

    Args:
        settings: the section ``[server.oidc]``; None if it is absent.
        name_of: a function that returns the name under which a subject is counted.

    Raises:
        ConfigurationError: the library joserfc is not installed.

    """
    if settings is None:
        return None
    try:
        return Tokens(settings, SigningKeys(settings.issuer), name_of)
    except ImportError:
        raise ConfigurationError("server.oidc", NOT_INSTALLED) from None
