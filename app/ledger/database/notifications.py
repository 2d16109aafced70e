"""Messages between the servers of one ledger, and the lock of the server that leads the others.

One server, the leader, answers the queries of all servers: the others send it their queries and
wait for its answers. Messages are sent as notifications of PostgreSQL, on a channel (a name to
which a connection listens) for each receiver. A notification is delivered at once, or, if it was
sent inside a transaction, when the transaction is committed. Any program with access to the
database could read and send notifications, so each message is encrypted and authenticated with a
key that is derived from the database's secret.

The lock of the leader is an advisory lock of the database, and PostgreSQL releases it with the
connection. No guarantee depends on this lock: if there were two leaders, each would still write
under the database's write lock.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy.exc import SQLAlchemyError

from app.errors import LedgerUnavailableError
from app.ledger.database.driver import (
    UNAVAILABLE,
    Row,
    database_errors,
    fetch_all,
    give_back,
    is_cut_off,
)
from app.ledger.database.postgresql import IDLE_SECONDS_MAX, IDLE_SESSIONS_END

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Engine

LEADING_LOCK: Final = 0x6C656164  # "lead"
"""The first half of the advisory lock of the server that commits for the others."""

HEARD_SECONDS_MAX: Final = 1.0
"""How long a server waits for its own first message."""

ASKED_SECONDS: Final = 2.0
"""How often the leader's connection is used, so that PostgreSQL does not end it as idle."""

BODY_BYTES_MAX: Final = 5800
"""Bytes of one message: PostgreSQL carries less than 8000 characters, which are base64."""

NAME_BYTES: Final = 16
SENDERS_MAX: Final = 1000
"""Servers whose keys are kept in memory; those of others are worked out again."""

_KEY: Final = b"conclave-message-1\0"
_COUNTER_BYTES: Final = 12


class Message(NamedTuple):
    """A message from another server, whose sender has the database's secret."""

    sender: bytes
    body: bytes


class Sealed(NamedTuple):
    """An encrypted message with the channel that it is for."""

    channel: str
    text: str


class Messages:
    """One server's connection for messages to and from the others, and for becoming the leader.

    Every method may wait for the database. All methods must be called on one thread.
    """

    def __init__(self, engine: Engine, secret: bytes, release_number: int, name: bytes) -> None:
        """Prepare to connect.

        Args:
            engine: an engine for connections on which each statement is a separate transaction.
            secret: the database's secret.
            release_number: the number of the release that the servers share.
            name: the unique name of this server, random bytes.

        """
        self._engine = engine
        self._secret = secret
        self._release_number = release_number
        self._name = name
        self._own_channel = channel_of(name)
        self._leading_channel = f"conclave_leader_{release_number}"
        self._keys: dict[bytes, AESGCM] = {}
        self._sealing = self._key_of(name)
        self._counter = 0
        self._connection: Connection | None = None
        self._asked_at = 0.0
        self.leads = False

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, as far as is known."""
        return self._connection is not None

    def descriptor(self) -> int | None:
        """Return the file descriptor that becomes readable with a message; None if unconnected."""
        if self._connection is None or is_cut_off(self._connection):
            return None
        found: int = self._connection.connection.dbapi_connection.fileno()  # type: ignore[union-attr]  # psycopg's
        return found

    def connect(self) -> None:
        """Connect, and listen to the messages for this server.

        Raises:
            LedgerUnavailableError: the database cannot be reached, or can only be reached through a
                connection pooler, which delivers no notifications.

        """
        with database_errors():
            self._connection = self._engine.connect()
        self._ask(f"LISTEN {self._own_channel}")
        self.send([self.sealed(b"", receiver=self._name)])
        if not self.received(HEARD_SECONDS_MAX):
            self.close()
            raise LedgerUnavailableError(UNAVAILABLE)

    def close(self) -> None:
        """Close the connection, so that another server may lead; a second call does nothing."""
        connection, self._connection, self.leads = self._connection, None, False
        if connection is not None:
            with suppress(SQLAlchemyError):
                give_back(connection)

    def take_the_lead(self) -> bool:
        """Try to become the server that leads the others; return whether this server leads.

        Raises:
            LedgerUnavailableError: the database cannot be reached.

        """
        if self.leads:
            return True
        ((is_leading,),) = self._ask(
            "SELECT pg_try_advisory_lock(?, ?)", (LEADING_LOCK, self._release_number)
        )
        if is_leading:
            if (self._engine.dialect.server_version_info or ()) >= IDLE_SESSIONS_END:
                self._ask(f"SET idle_session_timeout = '{IDLE_SECONDS_MAX}s'")
            self._ask(f"LISTEN {self._leading_channel}")
            self.leads = True
        return self.leads

    def keep_awake(self) -> None:
        """Send the database a statement from time to time, to keep the leader's connection open."""
        if self.leads and time.monotonic() - self._asked_at > ASKED_SECONDS:
            self._ask("SELECT 1")

    def sealed(self, body: bytes, *, receiver: bytes | None = None) -> Sealed:
        """Return an encrypted message for one server, or for the leading server.

        Args:
            body: the message, at most ``BODY_BYTES_MAX`` bytes.
            receiver: the name of the server; None for the leading server.

        """
        channel = self._leading_channel if receiver is None else channel_of(receiver)
        self._counter += 1  # of this name's key: no two messages have the same
        counter = self._counter.to_bytes(_COUNTER_BYTES)
        encrypted = self._sealing.encrypt(counter, body, channel.encode())
        return Sealed(channel, base64.b64encode(self._name + counter + encrypted).decode())

    def send(self, messages: Sequence[Sealed]) -> None:
        """Send messages to other servers immediately, without waiting for a commit.

        Raises:
            LedgerUnavailableError: the database cannot be reached.

        """
        if messages:
            self._ask(*notifying(messages))

    def received(self, seconds: float) -> list[Message]:
        """Return the messages that have come, after waiting for the first if there is none.

        Args:
            seconds: the longest time to wait.

        Raises:
            LedgerUnavailableError: the database cannot be reached.

        """
        with database_errors():
            connection = self._connected()
            driver = connection.connection.dbapi_connection
            try:
                heard = list(driver.notifies(timeout=seconds, stop_after=1))  # type: ignore[union-attr]  # psycopg's
            except connection.dialect.loaded_dbapi.Error:
                self.close()
                raise SQLAlchemyError from None
        opened = [self._opened(each.channel, each.payload) for each in heard]
        return [each for each in opened if each is not None]

    def _opened(self, channel: str, text: str) -> Message | None:
        """Return a decrypted message; None where its sender does not have the secret."""
        try:
            sent = base64.b64decode(text, validate=True)
            sender, rest = sent[:NAME_BYTES], sent[NAME_BYTES:]
            counter, encrypted = rest[:_COUNTER_BYTES], rest[_COUNTER_BYTES:]
            body = self._key_of(sender).decrypt(counter, encrypted, channel.encode())
        except (InvalidTag, ValueError, binascii.Error):
            return None
        return Message(sender, body)

    def _key_of(self, sender: bytes) -> AESGCM:
        key = self._keys.get(sender)
        if key is None:
            key = AESGCM(hmac.digest(self._secret, _KEY + sender, "sha256"))
            if len(self._keys) < SENDERS_MAX:
                self._keys[sender] = key
        return key

    def _connected(self) -> Connection:
        if self._connection is None:
            raise SQLAlchemyError
        return self._connection

    def _ask(self, statement: str, values: tuple[str | int, ...] = ()) -> Sequence[Row]:
        self._asked_at = time.monotonic()
        with database_errors():
            try:
                return fetch_all(self._connected(), statement, values)
            except SQLAlchemyError:
                self.close()
                raise


def channel_of(name: bytes) -> str:
    """Return the channel on which the server with the given name receives messages."""
    return f"conclave_{name.hex()}"


def notifying(messages: Sequence[Sealed]) -> tuple[str, tuple[str, ...]]:
    """Return the SQL statement that sends messages, with its values."""
    calls = ", ".join(["pg_notify(?, ?)"] * len(messages))
    return f"SELECT {calls}", tuple(part for message in messages for part in message)
