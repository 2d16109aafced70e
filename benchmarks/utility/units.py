"""What a release gives whose unit is a row or a person: published at once, and answered online.

Rows are read and drawn as the app does, with a seeded source of randomness.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Final

from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.budget.composition import Mechanism
from app.privacy.voting.votes import aggregate
from app.release.classifier.learner_table import classifier_draw
from app.release.classifier.published_classifier import draw_published
from app.release.drawing import draw_ensemble
from app.release.progress import no_progress
from app.release.terms.draw_parameters import ensemble_parameters
from app.settings.settings import load_settings
from benchmarks.utility.online_passes import profile_cell
from benchmarks.utility.online_votes import SECRET, Votes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from app.data.rows import PrivateRows
    from app.release.terms.configuration import Configuration
    from app.settings.settings import Settings
    from benchmarks.measuring.trials import TestRow
    from benchmarks.utility.online_data import QuerySet
    from benchmarks.utility.online_passes import Cell

CUTOFF: Final = 5
"""T of online answers."""
ALL_PUBLISHED: Final = '{"relabel": 0, "answers": 0, "classifier": 1}'
RELABELLED: Final = '{"relabel": 0.1, "answers": 0.9, "classifier": 0}'
UNRELABELLED: Final = '{"relabel": 0, "answers": 0.9, "classifier": 0}'


def published_settings(config: Path, epsilon: float, changes: Mapping[str, str]) -> Settings:
    """Return the settings of a release whose whole epsilon is its classifier's."""
    return _settings(config, epsilon, ALL_PUBLISHED, changes)


def online_settings(config: Path, epsilon: float, shares: str) -> Settings:
    """Return the settings of a release that answers until the T-th unstable answer."""
    changes = {
        "CONCLAVE_ANSWERS__CUTOFF": str(CUTOFF),
        "CONCLAVE_ANSWERS__AFTER": "halt",
        "CONCLAVE_ANSWERS__ON_CUTOFF": "halt",
    }
    return _settings(config, epsilon, shares, changes)


def _settings(config: Path, epsilon: float, shares: str, changes: Mapping[str, str]) -> Settings:
    privacy = {"CONCLAVE_PRIVACY__EPSILON": f"{epsilon:.9f}", "CONCLAVE_PRIVACY__SHARES": shares}
    return load_settings(config, {**privacy, **changes})


def published_accuracies(
    configuration: Configuration,
    rows: PrivateRows,
    *,
    points: NDArray[np.float64],
    tests: Sequence[TestRow],
    runs: int,
) -> list[float]:
    """Return the accuracy of each run's published classifier on all test rows.

    Args:
        configuration: of a release with a classifier alone.
        rows: the private rows.
        points: public, encoded, shape ``(m, d)``.
        tests: labelled rows.
        runs: how many are drawn, each from a seed of its own.

    """
    prepared = classifier_draw(configuration, points, row_count=rows.count)
    found = []
    for number in range(runs):
        noise = ScriptedNoise(seeded_words(number))
        drawn = draw_published(configuration, prepared, rows, noise)
        labels = drawn.predict_many([row.vector for row in tests])
        found.append(fmean(one == row.label for one, row in zip(labels, tests, strict=True)))
    return found


def online_cell(
    configuration: Configuration, rows: PrivateRows, *, tests: QuerySet, releases: int
) -> Cell:
    """Return what so many releases answer of the distinct test vectors, and how well.

    Args:
        configuration: of a release that answers.
        rows: the private rows.
        tests: what is asked, in random orders.
        releases: how many are drawn, each from a seed of its own.

    """
    parameters = ensemble_parameters(configuration, row_count=rows.count, progress=no_progress)
    votes = []
    for number in range(releases):
        if parameters is None:
            raise SystemExit("the answers have no share")
        drawn = draw_ensemble(
            configuration,
            parameters,
            rows=rows,
            secret=SECRET,
            noise=ScriptedNoise(seeded_words(number)),
            progress=no_progress,
        )
        if drawn.parts.private_ensemble is None:
            raise SystemExit("no learners were fitted")
        plurality, distance = aggregate(drawn.parts.private_ensemble.vote_counts(tests.values))
        charge = configuration.charges[Mechanism.ANSWERS]
        votes.append(Votes(plurality, distance, drawn.size, charge))
    return profile_cell(votes, tests, cutoff=CUTOFF)
