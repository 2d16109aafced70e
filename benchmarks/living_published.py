"""How accurate is the published classifier of a release that goes on, month by month?

Expected on Adult, 5,000 rows a month, epsilon 1 and delta 1e-6 a record, all of it for the
classifier: .850 after a month, .860 after six, as a release of all 30,000 rows at once; with own
rows only it stays at .850.  At three tenths of epsilon, .84 after a month and .853 after six.

Months are played through the code that serves: inputs of
``app/release/generations/score_inputs.py``, steps and means of ``publishing.py``, scores of the
published document's form.  Left out are the ledger and HTTP.  1,000 test rows, without labels, are
the public points; the others score.  The data set is in the folder that
CONCLAVE_TEST_DATA names.

    python -m benchmarks.living_published [--plays N] [--months N] [--data NAMES]
        [--epsilons E ...] [--learner linear|kernel]
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.rows import PrivateRows
from app.ledger.entries.generations import CLASSIFIER, Generation
from app.privacy.noisy_gradient.mechanism import WEIGHT_STEPS
from app.release.generations.classifier_contribution import (
    generation_draw,
    mean_share,
    mean_weights,
)
from app.release.generations.score_inputs import descent_known, known_inputs
from app.release.terms.configuration import configure
from app.settings.generations_section import PUBLISH_IN_TURN
from benchmarks.utility.online_data import loaded, private_rows, test_set
from benchmarks.utility.seeded_noise import SeededNoise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.linear.kernel_scores import KernelScores
    from app.learning.linear.linear_scores import LinearScores
    from app.release.classifier.linear import LinearDraw
    from app.release.generations.score_inputs import PublicInputs
    from app.release.terms.configuration import Configuration

DELTA: Final = Fraction(1, 10**6)
ROWS: Final = 5_000
POINTS: Final = 1_000
STUDY: Final = (0.846, 0.851, 0.853, 0.853, 0.854, 0.854)
"""Adult, epsilon 1, after 1 to 6 months: the study's warm start, in doubles."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A configuration, its public inputs, and the rows that score."""

    configuration: Configuration
    inputs: PublicInputs
    encoded: NDArray[np.integer]
    labels: NDArray[np.int64]

    def accuracy(self, drawn: LinearDraw, weights: list[list[int]]) -> float:
        """Return the share of scoring rows that published weights get right."""
        scores: LinearScores | KernelScores
        scores = drawn.scores(np.array(weights, dtype=np.float64) / WEIGHT_STEPS)
        return float(np.mean(scores.predict(self.encoded) == self.labels))


@cache
def scene_of(data: str, epsilon: str, learner: str) -> Scene:
    """Return what is public of a data set, at an epsilon that is all the classifier's."""
    settings = loaded(
        data,
        {
            "CONCLAVE_CLASSIFIER__LEARNER": learner,
            "CONCLAVE_PRIVACY__EPSILON": epsilon,
            "CONCLAVE_PRIVACY__SHARES": '{"relabel": 0, "answers": 0, "classifier": 1}',
            "CONCLAVE_ANSWERS__AFTER": "classifier",
        },
    )
    tests = test_set(data)
    full = tests.values[tests.place]
    order = np.random.default_rng(0).permutation(len(full))
    points, scoring = order[:POINTS], order[POINTS:]
    configuration = configure(settings)
    descent = descent_known(configuration, full[points], row_count=ROWS)
    inputs = known_inputs(descent, SeededNoise(0))
    return Scene(configuration, inputs, inputs.inputs.encode(full[scoring]), tests.labels[scoring])


def generation(number: int, epsilon: str, *, slots: int = ROWS) -> Generation:
    """Return a generation all of whose epsilon is the classifier's."""
    return Generation(
        number=number,
        slots=slots,
        chunks=1,
        epsilon=epsilon,
        delta=str(DELTA),
        shares={CLASSIFIER: [epsilon, str(DELTA)]},
        cutoff=1,
        fingerprint="",
        joins_at=number,
        kept_at=number,
    )


def play(
    data: str, epsilon: str, learner: str, *, months: int, seed: int
) -> dict[str, list[float]]:
    """Play so many months; return the accuracy after each, warm, cold, and of all rows at once."""
    scene, rows = scene_of(data, epsilon, learner), private_rows(data)
    order = np.random.default_rng(seed).permutation(rows.count)
    noise = SeededNoise(seed)
    known: list[Generation] = []
    found: dict[str, list[float]] = {"warm start, mean": [], "own rows only": []}
    start: NDArray[np.float64] | None = None
    for month in range(months):
        known.append(generation(month + 1, epsilon))
        places = order[month * ROWS : (month + 1) * ROWS]
        part = PrivateRows(rows.values[places], rows.labels[places])
        drawn = generation_draw(scene.configuration, scene.inputs, known[-1])
        published = mean_weights(drawn, part, noise, start=start, share=mean_share(known))
        found["warm start, mean"].append(scene.accuracy(drawn, published))
        start = np.array(published, dtype=np.float64) / WEIGHT_STEPS
        own = mean_weights(drawn, part, noise, start=None, share=1.0)
        found["own rows only"].append(scene.accuracy(drawn, own))
    found["all rows at once"] = [_at_once(scene, rows, order[: months * ROWS], epsilon, noise)]
    return found


def _at_once(
    scene: Scene,
    rows: PrivateRows,
    places: NDArray[np.int64],
    epsilon: str,
    noise: SeededNoise,
) -> float:
    """Return the accuracy of one release of all months' rows."""
    whole = PrivateRows(rows.values[places], rows.labels[places])
    drawn = generation_draw(
        scene.configuration, scene.inputs, generation(1, epsilon, slots=whole.count)
    )
    return scene.accuracy(drawn, mean_weights(drawn, whole, noise, start=None, share=1.0))


def main() -> None:
    """Print a table of accuracies by month."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plays", type=int, default=20)
    parser.add_argument("--months", type=int, default=6)
    parser.add_argument("--data", nargs="+", default=["adult"])
    parser.add_argument("--learner", choices=PUBLISH_IN_TURN, default="linear")
    parser.add_argument("--epsilons", nargs="+", default=["1", "0.3"])
    asked = parser.parse_args()
    print("| data, epsilon | way | after each month | error of the last | seconds a play |")
    print("| --- | --- | --- | --- | --- |")
    for data in asked.data:
        for epsilon in asked.epsilons:
            started = time.process_time()
            plays = [
                play(data, epsilon, asked.learner, months=asked.months, seed=seed)
                for seed in range(asked.plays)
            ]
            seconds = (time.process_time() - started) / asked.plays
            for way in plays[0]:
                lines = np.array([each[way] for each in plays])
                error = lines[:, -1].std(ddof=1) / asked.plays**0.5 if asked.plays > 1 else 0.0
                shown = " ".join(f"{each:.4f}" for each in lines.mean(axis=0))
                print(f"| {data}, {epsilon} | {way} | {shown} | {error:.4f} | {seconds:.1f} |")
            if (data, epsilon, asked.learner) == ("adult", "1", "linear"):
                shown = " ".join(f"{each:.3f}" for each in STUDY)
                print(f"| {data}, {epsilon} | the study's warm start | {shown} | | |", flush=True)


if __name__ == "__main__":
    main()
