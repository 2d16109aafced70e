"""What callers get of a student, and how it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.release.classifier.published_predictor import PublishedStudent
from tests.builders.release.opened_release import changed
from tests.builders.release.served import fresh, published, run, serving
from tests.builders.release.small_release import STABLE, SmallRelease, ask
from tests.builders.release.student_release import STUDENT, TREE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from app.data.vectors import Vector


def test_a_student_is_asked_once_for_all_that_come_together(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that waited for the switch are one call of its estimator, and so are later ones."""
    sizes: list[int] = []

    def predict(student: PublishedStudent, vectors: Sequence[Vector]) -> list[str]:
        sizes.append(len(vectors))
        return _predict(student, vectors)

    _predict = PublishedStudent.predict
    monkeypatch.setattr(PublishedStudent, "predict", predict)

    async def test() -> None:
        async with serving(changed(small_release, **STUDENT, **TREE), [STABLE] * 4) as service:
            margins = (10, -10, 20, -20, 10, 45, -45, 44)
            given = await service.answer_many([ask(margin) for margin in margins])
            ensemble = [fresh(1), fresh(2, "no"), fresh(3), fresh(4, "no")]
            rest = [published(label) for label in ("yes", "yes", "no", "yes")]
            assert given == ensemble + rest
            first = [ask(10, "key"), ask(-3), ask(3)]
            assert await service.answer_many(first) == [published(x) for x in ("yes", "no", "yes")]
            assert await service.answer_many([]) == []

    run(test())
    assert sizes == [4, 3]
