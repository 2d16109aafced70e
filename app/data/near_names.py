"""Texts that are a public name but for blanks, capitals, dashes or the spelling of a number.

Such a text is no public name: in a feature it is other, as a label it is refused.  That it is
near one is said to the operator by the public name, never by the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.data.sources.cells import DECIMAL_NUMBER, REMEMBERED_CELLS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable

NEAR_IN: Final = "blanks, capitals, dashes, points or how a number is written"
_IGNORED = str.maketrans("", "", " \t-_.")


class NearNames:
    """Finds the public name that a text is near."""

    def __init__(self, names: Iterable[str]) -> None:
        """Keep the names of one column; of two that are near each other, the first."""
        self._names: dict[str, str] = {}
        for name in names:
            self._names.setdefault(_form(name), name)
        self._names.pop("", None)
        self._found: dict[str, str | None] = {}

    def near(self, text: str) -> str | None:
        """Return the public name that a text is near, or None."""
        if len(self._found) > REMEMBERED_CELLS_MAX:
            self._found.clear()
        if text not in self._found:
            self._found[text] = self._names.get(_form(text))
        return self._found[text]


def _form(text: str) -> str:
    """Return what texts near each other have in common."""
    bare = text.strip()
    if DECIMAL_NUMBER.fullmatch(bare):
        return repr(float(bare) + 0.0)
    return bare.casefold().translate(_IGNORED)
