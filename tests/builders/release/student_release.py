"""Settings of a small release that a student follows."""

from __future__ import annotations

STUDENT = {"answers__after": "student", "privacy__shares__classifier": "0"}
TREE = {
    "student__estimator": "sklearn.tree.DecisionTreeClassifier",
    "student__params": '{"max_depth": 3}',
}
NEIGHBORS = {
    "student__estimator": "sklearn.neighbors.KNeighborsClassifier",
    "student__params": '{"n_neighbors": 1}',
}
