"""Entries of answers with whole bodies, as servers of before revision 0011 stored them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from app.ledger.database.database import ledger_database
from app.ledger.database.entry_rows import each_entry
from app.ledger.database.statements import read_release_numbers
from app.ledger.entries.chain import GENESIS
from tests.builders.ledger.releases import tamper, url_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from app.ledger.ledger import AnswerRow

WITH_ANSWERS = ("AnswersReleased", "ScoresReleased")


def whole_bodies(path: Path) -> dict[tuple[int, int], str]:
    """Return the whole body of each entry by the numbers of its release and of itself."""
    engine = ledger_database(url_of(path)).reading_engine()
    try:
        with engine.connect() as connection:
            return {
                (number, entry.sequence): entry.body
                for number in read_release_numbers(connection)
                for entry in each_entry(connection, number, GENESIS)
            }
    finally:
        engine.dispose()


def store_whole(path: Path, only: int | None = None) -> None:
    """Store the bodies of all entries of a ledger whole, or of one; it is legal in any row."""
    statements = [
        f"UPDATE entries SET body = '{body}' WHERE release_number = {number} "  # noqa: S608 -- of ours
        f"AND sequence = {sequence} AND kind IN {WITH_ANSWERS}"
        for (number, sequence), body in whole_bodies(path).items()
        if '"digests"' in body and "'" not in body and only in (None, sequence)
    ]
    tamper(path, *statements)


def written(rows: Sequence[AnswerRow]) -> str:
    """Return the body of the entry of some answers, as the standard library writes it."""
    given = [row.answer for row in rows]
    body: dict[str, object] = {
        "first_query_id": given[0].query_id,
        "digests": [row.vector_digest.hex()[:32] for row in rows],
        "labels": [each.label for each in given],
        "stable": [each.stable for each in given],
    }
    if given[0].precision is not None:
        body |= {
            "precisions": [each.precision for each in given],
            "bins": [each.bin_index for each in given],
            "shifted": [each.bin_shifted for each in given],
            "units": [each.units for each in given],
        }
    return json.dumps(body, sort_keys=True, separators=(",", ":"))
