"""The app's own learners of a published classifier, through the code that `conclave learn` runs.

The parameters are those that the command makes of the settings and the public points, and
the draw is the command's; noise comes from seeds, so that a run can be repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from app.release.classifier.exponential import ExponentialDraw
from app.release.classifier.learner_table import classifier_draw
from app.release.classifier.linear import LinearDraw
from app.release.terms.configuration import configure
from benchmarks.utility.online_data import loaded, private_rows
from benchmarks.utility.seeded_noise import SeededNoise

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from app.learning.trees.tree_class import TreeClass
    from app.release.terms.configuration import Configuration
    from benchmarks.utility.published_split import Split
    from benchmarks.utility.results import Json

SHARES: Final = '{"relabel": 0, "answers": 0, "classifier": 1}'
TREE: Final = {"LEARNER": "exponential", "DEPTH": "5", "BINS": "5"}
LINEAR: Final = {"LEARNER": "linear", "BINS": "8"}


def our_accuracies(
    split: Split, chosen: dict[str, str], epsilons: Sequence[float], *, draws: int, seeds: int
) -> dict[str, Json]:
    """Return, by epsilon, the accuracies of a learner's runs.

    Args:
        split: rows and test rows.
        chosen: keys of ``[classifier]``, in capitals.
        epsilons: each spent whole on the classifier, at the example's delta of 1e-6.
        draws: sets of public points, seeds 0, 1, ...
        seeds: runs on each.

    """
    return {
        str(epsilon): {
            "setting": {name.lower(): value for name, value in chosen.items()},
            "accuracies": [
                accuracy
                for draw in range(draws)
                for accuracy in _drawn(split, _configuration(chosen, epsilon), draw, seeds)
            ],
        }
        for epsilon in epsilons
    }


def _configuration(chosen: dict[str, str], epsilon: float) -> Configuration:
    changes = {f"CONCLAVE_CLASSIFIER__{name}": value for name, value in chosen.items()}
    changes |= {
        "CONCLAVE_PRIVACY__EPSILON": str(epsilon),
        "CONCLAVE_PRIVACY__SHARES": SHARES,
        "CONCLAVE_LEDGER__URL": "sqlite:///unused.db",
    }
    return configure(loaded("adult", changes))


def _drawn(split: Split, configuration: Configuration, draw: int, seeds: int) -> Iterator[float]:
    """Learn from one set of points, once a seed, and score all test rows."""
    rows = private_rows("adult")
    prepared = classifier_draw(configuration, split.points(draw), row_count=rows.count)
    if isinstance(prepared, LinearDraw):
        encoded = prepared.inputs.encode(split.test)
        for seed in range(seeds):
            scores = prepared.draw(rows, SeededNoise(seed))
            yield split.accuracy(scores.predict(encoded))
        return
    parameters = cast("ExponentialDraw", prepared).parameters
    trees = cast("TreeClass", parameters.hypotheses)
    # The sums over trees are most of the time, and the runs of a set share them.
    weights = trees.weights(trees.encode(rows.values), rows.labels, parameters.mechanism_epsilon)
    encoded = trees.encode(split.test)
    for seed in range(seeds):
        yield split.accuracy(weights.draw(SeededNoise(seed)).predict(encoded))
