"""Benchmark C: does ``conclave plan`` predict how many labels a release gives?

Expected: within a factor of 2 in three cells of four, in nine of ten where the prediction's
band is narrow, and outside it on the cliff, where a rare leaf decides.  About 15 minutes of
one processor; ``--quick`` takes one size of each data set, in a minute.

    python -m benchmarks.utility.planning [--quick]
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from app.accounting import svt
from app.accounting.composition import Mechanism
from app.data.public_laws import column_laws
from app.data.public_points import read_public_points
from app.ensembles.populations import Population
from app.errors import invariant
from app.mechanisms.subsample_aggregate import aggregate
from app.noise.scripted import ScriptedNoise, seeded_words
from app.planning.agreement import try_out
from app.planning.approximate_profile import approximate_profile
from app.planning.cliff import labels_at_worst
from app.planning.forecast import forecast_answers
from app.planning.trial import Trial, extent_of
from app.service.configure import configure
from app.service.draw_ensemble import draw_ensemble
from app.service.draw_parameters import ensemble_parameters
from app.service.plan_request import plan_settings
from app.service.planned_answers import with_prediction
from app.service.progress import no_progress
from app.service.rows import read_private_rows
from benchmarks.measuring.circumstances import circumstances
from benchmarks.utility.online_data import data_folder, loaded
from benchmarks.utility.online_passes import sparse_pass, stable_answers
from benchmarks.utility.planning_tasks import CUTOFFS, EPSILONS, Case, Task, budget, cases, tasks
from benchmarks.utility.results import keep

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from numpy.typing import NDArray

    from app.accounting.composition import Charge
    from app.accounting.svt import SvtCalibration
    from app.data.rows import PrivateRows
    from app.planning.agreement import Agreement
    from app.planning.approximate_profile import ApproximateProfile
    from app.settings import Settings
    from benchmarks.utility.results import Json

    Stable: TypeAlias = SvtCalibration | ApproximateProfile

USUAL = "trees of depth 2, k = 800"
PUBLIC_POINTS = 1000
ORDERS = 20
SECRET = b"benchmarks of planning, not kept"
DELTA = Fraction(1, 10**6)


class Measured:
    """A data set, read once: private rows, and distinct test vectors, of which some are public."""

    def __init__(self, task: Task) -> None:
        """Read it."""
        self.task = task
        settings = loaded(task.data, task.changes)
        self.rows: PrivateRows = read_private_rows(settings, no_progress)
        schema = settings.data.public_schema()
        vectors = read_public_points(data_folder() / task.data / "test.csv", schema)
        self.points: NDArray[np.float64] = vectors[:PUBLIC_POINTS]
        _, places = np.unique(np.nan_to_num(vectors, nan=-1e18), axis=0, return_index=True)
        self.vectors: NDArray[np.float64] = vectors[np.sort(places)]

    def settings(self, case: Case, epsilon: str, cutoff: int) -> Settings:
        """Return the settings of a case at a budget."""
        charged = budget(epsilon, cutoff=cutoff, limit=len(self.vectors))
        return loaded(self.task.data, {**charged, **self.task.changes, **case.changes})

    def distances(self, settings: Settings, seed: int) -> NDArray[np.int64]:
        """Draw a release as the app does and return every vector's distance to instability."""
        configuration = configure(settings)
        parameters = ensemble_parameters(
            configuration, row_count=self.rows.count, progress=no_progress
        )
        invariant(parameters is not None, "the answers have a share")
        if parameters is None:
            raise SystemExit
        drawn = draw_ensemble(
            configuration,
            parameters,
            rows=self.rows,
            secret=SECRET,
            noise=ScriptedNoise(seeded_words(seed)),
            progress=no_progress,
        )
        ensemble = drawn.parts.private_ensemble
        invariant(ensemble is not None, "the learners are fitted")
        if ensemble is None:
            raise SystemExit
        return aggregate(ensemble.vote_counts(self.vectors))[1]


def main() -> None:
    """Compare every cell, and every recommendation, and keep them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    print(circumstances())
    cells: list[Json] = []
    recommended: list[Json] = []
    for task in tasks():
        measured = Measured(task)
        for case in cases(task, quick=quick):
            for cell in _cells(measured, case):
                cells.append(cell)
                print(_line(cell), flush=True)
        recommended += _recommended(measured)
    keep("planning", {"cells": cells, "recommended": recommended}, quick=quick)


def _cells(measured: Measured, case: Case) -> Iterator[dict[str, Any]]:
    """Yield prediction and measurement of a case at every budget, by every people."""
    first = measured.settings(case, EPSILONS[0], CUTOFFS[0])
    size = int(first.answers.ensemble)
    tried = {
        "shares": _tried(measured, first, size, points=None),
        "points": _tried(measured, first, size, points=measured.points),
    }
    for number, epsilon in enumerate(EPSILONS):
        settings = measured.settings(case, epsilon, CUTOFFS[0])
        distances = measured.distances(settings, seed=1 + number)
        answers = configure(settings).charges[Mechanism.ANSWERS]
        for cutoff in CUTOFFS:
            for name, calibration in _calibrations(answers, cutoff):
                found = _measure(calibration, distances, seed=cutoff)
                for people, agreement in tried.items():
                    predicted = _predict(measured, agreement, calibration, size)
                    yield {
                        "task": measured.task.name,
                        "is_new": measured.task.is_new,
                        "case": case.name,
                        "epsilon": epsilon,
                        "cutoff": cutoff,
                        "mechanism": name,
                        "people": people,
                        **found,
                        **predicted,
                    }


def _calibrations(charge: Charge, cutoff: int) -> tuple[tuple[str, Stable], ...]:
    epsilon, delta = charge.epsilon, charge.delta
    return (
        ("profile", approximate_profile(epsilon=epsilon, delta=delta, cutoff=cutoff)),
        ("svt", svt.calibrate(epsilon=epsilon, delta=delta, cutoff=cutoff)),
    )


def _tried(
    measured: Measured, settings: Settings, size: int, *, points: NDArray[np.float64] | None
) -> Agreement:
    """Try a release out as plan does."""
    learner = configure(settings).learner
    population = Population(column_laws(settings.data.public_schema()), points)
    rows = measured.rows.count // size
    extent = extent_of(Trial(population=population, learner=learner), chunk_row_count=rows)
    invariant(extent is not None, "the learner is quick enough to be tried")
    if extent is None:
        raise SystemExit
    return try_out(
        population,
        learner,
        chunk_row_count=rows,
        learner_count=min(size, extent.learner_count),
        hypothesis_count=extent.hypothesis_count,
    )


def _predict(
    measured: Measured, agreement: Agreement, calibration: Stable, size: int
) -> dict[str, Json]:
    limit = len(measured.vectors)
    found = forecast_answers(calibration, agreement, ensemble_size=size, limit=limit)
    worst = found.low
    if not agreement.with_cells:
        rows = measured.rows.count // size
        worst = labels_at_worst(calibration, ensemble_size=size, chunk_row_count=rows, limit=limit)
    return {"predicted": found.mean, "low": found.low, "high": found.high, "worst": worst}


def _measure(calibration: Stable, distances: NDArray[np.int64], *, seed: int) -> dict[str, Json]:
    """Return the labels of random passes over all vectors, and E."""
    generator = np.random.default_rng(seed)
    known, places = np.unique(distances, return_inverse=True)
    hits = np.array([calibration.hit_probability(int(each)) for each in known])[places]
    labels = []
    for _ in range(ORDERS):
        order = generator.permutation(len(distances))
        if isinstance(calibration, svt.SvtCalibration):
            stable = sparse_pass(calibration, distances[order], generator)
        else:
            drawn = generator.random(len(order)) < hits[order]
            stable = stable_answers(drawn, calibration.cutoff)
        labels.append(len(stable))
    share = max(float(hits.mean()), 1e-18)
    return {"labels": float(np.mean(labels)), "E": calibration.cutoff * (1 - share) / share}


def _recommended(measured: Measured) -> Iterator[dict[str, Any]]:
    """Follow the recommendation at epsilon 1, and measure what it gives."""
    usual = next(each for each in cases(measured.task, quick=False) if each.name == USUAL)
    settings = measured.settings(usual, "1", 20)
    planned = plan_settings(settings, measured.rows.count)
    for people, points in (("shares", None), ("points", measured.points)):
        found = with_prediction(settings, planned, points=points).prediction
        if found is None or found.best is None or found.best.cutoff is None:
            continue
        best = found.best
        followed = replace(
            usual,
            changes={
                **usual.changes,
                "CONCLAVE_ANSWERS__ENSEMBLE": str(best.ensemble_size),
                "CONCLAVE_PRIVACY__SHARES__RELABEL": str(float(best.relabel_share)),
                "CONCLAVE_PRIVACY__SHARES__ANSWERS": str(float(best.answers_share)),
            },
        )
        cutoff, name = best.cutoff, best.mechanism
        changed = measured.settings(followed, "1", cutoff or 1)
        answers = configure(changed).charges[Mechanism.ANSWERS]
        calibration = dict(_calibrations(answers, cutoff or 1))[name]
        distances = measured.distances(changed, seed=7)
        cell = {
            "task": measured.task.name,
            "is_new": measured.task.is_new,
            "people": people,
            "k": best.ensemble_size,
            "mechanism": name,
            "T": cutoff,
            "relabel": float(best.relabel_share),
            "predicted": best.forecast.mean,
            "worst": best.worst,
            **_measure(calibration, distances, seed=7),
        }
        print("recommended", cell, flush=True)
        yield cell


def _line(cell: dict[str, Any]) -> str:
    factor = cell["predicted"] / max(cell["labels"], 0.5)
    return (
        f"{cell['task']:<13}{cell['case']:<28}{cell['people']:<7}{cell['mechanism']:<8}"
        f"{cell['epsilon']:>4}{cell['cutoff']:>4}{cell['labels']:>9.0f}{cell['predicted']:>9.0f}"
        f"  x{factor:<8.3g}[{cell['low']:.0f}, {cell['high']:.0f}] worst {cell['worst']:.0f}"
    )


if __name__ == "__main__":
    main()
