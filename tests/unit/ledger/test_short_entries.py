"""Entries of answers whose stored bodies are short: they read as they were written.

What is altered in their rows, and in those of their answers, is told in ``test_verification.py``,
``test_tampering.py`` and ``test_grouped_answers.py``.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from app.errors import LedgerCorruptError
from app.ledger.database import answer_tables
from app.ledger.database.answer_groups import pack
from app.ledger.database.entry_rows import each_entry, read_entries
from app.ledger.entries.chain import GENESIS, computed_hash
from app.ledger.ledger import AnswerRow, Ledger, open_ledger
from app.ledger.verification import verify
from tests.builders.ledger.old_ledgers import write_old_ledger
from tests.builders.ledger.releases import (
    answer,
    answer_many,
    create,
    middle_of_life,
    open_release,
    record,
    scored,
    scores_of_every_kind,
    tamper,
    url_of,
)
from tests.builders.ledger.whole_bodies import store_whole, written
from tests.builders.ledger.whole_lives import LIVES

OPENED = 5
LIMIT = 1000
BATCHES = st.lists(st.integers(1, 90), min_size=1, max_size=8)
OF_SCORES = {"answers.output": '"score"'}


def stored_bodies(ledger: Ledger) -> list[str]:
    """Return the stored body of each entry of answers."""
    query = "SELECT body FROM entries WHERE kind IN ('AnswersReleased', 'ScoresReleased')"
    with ledger.snapshot() as connection:
        return [body for (body,) in connection.exec_driver_sql(f"{query} ORDER BY sequence")]


def read_bodies(ledger: Ledger, after: int = OPENED) -> list[str]:
    """Return the body of each entry after a number, as whoever reads it sees it."""
    with ledger.snapshot() as connection:
        entries = read_entries(connection, 1, GENESIS, LIMIT)
    return [entry.body for entry in entries[after:]]


@pytest.mark.parametrize("count", [1, 2, 21, 22, 64, 65, 200])
@pytest.mark.parametrize("label", [0, 126, 127, 70_000, None])
def test_an_entry_of_labels_reads_as_it_was_written(
    tmp_path: Path, count: int, label: int | None
) -> None:
    """Of one group or several, with labels of a byte or four, with one without a label."""
    ledger = create(tmp_path / "labels.db")
    open_release(ledger, cutoff=None)
    first = [answer(ledger, 1, label=None, stable=False)]
    rest = [
        answer(ledger, number, label=label, stable=label is not None)
        for number in range(2, 2 + count)
    ]
    for rows in (first, rest):
        record(ledger, rows)
    assert stored_bodies(ledger) == [
        '{"answers":1,"first_query_id":1}',
        f'{{"answers":{count},"first_query_id":2}}',
    ]
    assert read_bodies(ledger) == [written(first), written(rest)]
    assert verify(ledger).answered == 1 + count


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


@settings(max_examples=20, deadline=None)
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


def test_an_entry_of_scores_reads_as_it_was_written(tmp_path: Path) -> None:
    """With bins of both histograms and without, and a group of each entry."""
    ledger = scores_of_every_kind(tmp_path / "scores.db")
    rows = list(ledger.answers_after(0))
    assert [len(body) < 40 for body in stored_bodies(ledger)] == [True] * 3
    assert read_bodies(ledger) == [written(some) for some in (rows[:2], rows[2:3], rows[3:])]


def test_many_scores_read_as_they_were_written(tmp_path: Path) -> None:
    """Of several groups."""
    ledger = create(tmp_path / "scores.db")
    open_release(ledger, parameters={"answers.output": '"score"'})
    rows = [scored(ledger, number, precision=10 + number) for number in range(1, 100)]
    record(ledger, rows)
    assert read_bodies(ledger) == [written(rows)]
    verify(ledger)


def test_an_entry_says_which_generations_voted(tmp_path: Path) -> None:
    """The number of their set is in the short body, since no group has it."""
    ledger = LIVES["generations"](tmp_path / "generations.db")
    entries = ledger.public_entries(0, LIMIT)
    bodies = [entry["body"] for entry in entries if entry["kind"] == "AnswersReleased"]
    stored = [json.loads(body) for body in stored_bodies(ledger)]
    assert len(bodies) > 1
    for body, short in zip(bodies, stored, strict=True):
        assert isinstance(body, dict)
        assert short == {
            "active": body["active"],
            "answers": len(body["digests"]),
            "first_query_id": body["first_query_id"],
        }
        assert set(body) == {"active", "digests", "first_query_id", "labels", "stable"}


@pytest.mark.parametrize("name", LIVES)
def test_whole_and_short_bodies_are_the_same_entries(tmp_path: Path, name: str) -> None:
    """Whether a body is stored whole or short changes nothing of what is read."""
    path = tmp_path / "life.db"
    ledger = LIVES[name](path)
    entries, report, short = ledger.public_entries(0, LIMIT), verify(ledger), stored_bodies(ledger)
    store_whole(path)
    again = create(path)
    assert again.public_entries(0, LIMIT) == entries
    assert verify(again) == report
    assert all(map(str.__ne__, stored_bodies(again), short))


@pytest.mark.parametrize("sequence", [6, 7, 8, 9])
def test_a_whole_body_among_short_ones_is_read_with_them(tmp_path: Path, sequence: int) -> None:
    """The groups of its answers are passed over, wherever it is."""
    path = tmp_path / "one.db"
    ledger = middle_of_life(path)
    entries, report = ledger.public_entries(0, LIMIT), verify(ledger)
    store_whole(path, only=sequence)
    assert sorted(len(body) > 40 for body in stored_bodies(ledger)) == [False] * 3 + [True]
    assert ledger.public_entries(0, LIMIT) == entries
    assert verify(ledger) == report


@pytest.mark.sqlite_only(reason="it begins with a file of an earlier version")
def test_a_ledger_of_before_short_bodies_goes_on_with_them(tmp_path: Path) -> None:
    """Its whole bodies stay as they are, and both are read together."""
    path = tmp_path / "old.db"
    write_old_ledger(path, "0010")
    ledger = create(path)
    before = stored_bodies(ledger)
    assert all('"digests"' in body for body in before)
    rows = [answer(ledger, number) for number in range(10, 13)]
    record(ledger, rows)
    assert stored_bodies(ledger) == [*before, '{"answers":3,"first_query_id":10}']
    bodies = read_bodies(ledger, after=0)
    assert bodies[-1] == written(rows)
    assert [body for body in bodies if '"digests"' in body] == [*before, written(rows)]
    assert verify(ledger).answered == 12


@pytest.mark.parametrize("after", [0, 5, 7, 8, 20, 44])
@pytest.mark.parametrize("count", [1, 2, 100])
def test_a_page_of_entries_begins_and_ends_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int, count: int
) -> None:
    """Its answers are found although those of other entries are read beside them."""
    monkeypatch.setattr(answer_tables, "GROUPS_READ", 3)
    ledger = create(tmp_path / "pages.db")
    open_release(ledger)
    answer_many(ledger, batches=40, batch_size=2)
    every = ledger.public_entries(0, LIMIT)
    assert len(every) == OPENED + 40
    assert ledger.public_entries(after, count) == every[after : after + count]


@pytest.mark.sqlite_only(reason="of its trace; the statements are those of PostgreSQL")
def test_no_entry_has_a_statement_of_its_own(tmp_path: Path) -> None:
    """The groups of all entries of a page are read together."""
    ledger = create(tmp_path / "together.db")
    open_release(ledger)
    answer_many(ledger, batches=100, batch_size=1)
    statements: list[str] = []
    with ledger.snapshot() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.set_trace_callback(statements.append)
        assert len(read_entries(connection, 1, GENESIS, LIMIT)) == OPENED + 100
        driver.set_trace_callback(None)
    assert len(statements) == 2  # of the entries, and of their groups


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DELETE FROM answer_groups WHERE last_query_id = 6", "answer 4 of entry 7 is missing"),
        (
            "UPDATE answer_groups SET sequence = 6 WHERE last_query_id = 6",
            "answer 4 in the answers table belongs to entry 6 there, and to entry 7 in the chain",
        ),
        ("UPDATE answer_groups SET body = x'01' WHERE last_query_id = 6", "is malformed"),
        (
            "UPDATE answer_groups SET first_query_id = 5 WHERE last_query_id = 6",
            "answer 4 of entry 7 is missing",
        ),
        (
            (
                "UPDATE answer_groups SET last_query_id = 66, first_query_id = 64 "
                "WHERE last_query_id = 6"
            ),
            "answer 4 of entry 7 is missing",
        ),
        (
            "UPDATE entries SET body = replace(body, ':3', ':2') WHERE sequence = 7",
            "answer 6 in the answers table belongs to entry 7 there, which ends with answer 5",
        ),
    ],
)
def test_whoever_reads_an_entry_is_told_of_damage_to_its_answers(
    tmp_path: Path, statement: str, problem: str
) -> None:
    """A page of entries is refused, and so is a start that reads the entry."""
    path = tmp_path / "damaged.db"
    middle_of_life(path).close()
    tamper(path, statement)
    ledger = open_ledger(url_of(path), create=False)
    with pytest.raises(LedgerCorruptError, match=problem):
        ledger.public_entries(0, LIMIT)
    with pytest.raises(LedgerCorruptError, match=problem):
        ledger.read_state()


def test_scores_in_the_group_of_an_entry_of_labels_are_told(tmp_path: Path) -> None:
    """The planted fault: the labels are right, and the group says more than the entry can."""
    path = tmp_path / "kinds.db"
    ledger = middle_of_life(path)
    rows = [
        row._replace(answer=replace(row.answer, precision=10, bin_index=3, bin_shifted=False))
        for row in list(ledger.answers_after(0))[:3]
    ]
    ledger.close()
    body = bytes(pack(*zip(*rows, strict=True))).hex()
    tamper(path, f"UPDATE answer_groups SET body = x'{body}' WHERE last_query_id = 3")  # noqa: S608 -- bytes of ours
    with pytest.raises(LedgerCorruptError, match="entry 6 does not have the hash"):
        create(path).read_state()
