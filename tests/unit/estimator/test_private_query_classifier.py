"""The estimator keeps the promise of a release: charge, record, answer, halt."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from app.data.rows import PrivateRows
from app.errors import BudgetExhaustedError, ContainedError, IntegrityError
from app.estimator import (
    HopelessReleaseWarning,
    PrivateQueryClassifier,
    UnchargedDataWarning,
)
from app.estimator.frame_columns import public_columns
from app.estimator.memory_release import FAILED, FORKED, MemoryRelease
from app.estimator.parameter_tables import tables_of
from app.ledger.ledger import open_ledger
from app.privacy.budget.composition import Mechanism
from app.privacy.stability import hit_table as profile
from app.privacy.voting.votes import tally
from app.release.opening import open_release
from app.release.progress import no_progress
from app.release.terms.configuration import configure
from app.release.views.budget import budget_view
from app.settings.settings import Settings
from tests.builders.release.small_release import seeded_noise
from tests.unit.estimator.private_rows import CLASSES, ENSEMBLE, estimator, fitted, rows

if TYPE_CHECKING:
    from pathlib import Path

# Thirty votes at this budget are hopeless, which is what the warning is for.
pytestmark = pytest.mark.filterwarnings("ignore::app.estimator.HopelessReleaseWarning")

SHARES = st.sampled_from(
    [
        {"relabel": 0.1, "answers": 0.6, "classifier": 0.3},
        {"answers": 0.5, "classifier": 0.5},
        {"relabel": 0.25, "answers": 0.25, "classifier": 0.125},
    ]
)


def test_persons_are_the_unit_where_they_are_given() -> None:
    """Learners are of persons, whose rows lie anywhere; the budget says the unit."""
    values, labels = rows()
    groups = [f"person {row % 200}" for row in range(len(labels))]
    private = estimator(ensemble=150).fit(values, labels, groups=groups)
    assert private.budget_["unit"] == "person"
    with pytest.raises(ValueError, match="250 learners need at least as many persons; there are"):
        estimator(ensemble=250, even_if_hopeless=False).fit(values, labels, groups)
    assert fitted().budget_["unit"] == "row"


@pytest.mark.parametrize(
    ("groups", "line"),
    [
        (["a"] * 599, "groups: 599 identifiers for 600 rows"),
        (["a"] * 599 + [None], "groups: row 600 names no person"),
        ([0.5] * 600, "groups: row 1 is neither a text nor a whole number"),
    ],
    ids=["one too few", "nobody", "fractions"],
)
def test_groups_that_name_nobody_are_refused(groups: Any, line: str) -> None:
    """Before anything is charged, by the number of the row and without its value."""
    private = estimator()
    with pytest.raises(ValueError, match=f"^{line}$"):
        private.fit(*rows(), groups=groups)
    assert not hasattr(private, "budget_")


def test_a_learner_of_scores_takes_groups() -> None:
    """A person's rows share what one row adds to a step."""
    private = estimator(classifier_learner="linear").fit(*rows(), groups=list(range(600)))
    assert private.budget_["unit"] == "person"


@pytest.mark.parametrize("calibration", ["profile", "svt"])
@given(shares=SHARES, epsilon=st.sampled_from([2.0, 3.3, 10.0]))
@settings(max_examples=6, deadline=None)
def test_it_charges_what_a_release_charges(
    tmp_path_factory: pytest.TempPathFactory,
    calibration: str,
    shares: dict[str, float],
    epsilon: float,
) -> None:
    """Budget by budget, charged and reserved are those of a server's release, exactly."""
    private = fitted(epsilon=epsilon, shares=shares, calibration=calibration, cutoff=1)
    values, labels = rows()
    columns = public_columns(values, bounds=(0, 1), categories=None)
    tables = tables_of(private.get_params(), columns, classes=CLASSES)
    configuration = configure(Settings.read(tables), even_if_hopeless=True)
    path = tmp_path_factory.mktemp("ledger") / "release.db"
    ledger = open_ledger(f"sqlite:///{path}", create=True, noise=seeded_noise())
    release = open_release(
        configuration,
        ledger=ledger,
        rows=PrivateRows(values=values.copy(), labels=(labels == "yes").astype(np.int64)),
        noise=seeded_noise(2),
        progress=no_progress,
    )
    served = budget_view(release).model_dump()
    ledger.close()
    assert private.budget_ == {key: served[key] for key in private.budget_}
    spent = sum(
        (
            Fraction(str(each["epsilon"]))
            for part in ("charged", "reserved")
            for each in private.budget_[part]
        ),
        start=Fraction(0),
    )
    assert spent <= Fraction(str(epsilon))


def test_answers_follow_the_table_of_hits() -> None:
    """At one distance, fresh queries are unstable as often as the table that serves says."""
    private = fitted(queries=10**6, cutoff=2000, delta=1e-2, epsilon=100.0)
    release = private._release
    (charge,) = [each for each in release._charged if each.mechanism is Mechanism.ANSWERS]
    table = profile.calibrate(
        epsilon=charge.epsilon, delta=charge.delta, cutoff=2000, is_by_cutoff=True
    )
    cells = np.arange(8) / 8 + 1 / 16
    assert release._private_ensemble is not None
    tallies = tally(release._private_ensemble.vote_counts(cells[:, None]))
    probabilities = [table.hit_probability(value.distance) for value in tallies]
    # The cell whose chance is nearest to a half tells the most.
    cell = int(np.argmin(np.abs(np.array(probabilities) - 0.5)))
    chance, count = probabilities[cell], 1500
    assert 0.01 < chance < 0.99
    queries = (cells[cell] + np.linspace(-0.05, 0.05, count))[:, None]
    answers = private.answer(queries)
    unstable = sum(not answer.stable for answer in answers)
    assert {answer.label for answer in answers if answer.stable} <= {
        CLASSES[tallies[cell].plurality]
    }
    # Two tails of 5e-10: one false alarm in a billion runs.
    low, high = binom.ppf([5e-10, 1 - 5e-10], count, chance)
    assert low <= unstable <= high


def test_the_cutoff_ends_the_ensemble_and_the_classifier_follows() -> None:
    """Unstable answers are T and no more; then the reserved share is charged, once."""
    private = fitted()
    before = private.budget_
    assert [each["mechanism"] for each in before["reserved"]] == ["classifier"]
    answers = private.answer(np.linspace(0, 1, 2000)[:, None])
    after = private.budget_
    ensemble = [answer for answer in answers if answer.phase == "ensemble"]
    assert sum(not answer.stable for answer in ensemble) == 4
    assert [answer.query_id for answer in ensemble] == list(range(1, len(ensemble) + 1))
    assert {answer.phase for answer in answers[len(ensemble) :]} == {"classifier"}
    assert after["phase"] == "classifier"
    assert after["unstable"] == {"count": 4, "cutoff": 4, "left": 0}
    assert [each["mechanism"] for each in after["charged"]] == ["answers", "classifier"]
    assert after["reserved"] == []
    assert private._release._private_rows is None
    assert private._release._private_ensemble is None
    private.predict(np.random.default_rng(1).random((50, 1)))
    assert private.budget_ == after


def test_a_vector_gets_its_answer_again() -> None:
    """Replays are free, in every phase, and equal, unstable answers included."""
    private = fitted(unstable_label="-")
    queries = np.linspace(0, 1, 300)[:, None]
    first = private.answer(queries)
    spent = private.budget_
    again = private.answer(queries[::-1])[::-1]
    ensemble = sum(answer.phase == "ensemble" for answer in first)
    assert all(answer.replayed for answer in again[:ensemble])
    assert [each.label for each in again] == [each.label for each in first]
    assert private.budget_ == spent


@given(
    st.lists(
        st.lists(st.sampled_from(np.linspace(0, 1, 40).tolist()), min_size=1, max_size=15),
        max_size=12,
    )
)
@settings(max_examples=25, deadline=None)
def test_no_order_of_questions_exceeds_the_budget(batches: list[list[float]]) -> None:
    """Whatever is asked, answers stay within m, unstable ones within T, and none is lost."""
    private = fitted(queries=20, cutoff=3, after="halt", on_cutoff="halt")
    labels: dict[float, str] = {}
    for batch in batches:
        try:
            given_labels = private.predict(np.array(batch)[:, None])
        except BudgetExhaustedError:
            assert private.budget_["phase"] == "halted"
            continue
        for value, label in zip(batch, given_labels, strict=True):
            assert labels.setdefault(value, label) == label
    budget = private.budget_
    assert budget["queries"]["answered"] <= 20
    assert budget["unstable"]["count"] <= 3


def test_after_a_halt_new_queries_are_refused_and_old_ones_answered() -> None:
    """The refusal comes when the budget is spent; what was answered can be asked again."""
    private = fitted(queries=5, after="halt", on_cutoff="halt", cutoff=50, delta=1e-2)
    queries = np.linspace(0, 1, 6)[:, None]
    with pytest.raises(BudgetExhaustedError, match="spent"):
        private.predict(queries)
    assert private.predict(queries[:5]).shape == (5,)
    with pytest.raises(BudgetExhaustedError):
        private.predict(queries[5:])


def test_a_release_may_start_with_the_classifier() -> None:
    """Without a share for answers the drawn classifier answers from the first query on."""
    private = fitted(shares={"classifier": 1.0})
    assert private.budget_["phase"] == "classifier"
    assert set(private.predict(np.array([[0.0], [1.0]]))) <= set(CLASSES)
    assert [each["mechanism"] for each in private.budget_["charged"]] == ["classifier"]


def test_the_classifier_may_be_a_linear_score() -> None:
    """It is drawn once, with the fit, and the charge has all of delta."""
    private = fitted(shares={"classifier": 1.0}, classifier_learner="linear", epsilon=100.0)
    assert private.predict(np.array([[0.0], [1.0]])).tolist() == list(CLASSES)
    (charged,) = private.budget_["charged"]
    assert (charged["mechanism"], charged["delta"]) == ("classifier", private.delta)


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy, pickle.dumps])
def test_no_copy_of_a_fitted_one_is_made(copier: object) -> None:
    """Each copy would answer afresh on the same budget; parameters alone may be copied."""
    assert callable(copier)
    private = fitted()
    for whole in (private, private._release):
        with pytest.raises(TypeError, match="cannot be copied"):
            copier(whole)
    copier(estimator())


def _ask(private: PrivateQueryClassifier) -> str:
    """Ask a new query in a forked process, and return what came of it."""
    try:
        private.predict(np.array([[0.123]]))
    except IntegrityError as refused:
        return str(refused)
    return "answered"


_FORKED: list[PrivateQueryClassifier] = []


def _ask_forked() -> str:
    return _ask(_FORKED[0])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_does_not_answer() -> None:
    """A forked process has the same state, and would spend the same budget once more."""
    _FORKED[:] = [fitted()]
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(_ask_forked) == FORKED
    assert _ask_forked() == "answered"


def test_a_second_fit_is_refused_and_changes_nothing() -> None:
    """One object opens one release; a refused refit leaves it as it was."""
    private = fitted()
    spent = private.budget_
    with pytest.raises(RuntimeError, match="second fit"):
        private.fit(*rows())
    with pytest.raises(ValueError, match="features"):
        private.fit(np.zeros((10, 2)), ["no"] * 10)
    assert private.n_features_in_ == 1
    assert private.budget_ == spent


def test_threads_share_one_budget() -> None:
    """Queries of several threads are decided one by one: no vector is answered twice."""
    private = fitted(cutoff=200, delta=1e-2)
    queries = np.linspace(0, 1, 200)[:, None]
    with ThreadPoolExecutor(4) as pool:
        found = [each.tolist() for each in pool.map(private.predict, [queries] * 4)]
    assert found[0] == found[1] == found[2] == found[3]
    assert private.budget_["queries"]["answered"] == 200


class _Failing:
    size, class_count, is_scored = ENSEMBLE, 2, False

    def vote_counts(self, values: np.ndarray) -> np.ndarray:
        """Fail with a text that quotes a private value."""
        del values
        message = "row 17 has 0.123"
        raise ValueError(message)


def test_a_failure_after_voting_stops_it_with_one_text() -> None:
    """An unforeseen failure halts for good, and says nothing that a row may have caused."""
    private = fitted(after="halt", on_cutoff="halt")
    private._release._private_ensemble = _Failing()  # type: ignore[assignment]  # a planted fault
    with pytest.raises(ContainedError) as failed:
        private.predict(np.array([[0.5]]))
    assert str(failed.value) == FAILED
    assert failed.value.__cause__ is None
    assert private.budget_["phase"] == "halted"


def test_an_unstable_answer_has_the_label_that_was_chosen_or_a_coins() -> None:
    """The votes do not enter: a chosen label always, or a fair coin over the classes."""
    queries = np.linspace(0, 1, 400)[:, None]
    chosen = fitted(unstable_label="?", cutoff=300, delta=1e-2, epsilon=5.0).answer(queries)
    assert {each.label for each in chosen if not each.stable} == {"?"}
    coins = fitted(cutoff=300, delta=1e-2, epsilon=5.0).answer(queries)
    labels = [each.label for each in coins if not each.stable]
    # A fair coin, 300 times: outside of these once in a billion runs.
    low, high = binom.ppf([5e-10, 1 - 5e-10], len(labels), 0.5)
    assert low <= labels.count("yes") <= high


def test_what_is_read_from_the_rows_is_told() -> None:
    """Without public bounds and classes there is a warning for each; with both there is none."""
    hopeful = {"epsilon": 50.0, "cutoff": 20}
    values, labels = rows()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        estimator(bounds=None, classes=None, **hopeful).fit(values, labels)
    assert [each.category for each in told] == [UnchargedDataWarning] * 2
    assert ["bounds" in str(each.message) for each in told] == [True, False]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(**hopeful)


def test_categories_and_missing_values_are_understood() -> None:
    """A column of categories takes any other value as one more, and none as missing."""
    generator = np.random.default_rng(3)
    colours = generator.choice(["red", "blue"], 400).astype(object)
    table = np.stack([generator.random(400).astype(object), colours], axis=1)
    table[:5, 0] = np.nan
    table[5:9, 1] = None
    private = estimator(
        epsilon=50.0, categories={1: ["red", "blue"]}, classes=[0, 1], cutoff=20, hypotheses="trees"
    ).fit(table, (colours == "red").astype(int))
    asked = np.array([[0.5, "red"], [0.5, "blue"], [None, "green"], [0.1, None]], dtype=object)
    assert private.predict(asked)[:2].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": -1.0}, "^epsilon: "),
        ({"delta": 2.0}, "^delta: "),
        ({"epsilon": float("nan")}, "^epsilon: "),
        (
            {"ensemble": 601, "even_if_hopeless": False},
            "^ensemble: this release is hopeless, .*: 601 learners need at least as many rows",
        ),
        ({"hypotheses": "forests"}, "^hypotheses: "),
        ({"learner": "sklearn.absent.Classifier"}, "^learner: "),
        ({"shares": {"answers": 0.9, "classifier": 0.2}}, "^shares: add up to more than 1"),
        ({"bounds": (1, 0)}, "bounds"),
        ({"bounds": [(0, 1), (0, 1)]}, "^bounds: must be one"),
        ({"categories": {3: ["a"]}}, "^categories: 3 is no column"),
        ({"classes": ["yes"]}, "one class"),
        ({"classes": ["maybe", "no"]}, "none of classes"),
        ({"after": "student"}, "^after: "),
    ],
)
def test_bad_parameters_are_refused_before_anything_is_charged(
    changes: dict[str, object], message: str
) -> None:
    """The line names the parameter, and the object can be fitted afterwards."""
    private = estimator(**changes)
    with pytest.raises(ValueError, match=message):
        private.fit(*rows())
    assert not hasattr(private, "budget_")
    private.set_params(**{name: getattr(estimator(), name) for name in changes})
    assert private.fit(*rows()).budget_["phase"] == "ensemble"


def test_a_hopeless_release_is_opened_only_where_it_is_asked_for() -> None:
    """Without the parameter nothing is charged and nothing drawn; with it there is a warning."""
    private = estimator(ensemble=3, even_if_hopeless=False)
    with pytest.raises(ValueError, match=r"^ensemble: this release is hopeless, .* have n = "):
        private.fit(*rows())
    assert not hasattr(private, "budget_")
    private.set_params(even_if_hopeless=True)
    with pytest.warns(HopelessReleaseWarning, match="hopeless"):
        private.fit(*rows())
    assert private.budget_["hopeless"] is True


def test_the_same_noise_makes_the_same_answers() -> None:
    """All that is random comes from the injected source; in production, the system's."""
    values, labels = rows()
    configured = fitted()._release._configuration
    found = []
    for _ in range(2):
        release = MemoryRelease(
            configured,
            rows=PrivateRows(values=values.copy(), labels=(labels == "yes").astype(np.int64)),
            noise=seeded_noise(4),
        )
        found.append(release.answer([(value,) for value in np.linspace(0, 1, 100).tolist()]))
    assert found[0] == found[1]


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no ledger and no file: the object is all that there is."""
    monkeypatch.chdir(tmp_path)
    fitted().predict(np.array([[0.5]]))
    assert not list(tmp_path.iterdir())
