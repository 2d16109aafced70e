"""A ledger with many answers, written fast: real rows, a real chain, real checkpoints.

What it holds is what as many transactions would have left.  Only the transactions
are fewer, since each waits for the disk.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from app.data.vectors import replay_key
from app.ledger.ledger import AnswerRow, RecordedAnswer
from app.main import open_from_settings
from app.noise.system import SystemNoise
from app.settings.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from app.ledger.entries.digests import Digests
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


def lengthen(ledger: Ledger, *, answer_count: int, answers_an_entry: int) -> None:
    """Add stable answers, of class 0, to a release that answers vectors of one number.

    Args:
        ledger: opened, its ensemble fitted.
        answer_count: how many answers it is to have in the end.
        answers_an_entry: how many of them share an entry.

    """
    answered = ledger.read_state().answered
    while answered < answer_count:
        with ledger.transaction() as transaction:
            transaction_end = min(answer_count, answered + ANSWERS_A_TRANSACTION)
            while answered < transaction_end:
                count = min(answers_an_entry, answer_count - answered)
                numbers = range(answered + 1, answered + count + 1)
                rows = [recorded(ledger.digests, number) for number in numbers]
                transaction.record_answers(rows)
                answered += count


def recorded(digests: Digests, query_id: int) -> AnswerRow:
    """Return the answer of that number; its vector is the number."""
    vector = replay_key((float(query_id),))
    return AnswerRow(digests.of_vector(vector), vector, RecordedAnswer(query_id, 0, stable=True))
