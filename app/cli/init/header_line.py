"""Reading of a table's column names from the file's first line alone.

The file may contain private records. Therefore it is read byte by byte without a buffer, up to the
end of its first nonempty line.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.data.field_values import number_in
from app.data.sources.csv_dialect import csv_problem
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class Bytes(Protocol):
        """An open file that returns at most the number of bytes asked for, without read-ahead."""

        def read(self, size: int, /) -> bytes | None:
            """Return at most ``size`` bytes; none at the end."""


OPTION: Final = "--header"
LINE_BYTES_MAX: Final = 1 << 20
LINE_ENDS: Final = (b"\n", b"\r")
BYTE_ORDER_MARK: Final = "\ufeff"


def read_header(path: Path) -> tuple[str, ...]:
    """Return the column names on the first line of a CSV file.

    Raises:
        ConfigurationError: the file cannot be read, or its first line has no usable names.

    """
    if path.suffix.lower() != ".csv":
        problem = f"{path} is not a .csv file; give the names of other sources by --dictionary"
        raise ConfigurationError(OPTION, problem)
    try:
        with path.open("rb", buffering=0) as file:
            line = first_line(file)
    except OSError as error:
        reason = (error.strerror or "the system refuses").lower()
        raise ConfigurationError(OPTION, f"cannot read {path}: {reason}") from None
    return names_on(line)


def first_line(file: Bytes) -> bytes:
    """Return the first nonempty line of a file, without its line end.

    Raises:
        ConfigurationError: the line is longer than the maximum for a header line.

    """
    line = bytearray()
    for _ in range(LINE_BYTES_MAX):
        byte = file.read(1)
        if not byte or (line and byte in LINE_ENDS):
            return bytes(line)
        if byte not in LINE_ENDS:
            line += byte
    raise ConfigurationError(OPTION, f"the first line has more than {LINE_BYTES_MAX} bytes")


def names_on(line: bytes) -> tuple[str, ...]:
    """Return the column names on a header line.

    Raises:
        ConfigurationError: the line does not consist of names. It may then be a private row, so the
            error gives the positions of wrong fields and not their text.

    """
    try:
        text = line.decode().removeprefix(BYTE_ORDER_MARK)
        names = next(csv.reader([text], strict=True), [])
    except UnicodeDecodeError:
        raise ConfigurationError(OPTION, "the first line is not UTF-8") from None
    except csv.Error as error:
        raise ConfigurationError(OPTION, f"the first line {csv_problem(error)}") from None
    problem = _problem(names)
    if problem:
        raise ConfigurationError(OPTION, problem)
    return tuple(names)


def _problem(names: Sequence[str]) -> str:
    """Say why cells are no names; nothing where they are."""
    if len(names) < len(("feature", "label")):
        return "the first line has fewer than two names, separated by commas"
    for number, name in enumerate(names, start=1):
        if number_in(name) is not None:
            return f"cell {number} of the first line is a number: the file has no line of names"
        if not name.strip() or name != name.strip() or not name.isprintable():
            return f"cell {number} of the first line is empty, or has blanks around it"
        if name in names[: number - 1]:
            return f"cell {number} of the first line repeats a name"
    return ""
