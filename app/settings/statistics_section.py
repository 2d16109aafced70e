"""``[statistics]``: the class that the table of expected labels covers."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from app.settings.fields import Exact, Unit, Whole
from app.settings.learning_sections import HypothesesSettings, Tests
from app.settings.section import Section

CLASS_PATTERN: Final = "^(thresholds|stumps|intervals|rectangles|trees)$"
DEPTH_MAX: Final = 4
DEPTH_DEFAULT_MAX: Final = 2


class StatisticsSettings(Section):
    """``[statistics]``: the class that the table covers, and how it is mended."""

    kind: Annotated[
        str | None,
        Field(
            alias="class",
            pattern=CLASS_PATTERN,
            description="thresholds, stumps, intervals, rectangles or trees; unset, as in "
            "`[hypotheses]`.",
        ),
    ] = None
    depth: Annotated[
        Whole | None,
        Unit("tests on a path"),
        Field(
            ge=1,
            le=DEPTH_MAX,
            description="Depth of the trees; unset, as in `[hypotheses]`, and 2 at most.",
        ),
    ] = None
    tests: Annotated[
        Tests,
        Field(
            description="Lists, by feature, of its cuts or categories. A feature without a list "
            "keeps as many of the tests of `[hypotheses]` as leave the table small."
        ),
    ] = {}
    updates: Annotated[
        Whole | None,
        Unit("answers"),
        Field(
            ge=1,
            le=1024,
            description="U: hypotheses answered with noise of their own; unset, from n, the share "
            "and the size of the table.",
        ),
    ] = None
    accuracy: Annotated[
        Exact | None,
        Unit("alpha"),
        Field(
            gt=0,
            le=2,
            description="alpha to be promised, in place of `updates`: as few as reach it.",
        ),
    ] = None

    def inherit(self, hypotheses: HypothesesSettings) -> HypothesesSettings:
        """Return the whole class: keys absent here are as in ``[hypotheses]``."""
        depth = self.depth or min(hypotheses.depth, DEPTH_DEFAULT_MAX)
        update = {
            "kind": self.kind or hypotheses.kind,
            "depth": depth,
            "tests": {**hypotheses.tests, **self.tests},
        }
        return hypotheses.model_copy(update=update)
