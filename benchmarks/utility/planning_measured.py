"""What releases of real rows give, and what plan says of them, by mechanism and cutoff."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.public_points import read_public_points
from app.errors import invariant
from app.noise.scripted import ScriptedNoise, seeded_words
from app.planning.from_settings import plan_settings
from app.planning.mechanisms.planning_table import forecast_answers
from app.planning.trial.agreement import try_out
from app.planning.trial.made_up_records import Population, column_laws
from app.planning.trial.small_leaf_risk import labels_at_worst
from app.planning.trial.trial_size import Trial, extent_of
from app.privacy.budget.ensemble_size import approximate_profile
from app.privacy.sparse_vector import calibration as svt
from app.privacy.voting.votes import aggregate
from app.release.drawing import draw_ensemble, read_private_rows
from app.release.progress import no_progress
from app.release.terms.configuration import configure
from app.release.terms.draw_parameters import ensemble_parameters
from benchmarks.utility.online_data import data_folder, loaded
from benchmarks.utility.online_passes import sparse_pass, stable_answers
from benchmarks.utility.online_settings import PUBLIC_ROWS
from benchmarks.utility.planning_tasks import budget

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    from app.data.rows import PrivateRows
    from app.planning.trial.agreement import Agreement
    from app.privacy.budget.composition import Charge
    from app.privacy.budget.ensemble_size import ApproximateProfile
    from app.privacy.sparse_vector.calibration import SvtCalibration
    from app.settings.settings import Settings
    from benchmarks.utility.planning_tasks import Case, Task
    from benchmarks.utility.results import Json

    Stable: TypeAlias = SvtCalibration | ApproximateProfile

ORDERS = 20
SECRET = b"benchmarks of planning, not kept"
DELTA: Final = Fraction(1, 10**6)
PEOPLE: Final = ("shares", "points")


@dataclass(frozen=True, slots=True)
class Votes:
    """A release's votes on the distinct test vectors: first label and distance, ``(V,)``."""

    plurality: NDArray[np.int64]
    distances: NDArray[np.int64]


class Measured:
    """A data set, read once: private rows, and distinct test vectors, of which some are public."""

    def __init__(self, task: Task) -> None:
        """Read it."""
        self.task = task
        settings = loaded(task.data, task.changes)
        self.rows: PrivateRows = read_private_rows(settings, no_progress)
        vectors, self.points = test_vectors(task.data, settings)
        _, places = np.unique(np.nan_to_num(vectors, nan=-1e18), axis=0, return_index=True)
        self.vectors: NDArray[np.float64] = vectors[np.sort(places)]

    def settings(self, case: Case, epsilon: str, cutoff: int) -> Settings:
        """Return the settings of a case at a budget."""
        charged = budget(epsilon, cutoff=cutoff, limit=len(self.vectors))
        return loaded(self.task.data, {**charged, **self.task.changes, **case.changes})

    def votes(self, settings: Settings, seed: int) -> Votes:
        """Draw a release as the app does and return its votes on every vector."""
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
        return Votes(*aggregate(ensemble.vote_counts(self.vectors)))


def test_vectors(data: str, settings: Settings) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return all test vectors, and those of them that benchmark B takes for public points."""
    schema = settings.data.public_schema()
    vectors = read_public_points(data_folder() / data / "test.csv", schema)
    return vectors, vectors[: PUBLIC_ROWS[data]]


def calibrations(charge: Charge, cutoff: int) -> tuple[tuple[str, Stable], ...]:
    """Return both calibrations of a stability test, by name."""
    epsilon, delta = charge.epsilon, charge.delta
    return (
        ("profile", approximate_profile(epsilon=epsilon, delta=delta, cutoff=cutoff)),
        ("svt", svt.calibrate(epsilon=epsilon, delta=delta, cutoff=cutoff)),
    )


def tried(
    settings: Settings, row_count: int, points: NDArray[np.float64] | None
) -> Agreement | None:
    """Try a release out as plan does; None where its learner takes too long."""
    population = Population(column_laws(settings.data.public_schema()), points)
    learner, size = configure(settings).learner, int(settings.answers.ensemble)
    rows = row_count // size
    trial = Trial(population=population, learner=learner)
    extent = extent_of(trial, chunk_row_count=rows)
    rules = trial.rules(plan_settings(settings, row_count).request)
    if extent is None or rules is None:
        return None
    return try_out(
        rules,
        learner,
        chunk_row_count=rows,
        learner_count=min(size, extent.learner_count),
        hypothesis_count=extent.hypothesis_count,
    )


def predicted(
    agreement: Agreement, calibration: Stable, *, size: int, row_count: int, limit: int
) -> dict[str, Json]:
    """Return what plan says of one mechanism at one cutoff."""
    found = forecast_answers(calibration, agreement, ensemble_size=size, limit=limit)
    worst = found.low
    if not agreement.with_cells:
        rows = row_count // size
        worst = labels_at_worst(calibration, ensemble_size=size, chunk_row_count=rows, limit=limit)
    most = found.likely
    return {
        "predicted": most.number,
        "likelihood": most.share,
        "otherwise": most.otherwise,
        "mean": found.mean,
        "low": found.low,
        "high": found.high,
        "worst": worst,
        "predicted_E": found.median_unlimited,
    }


def measure(calibration: Stable, distances: NDArray[np.int64], *, seed: int) -> dict[str, Json]:
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
            stable = stable_answers(drawn, calibration.cutoff or 0)
        labels.append(len(stable))
    share = max(float(hits.mean()), 1e-18)
    return {"labels": float(np.mean(labels)), "E": (calibration.cutoff or 0) * (1 - share) / share}
