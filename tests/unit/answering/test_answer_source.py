"""What a query gets: its idempotency key comes first, then the switch, its vector and the phase."""

from __future__ import annotations

import pytest

from app.answering.replays import AnswerSource, answer_source
from app.privacy.voting.query_decision import Phase

ENSEMBLE, CLASSIFIER, HALTED = Phase.ENSEMBLE, Phase.CLASSIFIER, Phase.HALTED


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("by_vector", ["of the vector", None])
def test_a_recorded_key_gets_its_answer_in_every_phase(phase: Phase, by_vector: str | None) -> None:
    """Neither a halt nor the switch takes an answer back from the key that it was given to."""
    assert answer_source(phase, by_key="of the key", by_vector=by_vector) == "of the key"


@pytest.mark.parametrize(
    ("phase", "by_vector", "expected"),
    [
        (ENSEMBLE, "recorded", "recorded"),
        (HALTED, "recorded", "recorded"),
        (CLASSIFIER, "recorded", AnswerSource.CLASSIFIER),
        (ENSEMBLE, None, AnswerSource.ENSEMBLE),
        (HALTED, None, AnswerSource.REFUSED),
        (CLASSIFIER, None, AnswerSource.CLASSIFIER),
    ],
)
def test_without_a_recorded_key_vector_and_phase_decide(
    phase: Phase, by_vector: str | None, expected: str
) -> None:
    """A recorded vector replays until the switch, and a new one gets what the phase has."""
    assert answer_source(phase, by_key=None, by_vector=by_vector) is expected
