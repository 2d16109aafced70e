"""The steps of a query, one name for code, docs, logs and crash tests."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Step(StrEnum):
    """What happens to a query, in this order; see ``docs/life-of-a-query.md``."""

    VALIDATE = "validate"
    REPLAY = "replay"
    ENQUEUE = "enqueue"
    VOTE = "vote"
    STEP = "step"
    COMMIT = "commit"
    RESPOND = "respond"


class Edge(StrEnum):
    """Which side of a step is meant."""

    BEFORE = "before"
    AFTER = "after"


Observer = Callable[[Step, Edge], None]
"""Called on both sides of a step: crash tests kill the process in it."""


def observe_nothing(step: Step, edge: Edge) -> None:
    """Observe nothing: what production passes."""
    del step, edge
