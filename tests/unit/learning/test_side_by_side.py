"""Estimators in processes ensemble, vote and score as they do one after the other."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.learning import ensemble
from app.learning.chunks import chunk_offsets
from app.learning.encoding.public_columns import PublicColumn
from app.learning.ensemble import Learner, fit_ensemble, read_ensemble_bytes
from app.learning.estimators.estimators import EstimatorEnsemble
from app.learning.estimators.learner_processes import LearnerProcesses
from app.learning.registry import hypothesis_class
from tests.builders.learners import calls_apart
from tests.builders.learners.enumeration import unit_tests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from app.learning.ensemble import Ensemble

COLUMNS = (PublicColumn(bounds=(0.0, 1.0)), PublicColumn(category_count=2))
TREES = hypothesis_class("trees", unit_tests(1), depth=1, class_count=2)
CHUNKS = 7
ODD = "tests.builders.learners.odd_estimators"
PLAIN = "tests.builders.learners.plain_estimators:Plain"
WAYS = ("keeps", "raises", "draws", "changes")
# Each takes a process seconds to import.
LIBRARY: dict[str, dict[str, object]] = {
    "sklearn.naive_bayes.GaussianNB": {},
    "sklearn.tree.ExtraTreeClassifier": {"max_features": 1},
    "sklearn.ensemble.RandomForestClassifier": {"n_estimators": 3},
    "sklearn.neighbors.KNeighborsClassifier": {},
    "sklearn.svm.SVC": {},
    "sklearn.ensemble.HistGradientBoostingClassifier": {"max_iter": 5},
    f"{ODD}:FailsToFit": {},
    f"{ODD}:CannotBeStored": {},
    f"{ODD}:PredictsOddly": {},
    f"{ODD}:SharesWhatItCan": {"steps": [0]},
    f"{ODD}:Talks": {},
    "tests.property.chunk_estimators:DrawsToPredict": {},
}


def learner(path: str, *, jobs: int = 1, scored: bool = False, **params: object) -> Learner:
    """Return what every chunk is given."""
    return Learner(
        hypothesis_class=TREES,
        estimator=path,
        params=params,
        columns=COLUMNS,
        scored=scored,
        jobs=jobs,
    )


@pytest.fixture(scope="module", autouse=True)
def two_processes() -> Iterator[LearnerProcesses]:
    """Let every ensemble of two jobs have the same two processes, which take long to start."""
    two = LearnerProcesses(2)

    def started(learner: Learner, size: int) -> LearnerProcesses | None:
        assert size == CHUNKS
        return two if learner.jobs == two.count else None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ensemble, "_processes", started)
        yield two


def fitted(chosen: Learner, row_count: int = 105) -> EstimatorEnsemble:
    """Fit on rows that a threshold labels, but for some."""
    generator = np.random.default_rng(4)
    values = np.stack([generator.random(row_count), generator.integers(0, 4, row_count)], axis=1)
    labels = ((values[:, 0] >= 0.5) ^ (generator.random(row_count) < 0.1)).astype(np.int64)
    labels[: row_count // CHUNKS] = 1  # a chunk of one class has no model
    ensemble = fit_ensemble(
        chosen,
        values,
        labels,
        permutation=np.arange(row_count),
        offsets=chunk_offsets(row_count, CHUNKS),
        secret=b"s",
    )
    assert isinstance(ensemble, EstimatorEnsemble)
    return ensemble


def queries(numbers: list[float]) -> NDArray[np.float64]:
    """Return queries with these first columns."""
    return np.array([[number, index % 4] for index, number in enumerate(numbers)])


# Exact quarters are what an odd estimator fails on.
NUMBERS = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.6, 0.75, 0.9]), min_size=1, max_size=9)


@pytest.mark.parametrize("way", WAYS)
def test_votes_are_those_of_one_process(way: str) -> None:
    """Fitted or read back, in processes or here, in any batch, every query has the same counts."""
    check_votes(learner(PLAIN, way=way))


@pytest.mark.long
@pytest.mark.parametrize("path", LIBRARY)
def test_votes_of_a_librarys_estimators_are_those_of_one_process(path: str) -> None:
    """The same of what people configure, and of more that fail, speak and draw."""
    check_votes(replace(learner(path), params=LIBRARY[path]))


def check_votes(chosen: Learner) -> None:
    """Ask whatever batches Hypothesis thinks of, of both; a row depends on its own query only.

    The processes are shared by the tests, and keep what they were given last.
    """
    here, shared = fitted(chosen), replace(chosen, jobs=2)
    again = read_ensemble_bytes(shared, here.to_bytes())
    check_alike(here, again)
    check_alike(here, fitted(shared))


def check_alike(here: EstimatorEnsemble, there: Ensemble) -> None:
    """Compare the counts of both on many batches."""
    assert here._processes is None
    assert isinstance(there, EstimatorEnsemble)
    assert there._processes is not None

    @settings(max_examples=6, deadline=None, database=None)
    @given(NUMBERS)
    def alike(numbers: list[float]) -> None:
        values = queries(numbers)
        counts = there.vote_counts(values)
        assert np.array_equal(counts, here.vote_counts(values))
        each = np.concatenate([there.vote_counts(values[[row]]) for row in range(len(values))])
        assert np.array_equal(counts, each)

    alike()


def test_scores_are_those_of_one_process(two_processes: LearnerProcesses) -> None:
    """Every model's score of every query, in the order of the models, to the last bit."""
    chosen = learner(PLAIN, scored=True)
    asked, values = fitted(replace(chosen, jobs=2)), queries([0.1, 0.4, 0.6, 0.9])
    assert asked._processes is two_processes
    assert asked.scores(values).shape == (4, CHUNKS)
    assert np.array_equal(asked.scores(values), fitted(chosen).scores(values))


def test_nothing_is_heard_of_learners(capfd: pytest.CaptureFixture[str]) -> None:
    """What they print and warn in fitting and in voting goes nowhere."""
    ensemble = fitted(learner(PLAIN, jobs=2, way="speaks"))
    ensemble.vote_counts(queries([0.2, 0.4]))
    heard = capfd.readouterr()
    assert (heard.out, heard.err) == ("", "")


@pytest.mark.long
def test_models_that_vote_together_are_fitted_apart_and_asked_here() -> None:
    """A chunk's own fit may take long; a packed vote does not."""
    chosen = Learner(
        hypothesis_class=TREES,
        estimator="sklearn.linear_model.LogisticRegression",
        packed=False,
        columns=COLUMNS,
    )
    packed, values = fitted(replace(chosen, jobs=2)), queries([0.2, 0.8])
    assert packed._processes is None
    assert np.array_equal(packed.vote_counts(values), fitted(chosen).vote_counts(values))


def test_what_a_learner_does_stays_in_its_process(capfd: pytest.CaptureFixture[str]) -> None:
    """It changes its own environment and folder, and writes to its own descriptors."""
    folder = Path.cwd()
    ensemble = fitted(learner(PLAIN, jobs=2, way="changes"))
    ensemble.vote_counts(queries([0.2]))
    assert "CHANGED_BY_A_LEARNER" not in os.environ
    assert Path.cwd() == folder
    heard = capfd.readouterr()
    assert (heard.out, heard.err) == ("", "")


def test_rows_and_models_are_in_no_file(two_processes: LearnerProcesses, tmp_path: Path) -> None:
    """Large rows and models pass by pipes: no process opens a file to write, or maps one."""
    watch = [partial(calls_apart.watch_files)] * 2
    written = [partial(calls_apart.files_written)] * 2
    calls_apart.watch_files()
    list(two_processes.run(watch))
    # Above the megabyte from which joblib's own pools of workers map arrays from files.
    ensemble = fitted(learner(PLAIN, jobs=2), row_count=350_000)
    ensemble.vote_counts(queries([0.5] * 60_000))
    assert [calls_apart.files_written(), *two_processes.run(written)] == [[], [], []]
    folders = (Path(tempfile.gettempdir()), Path("/dev/shm"))  # noqa: S108 -- where joblib would write
    mapped = f"joblib_memmapping_folder_{os.getpid()}_*"
    assert [found for folder in folders for found in folder.glob(mapped)] == []
    # The watch sees such a file where there is one.
    list(two_processes.run(watch))
    file = str(tmp_path / "rows")
    list(two_processes.run([partial(calls_apart.write_a_file, file)]))
    assert list(two_processes.run(written)) == [[file], []]
