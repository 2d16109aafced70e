"""A small OpenID provider in a process of its own: discovery, keys, signed tokens, rotation.

What a test wants of it is asked by POST: a token, another key, another discovery document.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from joserfc import jwk, jwt

if TYPE_CHECKING:
    from joserfc.jwk import Key

AUDIENCE: Final = "conclave"
HOST: Final = "127.0.0.1"
DISCOVERY: Final = "/.well-known/openid-configuration"
LIFETIME_SECONDS: Final = 3600
SECONDS_MAX: Final = 30


class Issuer:
    """The process, as a test sees it.

    Attributes:
        address: its identifier.

    """

    def __init__(self, port: int = 0) -> None:
        """Start it, on a port that is free or was."""
        root = Path(__file__).parents[3]
        command = [sys.executable, "-m", "tests.builders.server.issuer", str(port)]
        self._process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.address = f"http://{HOST}:{self.port}"

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.end()

    def end(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def claims(self, **changes: object) -> dict[str, Any]:
        """Return the claims of a good token; a change to None leaves one out."""
        claims = {
            "iss": self.address,
            "aud": AUDIENCE,
            "sub": "ada-lovelace",
            "exp": int(time.time()) + LIFETIME_SECONDS,
            "roles": ["query"],
        }
        return {name: value for name, value in (claims | changes).items() if value is not None}

    def token(self, **changes: object) -> str:
        """Return a token that the present key has signed."""
        return str(self._post("/token", self.claims(**changes))["token"])

    def rotate(self, *, keep: bool = False) -> None:
        """Sign by another key from now on, and publish it alone, or beside those before."""
        self._post("/rotate", {"keep": keep})

    def publish(self, **changes: object) -> None:
        """Say something else in the discovery document."""
        self._post("/publish", changes)

    def publish_beside(self, *others: object) -> None:
        """Publish these in the set of keys, before those that sign."""
        self._post("/beside", others)

    def public_key(self) -> dict[str, Any]:
        """Return the newest key that is published."""
        import httpx

        keys: list[dict[str, Any]] = httpx.get(f"{self.address}/keys", trust_env=False).json()[
            "keys"
        ]
        return keys[-1]

    def fetch_count(self) -> int:
        """Return how often the discovery document was asked for."""
        return int(self._post("/count", {})["count"])

    def _post(self, path: str, body: object) -> dict[str, Any]:
        import httpx  # which the process itself does not load

        reply = httpx.post(self.address + path, json=body, timeout=SECONDS_MAX, trust_env=False)
        document: dict[str, Any] = reply.raise_for_status().json()
        return document


class Provider(ThreadingHTTPServer):
    """The provider within the process.

    Attributes:
        keys: those that are published; the last one signs.
        changes: what the discovery document says in other words.
        others: what is in the set of keys before those that sign.
        fetch_count: how often it was asked for.

    """

    def __init__(self, port: int) -> None:
        """Begin with one key."""
        super().__init__((HOST, port), Handler)
        self.keys: list[Key] = []
        self.changes: dict[str, Any] = {}
        # A provider may have keys that sign nothing, or that nobody understands.
        self.others: list[Any] = [
            {"kty": "oct", "k": "c2VjcmV0", "kid": "shared"},
            {"kty": "RSA", "kid": "?"},
        ]
        self.fetch_count = self.key_count = 0
        self.add_key()

    @property
    def address(self) -> str:
        """Its identifier."""
        return f"http://{HOST}:{self.server_address[1]}"

    def add_key(self) -> None:
        """Make a key: the first of an elliptic curve, the second of RSA, and so on."""
        self.key_count += 1
        parameters: Any = {"kid": f"key-{self.key_count}", "use": "sig"}
        if self.key_count % 2:
            self.keys.append(jwk.generate_key("EC", "P-256", parameters))
        else:
            self.keys.append(jwk.generate_key("RSA", 2048, parameters))

    def sign(self, claims: dict[str, Any]) -> str:
        """Sign claims by the last key."""
        key = self.keys[-1]
        algorithm = "RS256" if key.key_type == "RSA" else "ES256"
        return jwt.encode({"alg": algorithm, "kid": key.kid}, claims, key)


class Handler(BaseHTTPRequestHandler):
    """One request to it."""

    server: Provider

    def do_GET(self) -> None:
        """Give the discovery document or the keys."""
        provider = self.server
        if self.path == "/keys":
            keys = [key.as_dict(private=False) for key in provider.keys]
            self._reply({"keys": provider.others + keys})
        elif self.path == DISCOVERY:
            provider.fetch_count += 1
            document = {"issuer": provider.address, "jwks_uri": f"{provider.address}/keys"}
            self._reply(document | provider.changes)
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        """Do what a test wants."""
        provider = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/rotate":
            provider.keys = provider.keys if body["keep"] else []
            provider.add_key()
        elif self.path == "/publish":
            provider.changes = body
        elif self.path == "/beside":
            provider.others = body
        token = provider.sign(body) if self.path == "/token" else ""
        self._reply({"token": token, "count": provider.fetch_count})

    def _reply(self, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    with Provider(int(sys.argv[1])) as provider:
        print(provider.server_address[1], flush=True)  # noqa: T201 -- where it listens
        provider.serve_forever()
