"""Two tables that differ in one record, and the learners that a release fits on each.

Everything is the product's own: a file is written and read as the private source, and
``draw_ensemble`` permutes, relabels, cuts and fits.  Both openings play back the same
noise.  Only the draw of the relabelling hypothesis gives way to one fixed beforehand,
since it has a charge of its own.
"""

from __future__ import annotations

import gzip
import itertools
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import strategies as st

from app.learning.chunks import chunk_offsets
from app.learning.encoding.encoded_rows import predicted
from app.learning.enumerated.enumerated_ensemble import EnumeratedEnsemble
from app.learning.estimators.batched_cart import CompleteTrees
from app.learning.estimators.estimator_ensemble import EstimatorEnsemble
from app.learning.estimators.packed_ensemble import LinearForm, PackedEnsemble
from app.learning.trees.packed_trees import PackedTrees, TreeEnsemble
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.exponential import relabel
from app.release import drawing
from app.release.drawing import draw_ensemble, read_private_rows
from app.release.private_state import PERMUTATION, RESAMPLE
from app.release.progress import no_progress
from app.release.terms.configuration import Configuration, configure
from app.release.terms.draw_parameters import EnsembleParameters, ensemble_parameters
from app.settings.settings import Settings, load_settings
from tests.builders.schema.tables import QUERY, write_csv, write_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from app.data.rows import PrivateRows
    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.hypothesis import Ensemble, Hypothesis, HypothesisClass

    Record = tuple[float | None, float | None, str | None, str]

DOUBLES = "tests.property.chunk_estimators"
SOURCES = ("csv", "csv.gz", "parquet", "npz", "sqlite")
COLUMNS = ("number", "size", "group", "label")
CONFIGURATION = """\
[release]
name = "neighbors"
[data]
source = "rows.csv"
label = "label"
classes = ["no", "yes"]
[[data.features]]
name = "number"
kind = "numeric"
bounds = [0, 1]
[[data.features]]
name = "size"
kind = "numeric"
bounds = [0, 10]
thresholds = [2, 5, 8]
[[data.features]]
name = "group"
kind = "categorical"
categories = ["a", "b"]
[hypotheses]
class = "trees"
depth = 2
bins = 5
[privacy]
epsilon = 20
delta = 1e-2
[answers]
queries = 4
cutoff = 2
"""
# Every vote is compared on all of these: each cell of the tests, other and missing too.
QUERIES = np.array(
    list(
        itertools.product(
            [*(np.arange(11) / 10), np.nan], [1.0, 3.0, 6.0, 9.0, np.nan], [0.0, 1.0, 2.0, 3.0]
        )
    )
)
SECRET = b"s" * 32
ROWS_MAX = 24
# Enough for any calibration; what a draw needs of it depends on no row count.
PARAMETER_ROWS = 2000


@dataclass(frozen=True)
class Case:
    """A configuration, by what it changes of the one above.

    Attributes:
        name: of the test.
        changes: settings by ``section__key``.
        relabels: whether rows take the labels of a fixed hypothesis.

    """

    name: str
    changes: tuple[tuple[str, str], ...] = ()
    relabels: bool = False

    @classmethod
    def of(cls, name: str, changes: Mapping[str, str], *, relabels: bool = False) -> Case:
        """Return a case that can be a key."""
        return cls(name, tuple(changes.items()), relabels=relabels)


def rule(rule_name: str, class_name: str = "trees", *, relabels: bool = False) -> Case:
    """Return a rule over a class."""
    changes = {"learner__rule": rule_name, "hypotheses__class": class_name}
    name = f"{class_name}, {rule_name}" + (", relabelled" if relabels else "")
    return Case.of(name, changes, relabels=relabels)


def estimator(path: str, params: str = "{}", *, relabels: bool = False) -> Case:
    """Return an estimator."""
    changes = {"learner__estimator": path, "learner__params": params}
    name = path.rpartition(".")[2] + (", relabelled" if relabels else "")
    return Case.of(name, changes, relabels=relabels)


def capped(case: Case) -> Case:
    """Return the case with learners on a sample of two rows of each chunk."""
    changes = {**dict(case.changes), "learner__rows_max": "2"}
    return Case.of(f"{case.name}, two rows a chunk", changes, relabels=case.relabels)


def scored(case: Case) -> Case:
    """Return the case with scores."""
    return Case.of(case.name, {**dict(case.changes), "answers__output": "score"})


@dataclass(frozen=True)
class Neighbors:
    """Two tables, and the public and the drawn numbers of both openings.

    Attributes:
        records: of the one.
        place: of the record that the other replaces.
        replacement: what it has there.
        sampled: rows of the sample.
        chunk_count: k.
        seed: of the noise.

    """

    records: tuple[Record, ...]
    place: int
    replacement: Record
    sampled: int
    chunk_count: int
    seed: int

    @property
    def others(self) -> tuple[Record, ...]:
        """The other table."""
        place = self.place
        return (*self.records[:place], self.replacement, *self.records[place + 1 :])


@dataclass(frozen=True)
class Opened:
    """What one opening fitted.

    Attributes:
        rows: as read.
        ensemble: the learners.
        pieces: what is persisted.

    """

    rows: PrivateRows
    ensemble: Ensemble
    pieces: Mapping[str, bytes]


RECORDS = st.tuples(
    st.none() | st.integers(-1, 11).map(lambda tenth: tenth / 10),
    st.none() | st.sampled_from([-1.0, 1.0, 3.0, 6.0, 9.0, 11.0]),
    st.sampled_from(["a", "b", "c", None]),
    st.sampled_from(["no", "yes"]),
)


@st.composite
def neighbors(
    draw: st.DrawFn, *, rows_min: int = 1, rows_max: int = ROWS_MAX, chunks_min: int = 1
) -> Neighbors:
    """Draw tables of any records or of few alike, any sample and any number of chunks."""
    count = draw(st.integers(rows_min, rows_max))
    alike = st.sampled_from(draw(st.lists(RECORDS, min_size=2, max_size=4)))
    records = draw(
        st.lists(draw(st.sampled_from([RECORDS, alike])), min_size=count, max_size=count)
    )
    sampled = draw(st.just(count) | st.integers(chunks_min, count))
    return Neighbors(
        records=tuple(records),
        place=draw(st.integers(0, count - 1)),
        replacement=draw(RECORDS),
        sampled=sampled,
        chunk_count=draw(st.integers(chunks_min, sampled)),
        seed=draw(st.integers(0, 1 << 20)),
    )


def settings_of(changes: Mapping[str, str]) -> Settings:
    """Return the settings above with changes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "conclave.toml"
        path.write_text(CONFIGURATION, encoding="utf-8")
        environ = {f"CONCLAVE_{name}".upper(): value for name, value in changes.items()}
        return load_settings(path, environ)


@cache
def configured(case: Case) -> tuple[Configuration, EnsembleParameters]:
    """Return a case's configuration and the parameters of its draw, calibrated once."""
    configuration = configure(settings_of({"answers__ensemble": "2", **dict(case.changes)}))
    parameters = ensemble_parameters(configuration, row_count=PARAMETER_ROWS, progress=no_progress)
    assert parameters is not None
    if not case.relabels:
        parameters = replace(parameters, relabel=None)
    return configuration, parameters


def read(records: Sequence[Record], source: str) -> PrivateRows:
    """Write records as a kind of source, and read them as an opening does."""
    table = dict(zip(COLUMNS, zip(*records, strict=True), strict=True))
    with tempfile.TemporaryDirectory() as folder:
        if source == "csv.gz":
            plain = Path(write_csv(Path(folder) / "plain.csv", table))
            place, query = str(plain.with_name("rows.csv.gz")), None
            Path(place).write_bytes(gzip.compress(plain.read_bytes()))
        else:
            place, query = write_table(Path(folder), table, source)
        changes = {"data__source": place} | ({} if query is None else {"data__query": QUERY})
        return read_private_rows(settings_of(changes), no_progress)


def opened(case: Case, records: Sequence[Record], pair: Neighbors, *, source: str) -> Opened:
    """Read a source and fit learners on it, with the noise of the pair."""
    configuration, parameters = configured(case)
    rows = read(records, source)
    with _fixed_hypothesis(case) if case.relabels else ExitStack():
        drawn = draw_ensemble(
            configuration,
            replace(parameters, sampled_row_count=pair.sampled, size=pair.chunk_count),
            rows=rows,
            secret=SECRET,
            noise=ScriptedNoise(seeded_words(pair.seed)),
            progress=no_progress,
        )
    assert drawn.parts.private_ensemble is not None
    return Opened(rows, drawn.parts.private_ensemble, drawn.pieces)


def both(case: Case, pair: Neighbors, *, source: str = "csv") -> tuple[Opened, Opened]:
    """Open on either table."""
    return (
        opened(case, pair.records, pair, source=source),
        opened(case, pair.others, pair, source=source),
    )


def votes(ensemble: Ensemble) -> NDArray[np.int64]:
    """Return the vote of every learner on every query, shape (k, B)."""
    alone = [each.vote_counts(QUERIES).argmax(axis=1) for each in learners(ensemble)]
    return np.array(alone)


def learners(ensemble: Ensemble) -> list[Ensemble]:
    """Return an ensemble of one for each learner."""
    if isinstance(ensemble, EstimatorEnsemble):
        return [
            EstimatorEnsemble(
                ensemble._columns,
                [model],
                class_count=ensemble.class_count,
                packing=ensemble._packing,
            )
            for model in ensemble._models
        ]
    if isinstance(ensemble, PackedEnsemble):
        return [_one_packed(ensemble, index) for index in range(ensemble.size)]
    if isinstance(ensemble, EnumeratedEnsemble):
        return [EnumeratedEnsemble(ensemble._list, place[None]) for place in ensemble._places]
    assert isinstance(ensemble, TreeEnsemble)
    packed = ensemble._packed
    found: list[Ensemble] = []
    for trees in packed._cells.reshape(ensemble.size, packed.trees_per_vote, -1):
        one = PackedTrees(
            trees,
            depth=packed.depth,
            class_count=packed.class_count,
            trees_per_vote=packed.trees_per_vote,
        )
        alone = TreeEnsemble((), one)
        alone._tests = ensemble._tests
        found.append(alone)
    return found


def copies(pair: Neighbors, pieces: Mapping[str, bytes]) -> NDArray[np.int64]:
    """Return the chunk of every copy of the replaced record, by what is persisted."""
    permutation = np.frombuffer(pieces[PERMUTATION], dtype="<u4")
    sample = permutation[: pair.sampled]
    places = np.arange(pair.sampled)
    if RESAMPLE in pieces:
        places = np.frombuffer(pieces[RESAMPLE], dtype="<u4").astype(np.int64)
    held = np.flatnonzero(sample[places] == pair.place)
    offsets = chunk_offsets(pair.sampled, pair.chunk_count)
    return np.searchsorted(offsets, held, side="right") - 1


@cache
def _hypothesis(case: Case) -> Hypothesis:
    """Return the hypothesis that labels rows, drawn without any of them."""
    searched = configured(case)[0].hypotheses
    labels = (QUERIES[:, 0] >= 0.5).astype(np.int64)
    return searched.draw(searched.encode(QUERIES), labels, 1.0, ScriptedNoise(seeded_words(4)))


@contextmanager
def _patched_draw(searched: HypothesisClass, hypothesis: Hypothesis) -> Iterator[None]:
    """Let every relabelling take one hypothesis, also one among the rows' own dichotomies."""

    def fixed(_: object, value: tuple[EncodedRows, object], *_given: object) -> relabel.Relabelled:
        encoded, _labels = value
        return relabel.Relabelled(hypothesis, predicted(hypothesis.predict, encoded))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relabel, "draw", fixed)
        patch.setattr(relabel, "draw_from_dichotomies", lambda _, *given: fixed(*given))
        patch.setattr(drawing, "private_dichotomies", lambda *_: searched)
        yield


def _fixed_hypothesis(case: Case) -> AbstractContextManager[None]:
    return _patched_draw(configured(case)[0].hypotheses, _hypothesis(case))


def _one_packed(ensemble: PackedEnsemble, index: int) -> PackedEnsemble:
    """Return one model of an ensemble that was fitted together."""
    form, one = ensemble.form, slice(index, index + 1)
    alone = (
        LinearForm(form.weights[one], form.intercepts[one])
        if isinstance(form, LinearForm)
        else CompleteTrees(form.columns[one], form.cuts[one], form.leaves[one])
    )
    return PackedEnsemble(ensemble.columns, alone, class_count=ensemble.class_count)
