"""The entry of the class ``halfspaces`` in the table of hypothesis classes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from app.learning.encoding.row_codes import IntegerCodes
from app.learning.enumerated.class_registration import INTERVALS
from app.learning.halfspaces.arrangement import COORDINATE_MAX
from app.learning.halfspaces.halfspaces import (
    Halfspaces,
    dichotomy_bound,
    grid_halfspaces,
    halfspace_dichotomies,
)
from app.learning.halfspaces.lattice import Lattice

if TYPE_CHECKING:
    from app.learning.enumerated.enumerated_class import EnumeratedClass
    from app.learning.hypothesis import ClassAsked


def _lattice(asked: ClassAsked) -> Lattice:
    """Return the lattice over the numbers in use."""
    bounds = tuple(asked.columns[index].bounds or (0.0, 1.0) for index in asked.numeric)
    return Lattice(tuple(asked.numeric), bounds)


def _codes(searched: EnumeratedClass) -> IntegerCodes:
    """Return the bytes of a row's coordinates."""
    columns = cast("Halfspaces", searched.hypotheses).lattice.dimension
    return IntegerCodes(searched.encode, columns=columns, largest=COORDINATE_MAX)


HALFSPACES: Final = replace(
    INTERVALS,
    kind="halfspaces",
    listed=Halfspaces,
    drawn="a halfspace",
    numbers=(1, 3),
    covers=False,
    codes=_codes,
    make=lambda asked: grid_halfspaces(asked.tests, asked.columns),
    dichotomies=lambda asked, values: halfspace_dichotomies(_lattice(asked), values),
    dichotomy_bound=lambda asked, row_count: dichotomy_bound(row_count, _lattice(asked).dimension),
)
