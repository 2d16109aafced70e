"""Questions to the operator for public facts about the table of records that no file contains.

The questions are put by a function that is passed in, so that this module does not depend on the
terminal. An invalid answer is refused with the reason, and the question is repeated.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from app.data.field_values import TRUE_OR_FALSE, day_in, number_in
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from app.cli.init.columns import Column, Kind

    class Terminal(Protocol):
        """The interface of a terminal on which questions are asked."""

        def ask(self, question: str, default: str) -> str:
            """Return the operator's typed reply, or the default if the reply is empty."""
            ...

        def tell(self, line: str) -> None:
            """Print a line."""
            ...


Answer = TypeVar("Answer")

ATTEMPTS_MAX: Final = 10
RANGE: Final = ".."
# How the ends of a range are read, by the kind that they make.
RANGES: Final[dict[Kind, Callable[[str], float | None]]] = {"numeric": number_in, "date": day_in}
SEPARATOR: Final = "|"
NOT_WANTED: Final = "no feature, as answered"
PUBLIC_ONLY: Final = (
    "Answer from what is public knowledge, never from a look at the records: the answers are"
    " not charged."
)
HOW_TO_DESCRIBE: Final = (
    "For each column: the range of a number, as 0..120, or of a date, as 2010-01-01..2026-12-31;"
    " categories, as north|south|east; true|false; or nothing, to leave the column out."
)


def asked_path(terminal: Terminal) -> bool:
    """Return whether queries are to be answered online (else a classifier is published at once)."""
    terminal.tell("Publish a classifier (more accurate, never runs out), or answer queries online?")

    def read(text: str) -> bool:
        if text not in {"publish", "online"}:
            raise ConfigurationError("answer", "type publish or online")
        return text == "online"

    return _asked(terminal, "publish or online", "publish", read)


def asked_records(terminal: Terminal, likely: Path) -> Path | None:
    """Return the file whose first line names the columns; None if names will be typed."""

    def read(text: str) -> Path | None:
        if text and not Path(text).is_file():
            raise ConfigurationError("answer", f"there is no file {text}")
        return Path(text) if text else None

    question = "File of the records, of which the first line alone is read; nothing for none"
    return _asked(terminal, question, str(likely) if likely.is_file() else "", read)


def asked_names(terminal: Terminal) -> tuple[str, ...]:
    """Return the names of the table's columns, as typed by the operator."""

    def read(text: str) -> tuple[str, ...]:
        names = listed(text)
        if len(set(names)) < max(len(names), len(("feature", "label"))):
            raise ConfigurationError("answer", "type two names or more, each once")
        return names

    return _asked(terminal, "Names of the columns, separated by commas", "", read)


def asked_label(terminal: Terminal, names: Sequence[str]) -> str:
    """Return the name of the label's column."""

    def read(text: str) -> str:
        if text not in names:
            raise ConfigurationError("answer", f"is none of {', '.join(names)}")
        return text

    return _asked(terminal, "Column to predict", names[-1], read)


def asked_classes(terminal: Terminal, label: str) -> tuple[str, ...]:
    """Return the labels that may occur in the label's column."""

    def read(text: str) -> tuple[str, ...]:
        classes = listed(text)
        if len(set(classes)) < max(len(classes), len(("no", "yes"))):
            raise ConfigurationError("answer", "type two labels or more, each once")
        return classes

    return _asked(terminal, f"Labels that {label} may hold, separated by commas", "", read)


def asked_rows(terminal: Terminal) -> int | None:
    """Return the number of rows if it is public, else None."""

    def read(text: str) -> int | None:
        if text and not (text.isascii() and text.isdigit() and int(text) > 0):
            raise ConfigurationError("answer", "type a whole number, or nothing")
        return int(text) if text else None

    return _asked(terminal, "Number of rows, if it is public", "", read)


def asked_columns(terminal: Terminal, columns: Sequence[Column]) -> list[Column]:
    """Return the columns, each with the description that the operator typed or as left out."""
    if not all(column.is_described for column in columns):
        terminal.tell(PUBLIC_ONLY)
        terminal.tell(HOW_TO_DESCRIBE)
    return [
        column
        if column.is_described
        else _asked(terminal, column.name, "", partial(typed_column, column))
        for column in columns
    ]


def typed_column(column: Column, text: str) -> Column:
    """Return a column as the operator described it: ``0..120``, ``north|south``, or nothing.

    Args:
        column: the column as far as it is known.
        text: a range of numbers or dates, categories, or an empty text to leave the column out.

    Raises:
        ConfigurationError: the text is neither a range nor a list of categories.

    """
    if not text:
        return replace(column, left_out=NOT_WANTED)
    lower, between, upper = text.partition(RANGE)
    for kind, read in RANGES.items():
        low, high = read(lower), read(upper)
        if between and low is not None and high is not None:
            if not low < high or math.isinf(high - low):
                raise ConfigurationError("answer", "the first end must be below the second")
            return replace(column, kind=kind, bounds=(low, high))
    categories = [part.strip() for part in text.split(SEPARATOR)]
    if len(categories) < len(("one", "other")) or not all(categories):
        raise ConfigurationError("answer", "type a range as 0..120, or categories as north|south")
    if len(set(categories)) < len(categories):
        raise ConfigurationError("answer", "a category is there twice")
    if set(categories) == set(TRUE_OR_FALSE):
        return replace(column, kind="boolean", categories=TRUE_OR_FALSE)
    return replace(column, kind="categorical", categories=tuple(categories))


def listed(text: str) -> tuple[str, ...]:
    """Return the items of a comma-separated list, as typed by the operator."""
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _asked(
    terminal: Terminal, question: str, default: str, read: Callable[[str], Answer]
) -> Answer:
    """Put a question until the answer can be read."""
    for _ in range(ATTEMPTS_MAX):
        text = terminal.ask(question, default).strip()
        try:
            return read(text)
        except ConfigurationError as error:
            terminal.tell(f"  {error.problem}")
    raise ConfigurationError("init", f"{ATTEMPTS_MAX} answers to one question made no sense")
