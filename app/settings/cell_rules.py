"""The rule of ``cells``: public parts of the rows, for the class that labels them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.data.cell_tests import read_splits
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.settings.data_section import DataSettings
    from app.settings.learning_sections import HypothesesSettings

CELLS = "cells"


def check_cells(
    section: str, chosen: HypothesesSettings, written: Sequence[str] | None, data: DataSettings
) -> None:
    """The class cells has its public cells, and no other class has any.

    Args:
        section: ``hypotheses`` or ``classifier``.
        chosen: the class, with what it inherits.
        written: the tests written in the section itself.
        data: the public schema.

    """
    if chosen.kind != CELLS:
        if written:
            problem = f'are for class = "{CELLS}", and it is "{chosen.kind}"'
            raise ConfigurationError(f"{section}.cells", problem)
        return
    if not chosen.cells:
        raise ConfigurationError(f"{section}.cells", f'is required with class = "{CELLS}"')
    if section == "hypotheses" and chosen.grid != "public":
        problem = f'must be "public" with class = "{CELLS}", whose cells are'
        raise ConfigurationError("hypotheses.grid", problem)
    read_splits(data.public_schema(), chosen.cells, section=section)
