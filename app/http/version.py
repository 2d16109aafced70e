"""Which version of the project serves, and of the interface that it serves."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

VERSION: Final = "1.0.0"
"""Of the interface, which the V2 protocol tells."""

UNKNOWN: Final = "unknown"


@cache
def installed_version() -> str:
    """Return the version of the installed project; of sources that nobody installed, unknown."""
    try:
        return version("conclave")
    except PackageNotFoundError:
        return UNKNOWN
