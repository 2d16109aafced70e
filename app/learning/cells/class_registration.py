"""The entry of the class ``cells`` in the table of hypothesis classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError
from app.learning.cells.cell_class import CellClass, CellLabels
from app.learning.cells.learners import CellEnsemble, fit_cells, joined_cells
from app.learning.chunks import DEFAULT_RULE
from app.learning.encoding.row_codes import IntegerCodes
from app.learning.hypothesis import ClassRegistration

if TYPE_CHECKING:
    from app.learning.hypothesis import ClassAsked


def _make(asked: ClassAsked) -> CellClass:
    if asked.splits is None:
        raise ConfigurationError("hypotheses.class", f"{asked.kind} needs its public cells")
    return CellClass(splits=asked.splits, class_count=asked.class_count)


def _fit(rule: str, *, secret: bytes, scored: bool, **given: object) -> CellEnsemble:
    del rule, secret, scored
    return fit_cells(**given)  # type: ignore[arg-type]  # as any row is given


def _codes(searched: CellClass) -> IntegerCodes:
    """Return the bytes of the number of a row's cell."""
    return IntegerCodes(searched.encode, columns=1, largest=searched.splits.cell_count - 1)


def _check(searched: CellClass, rule: str, scored: bool) -> None:  # noqa: FBT001 -- as any row is given
    """Refuse what the learners of cells do not do: draw labels, and score."""
    del searched
    if rule != DEFAULT_RULE:
        problem = f'must be "{DEFAULT_RULE}" for the class cells'
        raise ConfigurationError("learner.rule", problem)
    if scored:
        problem = 'must be "label" for the class cells: its learners have no scores'
        raise ConfigurationError("answers.output", problem)


CELLS: Final = ClassRegistration(
    kind="cells",
    searched=CellClass,
    hypothesis=CellLabels,
    drawn="a label for each public cell",
    make=_make,
    fit=_fit,
    codes=_codes,
    joined=joined_cells,
    read=lambda searched, body: CellEnsemble.from_bytes(
        searched.splits, searched.class_count, body
    ),
    read_drawn=lambda plain: CellLabels(tuple(plain["cell_labels"])),
    best=CellClass.best,
    check=_check,
    splits=lambda searched: searched.splits,
)
