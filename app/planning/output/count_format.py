"""Formatting of large counts as text for people."""

from __future__ import annotations

from typing import Final

SCALES: Final = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"))


def count(number: int) -> str:
    """Return a count as text for people, such as 1,234 or 5.6 million."""
    for size, name in SCALES:
        if number >= size:
            return f"{number / size:,.3g} {name}" if number < 1000 * size else f"{number:.1e}"
    return f"{number:,}"
