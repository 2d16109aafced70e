"""The version numbers of the project and of its HTTP interface."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

VERSION: Final = "1.0.0"
"""Of the interface, which the V2 protocol tells."""

UNKNOWN: Final = "unknown"


@cache
def installed_version() -> str:
    """Return the version of the installed project; "unknown" if it is not installed."""
    try:
        return version("conclave")
    except PackageNotFoundError:
        return UNKNOWN
