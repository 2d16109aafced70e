"""What the ledgers' state machine writes with: a transaction, tried on ledger and model alike."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis.stateful import RuleBasedStateMachine

from app.errors import InvariantError
from app.ledger.entries.entry_kinds import (
    ClassifierPublished,
    EnsembleFitted,
    LedgerEvent,
    StatisticsReleased,
    StudentPublished,
    ThresholdRefreshed,
    threshold_noise_name,
)
from app.ledger.ledger import AnswerRow, Ledger, RecordedAnswer, open_ledger
from app.noise.scripted import ScriptedNoise, seeded_words
from tests.property.ledger_model import Model

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.ledger.ledger import Transaction


class LedgerDriver(RuleBasedStateMachine):
    """Writes to the ledger whose turn it is, and holds it against its model."""

    def __init__(self, new_database: Callable[[], str] | None = None) -> None:
        """Make a folder for the file, or a database elsewhere."""
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="conclave-ledger-"))
        self.url = f"sqlite:///{self.folder / 'l.db'}" if new_database is None else new_database()
        self.name = "first"
        self.ledger = self.open()
        self.model = Model(queries=None, cutoff=None)
        self.resting: tuple[str, Ledger, Model] | None = None

    def open(self) -> Ledger:
        """Open the database as a new process would."""
        noise = ScriptedNoise(seeded_words(3))
        return open_ledger(self.url, create=True, name=self.name, noise=noise)

    def append(self, event: LedgerEvent, *, allowed: bool) -> bool:
        """Append one event."""

        def write(transaction: Transaction) -> None:
            transaction.append(event)

        return self.commit(write, allowed=allowed, entry_count=1)

    def append_private(self, pieces: dict[str, bytes], *, allowed: bool) -> bool:
        """Put pieces of private state, and the event that binds them."""

        def write(transaction: Transaction) -> None:
            bound = {name: transaction.put_private(name, body) for name, body in pieces.items()}
            if "ensemble" in pieces:
                transaction.append(EnsembleFitted(size=3, private_digests=bound))
            elif "student" in pieces:
                transaction.append(StudentPublished(classifier="{}", private_digests=bound))
            elif "statistics-points" in pieces:
                transaction.append(StatisticsReleased(statistics="{}", private_digests=bound))
            else:
                transaction.append(ClassifierPublished(classifier="{}", private_digests=bound))

        committed = self.commit(write, allowed=allowed, entry_count=1)
        if committed:
            self.model.private |= pieces
        return committed

    def put_threshold_noise(self, transaction: Transaction, noise_after: int) -> None:
        """Put a threshold's noise, and the event that binds it."""
        name = threshold_noise_name(noise_after)
        bound = {name: transaction.put_private(name, b"noise %d" % noise_after)}
        transaction.append(ThresholdRefreshed(private_digests=bound))

    def adopt_threshold_noise(self, noise_after: int) -> None:
        """Let the model hold a threshold's noise that was committed."""
        if self.model.refreshed_at is not None:  # of the epoch that ended; the first noise stays
            del self.model.private[threshold_noise_name(self.model.refreshed_at)]
        self.model.ended_epoch, self.model.refreshed_at = None, noise_after
        self.model.private[threshold_noise_name(noise_after)] = b"noise %d" % noise_after

    def commit(
        self, write: Callable[[Transaction], None], *, allowed: bool, entry_count: int
    ) -> bool:
        """Write in a transaction; return whether it was committed, which must be as allowed."""
        allowed = allowed and (self.model.closed is None or entry_count == 0)
        try:
            with self.ledger.transaction() as transaction:
                write(transaction)
        except InvariantError:
            assert not allowed
            return False
        assert allowed
        self.model.entry_count += entry_count
        if entry_count:
            self.model.ended_epoch = None
        return True

    def rows(self, outcomes: list[tuple[int | None, bool]]) -> list[AnswerRow]:
        """Return answers to the next vectors."""
        numbers = range(len(self.model.answers) + 1, len(self.model.answers) + 1 + len(outcomes))
        vectors = [b"vector %d" % number for number in numbers]
        return [
            AnswerRow(
                self.ledger.digests.of_vector(vector),
                vector,
                RecordedAnswer(number, label, stable),
            )
            for number, vector, (label, stable) in zip(numbers, vectors, outcomes, strict=True)
        ]

    def key(self, text: bytes) -> bytes:
        """Return the digest of an idempotency key."""
        return self.ledger.digests.of_key(text.decode())
