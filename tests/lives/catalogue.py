"""Which lives there are: every mechanism, ending, class, learner, source and kind of database."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.lives.configurations import Tables

SQLITE, POSTGRESQL = "sqlite", "postgresql"
RULES: Final[Mapping[str, str]] = {
    "halfspaces": "diagonal",
    "intervals": "interval",
    "rectangles": "box",
    "cells": "box",
}
CELLS: Final = [
    *("age >= 25", "", "age >= 75", "income >= 25", "", "income >= 75", "", "", ""),
]
PREDICTORS: Final = "tests.lives.predictors"
# Of every mechanism: what it is asked for by.
MECHANISMS: Final[Mapping[str, Tables]] = {
    "profile": {},
    "svt": {"privacy": {"calibration": "svt"}},
    "svt refreshed": {
        "privacy": {"calibration": "svt", "epsilon": 100, "delta": 0.1},
        "privacy.shares": {"relabel": 0.1, "answers": 0.8, "classifier": 0.1},
        "answers": {"queries": 70, "cutoff": 250, "ensemble": 160},
    },
    "noisy vote": {"answers": {"mechanism": "noisy-vote"}},
    "profile of a sample": {"privacy": {"sampling": 0.5}, "answers": {"ensemble": 30}},
    "svt of a sample": {
        "privacy": {"sampling": 0.5, "calibration": "svt"},
        "answers": {"ensemble": 30},
    },
    "scores": {"answers": {"output": "score", "precision": 4}},
    "scores by svt": {
        "privacy": {"calibration": "svt"},
        "answers": {"output": "score", "precision": 4},
    },
}
# No hit ends these: the one has none, and the other takes many to be worth its price.
WITHOUT_CUTOFF: Final = ("noisy vote", "svt refreshed")
NO_CLASSIFIER: Final = {"classifier": 0}
ENDINGS: Final[Mapping[str, Tables]] = {
    "then the classifier": {},
    "then a halt": {
        "answers": {"after": "halt", "on_cutoff": "halt"},
        "privacy.shares": NO_CLASSIFIER,
    },
    "then a student": {
        "answers": {"after": "student", "on_cutoff": "student"},
        "privacy.shares": NO_CLASSIFIER,
    },
    "cut off, then the classifier": {
        "answers": {"queries": 200, "cutoff": 3, "on_cutoff": "classifier"}
    },
    "cut off, then a halt": {"answers": {"queries": 200, "cutoff": 3}},
}
UNSTABLE: Final = ("abstain", "coin")
CLASSES: Final[Mapping[str, dict[str, Any]]] = {
    "trees of depth 1": {"class": "trees", "depth": 1},
    "trees of depth 3": {"class": "trees", "depth": 3, "bins": 4},
    "stumps": {"class": "stumps"},
    "stumps of lists": {"class": "stumps", "tests": {"age": [30, 50], "group": ["rare"]}},
    "thresholds": {"class": "thresholds"},
    "intervals": {"class": "intervals"},
    "rectangles": {"class": "rectangles"},
    "halfspaces": {"class": "halfspaces"},
    "finite": {
        "class": "finite",
        "predictors": [f"{PREDICTORS}:{name}" for name in ("older", "richer", "rare", "never")],
    },
    "cells": {"class": "cells", "cells": CELLS},
    "predictors of one's own": {"class": f"{PREDICTORS}:Corners"},
}
ENUMERATED: Final = ("finite", "predictors of one's own")
HALVING: Final = ("trees of depth 1", "stumps", "thresholds", "intervals", "rectangles")
ESTIMATORS: Final[Mapping[str, dict[str, Any]]] = {
    "a tree": {"estimator": "sklearn.tree.DecisionTreeClassifier", "params": {"max_depth": 2}},
    "a logistic regression": {"estimator": "sklearn.linear_model.LogisticRegression"},
    "neighbours": {
        "estimator": "sklearn.neighbors.KNeighborsClassifier",
        "params": {"n_neighbors": 3},
    },
    "bayes": {"estimator": "sklearn.naive_bayes.GaussianNB"},
    "a forest": {
        "estimator": "sklearn.ensemble.RandomForestClassifier",
        "params": {"n_estimators": 3, "max_depth": 2},
    },
}
SOURCES: Final = ("csv", "csv.gz", "parquet", "parts", "npz", "sqlite")
PUBLISHED: Final[Mapping[str, dict[str, Any]]] = {
    "linear": {"learner": "linear"},
    "auto": {"learner": "auto"},
    "quantiles": {"bins": 4},
    "deeper": {"depth": 3, "tests": {"age": [30, 50]}},
    "stumps": {"class": "stumps"},
    "thresholds": {"class": "thresholds"},
    "rectangles": {"class": "rectangles"},
    "halfspaces": {"class": "halfspaces"},
}
STATISTICS: Final[Tables] = {
    "privacy.shares": {"relabel": 0.2, "answers": 0.3, "classifier": 0.2, "statistics": 0.3}
}


@dataclass(frozen=True)
class Life:
    """One life.

    Attributes:
        name: its own.
        changes: to the configuration.
        play: of ``tests/lives/plays.py``.
        rule: by which the rows are labelled.
        source: the form of the rows.
        database: the kind of the ledger's.

    """

    name: str
    changes: tuple[Tables, ...] = ()
    play: str = "whole"
    rule: str = "step"
    source: str = "csv"
    database: str = SQLITE


@dataclass
class _Catalogue:
    """Lives as they are added; of every fourth whole one there is another on PostgreSQL."""

    lives: dict[str, Life] = field(default_factory=dict)
    _sources: Iterator[str] = field(default_factory=lambda: cycle(SOURCES))
    _databases: Iterator[str] = field(
        default_factory=lambda: cycle((SQLITE, SQLITE, POSTGRESQL, SQLITE))
    )

    def add(self, name: str, *changes: Tables, **more: Any) -> None:
        """Add a life, with the next source and database in turn."""
        more.setdefault("source", next(self._sources))
        more.setdefault("database", next(self._databases))
        self.lives[name] = Life(name, changes, **more)


def lives() -> dict[str, Life]:
    """Return every life by its name."""
    catalogue = _Catalogue()
    for add in (_mechanisms, _classes, _learners, _published, _statistics, _others, _corpora):
        add(catalogue)
    return catalogue.lives


def _mechanisms(catalogue: _Catalogue) -> None:
    for mechanism, asked in MECHANISMS.items():
        for ending, follows in ENDINGS.items():
            if mechanism in WITHOUT_CUTOFF and ending.startswith("cut off"):
                continue
            for unstable in UNSTABLE:
                coin: Tables = {"answers": {"unstable": unstable}}
                catalogue.add(f"{mechanism}, {ending}, {unstable}", asked, follows, coin)


def _classes(catalogue: _Catalogue) -> None:
    for name, chosen in CLASSES.items():
        rule = RULES.get(str(chosen["class"]), "step")
        size: Tables = {"answers": {"ensemble": 600}} if name == "cells" else {}
        catalogue.add(f"class {name}", {"hypotheses": chosen}, size, rule=rule)
        if name in HALVING:
            halving: Tables = {"learner": {"rule": "halving"}}
            catalogue.add(f"class {name}, halving", {"hypotheses": chosen}, halving, rule=rule)
        if name not in ENUMERATED and name != "cells":
            student = ENDINGS["then a student"]
            catalogue.add(
                f"class {name}, then a student", {"hypotheses": chosen}, student, rule=rule
            )
    for name in ("trees of depth 1", "stumps", "stumps of lists", "thresholds", "intervals"):
        chosen = {**CLASSES[name], "grid": "private"}
        catalogue.add(f"class {name}, private grid", {"hypotheses": chosen})
    three: Tables = {"data": {"classes": ["low", "middle", "high"]}}
    for mechanism in ("profile", "svt", "noisy vote"):
        for ending in ("then the classifier", "then a student"):
            catalogue.add(
                f"three classes, {mechanism}, {ending}",
                MECHANISMS[mechanism],
                ENDINGS[ending],
                three,
                rule="three",
            )


def _learners(catalogue: _Catalogue) -> None:
    for name, learner in ESTIMATORS.items():
        catalogue.add(f"learner {name}", {"learner": learner})
        catalogue.add(f"learner {name}, one by one", {"learner": {**learner, "packed": False}})
        for mechanism in ("scores", "svt", "noisy vote"):
            asked = MECHANISMS[mechanism]
            catalogue.add(f"learner {name}, {mechanism}", {"learner": learner}, asked)
        catalogue.add(f"student {name}", {"student": learner}, ENDINGS["then a student"])
    once_shared = {**ESTIMATORS["bayes"], "packed": False, "jobs": 2}
    catalogue.add("learner bayes, jobs without effect", {"learner": once_shared})
    three: Tables = {"data": {"classes": ["low", "middle", "high"]}}
    for name in ("a tree", "a logistic regression"):
        catalogue.add(
            f"learner {name}, three classes", {"learner": ESTIMATORS[name]}, three, rule="three"
        )


def _published(catalogue: _Catalogue) -> None:
    for name, chosen in PUBLISHED.items():
        changes: tuple[Tables, ...] = ({"classifier": chosen}, {"answers": {"queries": 12}})
        catalogue.add(f"published {name}", *changes)
        catalogue.add(f"published {name}, learned at once", *changes, play="learned")
    for name in ("finite", "halfspaces", "predictors of one's own", "intervals"):
        chosen = CLASSES[name]
        rule = RULES.get(str(chosen["class"]), "step")
        catalogue.add(
            f"class {name}, learned at once", {"hypotheses": chosen}, play="learned", rule=rule
        )


def _statistics(catalogue: _Catalogue) -> None:
    short: Tables = {"answers": {"queries": 12}}
    for name, chosen in (
        ("trees", {}),
        ("stumps", {"class": "stumps"}),
        ("intervals", {"class": "intervals"}),
        ("rectangles", {"class": "rectangles"}),
        ("with updates", {"updates": 4}),
        ("with an accuracy", {"accuracy": 1.6}),
    ):
        catalogue.add(f"statistics {name}", STATISTICS, short, {"statistics": chosen})
    catalogue.add("statistics, then a halt", STATISTICS, short, {"answers": {"after": "halt"}})
    catalogue.add("statistics first", STATISTICS, short, play="statistics_first")
    linear: Tables = {"classifier": {"learner": "linear"}}
    catalogue.add("statistics beside linear", STATISTICS, short, linear)
    alone = {"relabel": 0, "answers": 0, "classifier": 0, "statistics": 1}
    catalogue.add("statistics alone", {"privacy.shares": alone}, play="statistics_first")


def _others(catalogue: _Catalogue) -> None:
    for database in (SQLITE, POSTGRESQL):
        catalogue.add(f"keys and limits, {database}", play="keys", database=database)
        catalogue.add(f"two releases, {database}", play="two_releases", database=database)
        catalogue.add(f"a closed release, {database}", play="retired", database=database)
        catalogue.add(f"a moved ledger, {database}", play="copied", database=database)
    catalogue.add("a backup that is restored", play="backed_up", database=SQLITE)
    catalogue.add("refused openings", play="refused_openings", database=SQLITE, source="csv")
    few: Tables = {"answers": {"ensemble": 5}, "privacy": {"epsilon": 1}}
    dead: Tables = {"data": {"dead_features": "allow"}}
    for database in (SQLITE, POSTGRESQL):
        catalogue.add(f"a hopeless release, {database}", few, play="hopeless", database=database)
    catalogue.add("whole, dead features allowed", dead)
    catalogue.add("the estimator", play="in_memory", database=SQLITE)
    wholes: Mapping[str, Tables] = {
        "without relabelling": {"privacy.shares": {"relabel": 0}},
        "without answers": {"privacy.shares": {"relabel": 0, "answers": 0, "classifier": 1}},
        "logs for people": {"logs": {"format": "console"}},
        "a log line a request": {"logs": {"requests": True}},
        "no head file": {"ledger": {"head_file": False}},
        "no times": {"server": {"time_metrics": False}},
        "padded": {"answers": {"reply_padding_milliseconds": 1}},
        "rows stated": {"data": {"rows": 600}},
        "ensemble by itself": {"answers": {"ensemble": "auto"}},
    }
    for name, changes in wholes.items():
        catalogue.add(f"whole, {name}", changes)
    thresholds: Tables = {
        "hypotheses": {"class": "thresholds"},
        "privacy": {"epsilon": 5, "delta": 0.036, "calibration": "paper"},
        "privacy.shares": {"relabel": 0.2, "answers": 0.8, "classifier": 0},
        "answers": {"ensemble": None, "queries": 2, "alpha": 0.9, "beta": 0.5, "after": "halt"},
    }
    for unstable in UNSTABLE:
        coin: Tables = {"answers": {"unstable": unstable, "cutoff": None}}
        catalogue.add(f"paper, {unstable}", thresholds, coin, source="paper", database=SQLITE)


def _corpora(catalogue: _Catalogue) -> None:
    # Some requests of the corpus are answered, and none of them may be the last.
    few: Tables = {"answers": {"queries": 120, "cutoff": 60}}
    for name, changes in {
        "classifier": (few,),
        "halt": (few, ENDINGS["then a halt"]),
        "scores": (few, MECHANISMS["scores"]),
        "statistics": (few, STATISTICS),
    }.items():
        catalogue.add(f"bad requests, {name}", *changes, play="bad", database=SQLITE, source="csv")
    catalogue.add("bad requests, keys", few, play="bad_with_keys", database=SQLITE)
    limits = ("keep_alive_seconds_max", "header_seconds_max", "body_seconds_max")
    quick: Tables = {"server": dict.fromkeys(limits, 2)}
    catalogue.add("over a socket", few, quick, play="over_a_socket", database=SQLITE)
    for play in ("help", "bad_configurations", "key_commands", "plans", "checks", "simulations"):
        catalogue.add(f"commands, {play}", play=play, database=SQLITE, source="csv")
