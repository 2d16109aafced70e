"""From what is recorded or published to what a client is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.mechanisms.universal import Phase
from app.service.models import Answer, with_score

if TYPE_CHECKING:
    from app.data.schema import Schema
    from app.service.replay_index import Recorded


def answer_of(recorded: Recorded, schema: Schema, *, replayed: bool) -> Answer:
    """Return an answer of the ensemble, given for the first time or again."""
    label = None if recorded.label is None else schema.classes[recorded.label]
    answer = Answer(
        recorded.query_id, label, recorded.stable, Phase.ENSEMBLE.value, replayed=replayed
    )
    if recorded.precision is None:
        return answer
    return with_score(answer, recorded.released_bin, recorded.precision)


def classified_as(label: str, *, with_scores: bool) -> Answer:
    """Return an answer of the published classifier, which has no score."""
    answer = Answer(None, label, stable=True, phase=Phase.CLASSIFIER.value, replayed=False)
    return with_score(answer, None, None) if with_scores else answer
