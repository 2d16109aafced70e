"""scikit-learn's own checks of an estimator, and what of them gives way to the promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from unittest import SkipTest

import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import (
    check_methods_sample_order_invariance,
    check_methods_subset_invariance,
    estimator_checks_generator,
    parametrize_with_checks,
)

from app.estimator import OPENED, PrivateQueryClassifier
from app.estimator.memory_release import COPIED

if TYPE_CHECKING:
    from collections.abc import Callable

# The checks give no public bounds or classes, and a few dozen rows, which are warned of.
pytestmark = [
    pytest.mark.filterwarnings("ignore::app.estimator.UnchargedDataWarning"),
    pytest.mark.filterwarnings("ignore::app.estimator.HopelessReleaseWarning"),
]

REFIT: Final = "fits one object twice, which would spend its budget twice"
COPY: Final = "pickles a fitted object, and each copy would spend its budget again"
SEED: Final = "compares two fits, and no seed makes the noise of two releases the same"
EXPECTED_TO_FAIL: Final = {
    "check_classifiers_train": REFIT,
    "check_supervised_y_2d": REFIT,
    "check_fit_idempotent": REFIT,
    "check_estimators_pickle": COPY,
    "check_classifier_data_not_an_array": SEED,
}
# Checks that scikit-learn itself leaves out, by the reason that it gives.
LEFT_OUT: Final = {
    "check_pipeline_consistency": "of estimators that say they are not deterministic",
    "check_array_api_input": "where SCIPY_ARRAY_API is not set before scipy is imported",
}
MESSAGES: Final = {REFIT: OPENED, COPY: COPIED}


def expected(estimator: object) -> dict[str, str]:
    """Name every check that cannot hold, with its reason."""
    del estimator
    return EXPECTED_TO_FAIL


# Two fits may agree by chance, so that a check with the reason SEED may pass.
@parametrize_with_checks(  # type: ignore[untyped-decorator]  # scikit-learn ships no types
    [
        PrivateQueryClassifier(even_if_hopeless=True),
        PrivateQueryClassifier(
            learner="sklearn.tree.DecisionTreeClassifier", mechanism="noisy-vote"
        ),
    ],
    expected_failed_checks=expected,
    xfail_strict=False,
)
def test_scikit_learns_checks(estimator: object, check: Callable[[object], None]) -> None:
    """Every check of scikit-learn passes, but for the five that the promise rules out."""
    name = getattr(check, "func", check).__name__
    try:
        check(estimator)
    except SkipTest:
        assert name in LEFT_OUT


def test_what_is_expected_to_fail_does_so_for_its_reason() -> None:
    """A refit and a copy are refused by their own lines, and by nothing else."""
    found = set()
    for estimator, check in estimator_checks_generator(
        PrivateQueryClassifier(even_if_hopeless=True)
    ):
        name = getattr(check, "func", check).__name__
        reason = EXPECTED_TO_FAIL.get(name)
        if reason in MESSAGES:
            with pytest.raises((RuntimeError, TypeError)) as refused:
                check(estimator)
            assert str(refused.value) == MESSAGES[str(reason)]
            found.add(name)
    assert found == {name for name, reason in EXPECTED_TO_FAIL.items() if reason in MESSAGES}


@pytest.mark.parametrize(
    "check", [check_methods_subset_invariance, check_methods_sample_order_invariance]
)
def test_one_object_is_consistent(check: Callable[[str, object], None]) -> None:
    """A query gets one label from one object, in whatever batch or order it is asked."""
    check("PrivateQueryClassifier", PrivateQueryClassifier(even_if_hopeless=True))


def test_it_learns_what_a_classifier_learns() -> None:
    """Where rows and epsilon suffice it passes the bar of scikit-learn's training check."""
    rows, labels = make_blobs(n_samples=6000, centers=3, random_state=0, cluster_std=0.5)
    private = PrivateQueryClassifier(
        epsilon=10.0, bounds=(-15, 15), classes=[0, 1, 2], cutoff=20, queries=10_000
    ).fit(rows, labels)
    assert private.score(rows[:500], labels[:500]) > 0.83
    assert private.budget_["unstable"]["count"] < 20


def test_it_works_in_pipelines_and_searches() -> None:
    """What scikit-learn clones before it fits is used as any classifier is."""
    rows, labels = make_blobs(n_samples=400, centers=2, random_state=1)
    private = PrivateQueryClassifier(
        epsilon=50.0, bounds=(-15, 15), classes=[0, 1], bins=4, even_if_hopeless=True
    )
    piped = make_pipeline(FunctionTransformer(), private).fit(rows, labels)
    assert piped.predict(rows[:3]).shape == (3,)
    assert len(cross_val_score(clone(private), rows, labels, cv=2)) == 2
    search = GridSearchCV(clone(private), {"depth": [1, 2]}, cv=2, refit=False)
    assert set(search.fit(rows, labels).cv_results_["param_depth"]) == {1, 2}


def test_a_clone_is_a_new_release() -> None:
    """A clone has the parameters and no budget of its own until it is fitted."""
    rows, labels = make_blobs(n_samples=100, centers=2, random_state=1)
    private = PrivateQueryClassifier(bounds=(-15, 15), classes=[0, 1], even_if_hopeless=True).fit(
        rows, labels
    )
    copied = clone(private)
    assert copied.get_params() == private.get_params()
    assert not hasattr(copied, "budget_")


def test_a_seed_is_no_parameter() -> None:
    """Noise that can be drawn again can be taken away again: there is no random_state."""
    with pytest.raises(TypeError, match="random_state"):
        PrivateQueryClassifier(random_state=0)  # type: ignore[call-arg]  # the claim
    assert "random_state" not in PrivateQueryClassifier().get_params()
    assert PrivateQueryClassifier().__sklearn_tags__().non_deterministic
