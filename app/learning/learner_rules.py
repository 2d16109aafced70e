"""What every built-in learner does alike, whatever class it searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEFAULT_RULE = "canonical"
RULES = (DEFAULT_RULE, "halving")
# What an empty chunk votes, and a chunk whose learner failed.
FALLBACK_LABEL = 0


def check_rule(rule: str) -> None:
    """Refuse a rule that does not exist.

    Raises:
        ConfigurationError: names the rules there are.

    """
    if rule not in RULES:
        raise ConfigurationError(
            "learner.rule", f"unknown rule {rule!r}: use one of {', '.join(RULES)}"
        )


def label_without_learning(labels: NDArray[np.int64]) -> int | None:
    """Return the one label of a chunk, class 0 of an empty one, None where there are several."""
    present = np.unique(labels)
    if len(present) > 1:
        return None
    return int(present[0]) if len(present) else FALLBACK_LABEL
