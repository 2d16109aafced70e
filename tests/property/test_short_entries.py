"""Whatever answers are recorded, their entries read back as they were hashed, byte for byte."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from app.ledger.database.entry_rows import each_entry
from app.ledger.entries.chain import GENESIS, computed_hash
from app.ledger.ledger import AnswerRow, Ledger
from app.ledger.verification import verify
from tests.builders.ledger.releases import answer, create, open_release, record, scored
from tests.builders.ledger.whole_bodies import written

BATCHES = st.lists(st.integers(1, 90), min_size=1, max_size=8)
OPENED = 5
OF_SCORES = {"answers.output": '"score"'}


def drawn_rows(draw: st.DrawFn, ledger: Ledger, first: int, count: int) -> list[AnswerRow]:
    """Draw the answers of an entry: most alike, some wide, without a label or unstable."""
    release = ledger.read_state().release
    assert release is not None
    numbers = range(first, first + count)
    if release.parameters.get("answers.output"):
        precisions = draw(st.sampled_from([st.just(10), st.integers(8, 1000)]))
        return [scored(ledger, number, precision=draw(precisions)) for number in numbers]
    labels = draw(st.sampled_from([st.just(0), st.integers(0, 3), st.integers(0, 1000)]))
    kinds = draw(st.sampled_from([st.sampled_from([True]), st.booleans()]))
    return [
        answer(ledger, number, label=draw(labels if stable else st.none() | labels), stable=stable)
        for number, stable in ((number, draw(kinds)) for number in numbers)
    ]


@settings(max_examples=25, deadline=None)
@given(st.data(), BATCHES, st.sampled_from([None, OF_SCORES]))
def test_entries_read_as_they_were_written(
    data: st.DataObject, batches: list[int], parameters: dict[str, str] | None
) -> None:
    """Each body is the text that the standard library writes, and gives its entry's hash."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(create(Path(folder) / "any.db")) as ledger,
    ):
        open_release(ledger, cutoff=900, parameters=parameters)
        expected = []
        for count in batches:
            first = ledger.read_state().answered + 1
            rows = data.draw(st.composite(drawn_rows)(ledger, first, count))
            record(ledger, rows)
            expected.append(written(rows))
        with ledger.snapshot() as connection:
            entries = list(each_entry(connection, 1, GENESIS))
        assert [entry.body for entry in entries[OPENED:]] == expected
        assert all(computed_hash(entry) == entry.hash for entry in entries)
        assert verify(ledger).head == entries[-1].head
