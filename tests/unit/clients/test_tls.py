"""What the client says where ``https://`` leads to no TLS, or to a certificate of nobody's."""

from __future__ import annotations

import asyncio
import ssl
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from app.cli import run
from conclave_client import AsyncClient, Client, NotConclaveError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HOST = "127.0.0.1"
NO_TLS = "the server answers without TLS: write http:// in place of https://"


class Quiet(BaseHTTPRequestHandler):
    """A server of plain HTTP, which understands nothing of what a client of TLS sends."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def answering(context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Answer on a free port, by TLS where a context is given; give the address."""
    with HTTPServer((HOST, 0), Quiet) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # of broken handshakes
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"https://{HOST}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def self_signed(folder: Path) -> ssl.SSLContext:
    """Return a server's side of TLS whose certificate nobody else has signed."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    made = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=key.public_key(),
        serial_number=1,
        not_valid_before=now - timedelta(days=1),
        not_valid_after=now + timedelta(days=1),
    ).sign(key, hashes.SHA256())
    encoding = serialization.Encoding.PEM
    written = key.private_bytes(
        encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "server.pem"
    path.write_bytes(written + made.public_bytes(encoding))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def ask(url: str) -> None:
    """Ask with the client that waits."""
    with Client(url) as client:
        client.schema()


def ask_on_a_loop(url: str) -> None:
    """Ask with the client for an event loop."""

    async def asked() -> None:
        async with AsyncClient(url) as client:
            await client.schema()

    asyncio.run(asked())


both = pytest.mark.parametrize("asking", [ask, ask_on_a_loop])


@both
def test_a_server_without_tls_is_named(asking: Callable[[str], None]) -> None:
    """It is not asked again and again, and the line says what to write."""
    with answering() as url, pytest.raises(NotConclaveError) as raised:
        asking(url)
    assert raised.value.detail == NO_TLS


@both
def test_a_certificate_of_nobodys_is_named(asking: Callable[[str], None], tmp_path: Path) -> None:
    """The reason is OpenSSL's."""
    with answering(self_signed(tmp_path)) as url, pytest.raises(NotConclaveError) as raised:
        asking(url)
    assert raised.value.detail.startswith("the server's certificate is not accepted: self")


def test_the_command_names_tls_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """``conclave query`` ends with 2 and says it with the address."""
    with answering() as url:
        assert run(["query", "--url", url, "in.csv"]) == 2
    assert capsys.readouterr().err == f"conclave: --url: {url}: {NO_TLS}\n"
