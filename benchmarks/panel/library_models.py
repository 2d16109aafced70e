"""Other libraries' private classifiers on one table, each at its best of a few settings.

Run by the Python of an environment of its own (`benchmarks/utility/peers.py`).  A setting is chosen
for each epsilon by the accuracy of one run on the test rows, with their labels, and another by
the area under the curve: in the peers' favour, who pay nothing for the choice.  The chosen ones are
then run anew with other seeds.

    python library_models.py ROWS.npz FOUND.json METHOD EPSILON RUNS SETTINGS
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
from sklearn.metrics import roc_auc_score

if TYPE_CHECKING:
    from numpy.typing import NDArray

DELTA: Final = 1e-6
CHOICE_SEED: Final = 1000
GRID_SEED: Final = 7
CHOICES: Final[dict[str, dict[str, tuple[Any, ...]]]] = {
    "GaussianNB": {"one_hot": (False, True)},
    "LogisticRegression": {
        "one_hot": (False, True),
        "C": (0.001, 0.01, 0.1, 1.0, 10.0),
        "data_norm": (0.5, 1.0, 2.0, 4.0),
        "squared": (False, True),
    },
    "RandomForest": {
        "one_hot": (False, True),
        "n_estimators": (1, 5, 10, 20),
        "max_depth": (3, 5, 8),
    },
    "DP-EBM": {
        "learning_rate": (0.05, 0.2, 0.5, 1.0),
        "max_rounds": (10, 50, 100, 200),
        "max_leaves": (3, 10),
        "max_bins": (16, 32, 64),
        "bin_budget_frac": (0.05, 0.1),
    },
}


def main() -> None:
    """Run one method at one epsilon and write what was found."""
    warnings.filterwarnings("ignore")  # the libraries warn of leaks that public bounds rule out
    path, found, name, epsilon, runs, count = sys.argv[1:]
    rows = dict(np.load(path))
    seeds = range(int(runs))
    grid = _grid(name, int(count))
    tried = [_run(name, each, float(epsilon), rows, CHOICE_SEED) for each in grid]
    chosen = max(range(len(grid)), key=lambda each: tried[each][0])
    ranking = max(range(len(grid)), key=lambda each: (tried[each][1] or 0.0, each == chosen))
    each = [_run(name, grid[chosen], float(epsilon), rows, seed) for seed in seeds]
    ranked = each
    if ranking != chosen:
        ranked = [_run(name, grid[ranking], float(epsilon), rows, seed) for seed in seeds]
    document = {
        "accuracies": [one for one, _ in each],
        "areas": [area for _, area in ranked if area is not None],
        "setting": grid[chosen],
        "area_setting": None if ranking == chosen else grid[ranking],
    }
    with open(found, "w", encoding="utf-8") as file:  # noqa: PTH123 -- as the rest here
        json.dump(document, file)


def _grid(name: str, count: int) -> list[dict[str, Any]]:
    """Return at most so many settings of a method, which a seed picks."""
    choices = CHOICES[name]
    whole = [dict(zip(choices, each, strict=True)) for each in product(*choices.values())]
    return random.Random(GRID_SEED).sample(whole, min(count, len(whole)))


def _run(
    name: str, setting: dict[str, Any], epsilon: float, rows: dict[str, Any], seed: int
) -> tuple[float, float | None]:
    """Fit one model, and score it on all test rows; guessing stands in where noise leaves none."""
    labels = rows["test_labels"]
    try:
        shares = _shares(name, dict(setting), epsilon, rows, seed)
    except (ValueError, np.linalg.LinAlgError, FloatingPointError):
        return float((labels == 0).mean()), 0.5
    accuracy = float((shares.argmax(axis=1) == labels).mean())
    if shares.shape[1] > 2:
        return accuracy, None
    return accuracy, float(roc_auc_score(labels, np.nan_to_num(shares[:, 1])))


def _shares(
    name: str, setting: dict[str, Any], epsilon: float, rows: dict[str, Any], seed: int
) -> NDArray[np.float64]:
    """Return a fitted model's probabilities of the labels of test rows."""
    class_count = int(rows["class_count"])
    if name == "DP-EBM":
        return _of_boosting(setting, epsilon, rows, seed)
    options = {key: setting.pop(key, False) for key in ("one_hot", "squared")}
    train, test, bounds = _encoded(rows, **options)
    common = {"epsilon": epsilon, "random_state": seed}
    if name == "LogisticRegression":
        model = models.LogisticRegression(**common, **setting, max_iter=200)
    elif name == "GaussianNB":
        model = models.GaussianNB(**common, bounds=bounds)
    else:
        classes = list(range(class_count))
        model = models.RandomForestClassifier(**common, **setting, bounds=bounds, classes=classes)
    found = model.fit(train, rows["train_labels"]).predict_proba(test)
    shares = np.zeros((len(test), class_count))
    shares[:, model.classes_.astype(int)] = found
    return shares


def _encoded(rows: dict[str, Any], *, one_hot: bool, squared: bool) -> tuple[Any, Any, Any]:
    """Return features in [0, 1]: codes or one column a category; with numbers' squares."""
    counts, lower, upper = rows["category_counts"], rows["lower"], rows["upper"]
    parts = []
    for values in (rows["train"], rows["test"]):
        columns = []
        for index, count in enumerate(counts):
            column = np.nan_to_num(values[:, index], nan=lower[index])
            if one_hot and count:
                columns += [(column == code) * 1.0 for code in range(int(count))]
                continue
            share = (column - lower[index]) / (upper[index] - lower[index])
            columns += [share, share**2, np.sqrt(share)] if squared else [share]
        parts.append(np.column_stack(columns))
    width = parts[0].shape[1]
    return parts[0], parts[1], (np.zeros(width), np.ones(width))


def _of_boosting(
    setting: dict[str, Any], epsilon: float, rows: dict[str, Any], seed: int
) -> NDArray[np.float64]:
    """Fit an explainable boosting machine, whose bounds and kinds of features are public."""
    kinds = rows["category_counts"] > 0
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
    found: NDArray[np.float64] = model.fit(train, rows["train_labels"]).predict_proba(test)
    return found


def _named(values: NDArray[np.float64], kinds: NDArray[np.bool_]) -> NDArray[np.object_]:
    """Write codes of categories as strings, which is what the library takes as names."""
    columns = [
        [f"c{int(value)}" for value in values[:, index]] if each else list(values[:, index])
        for index, each in enumerate(kinds)
    ]
    return np.array(columns, dtype=object).T


if __name__ == "__main__":
    main()
