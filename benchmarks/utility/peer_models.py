"""Other libraries' private classifiers on one split, each at its best of many settings.

Run by the Python of an environment of its own (:mod:`benchmarks.utility.peers`).  A
setting is chosen for each epsilon by the accuracy of two runs on the test rows, with
their labels: in the peers' favour, who pay nothing for the choice.  The chosen one is
then run anew with other seeds.

    python peer_models.py ROWS.npz FOUND.json [--quick]
"""

from __future__ import annotations

import json
import random
import sys
import warnings
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from diffprivlib import models
from interpret.privacy import DPExplainableBoostingClassifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

DELTA: Final = 1e-6
EPSILONS: Final = (0.1, 0.5, 1.0, 2.0)
RUNS: Final = 20
CHOICE_SEEDS: Final = (1000, 1001)
EBM_TRIALS: Final = 144
GRIDS: Final[dict[str, list[dict[str, Any]]]] = {
    "GaussianNB": [{"one_hot": one_hot} for one_hot in (False, True)],
    "LogisticRegression": [
        {"one_hot": one_hot, "C": penalty, "data_norm": norm, "squared": squared}
        for one_hot, penalty, norm, squared in product(
            (False, True), (0.001, 0.01, 0.1, 1.0, 10.0), (0.5, 1.0, 2.0, 3.0, 4.0), (False, True)
        )
    ],
    "DecisionTree": [
        {"one_hot": one_hot, "max_depth": depth}
        for one_hot, depth in product((False, True), range(2, 11))
    ],
    "RandomForest": [
        {"one_hot": one_hot, "n_estimators": count, "max_depth": depth}
        for one_hot, count, depth in product((False, True), (1, 5, 10, 20), (3, 5, 8, 12))
    ],
    "DP-EBM": random.Random(7).sample(
        [
            {
                "learning_rate": rate,
                "max_rounds": rounds,
                "max_leaves": leaves,
                "max_bins": bins,
                "bin_budget_frac": share,
            }
            for rate, rounds, leaves, bins, share in product(
                (0.05, 0.2, 0.5, 1.0, 2.0),
                (10, 20, 50, 100, 200),
                (3, 10, 32),
                (16, 32, 64),
                (0.02, 0.05, 0.1),
            )
        ],
        EBM_TRIALS,
    ),
}


def main() -> None:
    """Run every peer and write what was found."""
    warnings.filterwarnings("ignore")  # the libraries warn of leaks that public bounds rule out
    rows = dict(np.load(sys.argv[1]))
    is_quick = "--quick" in sys.argv
    found = {}
    for name, grid in GRIDS.items():
        tried = grid[:: max(1, len(grid) // 4)] if is_quick else grid
        found[name] = {
            str(epsilon): _best(name, tried, epsilon, rows, 2 if is_quick else RUNS)
            for epsilon in EPSILONS
        }
        print(f"   {name}: {_means(found[name])}", flush=True)
    with open(sys.argv[2], "w", encoding="utf-8") as file:  # noqa: PTH123 -- as the rest here
        json.dump(found, file)


def _best(
    name: str, grid: list[dict[str, Any]], epsilon: float, rows: dict[str, Any], runs: int
) -> dict[str, Any]:
    """Choose a setting, and run it anew."""
    chosen = max(
        grid,
        key=lambda setting: sum(
            _accuracy(name, setting, epsilon, rows, seed) for seed in CHOICE_SEEDS
        ),
    )
    accuracies = [_accuracy(name, chosen, epsilon, rows, seed) for seed in range(runs)]
    return {"setting": chosen, "tried": len(grid), "accuracies": accuracies}


def _means(found: dict[str, Any]) -> str:
    return " ".join(f"{np.mean(each['accuracies']):.4f}" for each in found.values())


def _accuracy(
    name: str, setting: dict[str, Any], epsilon: float, rows: dict[str, Any], seed: int
) -> float:
    """Fit one model and score it on all test rows."""
    if name == "DP-EBM":
        return _ebm_accuracy(setting, epsilon, rows, seed)
    options = dict(setting)
    train, test, (lower, upper) = _encoded(rows, **_taken(options, "one_hot", "squared"))
    common = {"epsilon": epsilon, "random_state": seed}
    if name == "LogisticRegression":
        model = models.LogisticRegression(**common, **options, max_iter=200)
    elif name == "GaussianNB":
        model = models.GaussianNB(**common, bounds=(lower, upper))
    else:
        kind = getattr(models, f"{name}Classifier")
        model = kind(**common, **options, bounds=(lower, upper), classes=[0, 1])
    try:
        predicted = model.fit(train, rows["train_labels"]).predict(test)
    except (ValueError, np.linalg.LinAlgError):  # noise can leave a model that cannot predict
        predicted = np.zeros(len(test))
    return float((predicted == rows["test_labels"]).mean())


def _taken(options: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: options.pop(name, False) for name in names}


def _encoded(rows: dict[str, Any], *, one_hot: bool, squared: bool) -> tuple[Any, Any, Any]:
    """Return features in [0, 1]: codes or one column a category; with numbers' squares."""
    kinds, lower, upper = rows["is_categorical"], rows["lower"], rows["upper"]
    parts = []
    for values in (rows["train"], rows["test"]):
        columns = []
        for index, is_categorical in enumerate(kinds):
            column = np.nan_to_num(values[:, index], nan=lower[index])
            if one_hot and is_categorical:
                columns += [(column == code) * 1.0 for code in range(int(upper[index]) + 1)]
                continue
            share = (column - lower[index]) / (upper[index] - lower[index])
            columns += [share, share**2, np.sqrt(share)] if squared else [share]
        parts.append(np.column_stack(columns))
    width = parts[0].shape[1]
    return parts[0], parts[1], (np.zeros(width), np.ones(width))


def _ebm_accuracy(
    setting: dict[str, Any], epsilon: float, rows: dict[str, Any], seed: int
) -> float:
    """Fit an explainable boosting machine, whose bounds and kinds of features are public."""
    kinds = rows["is_categorical"]
    model = DPExplainableBoostingClassifier(
        epsilon=epsilon,
        delta=DELTA,
        random_state=seed,
        n_jobs=1,
        feature_types=["nominal" if each else "continuous" for each in kinds],
        privacy_bounds={
            index: (float(rows["lower"][index]), float(rows["upper"][index]))
            for index, each in enumerate(kinds)
            if not each
        },
        **setting,
    )
    train, test = (_named(rows[part], kinds) for part in ("train", "test"))
    predicted = model.fit(train, rows["train_labels"]).predict(test)
    return float((predicted == rows["test_labels"]).mean())


def _named(values: NDArray[np.float64], kinds: NDArray[np.bool_]) -> NDArray[np.object_]:
    """Write codes of categories as strings, which is what the library takes as names."""
    columns = [
        [f"c{int(value)}" for value in values[:, index]] if each else list(values[:, index])
        for index, each in enumerate(kinds)
    ]
    return np.array(columns, dtype=object).T


if __name__ == "__main__":
    main()
