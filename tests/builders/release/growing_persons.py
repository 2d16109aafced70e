"""A small release that grows, whose rows are of persons: ``a0``, ``a1`` and so on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.data.persons import PersonColumn, PersonReader
from app.data.rows import PrivateRows
from app.release.generations.appending import Appended, append_generation
from app.release.generations.generations_opening import open_living
from app.release.progress import no_progress
from tests.builders.release.growing_release import GrowingRelease
from tests.builders.release.rows_of_persons import PERSON
from tests.builders.release.small_release import seeded_noise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.ledger.ledger import Ledger
    from app.release.generations.generations_release import LivingRelease

PERSON_COUNT = 60
FIRST = {f"a{number}": 1 + number % 5 for number in range(PERSON_COUNT)}
SECOND = {f"b{number}": 1 + number % 3 for number in range(PERSON_COUNT)}


def rows_about(ledger: Ledger, row_counts: Mapping[str, int], *, shift: float = 0) -> PrivateRows:
    """Return the rows of :func:`keyed_rows` by the key of a ledger."""
    return keyed_rows(ledger.digests.person_key(), row_counts, shift=shift)


def keyed_rows(key: bytes, row_counts: Mapping[str, int], *, shift: float = 0) -> PrivateRows:
    """Return rows of persons with so many each, in turn; those of a person are alike.

    Args:
        key: by which persons are known.
        row_counts: of each person.
        shift: added to everybody's margin, labels included.

    """
    names = list(row_counts)
    turns = max(row_counts.values())
    who = [name for turn in range(turns) for name in names if turn < row_counts[name]]
    reader = PersonReader(PersonColumn("who", key, frozenset()))
    numbers = np.array([reader.read(name) for name in who]).astype(np.int64)
    digits = np.array([int(name[1:]) for name in who])
    margins = (37 * digits) % 100 - 49.5 + shift
    return PrivateRows(
        values=np.stack([margins, digits % 4.0], axis=1),
        labels=(margins >= 0).astype(np.int64),
        persons=reader.persons(numbers),
    )


@dataclass
class PersonsRelease(GrowingRelease):
    """A release that grows, of persons: ``a`` of generation 1, then ``b``.

    Attributes:
        first: rows of each person of generation 1.

    """

    first: Mapping[str, int] | None = None

    def __post_init__(self) -> None:
        """Name the column of persons."""
        self.changes = {**PERSON, **self.changes}

    def open(self, ledger: Ledger | None = None) -> LivingRelease:
        """Open or continue the release."""
        ledger = ledger or self.small.ledger()
        return open_living(
            self.small.configuration(),
            ledger=ledger,
            rows=lambda: rows_about(ledger, self.first or FIRST),
            noise=seeded_noise(3),
            progress=no_progress,
            ticker=self.ticker(ledger),
        )

    def append_persons(
        self, ledger: Ledger, row_counts: Mapping[str, int], *, shift: float = 0
    ) -> Appended:
        """Append rows of these persons."""
        return append_generation(
            self.small.configuration(),
            ledger=ledger,
            rows=rows_about(ledger, row_counts, shift=shift),
            noise=seeded_noise(8),
            period=self.ticker(ledger).period,
        )

    def append(self, ledger: Ledger, *, seed: int = 8) -> int | None:
        """Append a generation of sixty further persons."""
        del seed
        return self.append_persons(ledger, SECOND).number
