"""A toy class: one label for everybody, and its row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from app.learning.cells.cell_class import CellClass, CellSplits
from app.learning.cells.class_registration import CELLS
from app.release.classifier.classifier_document import NodeDocument
from app.release.classifier.written_hypotheses import Written

if TYPE_CHECKING:
    from app.data.schema import Schema
    from app.learning.cells.cell_class import CellLabels

NAME: Final = "constants"


@dataclass(frozen=True, kw_only=True)
class ConstantClass(CellClass):
    """The labels themselves: one cell that holds every row."""


def write(schema: Schema, _: ConstantClass, drawn: CellLabels) -> Written:
    """Write the label as a tree of one leaf."""
    return Written(tree=NodeDocument(label=schema.classes[drawn.labels[0]]))


CONSTANTS: Final = replace(
    CELLS,
    kind=NAME,
    searched=ConstantClass,
    drawn="a label for everybody",
    make=lambda asked: ConstantClass(splits=CellSplits((), ()), class_count=asked.class_count),
    splits=None,
)
