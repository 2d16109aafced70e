"""A small release that grows, whose records have identifiers: ``a0``, ``a1`` and so on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from app.ledger.entries.generations import generations_of
from app.release.generations.appending import append_generation
from app.release.generations.generations_opening import open_living
from app.release.generations.slots import Slots, read_slots
from app.release.generations.waiting_requests import identity_of
from app.release.progress import no_progress
from tests.builders.release.growing_release import GrowingRelease
from tests.builders.release.small_release import private_rows, seeded_noise

if TYPE_CHECKING:
    from app.data.rows import PrivateRows
    from app.ledger.ledger import Ledger
    from app.release.generations.generations_release import LivingRelease

NAMED = {"data__id": "record"}


def named(ledger: Ledger, prefix: str, *, seed: int = 7) -> PrivateRows:
    """Return the usual rows, each with an identifier."""
    rows = private_rows(seed=seed)
    identities = [identity_of(ledger, f"{prefix}{index}") for index in range(rows.count)]
    table = np.frombuffer(b"".join(identities), dtype=np.uint8).reshape(rows.count, -1)
    return replace(rows, identities=table)


@dataclass
class NamedRelease(GrowingRelease):
    """A release that grows, of records with identifiers: ``a`` of generation 1, then ``b``."""

    def __post_init__(self) -> None:
        """Name the column of identifiers."""
        self.changes = {**NAMED, **self.changes}

    def open(self, ledger: Ledger | None = None) -> LivingRelease:
        """Open or continue the release."""
        ledger = ledger or self.small.ledger()
        return open_living(
            self.small.configuration(),
            ledger=ledger,
            rows=lambda: named(ledger, "a"),
            noise=seeded_noise(3),
            progress=no_progress,
            ticker=self.ticker(ledger),
        )

    def append(self, ledger: Ledger, *, seed: int = 8, prefix: str = "b") -> int | None:
        """Append a generation of records with a prefix."""
        return append_generation(
            self.small.configuration(),
            ledger=ledger,
            rows=named(ledger, prefix, seed=seed),
            noise=seeded_noise(seed),
            period=self.ticker(ledger).period,
        ).number


def slots_of(ledger: Ledger, number: int = 1) -> Slots:
    """Return the slots of a generation now."""
    return read_slots(ledger, generations_of(ledger.read_state().generations).all[number - 1])


def place_of(ledger: Ledger, identifier: str, number: int = 1) -> int:
    """Return the slot of a record."""
    return slots_of(ledger, number).places()[identity_of(ledger, identifier)]
