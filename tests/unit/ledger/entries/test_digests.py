"""Keyed digests: the documented values, and no two uses that share one."""

from __future__ import annotations

import hashlib
import hmac

from app.ledger.entries.digests import Digests, private_digest, public_digest

KEY = bytes(32)


def test_vector_digest_is_the_documented_one() -> None:
    """A vector's digest is HMAC-SHA256 over the tag and the vector."""
    expected = hmac.new(KEY, b"conclave-vector-1\0vector", hashlib.sha256).digest()
    assert Digests(KEY).of_vector(b"vector") == expected
    assert public_digest(expected) == expected.hex()[:32]


def test_uses_do_not_share_a_digest() -> None:
    """The same bytes have another digest for each use and each secret."""
    digests = Digests(KEY)
    found = {
        digests.of_vector(b"x"),
        digests.of_key("x"),
        digests.fingerprint_key(),
        Digests(b"1" * 32).of_vector(b"x"),
        bytes.fromhex(private_digest(KEY, name="x", body=b"")),
    }
    assert len(found) == 5


def test_private_digest_tells_name_from_body() -> None:
    """Moving a byte from the name to the body changes the digest."""
    first = private_digest(KEY, name="ab", body=b"c")
    assert first != private_digest(KEY, name="a", body=b"bc")
    assert first == hmac.new(KEY, b"conclave-private-state-1\0ab\0c", hashlib.sha256).hexdigest()


def test_the_name_of_a_subject_needs_the_secret() -> None:
    """It is half of the documented HMAC, and another one under another secret."""
    expected = hmac.new(KEY, b"conclave-subject-1\0issuer ada", hashlib.sha256).hexdigest()[:32]
    assert Digests(KEY).of_subject("issuer ada") == expected
    assert Digests(b"1" * 32).of_subject("issuer ada") != expected
