"""The files of a Parquet source, found without the Parquet library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.data.sources.row_blocks import SOURCE
from app.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX = ".parquet"
LEFT_OUT = (".", "_")


def is_parquet(path: Path) -> bool:
    """Return whether a path is a folder, or a Parquet file by its name."""
    return path.name.lower().endswith(SUFFIX) or path.is_dir()


def part_paths(folder: Path) -> dict[str, Path]:
    """Return the parts of a folder by their names, in the order of the names.

    Hidden files, and those whose name begins with ``_``, are none.

    Raises:
        DataError: there is no part, or something that is no part.

    """
    try:
        entries = sorted(folder.iterdir(), key=lambda path: path.name)
    except OSError as error:
        raise DataError(SOURCE, f"{folder} cannot be read: {error.strerror}") from None
    parts = {path.name: path for path in entries if not path.name.startswith(LEFT_OUT)}
    for name, path in parts.items():
        if not name.lower().endswith(SUFFIX) or path.is_dir():
            problem = f'"{name}" in the folder is not a .parquet file'
            raise DataError(SOURCE, f"{problem}; put _ in front of its name to leave it out")
    if not parts:
        raise DataError(SOURCE, f"the folder {folder} has no .parquet file")
    return parts
