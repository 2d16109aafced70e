"""The header Idempotency-Key, to the letter: a structured string, or its bare characters."""

from __future__ import annotations

import json

import pytest

from app.http.query.query_body import KEY_SHAPE
from tests.http.doubles import NDJSON, Http, assert_problem, problem

LONGEST = "k" * 255
UUID = "8e03978e-40d5-43dd-bc93-6894a57f9324"
# Every spelling of a key, and the key that it stands for.
SPELLINGS = {
    "a string": (f'"{UUID}"', UUID),
    "bare characters": (UUID, UUID),
    "spaces around": (f'  "{UUID}"\t', UUID),
    "one character": ("k", "k"),
    "a string of one": ('"k"', "k"),
    "the longest": (LONGEST, LONGEST),
    "the longest string": (f'"{LONGEST}"', LONGEST),
    "the longest with escapes": ('"' + r"\"" * 255 + '"', '"' * 255),
    "an escaped quote": (r'"a\"b"', 'a"b'),
    "an escaped backslash": (r'"a\\b"', "a\\b"),
    "a bare backslash": ("a\\b", "a\\b"),
    "a string with spaces": ('" two words "', " two words "),
    "all that is visible": (
        "!#$%&'()*+,-./:;<=>?@[]^_`{|}~",
        "!#$%&'()*+,-./:;<=>?@[]^_`{|}~",
    ),
}
NO_KEYS = {
    "empty": b"",
    "an empty string": b'""',
    "spaces alone": b"   ",
    "too long": b"k" * 256,
    "a string too long": b'"' + b"k" * 256 + b'"',
    "two words": b"two words",
    "a tab within": b"two\twords",
    "an open string": b'"open',
    "a quote within a string": b'"a"b"',
    "an escape of something else": rb'"a\n"',
    "a lone backslash at the end": b'"a\\"',
    "a string with a parameter": b'"a";b=1',
    "two strings as one field": b'"a", "b"',
    "a string and more": b'"a"b',
    "latin letters": "clé".encode("latin-1"),
    "UTF-8": "clé".encode(),
    "a string of UTF-8": '"clé"'.encode(),
    "a no-break space before": b"\xa0key",
    "a next-line mark behind": b"key\x85",
    "a delete mark": b"a\x7f",
    "a null": b"a\x00b",
    "a control character": b'"a\x01"',
}
BODY = b'{"features": [41, "Private"]}'
OTHER = b'{"features": [42, "Private"]}'
EXPECTED = problem("invalid-parameter", "Invalid parameter", 400, KEY_SHAPE)


def headers(*keys: bytes) -> list[tuple[str, bytes]]:
    """Return the headers of a query with keys, each a field of its own, byte for byte."""
    sent = [("Idempotency-Key", key) for key in keys]
    return [("Content-Type", b"application/json"), *sent]


@pytest.mark.parametrize(("spelling", "key"), SPELLINGS.values(), ids=SPELLINGS.keys())
def test_every_spelling_is_the_key_that_it_stands_for(spelling: str, key: str) -> None:
    """What is bound by one spelling conflicts by a line's plain member, and the other way about."""
    with Http() as http:
        first = http.request("POST", "/query", content=BODY, headers=headers(spelling.encode()))
        assert first.status_code == 200
        assert http.service.vector_of_key == {key: (41.0, "Private")}
        other = http.request("POST", "/query", content=OTHER, headers=headers(spelling.encode()))
        assert other.status_code == 409


@pytest.mark.parametrize("sent", NO_KEYS.values(), ids=NO_KEYS.keys())
def test_what_is_no_key_is_refused_uncharged(sent: bytes) -> None:
    """Anything else gets 400 in words that say what a key is, and nothing is asked."""
    with Http() as http:
        reply = http.request("POST", "/query", content=BODY, headers=headers(sent))
        assert_problem(reply, EXPECTED)
        assert http.service.windows == []


@pytest.mark.parametrize("keys", [(b"a", b"b"), (b"a", b"a"), (b'"a"', b""), (b"", b"")])
def test_a_key_is_sent_once(keys: tuple[bytes, ...]) -> None:
    """Two fields are refused, alike ones too: whoever sends two is mistaken about one."""
    with Http() as http:
        reply = http.request("POST", "/query", content=BODY, headers=headers(*keys))
        assert_problem(reply, EXPECTED)
        assert http.service.windows == []


@pytest.mark.parametrize("name", ["idempotency-key", "IDEMPOTENCY-KEY", "Idempotency-Key"])
def test_the_name_of_the_header_has_no_case(name: str) -> None:
    """A field's name is read in any case, as everywhere in HTTP."""
    with Http() as http:
        sent = [("Content-Type", b"application/json"), (name, b"k")]
        http.request("POST", "/query", content=BODY, headers=sent)
        assert list(http.service.vector_of_key) == ["k"]


@pytest.mark.parametrize(
    "key", ["", "x" * 256, "two words", '"open', "clé", "\u00a0key", "a\u0000b", "\ud800"]
)
def test_a_line_takes_no_key_that_a_header_could_not_carry(key: str) -> None:
    """The member of a stream's line is held to the same letters; its line alone is refused."""
    lines = [
        {"features": [41, "Private"], "idempotency_key": key},
        {"features": [41, "Private"], "idempotency_key": "k"},
    ]
    with Http() as http:
        content = "\n".join(json.dumps(line) for line in lines).encode()
        reply = http.request("POST", "/query/stream", content=content, headers=NDJSON)
        refused, answered = [json.loads(line) for line in reply.content.splitlines()]
        assert refused["status"] == 400
        assert answered["query_id"] == 1
        assert list(http.service.vector_of_key) == ["k"]


@pytest.mark.parametrize("key", [1, True, [], {}, 1.5])
def test_a_lines_key_is_a_string(key: object) -> None:
    """A number or anything else in its place is refused with its line."""
    with Http() as http:
        (refused,) = http.stream({"features": [41, "Private"], "idempotency_key": key})
        assert refused["status"] == 400
        assert not http.service.answers


def test_a_refused_query_binds_no_key() -> None:
    """A key of a body that was refused is free for the query that is meant."""
    with Http() as http:
        for content in (b"{", b'{"features": ["41", "Private"]}', b'{"features": [41]}'):
            reply = http.request("POST", "/query", content=content, headers=headers(b"k"))
            assert reply.status_code in {400, 422}
        reply = http.request("POST", "/query", content=BODY, headers=headers(b"k"))
        assert reply.json()["query_id"] == 1
