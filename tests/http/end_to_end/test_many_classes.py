"""Releases of three and of ten classes answer with the names of classes, from first to last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from app.cli import run
from tests.builders.server.many_classes import ANSWERS_MAX, ManyClasses, digits, wine
from tests.builders.server.serving import Served

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

PIXELS = (10, 21, 26, 33, 36, 42, 43, 61)
HELD_OUT = 70
# The release, and the least share of stable answers that are right; chance is 1 in 3 or 10.
# Over openings the shares are 0.90, 0.62 and 0.99, with deviations of 0.05, 0 and 0.015.
RELEASES = {
    "wine by trees of depth 2, Parquet": (ManyClasses(wine(), "wine.parquet"), 0.5),
    "digits by trees of depth 3, NPZ": (
        ManyClasses(digits(pixels=PIXELS), "digits.npz", depth=3, bins=2, ensemble=40),
        0.3,
    ),
    "digits by an estimator, NPZ": (
        ManyClasses(
            digits(),
            "digits.npz",
            learner='estimator = "sklearn.linear_model.LogisticRegression"',
            bins=2,
            ensemble=30,
            relabel=0.0,
        ),
        0.7,
    ),
}


@pytest.mark.parametrize(("release", "accuracy"), RELEASES.values(), ids=RELEASES)
def test_classes_are_answered_by_name(
    release: ManyClasses, accuracy: float, tmp_path: Path
) -> None:
    """Ensemble, switch and classifier answer with names; a restart changes nothing."""
    settings = release.open_in(tmp_path, held_out=HELD_OUT)
    queries = release.data.queries(HELD_OUT)
    half = ANSWERS_MAX // 2
    with Served(settings) as served:
        first = served.stream(queries[:half])
    with Served(settings) as served:
        assert served.stream(queries[:half]) == [_as_replayed(answer) for answer in first]
        later = served.stream(queries[half:])
        document = served.get("/classifier")
    ensemble, classifier = _by_phase(first + later)
    stable = [(n, answer) for n, answer in enumerate(ensemble) if answer["stable"]]
    assert len(stable) > half / 2
    assert {answer["label"] for answer in ensemble if not answer["stable"]} <= {None}
    assert {answer["label"] for _, answer in stable} <= set(release.data.classes)
    right = sum(answer["label"] == release.data.labels[n] for n, answer in stable)
    assert right >= accuracy * len(stable)
    assert len(set(_labels(classifier))) > 1
    assert document.json()["classes"] == list(release.data.classes)
    assert set(_labels(classifier)) <= set(_leaves(document.json()["tree"]))
    with Served(settings) as served:
        assert served.get("/classifier").content == document.content
        assert served.stream(queries[-5:]) == classifier[-5:]
    assert run(["verify", "--config", str(tmp_path / "conclave.toml")]) == 0


def _as_replayed(answer: dict[str, Any]) -> dict[str, Any]:
    """Return what a vector gets when it is asked again: a classifier writes nothing down."""
    return answer | {"replayed": answer["phase"] == "ensemble"}


def _by_phase(
    answers: Iterable[dict[str, Any]],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the answers before the switch and those after it, in their order."""
    phases: dict[str, list[dict[str, Any]]] = {"ensemble": [], "classifier": []}
    for answer in answers:
        phases[answer["phase"]].append(answer)
    return phases["ensemble"], phases["classifier"]


def _labels(answers: Iterable[dict[str, Any]]) -> list[str]:
    return [answer["label"] for answer in answers]


def _leaves(node: dict[str, Any]) -> Iterator[str]:
    """Yield the labels of a published tree."""
    if "label" in node:
        yield node["label"]
    else:
        yield from _leaves(node["true"])
        yield from _leaves(node["false"])
