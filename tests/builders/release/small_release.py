"""A small release whose votes are chosen by the query and whose noise by the test.

It is opened for real, in a ledger in a file; then the fitted learners give way
to ``VotesByMargin``.  A query is its margin: how many votes more than half are
for "yes", out of 100.  With ``scripted_noise`` the test says which queries are
hits: a word of 0 is one at every distance, the largest word at none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from app.answering.answer_query import QueryAnswerer, do_nothing
from app.answering.queries import IdentifiedQueries, Query, in_columns
from app.data.rows import PrivateRows
from app.ledger.ledger import Ledger, open_ledger
from app.noise.scripted import ScriptedNoise, seeded_words
from app.release.opening import open_release
from app.release.progress import no_progress
from app.release.terms.configuration import Configuration, configure
from app.settings.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from app.answering.answer_query import BeforeCommit
    from app.answering.batch_decisions import Decision
    from app.data.vectors import Vector
    from app.noise.source import NoiseSource
    from app.release.release import Release

HIT = 0
STABLE = (1 << 64) - 1
VOTES = 100
ROW_COUNT = 60
CONFIGURATION = """\
[release]
name = "small"
[data]
source = "rows.csv"
label = "answer"
classes = ["no", "yes"]
missing = ["?"]
[[data.features]]
name = "margin"
kind = "numeric"
bounds = [-50, 50]
thresholds = [-25, 0, 25]
[[data.features]]
name = "group"
kind = "categorical"
categories = ["a", "b"]
[hypotheses]
class = "trees"
depth = 1
[privacy]
epsilon = 20
delta = 1e-2
[answers]
queries = 4
cutoff = 2
ensemble = 5
"""


class VotesByMargin:
    """An ensemble of 100 votes, 50 + margin of them for "yes"; counts what it is asked."""

    size = VOTES
    class_count = 2
    is_scored = True

    def __init__(self) -> None:
        """Start with nothing asked."""
        self.batch_sizes: list[int] = []

    def vote_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the votes of encoded queries, shape (B, 2)."""
        self.batch_sizes.append(len(values))
        for_yes = np.nan_to_num(values[:, 0]).astype(np.int64) + VOTES // 2
        return np.stack([VOTES - for_yes, for_yes], axis=1)

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return 1 for each vote for "yes" and 0 for the others, shape (B, 100)."""
        for_yes = self.vote_counts(values)[:, 1:]
        return (np.arange(VOTES) < for_yes).astype(np.float64)

    def to_bytes(self) -> bytes:
        """Return nothing: it is not persisted."""
        return b""


def scripted_noise(*words: int) -> ScriptedNoise:
    """Return noise that plays back ``words`` and fails loudly beyond them."""
    return ScriptedNoise(words)


def seeded_noise(seed: int = 1) -> ScriptedNoise:
    """Return endless noise that is the same each time."""
    return ScriptedNoise(seeded_words(seed))


def ask(margin: float | None, key: str | None = None, *, group: str | None = "a") -> Query:
    """Return a query of that many votes more than half for "yes"."""
    vector: Vector = (None if margin is None else float(margin), group)
    return Query(vector, key)


def private_rows(count: int = ROW_COUNT, *, seed: int = 7) -> PrivateRows:
    """Return rows whose label is whether their margin is at least 0."""
    generator = np.random.default_rng(seed)
    margins = generator.uniform(-50, 50, count)
    groups = generator.integers(0, 4, count)  # a, b, other, missing
    return PrivateRows(
        values=np.stack([margins, groups.astype(np.float64)], axis=1),
        labels=(margins >= 0).astype(np.int64),
    )


def identified(
    queries: Sequence[Query], vector_digests: Sequence[bytes] | None = None
) -> IdentifiedQueries:
    """Return the columns of queries with readable digests: these, or the vectors, and the keys."""
    columns = in_columns(queries)
    keys = [None if key is None else key.encode() for key in columns.idempotency_keys]
    digests = columns.vectors if vector_digests is None else vector_digests
    return IdentifiedQueries(
        columns.vectors,
        columns.idempotency_keys,
        columns.precisions,
        columns.askers,
        digests,
        keys,
        digests,
        columns.vectors,
    )


class RowAnswerer(QueryAnswerer):
    """An answerer that takes queries row by row too, as tests write them."""

    def answer_batch(
        self,
        queries: IdentifiedQueries | Sequence[Query],
        before_commit: BeforeCommit = do_nothing,
    ) -> Sequence[Decision]:
        """Answer queries in order, in one durable transaction."""
        return super().answer_batch(
            queries if isinstance(queries, IdentifiedQueries) else self.identified(*queries),
            before_commit,
        )

    def identified(self, *queries: Query) -> IdentifiedQueries:
        """Return the columns of queries, with their digests."""
        return self.identify(in_columns(queries))


@lru_cache(maxsize=8)
def _settings(
    path: Path, changes: tuple[tuple[str, str], ...], working_directory: Path
) -> Settings:
    """Read a release's settings once for all of a test's openings; they are frozen."""
    environ = {f"CONCLAVE_{name}".upper(): value for name, value in changes}
    return load_settings(path, environ, working_directory=working_directory)


@dataclass(frozen=True)
class SmallRelease:
    """A folder with a configuration and, once opened, a ledger.

    Attributes:
        folder: where both are.
        changes: settings by ``section__key``, as the environment gives them.
        ledger_url: where the ledger is; a file in the folder unless it is named.
        even_if_hopeless: whether it opens though five votes at T = 2 are hopeless.

    """

    folder: Path
    changes: Mapping[str, str] = field(default_factory=dict)
    ledger_url: str = ""
    even_if_hopeless: bool = True

    def settings(self) -> Settings:
        """Return the settings."""
        path = self.folder / "conclave.toml"
        path.write_text(CONFIGURATION, encoding="utf-8")
        return _settings(path, tuple(self.changes.items()), Path.cwd())

    def configuration(self) -> Configuration:
        """Return what the settings give."""
        return configure(self.settings(), even_if_hopeless=self.even_if_hopeless)

    def ledger(self) -> Ledger:
        """Open the ledger anew, as a restarted process does."""
        url = self.ledger_url or f"sqlite:///{self.folder / 'conclave.db'}"
        name = self.settings().release.name
        return open_ledger(url, create=True, name=name, noise=seeded_noise(2))

    def open(
        self,
        *,
        rows: PrivateRows | None = None,
        noise: NoiseSource | None = None,
        ledger: Ledger | None = None,
    ) -> Release:
        """Open or continue the release for real."""
        return open_release(
            self.configuration(),
            ledger=ledger or self.ledger(),
            rows=private_rows() if rows is None else rows,
            noise=noise or seeded_noise(3),
            progress=no_progress,
        )

    def answerer(self, words: Iterable[int] = (), *, ledger: Ledger | None = None) -> RowAnswerer:
        """Open or continue the release, with votes by margin and scripted words."""
        release = self.open(ledger=ledger)
        if release.private_ensemble is not None:
            release.private_ensemble = VotesByMargin()
        return RowAnswerer(release, ScriptedNoise(words))
