"""A ledger with many answers, written fast: real rows, a real chain, real checkpoints.

What it holds is what as many transactions would have left.  Only the transactions
are fewer, since each waits for the disk.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from msgspec import structs
from sqlalchemy import insert

from app.data.vectors import replay_key
from app.ledger.database.sqlite import database_path, writing_engine
from app.ledger.database.tables import answers, checkpoints, entries
from app.ledger.entries.chain import next_entry
from app.ledger.entries.checkpoint import checkpoint_body, is_due
from app.ledger.entries.digests import public_digest
from app.ledger.entries.entry_kinds import AnswersReleased
from app.ledger.entries.fold import fold
from app.ledger.ledger import AnswerRow, RecordedAnswer
from app.main import open_from_settings
from app.noise.system import SystemNoise
from app.settings.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from app.ledger.entries.digests import Digests
    from app.ledger.entries.fold import LedgerState
    from app.ledger.ledger import Ledger

ANSWERS_A_TRANSACTION = 20_000
ROW_COUNT = 600
CONFIGURATION = """\
[release]
name = "large"
[data]
source = "rows.csv"
label = "answer"
classes = ["no", "yes"]
[[data.features]]
name = "number"
kind = "numeric"
bounds = [0, 1e9]
thresholds = [1e8]
[hypotheses]
class = "trees"
depth = 1
[privacy]
epsilon = 20
delta = 1e-2
[answers]
queries = {queries}
cutoff = 20
ensemble = 50
[server]
port = {port}
"""


def open_number_release(folder: Path, *, limit: int, port: int = 8080) -> Path:
    """Open a release on a few rows, whose vectors are one number; return its configuration file.

    Args:
        folder: an empty one, where its rows and its ledger go as well.
        limit: most answers that it gives.
        port: where it is to be served.

    """
    numbers = random.SystemRandom().sample(range(10**9), ROW_COUNT)
    lines = [f"{number},{'yes' if number > 10**8 else 'no'}\n" for number in numbers]
    (folder / "rows.csv").write_text("number,answer\n" + "".join(lines))
    config = folder / "conclave.toml"
    config.write_text(CONFIGURATION.format(queries=limit, port=port))
    open_from_settings(load_settings(config, {}), noise=SystemNoise()).ledger.close()
    return config


def lengthen(ledger: Ledger, url: str, *, answer_count: int, answers_an_entry: int) -> None:
    """Add stable answers, of class 0, to a release that answers vectors of one number.

    Args:
        ledger: opened, its ensemble fitted; to be opened again afterwards.
        url: its address.
        answer_count: how many answers it is to have in the end.
        answers_an_entry: how many of them share an entry.

    """
    state, checkpoint_at = ledger.read_state(), 0
    engine = writing_engine(database_path(url))
    while state.answered < answer_count:
        rows = _Rows(ledger.release_number, ledger.digests, state, checkpoint_at)
        transaction_end = min(answer_count, state.answered + ANSWERS_A_TRANSACTION)
        while state.answered < transaction_end:
            state = rows.answer(min(answers_an_entry, answer_count - state.answered))
        checkpoint_at = rows.checkpoint_at
        with engine.begin() as connection:
            connection.execute(insert(entries), rows.entries)
            connection.execute(insert(answers), rows.answers)
            if rows.checkpoints:
                connection.execute(insert(checkpoints), rows.checkpoints)
    engine.dispose()


class _Rows:
    """The rows of one transaction."""

    def __init__(
        self, release_number: int, digests: Digests, state: LedgerState, checkpoint_at: int
    ) -> None:
        self.entries: list[dict[str, object]] = []
        self.answers: list[dict[str, object]] = []
        self.checkpoints: list[dict[str, object]] = []
        self.checkpoint_at = checkpoint_at
        self._release: dict[str, object] = {"release_number": release_number}
        self._release_number = release_number
        self._digests = digests
        self._state = state

    def answer(self, count: int) -> LedgerState:
        """Add an entry of ``count`` answers; return the state after it."""
        first = self._state.answered + 1
        given = [recorded(self._digests, number) for number in range(first, first + count)]
        event = AnswersReleased(
            first_query_id=first,
            digests=[public_digest(row.vector_digest) for row in given],
            labels=[row.answer.label for row in given],
            stable=[row.answer.stable for row in given],
        )
        entry = next_entry(self._state.head, event)
        self._state = fold(self._state, entry)
        row = {name: getattr(entry, name) for name in ("sequence", "kind", "version", "body")}
        self.entries.append(self._release | row | {"hash": entry.hash})
        at: dict[str, object] = self._release | {"sequence": entry.sequence}
        self.answers.extend(
            at
            | {"vector_digest": each.vector_digest, "vector": each.vector}
            | structs.asdict(each.answer)
            for each in given
        )
        if is_due(self._state, self.checkpoint_at):
            body = checkpoint_body(self._state, self._release_number)
            self.checkpoints.append(at | {"body": body, "mark": self._digests.of_checkpoint(body)})
            self.checkpoint_at = entry.sequence
        return self._state


def recorded(digests: Digests, query_id: int) -> AnswerRow:
    """Return the answer of that number; its vector is the number."""
    vector = replay_key((float(query_id),))
    return AnswerRow(digests.of_vector(vector), vector, RecordedAnswer(query_id, 0, stable=True))
