"""What a release learns by ``auto``, with the whole epsilon and nothing that is steered."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from app.data.rows import PrivateRows
from app.release.classifier.learner_table import chosen_learner, classifier_draw
from app.release.classifier.published_classifier import draw_published
from app.release.terms.configuration import configure
from app.settings.settings import Settings
from benchmarks.panel.scoring import Reached, scored
from benchmarks.utility.seeded_noise import SeededNoise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.release.terms.configuration import Configuration
    from benchmarks.panel.sets import Table

DELTA: Final = Decimal("1e-6")
SHARES: Final = {"relabel": 0, "answers": 0, "classifier": 1}
CLASSES: Final = "class {}"
SEEDS_A_SET: Final = 4


def learned_by_auto(table: Table, epsilon: float, *, runs: int, wanted: str) -> Reached:
    """Return what ``auto`` reaches, over sets of public points and seeds of noise on each.

    Args:
        table: of the panel.
        epsilon: spent whole on the classifier.
        runs: how many, four on each set of points.
        wanted: ``classifier.wanted``.

    """
    configuration = configure(Settings.read(settings_of(table, epsilon, wanted=wanted)))
    chosen = chosen_learner(configuration.settings, row_count=len(table.rows), opened=None)
    found = [
        scored(table, *predicted(table, configuration, table.points(run // SEEDS_A_SET), seed=run))
        for run in range(runs)
    ]
    return Reached.of(found, setting={"learner": chosen.row.learner.name})


def ranks_as_it_labels(table: Table, epsilon: float) -> bool:
    """Return whether ``auto`` chooses one learner for labels and for ranking: the same draws."""
    names = {
        chosen_learner(
            configure(Settings.read(settings_of(table, epsilon, wanted=wanted))).settings,
            row_count=len(table.rows),
            opened=None,
        ).row.learner.name
        for wanted in ("labels", "ranking")
    }
    return len(names) == 1


def predicted(
    table: Table, configuration: Configuration, points: NDArray[np.float64], *, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Draw once, and return the labels and the scores of all test rows."""
    rows = PrivateRows(table.rows.copy(), table.labels.copy())
    prepared = classifier_draw(configuration, points, row_count=len(table.rows))
    published = draw_published(configuration, prepared, rows, SeededNoise(seed))
    vectors = [
        tuple(_value(value, count) for value, count in zip(row, table.category_counts, strict=True))
        for row in table.test.tolist()
    ]
    names = {CLASSES.format(index): index for index in range(table.class_count)}
    labels = np.array([names[label] for label in published.predict_many(vectors)])
    if not published.document.has_scores:
        return labels, None
    scores = [first for first, *_ in published.scores_many(vectors)]
    return labels, np.array(scores, dtype=np.float64)


def _value(value: float, category_count: int) -> float | str | None:
    """Return a value as a query has it."""
    if np.isnan(value):
        return None
    return f"c{int(value)}" if category_count else value


def settings_of(table: Table, epsilon: float, *, wanted: str) -> dict[str, Any]:
    """Return a release that says nothing but what the columns are."""
    features: list[dict[str, Any]] = []
    columns = zip(table.category_counts, table.bounds, strict=True)
    for index, (count, bounds) in enumerate(columns):
        kind = (
            {"kind": "categorical", "categories": [f"c{code}" for code in range(count)]}
            if count
            else {"kind": "numeric", "bounds": list(bounds)}
        )
        features.append({"name": f"x{index}", **kind})
    return {
        "release": {"name": "panel"},
        "data": {
            "source": "unused.csv",
            "rows": len(table.rows),
            "label": "label",
            "classes": [CLASSES.format(index) for index in range(table.class_count)],
            "features": features,
        },
        "hypotheses": {"class": "trees"},
        "classifier": {"learner": "auto", "wanted": wanted},
        "privacy": {"epsilon": Decimal(str(epsilon)), "delta": DELTA, "shares": SHARES},
        "ledger": {"url": "sqlite:///unused.db"},
    }
