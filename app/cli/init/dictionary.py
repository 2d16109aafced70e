"""A data dictionary: a public description of each column of the records.

Two formats can be read. A CSV has the columns ``name`` and ``kind``, and where they apply ``low``,
``high`` and ``values``; values are separated by ``|``, or by ``;`` if there is no ``|``. A
``.json`` file is a Table Schema (Frictionless): ``fields`` with ``name``, ``type`` and
``constraints``, which may contain ``minimum``, ``maximum`` and ``enum``.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from app.cli.init.columns import Column
from app.data.field_values import NO_DATE, TRUE_OR_FALSE, TRUTHS, day_in, number_in
from app.data.sources.csv_dialect import csv_problem
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from app.cli.init.columns import Kind

OPTION: Final = "--dictionary"
FILE_BYTES_MAX: Final = 16 * 2**20
SEPARATORS: Final = ("|", ";")
LABEL: Final = "label"
LEFT_OUT: Final = "the dictionary leaves it out"
NO_KIND_YET: Final = "times and durations are no features"
WORDS: Final[dict[str, Kind]] = {
    **dict.fromkeys(("numeric", "number", "integer", "int", "float", "year"), "numeric"),
    **dict.fromkeys(("categorical", "category", "string", "text", LABEL), "categorical"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("date", "datetime"), "date"),
}
TIMES: Final = ("time", "yearmonth", "duration")
IGNORED: Final = ("ignore", "skip", "id", "object", "array", "geopoint", "geojson")


@dataclass(frozen=True, kw_only=True)
class Dictionary:
    """A parsed data dictionary: public descriptions of columns.

    Attributes:
        columns: the descriptions by column name, in the order of the file; the categories of the
            label's column are the classes.
        label: the name of the label's column; None if the dictionary does not say which it is.
        missing: the texts that stand for a missing value.

    """

    columns: Mapping[str, Column] = field(default_factory=dict)
    label: str | None = None
    missing: tuple[str, ...] = ()


def read_dictionary(path: Path) -> Dictionary:
    """Return a parsed data dictionary, a Table Schema or a CSV by the file's suffix.

    Raises:
        ConfigurationError: the file cannot be read, or an entry is invalid; the error names the
            entry.

    """
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise ConfigurationError(OPTION, f"{path} is larger than {FILE_BYTES_MAX} bytes")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigurationError(OPTION, f"{path} is not in UTF-8") from None
    except OSError as error:
        reason = (error.strerror or "the system refuses").lower()
        raise ConfigurationError(OPTION, f"cannot read {path}: {reason}") from None
    return table_schema(text) if path.suffix.lower() == ".json" else csv_dictionary(text)


def csv_dictionary(text: str) -> Dictionary:
    """Return the column descriptions in a data dictionary that is a CSV."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise ConfigurationError(OPTION, csv_problem(error)) from None
    header = [name.strip().lower() for name in rows[0]] if rows else []
    if "name" not in header or "kind" not in header:
        problem = "the first line must name the columns name and kind; low, high and values may be"
        raise ConfigurationError(OPTION, problem)
    columns, label = [], None
    for number, cells in enumerate(rows[1:], start=1):
        if not any(cells):
            continue
        entry = {key: cell.strip() for key, cell in zip(header, cells, strict=False)}
        where = f"row {number}"
        if not entry.get("name") or len(cells) > len(header):
            raise ConfigurationError(OPTION, f"{where}: has no name, or too many cells")
        values = tuple(_split(entry.get("values", "")))
        kind = entry.get("kind", "").lower()
        ends = [_end(entry.get(key, ""), kind, f"{where}: {key}") for key in ("low", "high")]
        columns.append(_column(entry["name"], kind, ends, values, where))
        if kind == LABEL:
            label = _only_label(label, entry["name"], where)
    return Dictionary(columns=_by_name(columns), label=label)


def table_schema(text: str) -> Dictionary:
    """Return the column descriptions in a Frictionless Table Schema."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise ConfigurationError(OPTION, "is not JSON") from None
    fields = document.get("fields") if isinstance(document, dict) else None
    if not isinstance(fields, list) or not fields:
        raise ConfigurationError(OPTION, 'is no Table Schema: it has no list "fields"')
    keys = document.get("primaryKey", [])
    keys = [keys] if isinstance(keys, str) else keys
    columns = []
    for index, each in enumerate(fields):
        where = f"fields[{index}]"
        if not isinstance(each, dict) or not isinstance(each.get("name"), str):
            raise ConfigurationError(OPTION, f"{where}: has no name")
        column = _field(each, where)
        is_key = isinstance(keys, list) and column.name in keys
        columns.append(replace(column, left_out=LEFT_OUT) if is_key else column)
    missing = document.get("missingValues")
    listed = missing if isinstance(missing, list) else []
    tokens = [token for token in listed if isinstance(token, str) and token]
    return Dictionary(columns=_by_name(columns), missing=tuple(dict.fromkeys(tokens)))


def _field(described: Mapping[str, object], where: str) -> Column:
    """Return the column of one field of a Table Schema."""
    given = described.get("constraints", {})
    constraints = given if isinstance(given, dict) else {}
    listed = constraints.get("enum", [])
    values = tuple(map(_text, listed)) if isinstance(listed, list) else ()
    kind = str(described.get("type", "string"))
    has_range = WORDS.get(kind) in {"numeric", "date"}
    ends = [
        _end(_text(constraints.get(key, "")), kind, f"{where}.constraints.{key}")
        if has_range
        else None
        for key in ("minimum", "maximum")
    ]
    return _column(str(described["name"]), kind, ends, values, where)


def _column(
    name: str, kind: str, ends: list[float | None], values: tuple[str, ...], where: str
) -> Column:
    """Return a column; values make it categorical, whatever they are."""
    if kind in IGNORED:
        return Column(name=name, left_out=LEFT_OUT)
    if WORDS.get(kind) == "boolean" and all(value.lower() in TRUTHS for value in values):
        return Column(name=name, kind="boolean", categories=TRUE_OR_FALSE)
    if values:
        if len(set(values)) < len(values):
            raise ConfigurationError(OPTION, f"{where}: values repeat one")
        return Column(name=name, kind="categorical", categories=values)
    if kind in TIMES:
        return Column(name=name, left_out=NO_KIND_YET)
    if kind and kind not in WORDS:
        known = ", ".join(sorted({*WORDS, *TIMES, *IGNORED}))
        raise ConfigurationError(OPTION, f"{where}: kind is none of {known}")
    lower, upper = ends
    bounds = None if lower is None or upper is None else (lower, upper)
    if bounds is not None and bounds[0] >= bounds[1]:
        raise ConfigurationError(OPTION, f"{where}: the low end must be below the high end")
    return Column(name=name, kind=WORDS[kind] if kind else None, bounds=bounds)


def _only_label(label: str | None, name: str, where: str) -> str:
    """Return the label's name, which one row alone may give."""
    if label is not None:
        raise ConfigurationError(OPTION, f"{where}: is a second label")
    return name


def _split(text: str) -> Iterator[str]:
    """Yield the values of a cell."""
    separator = next((each for each in SEPARATORS if each in text), SEPARATORS[0])
    yield from filter(None, (part.strip() for part in text.split(separator)))


def _end(text: str, kind: str, where: str) -> float | None:
    """Return an end of a range, of dates in days; None where there is none."""
    if not text:
        return None
    if WORDS.get(kind) == "date":
        day = day_in(text)
        if day is None:
            raise ConfigurationError(OPTION, f"{where} {NO_DATE}")
        return day
    number = number_in(text)
    if number is None or number in (float("inf"), float("-inf")):
        raise ConfigurationError(OPTION, f"{where} is not a finite number")
    return number


def _text(value: object) -> str:
    """Return a JSON value as a CSV of the records would spell it."""
    return value if isinstance(value, str) else json.dumps(value)


def _by_name(columns: list[Column]) -> dict[str, Column]:
    """Return columns by their names, each of which occurs once."""
    found = {column.name: column for column in columns}
    if len(found) < len(columns):
        raise ConfigurationError(OPTION, "names a column twice")
    return found
