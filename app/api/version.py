"""Which version of the project serves."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

UNKNOWN: Final = "unknown"


@cache
def installed_version() -> str:
    """Return the version of the installed project; of sources that nobody installed, unknown."""
    try:
        return version("conclave")
    except PackageNotFoundError:
        return UNKNOWN
