"""A statistics table beside whatever else follows, or comes in place of, answers with labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.noise.scripted import ScriptedNoise
from app.release.classifier.switch import switch_phase
from app.release.statistics.opening_table import open_statistics
from tests.builders.release.small_release import STABLE, SmallRelease, ask, seeded_noise
from tests.unit.release.statistics.test_statistics import (
    MARGINS,
    SHARES,
    answered,
    mechanisms,
    tree,
    value,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_a_table_opens_beside_a_student(tmp_path: Path) -> None:
    """The student costs nothing, the table its share, and a restart finds both."""
    changes = {"answers__after": "student", "privacy__shares__classifier": "0"}
    release = SmallRelease(tmp_path, SHARES | changes)
    drawing = answered(release)
    assert drawing.must_open_statistics
    switch_phase(drawing, seeded_noise(4))
    open_statistics(drawing, seeded_noise(5))
    assert drawing.private_rows is None
    assert mechanisms(drawing.state) == ["relabel", "answers", "statistics"]
    restarted = release.open(noise=ScriptedNoise([]))
    assert value(restarted, tree(0.0)) == value(drawing, tree(0.0))


def test_a_table_opens_after_the_last_score(tmp_path: Path) -> None:
    """Answers that carry scores end as others do."""
    changes = {
        "answers__output": "score",
        "answers__after": "halt",
        "answers__on_cutoff": "halt",
    }
    answerer = SmallRelease(tmp_path, SHARES | changes).answerer([STABLE] * 20)
    answerer.answer_batch([ask(margin) for margin in MARGINS[:3]])
    assert not answerer.release.must_open_statistics
    answerer.answer_batch([ask(MARGINS[3])])
    assert answerer.release.must_open_statistics
    open_statistics(answerer.release, seeded_noise(5))
    assert len(value(answerer.release, tree(0.0))) == 1
