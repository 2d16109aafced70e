"""What is reached without privacy, on the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.data.feature_tests import classifier_tests
from app.learning.encoding.binary_tests import evaluate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.utility.published_split import Split
    from benchmarks.utility.results import Json


def reference_accuracies(split: Split) -> dict[str, Json]:
    """Return the accuracy of each method without privacy."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 -- slow to import
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 -- as above
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415 -- as above

    plain = [_columns(split, values) for values in (split.train, split.test)]
    tests = classifier_tests(split.schema, bins=16, public_values=split.points(0))
    bits = [evaluate(tests, values).astype(np.float64) for values in (split.train, split.test)]
    codes = [np.nan_to_num(values, nan=-1.0) for values in (split.train, split.test)]
    models = {
        "logistic regression": (LogisticRegression(max_iter=2000), plain),
        "logistic regression on binary tests": (LogisticRegression(max_iter=2000), bits),
        "tree of depth 4": (DecisionTreeClassifier(max_depth=4, random_state=0), plain),
        "gradient boosting": (
            HistGradientBoostingClassifier(
                random_state=0, categorical_features=split.is_categorical
            ),
            codes,
        ),
    }
    majority = np.bincount(split.train_labels).argmax()
    found: dict[str, Json] = {"majority": split.accuracy(np.full(len(split.test), majority))}
    for name, (model, (train, test)) in models.items():
        found[name] = split.accuracy(model.fit(train, split.train_labels).predict(test))
    return found


def _columns(split: Split, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers scaled to their bounds and one column a category."""
    lower, upper = split.bounds
    columns = []
    for index, is_categorical in enumerate(split.is_categorical):
        column = np.nan_to_num(values[:, index], nan=lower[index])
        if is_categorical:
            columns += [(column == code) * 1.0 for code in range(int(upper[index]) + 1)]
        else:
            columns.append((column - lower[index]) / (upper[index] - lower[index]))
    return np.column_stack(columns)
