"""The worked example of a class of one's own serves from opening to publication.

Queries lie far inside or far outside of the rule that made the rows, so that
nearly all learners agree on them.
"""

from __future__ import annotations

import shutil
from http import HTTPStatus
from typing import TYPE_CHECKING

from app.settings.settings import load_settings
from examples.staircases import rows
from tests.builders.server.serving import Served
from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from app.settings.settings import Settings

ASKED = [
    ([10.0, 10.0], "declined"),
    ([90.0, 90.0], "approved"),
    ([15.0, 20.0], "declined"),
    ([95.0, 80.0], "approved"),
]


def release_of(folder: Path) -> Settings:
    """Copy the example, write its rows and let the ensemble answer as often as is asked."""
    path = folder / "conclave.toml"
    shutil.copy(ROOT / "examples" / "staircases.toml", path)
    lines = [f"{income},{savings},{decision}" for income, savings, decision in rows()]
    text = "\n".join(["income,savings,decision", *lines]) + "\n"
    (folder / "staircases.csv").write_text(text, encoding="utf-8")
    return load_settings(path, {"CONCLAVE_ANSWERS__QUERIES": str(len(ASKED))})


def test_the_worked_example_answers_restarts_and_publishes(tmp_path: Path) -> None:
    """Answers survive a restart, and a staircase is published by its description."""
    settings = release_of(tmp_path)
    vectors = [vector for vector, _ in ASKED]
    with Served(settings) as served:
        before = served.stream(iter(vectors[:2]))
    with Served(settings) as served:
        assert served.stream(iter(vectors[:2])) == [each | {"replayed": True} for each in before]
        answers = before + served.stream(iter(vectors[2:]))
        stable = [
            (each["label"], label)
            for each, (_, label) in zip(answers, ASKED, strict=True)
            if each["stable"]
        ]
        assert stable
        assert all(given == expected for given, expected in stable)
        classified = served.stream(iter(vectors))
        assert [each["label"] for each in classified] == [label for _, label in ASKED]
        document = served.get("/classifier").json()
        model = served.get("/classifier", headers={"Accept": "application/onnx"})
    assert document["predictor"]["of"] == "examples.staircases:Staircases"
    assert model.status_code == HTTPStatus.NOT_ACCEPTABLE
    assert "predicts by code" in model.json()["detail"]
