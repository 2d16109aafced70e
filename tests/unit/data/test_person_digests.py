"""Digests of identifiers: those of the plain algorithm, one by one and many at once."""

from __future__ import annotations

import hmac
import secrets
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from app.data import person_digests
from app.data.field_values import ERRORS, CellError
from app.data.person_digests import identifier_digests, text_digests
from app.data.persons import PersonColumn
from app.data.sources.arrow_texts import ArrowTexts
from app.data.sources.column_values import SourceDigests, Values

if TYPE_CHECKING:
    from app.data.sources.column_values import Cells

KEY = b"a secret of the database"
WHO = PersonColumn(name="who", key=KEY, missing=frozenset({"", "?"}))
TEXTS = ["", "a", "7", "07", "12345678", "123456789", "x" * 16, "x" * 24, "x" * 25, "\udcff", "é"]


def by_hand(text: str, key: bytes = KEY) -> bytes:
    """Return the digest by a library's CBC mode, of one identifier."""
    body = text.encode(errors=ERRORS)
    message = len(body).to_bytes(8, "little") + body
    message += bytes(-len(message) % 16)
    aes = algorithms.AES(hmac.digest(key, b"conclave persons 2: identifiers", "sha256"))
    return Cipher(aes, modes.CBC(bytes(16))).encryptor().update(message)[-16:]


def test_digests_are_those_of_the_plain_algorithm() -> None:
    """Of identifiers of any lengths together, whatever lies beside them in memory."""
    assert [each.tobytes() for each in text_digests(TEXTS, KEY)] == [*map(by_hand, TEXTS)]
    assert text_digests([], KEY).shape == (0, 2)


@given(st.lists(st.text(max_size=40).filter(lambda text: text not in WHO.missing), min_size=1))
def test_a_row_is_read_alone(texts: list[str]) -> None:
    """A block gives each identifier the digest that it has alone, from every kind of source."""
    encoded = [text.encode(errors="surrogatepass") for text in texts]
    alone = np.concatenate([identifier_digests(*_joined([each]), KEY) for each in encoded])
    for kind in (pa.binary(), pa.large_binary()):
        block = pa.array([b"before", *encoded], kind)[1:]
        np.testing.assert_array_equal(_read(ArrowTexts(block)), alone)
    np.testing.assert_array_equal(identifier_digests(*_joined(encoded), KEY), alone)


def _joined(encoded: list[bytes]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    ends = np.cumsum([0, *map(len, encoded)])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends


def _read(cells: Cells) -> np.ndarray[Any, Any]:
    column = SourceDigests(WHO)
    assert not column.encode(cells).any()
    return column.take()


def test_a_person_is_one_however_the_number_is_stored() -> None:
    """7, 7.0 and "7" are one person, and "07" is another, in each form of a block."""
    seven = by_hand("7")
    forms: list[Cells] = [
        ["7"],
        Values([7]),
        Values([7.0, b"8"], np.array([0])),
        Values(ArrowTexts(pa.array([b"8", b"7"], pa.binary())), np.array([1])),
        ArrowTexts(pa.array([b"7"], pa.binary())),
    ]
    for cells in forms:
        assert _read(cells).tobytes() == seven
    assert by_hand("07") != seven


@pytest.mark.parametrize("nobody", ["", "?"])
def test_nobody_has_no_digest(nobody: str) -> None:
    """A row that names nobody is refused, in each form of a block."""
    forms: list[Cells] = [
        ["ann", nobody],
        Values([None]),
        Values(ArrowTexts(pa.array([nobody.encode()], pa.binary())), np.array([0])),
        ArrowTexts(pa.array([b"ann", nobody.encode()], pa.binary())),
    ]
    for cells in forms:
        with pytest.raises(CellError, match="names no person"):
            SourceDigests(WHO).encode(cells)


def test_another_key_gives_other_digests() -> None:
    """And so does a longer identifier that begins alike, or ends in zeros."""
    some = text_digests(["ann", "ann\0", "ann" + "\0" * 8], KEY)
    assert len(np.unique(some, axis=0)) == 3
    assert not np.isin(text_digests(["ann"], b"another"), some).any()


def test_zeros_alone_would_merge_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: without its length an identifier is the one that zeros follow."""
    words = person_digests._Words.at

    def without_length(self: Any, place: int, rows: Any) -> Any:
        return words(self, place, rows) * np.uint64(place > 0)

    monkeypatch.setattr(person_digests._Words, "at", without_length)
    some = text_digests(["ann", "ann\0"], secrets.token_bytes(32))
    assert len(np.unique(some, axis=0)) == 1
