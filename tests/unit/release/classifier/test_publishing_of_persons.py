"""The parts of generations in a published classifier, where their slots hold persons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from app.ledger.verification import verify
from app.release.classifier.linear import LinearDraw
from app.settings.generations_section import PUBLISH_IN_TURN
from tests.builders.release.growing_persons import FIRST, SECOND, PersonsRelease
from tests.unit.release.classifier.test_publishing_in_turn import PUBLISHES, newest

if TYPE_CHECKING:
    from pathlib import Path

    from app.data.rows import PrivateRows


@pytest.mark.parametrize("learner", PUBLISH_IN_TURN)
def test_a_descent_divides_residuals_by_the_rows_of_their_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, learner: str
) -> None:
    """Fault 20: what each generation descends on is persons with all rows, by public numbers."""
    real, seen = LinearDraw.descend, list[np.ndarray]()

    def noting(self: LinearDraw, rows: PrivateRows, *more: Any) -> Any:
        counts = rows.person_row_counts
        assert counts is not None
        assert self.parameters.row_count == rows.count == len(FIRST)
        seen.append(counts)
        return real(self, rows, *more)

    monkeypatch.setattr(LinearDraw, "descend", noting)
    changes = {**PUBLISHES, "classifier__learner": learner}
    growing = PersonsRelease(tmp_path, changes, first={**FIRST, "a7": 500})
    answerer = growing.answerer(generations=2)
    assert newest(answerer.living).number == 2
    assert [(len(each), int(each.max())) for each in seen] == [
        (sum(FIRST.values()) - FIRST["a7"] + 500, 500),
        (sum(SECOND.values()), max(SECOND.values())),
    ]
    verify(answerer.release.ledger)
