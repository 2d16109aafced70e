"""What plan recommends, followed: answers and accuracy beside the best of benchmark B's grid.

And what it says of a classifier that is published at once: ``[classifier] learner``, drawn
at the same epsilon, and how many of the test rows it labels right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from app.planning.from_settings import plan_settings
from app.planning.output.prediction_document import learner_at_once
from app.planning.trial.forecast import outlasting_noise
from app.planning.trial.trial_from_settings import with_prediction
from app.privacy.budget.composition import Mechanism
from app.privacy.noisy_vote import calibration as noisy_vote
from app.release.classifier.learner_table import classifier_draw
from app.release.classifier.linear import LinearDraw
from app.release.terms.configuration import configure
from benchmarks.utility.online_data import loaded, private_rows, test_set
from benchmarks.utility.online_settings import cell_changes, tree_changes
from benchmarks.utility.planning_measured import Measured, calibrations, measure, test_vectors
from benchmarks.utility.planning_tasks import Case, Task, budget
from benchmarks.utility.results import read
from benchmarks.utility.seeded_noise import SeededNoise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from app.planning.trial.recommendation import Choice
    from benchmarks.utility.results import Json

EPSILONS: Final = ("1", "2")
RELEASES: Final = 3
SEEDS: Final = 4
# What B's best must reach of the accuracy that was measured.
AS_ACCURATE: Final = 0.001


def followed(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield a recommendation of each class at each budget, and what came of it."""
    for task, classes in _classes():
        measured = Measured(task)
        for epsilon in EPSILONS[:1] if quick else EPSILONS:
            yield {
                "data": task.data,
                "epsilon": epsilon,
                "class": "published",
                **_published(task, epsilon),
            }
            for name, changes in classes.items():
                yield from _followed(measured, Case(task, name, changes), epsilon)


def _classes() -> list[tuple[Task, dict[str, dict[str, str]]]]:
    """Return the data sets and the classes that plan is asked about: B's own."""
    return [
        (
            Task("income", "adult", is_new=False, changes={}),
            {
                "trees of depth 2": tree_changes("canonical", 2, 800, few=False),
                "cells of 0.02": cell_changes("adult", 0.02),
            },
        ),
        (
            Task("skin", "skin", is_new=False, changes={}),
            {
                "trees of depth 3": tree_changes("canonical", 3, 800, few=False),
                "cells of 0.0045": cell_changes("skin", 0.0045),
            },
        ),
    ]


def _followed(measured: Measured, case: Case, epsilon: str) -> Iterator[dict[str, Any]]:
    """Ask plan, with public points, and do as it says."""
    settings = measured.settings(case, epsilon, cutoff=20)
    planned = plan_settings(settings, measured.rows.count)
    found = with_prediction(settings, planned, points=measured.points).prediction
    if found is None or found.best is None:
        return
    best = found.best
    shares = "CONCLAVE_PRIVACY__SHARES__"
    changes = {
        **case.changes,
        "CONCLAVE_ANSWERS__ENSEMBLE": str(best.ensemble_size),
        f"{shares}RELABEL": str(float(best.relabel_share)),
        f"{shares}ANSWERS": str(float(best.answers_share)),
    }
    most = best.forecast.likely
    given = _given(measured, Case(case.task, case.name, changes), epsilon, best)
    yield {
        "data": case.task.data,
        "epsilon": epsilon,
        "class": case.name,
        "mechanism": best.mechanism,
        "k": best.ensemble_size,
        "T": best.cutoff,
        "relabel": float(best.relabel_share),
        "predicted": most.number,
        "likelihood": most.share,
        **given,
        "best": _best_of_grid(case.task.data, epsilon, given["accuracy"]),
    }


def _given(measured: Measured, case: Case, epsilon: str, best: Choice) -> dict[str, Any]:
    """Measure a choice: labels of a pass, E, and the share of test rows that are right."""
    settings = measured.settings(case, epsilon, best.cutoff or 1)
    charge = configure(settings).charges[Mechanism.ANSWERS]
    labels, expected, right = [], [], []
    for seed in range(RELEASES):
        votes = measured.votes(settings, 70 + seed)
        right.append(_accuracy(measured, votes.plurality))
        if best.cutoff is None:
            found = _noisy(configure(settings).charges[Mechanism.ANSWERS], votes.distances)
            labels.append(found)
            expected.append(found)
            continue
        calibration = dict(calibrations(charge, best.cutoff))[best.mechanism]
        one: Any = measure(calibration, votes.distances, seed=seed)
        labels.append(one["labels"])
        expected.append(one["E"])
    return {
        "labels": float(np.mean(labels)),
        "E": float(np.median(expected)),
        "accuracy": float(np.mean(right)),
    }


def _noisy(charge: Any, distances: NDArray[np.int64]) -> float:  # noqa: ANN401 -- a Charge
    limit = len(distances)
    calibration = noisy_vote.calibrate(
        epsilon=charge.epsilon, delta=charge.delta, answer_limit=limit, class_count=2
    )
    leads = np.asarray(2.0 * distances[np.newaxis] + 1.0, dtype=np.float64)
    weights = np.full_like(leads, 1 / limit)
    return float(outlasting_noise(calibration, leads, weights, limit=limit)[0])


def _accuracy(measured: Measured, plurality: NDArray[np.int64]) -> float:
    """Return the share of test rows whose vector's first label is theirs."""
    tests = test_set(measured.task.data)
    known = {_key(vector): place for place, vector in enumerate(measured.vectors)}
    places = np.array([known[_key(vector)] for vector in tests.values])
    counts = tests.label_counts
    return float(counts[np.arange(len(places)), plurality[places]].sum() / counts.sum())


def _key(vector: NDArray[np.float64]) -> bytes:
    return np.nan_to_num(vector, nan=-1e18).tobytes()


def _best_of_grid(data: str, epsilon: str, accuracy: float) -> dict[str, Json] | None:
    """Return what of B's whole grid answers most, as accurate at least as that."""
    kept: Any = read("online") or {"settings": []}
    found = [
        (round(cell["answered"]), min(cell["expected"], 1e12), each["setting"], cell)
        for each in kept["settings"]
        if (each["data"], each["epsilon"]) == (data, epsilon)
        for cell in each["cells"]
        if cell["mechanism"] != "noisy vote" and cell["accuracy"] >= accuracy - AS_ACCURATE
    ]
    if not found:
        return None
    answered, expected, setting, cell = max(found, key=lambda each: each[:2])
    return {
        "labels": answered,
        "E": expected,
        "accuracy": cell["accuracy"],
        "by": f"{setting}; {cell['mechanism']}, T = {cell['cutoff']}",
    }


def _published(task: Task, epsilon: str) -> dict[str, Json]:
    """Draw the classifier that plan names, with all of epsilon, on B's public points."""
    shares = "CONCLAVE_PRIVACY__SHARES__"
    asked = loaded(task.data, budget(epsilon, cutoff=20, limit=1000))
    planned = plan_settings(asked, private_rows(task.data).count)
    learner = learner_at_once(planned) or ""
    changes = {
        "CONCLAVE_PRIVACY__EPSILON": epsilon,
        f"{shares}RELABEL": "0",
        f"{shares}ANSWERS": "0",
        f"{shares}CLASSIFIER": "1",
        "CONCLAVE_CLASSIFIER__LEARNER": learner,
        "CONCLAVE_LEDGER__URL": "sqlite:///unused.db",
    }
    configuration = configure(loaded(task.data, changes))
    rows, tests = private_rows(task.data), test_set(task.data)
    _, points = test_vectors(task.data, configuration.settings)
    prepared = classifier_draw(configuration, points, row_count=rows.count)
    counts, right = tests.label_counts, []
    for seed in range(SEEDS):
        if not isinstance(prepared, LinearDraw):
            return {"learner": learner, "accuracy": None}
        encoded = prepared.inputs.encode(tests.values)
        labels = prepared.draw(rows, SeededNoise(seed)).predict(encoded)
        right.append(float(counts[np.arange(len(labels)), labels].sum() / counts.sum()))
    return {"learner": learner, "accuracy": float(np.mean(right))}
