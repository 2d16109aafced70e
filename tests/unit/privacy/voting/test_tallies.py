"""Private values are found by the digest of their vector."""

from __future__ import annotations

import pytest

from app.privacy.voting.tallies import PrivateValues
from app.privacy.voting.votes import Tally


def test_values_are_found_by_digest_and_in_order() -> None:
    """Each vector has its own, and one that was not evaluated has none."""
    tallies = [Tally(0, 3, (8, 1)), Tally(1, 0, (1, 2))]
    values = PrivateValues([b"a", b"b"], tallies)
    assert dict(values) == {b"a": tallies[0], b"b": tallies[1]}
    assert (len(values), values.in_order) == (2, tallies)
    with pytest.raises(KeyError):
        values[b"c"]
