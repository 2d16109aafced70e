<<<<<<< HEAD
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
=======
"""The version of the interface, which the OpenAPI document and the V2 protocol tell."""

from __future__ import annotations

from typing import Final

VERSION: Final = "1.0.0"
>>>>>>> 28a1c0c (Let refusals below /v2 have that protocol's form; name routes, not paths, in logs)
