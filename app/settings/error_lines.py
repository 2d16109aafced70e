"""Conversion of a validation error to one line that names the setting."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypeAlias

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

Location: TypeAlias = tuple[int | str, ...]

FEATURE_INDEX: Final = re.compile(r"data\.features\[(\d+)\]")
QUOTED: Final = re.compile(r"'([^']*)'")
NAME_SHOWN_MAX: Final = 60
LIKENESS: Final = 0.7
FEATURES = ("data", "features")
KIND_POSITION = len(FEATURES) + 1
KINDS = ("numeric", "categorical", "boolean", "date")
ONE_KIND = '"numeric", "categorical", "boolean" or "date"'

PROBLEMS = {
    "missing": "is required",
    "extra_forbidden": "is not a known key",
    "bool_type": "must be true or false",
    "dict_type": "must be a table",
    "int_type": "must be a whole number",
    "mapping_type": "must be a table",
    "model_attributes_type": "must be a table",
    "model_type": "must be a table",
    "path_type": "must be a string",
    "string_type": "must be a string",
    "string_too_short": "must not be empty",
    "tuple_type": "must be a list",
    "union_tag_not_found": f"is required: {ONE_KIND}",
    "union_tag_invalid": f"must be {ONE_KIND}",
}
BOUNDED_PROBLEMS = {
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "string_too_long": "must have at most {max_length} characters",
    "too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} items",
}
PATTERN_PROBLEMS = {
    "release.name": "must not contain a slash",
    "hypotheses.class": 'must be a class of docs/settings.md or "package.module:Class"',
    "classifier.class": 'must be a class of docs/settings.md or "package.module:Class"',
    "hypotheses.predictors": 'must be an import path such as "package.module:function"',
    "classifier.predictors": 'must be an import path such as "package.module:function"',
    "learner.estimator": 'must be an import path such as "sklearn.tree.DecisionTreeClassifier"',
}


def configuration_error(
    error: ValidationError, tables: Mapping[str, object], known: Callable[[Location], Sequence[str]]
) -> ConfigurationError:
    """Return the first validation error, with the setting's name and without its value.

    Args:
        error: the failed validation.
        tables: the validated tables of the configuration.
        known: a function that returns the known keys of a table, given the keys that lead to it.

    """
    every = error.errors(include_url=False, include_input=False)
    first = every[0]
    near = _near(first, every, tables, known)
    problem = f"{_problem(first)}; {near}" if near else _problem(first)
    return ConfigurationError(with_feature_name(_key(first), tables), problem)


def with_feature_name(key: str, tables: Mapping[str, object]) -> str:
    """Return a setting's name in which a feature's index is followed by the feature's name."""
    found = FEATURE_INDEX.match(key)
    feature = None if found is None else _at(tables, (*FEATURES, int(found[1])))
    name = feature.get("name") if isinstance(feature, dict) else None
    if found is None or not isinstance(name, str) or not name:
        return key
    return f'{found[0]} ("{printable(name[:NAME_SHOWN_MAX])}"){key[found.end() :]}'


def _near(
    first: ErrorDetails,
    every: Sequence[ErrorDetails],
    tables: Mapping[str, object],
    known: Callable[[Location], Sequence[str]],
) -> str:
    """Say what was likely meant; nothing where nobody can tell."""
    where = _location(first)
    last = str(where[-1]) if where else ""
    match first["type"]:
        case "extra_forbidden":
            near = _closest(last, known(where[:-1]))
            return f"did you mean {near}?" if near else ""
        case "missing":
            unknown = [
                str(each["loc"][-1])
                for each in every
                if each["type"] == "extra_forbidden" and _location(each)[:-1] == where[:-1]
            ]
            near = _closest(last, unknown)
            return f"did you mean it by {printable(near)}?" if near else ""
        case "literal_error":
            names = QUOTED.findall(first["ctx"]["expected"])
            near = _closest(str(_at(tables, where)), names)
            return f'did you mean "{near}"?' if near else ""
        case "union_tag_invalid":
            names = QUOTED.findall(first["ctx"]["expected_tags"])
            near = _closest(str(_at(tables, (*where, "kind"))), names)
            return f'did you mean "{near}"?' if near else ""
    return ""


def _closest(given: str, names: Sequence[str]) -> str:
    """Return the name that is nearest to a given text; empty where none is near."""
    by_lower = {name.lower(): name for name in names}
    near = get_close_matches(given[:NAME_SHOWN_MAX].lower(), list(by_lower), 1, LIKENESS)
    return by_lower[near[0]] if near else ""


def _at(tables: object, location: Location) -> object:
    """Return what is at a location; None where nothing is."""
    for part in location:
        if isinstance(tables, dict):
            tables = tables.get(part)
        elif isinstance(tables, list) and isinstance(part, int) and part < len(tables):
            tables = tables[part]
        else:
            return None
    return tables


def _location(details: ErrorDetails) -> Location:
    """Return a location as the file has it."""
    location = list(details["loc"])
    if tuple(location[: len(FEATURES)]) == FEATURES and location[KIND_POSITION:][:1]:
        _drop_kind(location)
    return tuple(location)


def _key(details: ErrorDetails) -> str:
    """Write a location as ``data.features[2].bounds``."""
    location = list(_location(details))
    if details["type"].startswith("union_tag"):
        location.append("kind")
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return printable("".join(parts).removeprefix("."))


def printable(key: str) -> str:
    """Return a setting's name as one line of text, escaped if necessary."""
    return key if key.isprintable() else ascii(key)


def _drop_kind(location: list[int | str]) -> None:
    """Drop the tag of the union of features, which is no key."""
    if location[KIND_POSITION] in KINDS:
        del location[KIND_POSITION]


def _problem(details: ErrorDetails) -> str:
    """Say what is wrong in our own words."""
    kind, context = details["type"], details.get("ctx", {})
    if kind == "too_short" and context["min_length"] == 1:
        return "must have at least one item"
    if kind in PROBLEMS:
        return PROBLEMS[kind]
    if kind in BOUNDED_PROBLEMS:
        return BOUNDED_PROBLEMS[kind].format(**context).replace("'", '"')
    if kind == "string_pattern_mismatch":
        return PATTERN_PROBLEMS.get(_key(details).partition("[")[0], "is not well formed")
    return details["msg"]
