"""How good is a student of the answers on Skin, by which learner, and what is it charged?

Expected: every query answered at epsilon 1; a student on 4,000 of them within half a hundredth
of the ensemble's plurality, level with the classifier that is drawn for three tenths of
epsilon; no charge beside those of the answers.  The example, with 16 bins for learners and
relabelling.  Each pair of releases asks the test rows in an order of its own, each distinct
vector once, as public queries.  The data are those that
CONCLAVE_TEST_DATA names; other settings of the environment beat the example's.

    python benchmarks/student_skin.py [--queries N] [--releases N]
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import re
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

import structlog

from app.answering.answer_query import QueryAnswerer
from app.data.vectors import encode
from app.main import open_from_settings
from app.noise.system import SystemNoise
from app.release.classifier.drawn_student import taught
from app.release.classifier.switch import switch_phase
from app.release.terms.configuration import configure
from app.settings.settings import load_settings
from benchmarks.measuring.circumstances import ROOT, circumstances
from benchmarks.measuring.trials import ask_all, read_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from app.data.vectors import Vector
    from app.learning.hypothesis import Ensemble
    from app.release.classifier.published_classifier import PublishedClassifier
    from app.release.release import Release
    from benchmarks.measuring.trials import TestRow

EXAMPLE = ROOT / "examples" / "skin.toml"
SHARES = "CONCLAVE_PRIVACY__SHARES__"
STUDENT = {
    "CONCLAVE_ANSWERS__AFTER": "student",
    "CONCLAVE_ANSWERS__ON_CUTOFF": "student",
    f"{SHARES}ANSWERS": "0.9",
    f"{SHARES}CLASSIFIER": "0",
}
LEARNERS: Mapping[str, Mapping[str, str]] = {
    "rule canonical": {"RULE": "canonical"},
    "decision tree": {"ESTIMATOR": "sklearn.tree.DecisionTreeClassifier"},
    "random forest of 50": {
        "ESTIMATOR": "sklearn.ensemble.RandomForestClassifier",
        "PARAMS": '{"n_estimators": 50}',
    },
    "5 nearest neighbours": {"ESTIMATOR": "sklearn.neighbors.KNeighborsClassifier"},
}
SINGLE_QUERIES = 200
SETTING = re.compile(r"CONCLAVE_\w+?__\w+")


@dataclass
class Line:
    """What one answerer came to, a value a release.

    Attributes:
        accuracy: on all test rows.
        agreement: with the stable answers that it was taught, on their vectors.
        train_seconds: to train or draw it.
        single_milliseconds: a query asked alone.
        batch_milliseconds: a query among all rows at once.

    """

    accuracy: list[float] = field(default_factory=list)
    agreement: list[float] = field(default_factory=list)
    train_seconds: list[float] = field(default_factory=list)
    single_milliseconds: list[float] = field(default_factory=list)
    batch_milliseconds: list[float] = field(default_factory=list)


def main() -> None:
    """Print a line an answerer, and the charges of the ledger that the students are in."""
    arguments = _arguments()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    print(circumstances())
    folder = Path(os.environ.get("CONCLAVE_TEST_DATA") or ROOT.parent / "shared" / "data") / "skin"
    environ = {
        "CONCLAVE_HYPOTHESES__BINS": "16",
        **{name: value for name, value in os.environ.items() if SETTING.fullmatch(name)},
        "CONCLAVE_DATA__SOURCE": str(folder / "train.csv"),
        "CONCLAVE_ANSWERS__QUERIES": str(arguments.queries),
    }
    rows = read_rows(folder / "test.csv", load_settings(EXAMPLE, environ).data.public_schema())
    lines = {name: Line() for name in ("ensemble's plurality", *LEARNERS, "drawn classifier")}
    for _ in range(arguments.releases):
        random.SystemRandom().shuffle(rows)
        told = _teach(environ, rows, lines)
        _draw(environ, rows, lines["drawn classifier"])
        print(told, flush=True)
    print(f"mean of {arguments.releases} releases, {len(rows)} test rows")
    print(f"{'answers by':<22}{'accuracy':>10}{'agrees':>8}{'made s':>8}{'one ms':>8}{'all ms':>8}")
    for name, line in lines.items():
        print(_shown(name, line))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--queries", type=int, default=4000)
    parser.add_argument("--releases", type=int, default=3)
    return parser.parse_args()


def _teach(environ: Mapping[str, str], rows: Sequence[TestRow], lines: Mapping[str, Line]) -> str:
    """Open a release that a student follows, switch it, and train the other students too."""
    with tempfile.TemporaryDirectory() as folder:
        first, *others = LEARNERS
        settings = {**environ, **STUDENT, **_ledger(folder)}
        release = _opened({**settings, **_student(first)})
        ensemble = release.ensemble
        answerer = QueryAnswerer(release, SystemNoise())
        stable, _ = ask_all(answerer, rows)
        _measure_ensemble(lines["ensemble's plurality"], ensemble, release, rows)
        started = time.monotonic()
        switch_phase(release, SystemNoise())
        lines[first].train_seconds.append(time.monotonic() - started)
        _measure(lines[first], release.classifier, rows, stable)
        answers = list(release.ledger.answers_after(0))
        for name in others:
            configuration = configure(load_settings(EXAMPLE, {**settings, **_student(name)}))
            started = time.monotonic()
            student = taught(configuration, answers, seed=bytes(32))
            lines[name].train_seconds.append(time.monotonic() - started)
            _measure(lines[name], student.classifier, rows, stable)
        right = mean(stable[row.vector] == row.label for row in rows if row.vector in stable)
        state = release.state
        charged = ", ".join(f"{share.mechanism} {share.epsilon}" for share in state.charged)
        release.ledger.close()
        return (
            f"{state.answered} answers, {state.unstable} unstable, {right:.4f} of the stable ones "
            f"right; charged: {charged}; reserved: {list(state.reserved)}; "
            f"published: {type(state.classifier).__name__}"
        )


def _draw(environ: Mapping[str, str], rows: Sequence[TestRow], line: Line) -> None:
    """Open a release that the classifier follows, and draw it after as many queries."""
    with tempfile.TemporaryDirectory() as folder:
        release = _opened({**environ, **_ledger(folder)})
        stable, _ = ask_all(QueryAnswerer(release, SystemNoise()), rows)
        started = time.monotonic()
        switch_phase(release, SystemNoise())
        line.train_seconds.append(time.monotonic() - started)
        _measure(line, release.classifier, rows, stable)
        release.ledger.close()


def _ledger(folder: str) -> dict[str, str]:
    return {"CONCLAVE_LEDGER__URL": f"sqlite:///{Path(folder) / 'ledger.db'}"}


def _student(name: str) -> dict[str, str]:
    return {f"CONCLAVE_STUDENT__{key}": value for key, value in LEARNERS[name].items()}


def _opened(environ: Mapping[str, str]) -> Release:
    return open_from_settings(load_settings(EXAMPLE, environ), noise=SystemNoise())


def _measure(
    line: Line,
    classifier: PublishedClassifier | None,
    rows: Sequence[TestRow],
    stable: Mapping[Vector, str],
) -> None:
    """Predict every row together, some alone, and every vector that it was taught."""
    if classifier is None:
        return
    vectors = [row.vector for row in rows]
    started = time.monotonic()
    predicted = classifier.predict_many(vectors)
    line.batch_milliseconds.append((time.monotonic() - started) * 1000 / len(rows))
    line.accuracy.append(_share(a == row.label for a, row in zip(predicted, rows, strict=True)))
    taught_labels = classifier.predict_many(list(stable))
    line.agreement.append(
        _share(a == b for a, b in zip(taught_labels, stable.values(), strict=True))
    )
    started = time.monotonic()
    for vector in vectors[:SINGLE_QUERIES]:
        classifier.predict(vector)
    line.single_milliseconds.append((time.monotonic() - started) * 1000 / SINGLE_QUERIES)


def _measure_ensemble(
    line: Line, ensemble: Ensemble, release: Release, rows: Sequence[TestRow]
) -> None:
    """Take the plurality on every row; no release gives this, and these data are public."""
    votes = ensemble.vote_counts(encode(release.schema, [row.vector for row in rows]))
    labels = [release.schema.classes[index] for index in votes.argmax(axis=1).tolist()]
    line.accuracy.append(_share(a == row.label for a, row in zip(labels, rows, strict=True)))


def _share(outcomes: Iterable[bool]) -> float:
    listed = list(outcomes)
    return sum(listed) / len(listed) if listed else 0.0


def _shown(name: str, line: Line) -> str:
    def cell(values: Sequence[float], decimals: int, width: int) -> str:
        return f"{mean(values):>{width}.{decimals}f}" if values else " " * width

    return (
        f"{name:<22}{cell(line.accuracy, 4, 10)}{cell(line.agreement, 4, 8)}"
        f"{cell(line.train_seconds, 2, 8)}{cell(line.single_milliseconds, 3, 8)}"
        f"{cell(line.batch_milliseconds, 4, 8)}"
    )


if __name__ == "__main__":
    main()
