"""How many rows a person has, now and later, shows nowhere in a release that takes generations.

Two lives differ only in how many copies of a row one person has, in the first batch and again in
a later one: one, or eight.  From scripted noise, with the same ticks, everything that comes out is
equal, but for hashes and keyed digests: replies, pages, metrics, logs, entries, and what commands
print while persons are appended, forgotten and corrected.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Final

from app.release.generations import appending
from app.release.generations.tick import Ticker
from tests.canary.test_copies import COPIED, COPIES, KEYED, MARK, PLACES, shown
from tests.lives.configurations import FEATURES, merged, toml_of
from tests.lives.people import COLUMNS, people, questions
from tests.lives.plays import ask_every_way, read_all, repeat
from tests.lives.records import first_difference
from tests.lives.script import scripted
from tests.lives.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

    from app.data.rows import PrivateRows
    from app.ledger.ledger import Transaction
    from app.release.generations.person_batches import Batch
    from tests.lives.configurations import Tables
    from tests.lives.people import Row

FIRST_COUNT: Final = 300
LATER_COUNT: Final = 240
STATEMENTS: Final = (("statement",), ("statement", "--json"), ("generations",), ("verify",))
GROWS: Final[Tables] = {
    "privacy.shares": {"relabel": 0.2, "answers": 0.8, "classifier": 0},
    "answers": {"after": "halt", "on_cutoff": "halt", "ensemble": 40},
    "generations": {"tick": "1d", "quorum": 1},
}


def write_rows(path: Path, rows: Sequence[Row], who: Sequence[str]) -> str:
    """Write rows of persons; return the path."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow((*COLUMNS, "who"))
        for row, person in zip(rows, who, strict=True):
            writer.writerow(["" if cell is None else cell for cell in (*row, person)])
    return str(path)


def copied(rows: Sequence[Row], who: Sequence[str], copies: int) -> tuple[list[Row], list[str]]:
    """Return rows in which those of one person are there so often."""
    times = [copies if person == f"{MARK}-{COPIED}" else 1 for person in who]
    return (
        [row for row, count in zip(rows, times, strict=True) for _ in range(count)],
        [person for person, count in zip(who, times, strict=True) for _ in range(count)],
    )


def configured(folder: Path, *, copies: int) -> tuple[Stage, str]:
    """Write a configuration and two batches; return the stage, and where the later one is."""
    folder.mkdir()
    tables = merged(GROWS)
    data = {"source": "rows.csv", "person": "who", "persons": FIRST_COUNT}
    tables["data"] = {**data, **tables["data"], "features": FEATURES}
    rows = people("step", ("no", "yes"), FIRST_COUNT + LATER_COUNT + 2)
    first = [f"{MARK}-{place}" for place in range(FIRST_COUNT)]
    later = [f"{MARK}-{FIRST_COUNT + place}" for place in range(LATER_COUNT)]
    known = [f"{MARK}-{COPIED}", f"{MARK}-{COPIED + 1}"]
    write_rows(folder / "rows.csv", *copied(rows[:FIRST_COUNT], first, copies))
    further = write_rows(
        folder / "further.csv", *copied(rows[FIRST_COUNT:], [*later, *known], copies)
    )
    stage = Stage(folder, f"sqlite:///{folder / 'conclave.db'}")
    stage.config.write_text(toml_of(tables), encoding="utf-8")
    return stage, further


def played(stage: Stage, further: str, period: list[int]) -> None:
    """Open, answer, append, forget and correct; let two ticks pass, and answer again."""
    asked = questions(3, 40)
    stage.configured("plan", "--populations", "0")
    with stage.serving("first") as served:
        read_all(served)
        ask_every_way(served, asked)
    stage.configured("append", further)
    stage.configured("append", further)
    stage.configured("erase", "--person", f"{MARK}-{COPIED + 2}")
    stage.configured("erase", "--person", "nobody")
    one = people("step", ("no", "yes"), 1)
    corrected = write_rows(stage.folder / "corrected.csv", one, [f"{MARK}-{COPIED + 3}"])
    stage.configured("correct", corrected)
    for moment in ("second", "third"):
        period[0] += 1
        with stage.serving(moment) as served:
            repeat(served, asked)
            for vector in asked[-8:] if moment == "third" else asked[10:14]:
                served.post("/query", {"features": vector})
            read_all(served)
    for command in STATEMENTS:
        stage.configured(*command)


def lived(folder: Path, patch: pytest.MonkeyPatch, *, copies: int) -> list[tuple[str, bytes]]:
    """Return all that comes out of a life."""
    stage, further = configured(folder, copies=copies)
    period = [20_000]
    with patch.context() as clock, scripted("generations"):
        clock.setattr(Ticker, "period", property(lambda _: period[0]))
        played(stage, further, period)
    return [(name, PLACES.sub(b"", KEYED.sub(b"...", said))) for name, said in stage.items]


def test_copies_of_a_row_show_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nobody's identifier is anywhere but in the commands that name it."""
    lives = [
        lived(tmp_path / name, monkeypatch, copies=copies)
        for name, copies in (("one", 1), ("more", COPIES))
    ]
    assert first_difference(*map(shown, lives)) is None
    said = b"".join(said for _, said in lives[0])
    for told in (b'"unit":"person"', b'"stable":true', b"generation 2 is appended", b"of 2 known"):
        assert told in said
    assert said.count(b'"state":"active"') > 2
    for items in lives:
        assert not [name for name, each in items if MARK.encode() in each]


def test_a_number_of_rows_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: the number of learners of a generation follows its batch's rows."""
    real, rows = vars(appending)["sorted_out"], [0]

    def noting(transaction: Transaction, given: PrivateRows) -> Batch:
        rows[0] = len(given.labels)
        batch: Batch = real(transaction, given)
        return batch

    monkeypatch.setattr(appending, "sorted_out", noting)
    monkeypatch.setattr(appending, "_size", lambda *_, unit_count: min(unit_count, rows[0] // 6))
    lives = [
        lived(tmp_path / name, monkeypatch, copies=copies)
        for name, copies in (("one", 1), ("more", COPIES))
    ]
    assert first_difference(*map(shown, lives)) is not None
