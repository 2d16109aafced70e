"""The one rule for what a query gets, in a server, its streams and the estimator alike."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from app.privacy.voting.universal import Phase

RecordedT = TypeVar("RecordedT")


class AnswerSource(StrEnum):
    """What answers a query that gets no recorded answer, if anything does."""

    ENSEMBLE = "ensemble"
    CLASSIFIER = "classifier"
    REFUSED = "refused"


def answer_source(
    phase: Phase, *, by_key: RecordedT | None, by_vector: RecordedT | None
) -> RecordedT | AnswerSource:
    """Return the recorded answer of a query, or what answers it in this phase.

    Args:
        phase: of the release.
        by_key: the answer that is recorded for its idempotency key, given in every phase.
        by_vector: the answer that is recorded for its vector, given until the switch.

    """
    if by_key is not None:
        return by_key
    if phase is Phase.CLASSIFIER:
        return AnswerSource.CLASSIFIER
    if by_vector is not None:
        return by_vector
    return AnswerSource.REFUSED if phase is Phase.HALTED else AnswerSource.ENSEMBLE
