"""From a failed validation to the one line that names the key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

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


def configuration_error(error: ValidationError) -> ConfigurationError:
    """Return the first thing wrong, by its dotted key, without the value given."""
    first = error.errors(include_url=False, include_input=False)[0]
    return ConfigurationError(_key(first), _problem(first))


def _key(details: ErrorDetails) -> str:
    """Write a location as ``data.features[2].bounds``."""
    location = list(details["loc"])
    if tuple(location[: len(FEATURES)]) == FEATURES and location[KIND_POSITION:][:1]:
        _drop_kind(location)
    if details["type"].startswith("union_tag"):
        location.append("kind")
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return printable("".join(parts).removeprefix("."))


def printable(key: str) -> str:
    """Return a key that fits on a line, escaped if it does not."""
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
