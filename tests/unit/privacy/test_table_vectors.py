"""Exact vectors of the tables that new releases serve by: every word, from public parameters.

The parameters are exact rationals in the file, so that no double of a machine has a part in the
words.  A word is the smallest that its theorem allows beside the one before, which is decided here
by the theorem's own formula, at sixty digits.
"""

from __future__ import annotations

import json
from decimal import Decimal, localcontext
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.errors import InvariantError
from app.privacy.noisy_vote.vote_table import half_table
from app.privacy.stability.certified.certified_table import CertifiedTable, check
from app.privacy.stability.hit_table import find_thresholds
from app.privacy.stability.table_inequality import (
    MARGIN,
    WORD_RANGE,
    precise_context,
    to_decimal,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "table-vectors.json").read_text())
TABLES = [*VECTORS["pair_tables"], *VECTORS["vote_tables"]]


def built(vector: dict[str, Any]) -> tuple[int, ...]:
    """Return the table of a vector, from its exact parameters."""
    alpha, ln_ratio = Fraction(vector["alpha"]), Fraction(vector["ln_ratio"])
    if "is_odd" in vector:
        return half_table(alpha=alpha, ln_ratio=ln_ratio, is_odd=vector["is_odd"])
    return find_thresholds(
        alpha=alpha,
        ln_ratio=ln_ratio,
        first=int(vector["first"]),
        ln_answer_ratio=ln_ratio if vector["is_answer_priced"] else Fraction(0),
    )


def digest(words: Sequence[int]) -> str:
    """Return the digest of all words in decimal."""
    return sha256(",".join(map(str, words)).encode()).hexdigest()


def is_allowed(vector: dict[str, Any], one: int, other: int) -> bool:
    """Return whether two words may be neighbours, by the theorem's formula in both orders."""
    with localcontext(precise_context()):
        alpha = to_decimal(Fraction(vector["alpha"]))
        ratio = to_decimal(Fraction(vector["ln_ratio"])).exp()
        answer_ratio = ratio if vector.get("is_answer_priced", True) else Decimal(1)
        p, q = Decimal(one) / WORD_RANGE, Decimal(other) / WORD_RANGE
        for a, b in ((p, q), (q, p)):
            hits = a**alpha * b ** (1 - alpha) / ratio
            answers = (1 - a) ** alpha * (1 - b) ** (1 - alpha) / answer_ratio
            if hits + answers > 1 - MARGIN:
                return False
    return True


@pytest.mark.parametrize("vector", TABLES, ids=lambda vector: vector["name"])
def test_every_word_of_a_table_is_the_vectors(vector: dict[str, Any]) -> None:
    """The same integers on any machine, and each sampled one is the smallest that is allowed."""
    words = built(vector)
    assert {each: str(words[int(each)]) for each in vector["words"]} == vector["words"]
    assert (len(words), digest(words)) == (vector["count"], vector["sha256"])
    for index in map(int, vector["words"]):
        if index:
            assert is_allowed(vector, words[index - 1], words[index])
            assert not is_allowed(vector, words[index - 1], words[index] - 1)


@pytest.mark.parametrize("vector", VECTORS["certified_tables"], ids=lambda vector: vector["name"])
def test_a_certificate_pays_for_the_vectors_words_and_for_none_lower(
    vector: dict[str, Any],
) -> None:
    """Nodes, slopes and vertices in the file are checked in rationals, with the words they give."""
    table = CertifiedTable.from_plain(vector["plain"])
    words = table.thresholds
    assert {each: str(words[int(each)]) for each in vector["words"]} == vector["words"]
    assert (len(words), digest(words)) == (vector["count"], vector["sha256"])
    assert str(table.certificate.delta) == vector["delta_paid"]
    check(table)
    lower = [*vector["plain"]["thresholds"]]
    lower[1] = str(int(lower[1]) - 1)
    with pytest.raises(InvariantError, match="inside the polygon"):
        check(CertifiedTable.from_plain({**vector["plain"], "thresholds": lower}))
