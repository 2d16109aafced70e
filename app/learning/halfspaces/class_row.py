"""The entry of ``halfspaces`` in the table of hypothesis classes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from app.learning.halfspaces.halfspaces import (
    Halfspaces,
    dichotomy_bound,
    grid_halfspaces,
    halfspace_dichotomies,
)
from app.learning.halfspaces.lattice import Lattice
from app.learning.lists.class_row import INTERVALS

if TYPE_CHECKING:
    from app.learning.hypothesis import ClassAsked


def _lattice(asked: ClassAsked) -> Lattice:
    """Return the lattice over the numbers in use."""
    bounds = tuple(asked.columns[index].bounds or (0.0, 1.0) for index in asked.numeric)
    return Lattice(tuple(asked.numeric), bounds)


HALFSPACES: Final = replace(
    INTERVALS,
    kind="halfspaces",
    listed=Halfspaces,
    drawn="a halfspace",
    numbers=(1, 3),
    covers=False,
    make=lambda asked: grid_halfspaces(asked.tests, asked.columns),
    dichotomies=lambda asked, values: halfspace_dichotomies(_lattice(asked), values),
    dichotomy_bound=lambda asked, row_count: dichotomy_bound(row_count, _lattice(asked).dimension),
)
