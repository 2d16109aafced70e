"""A record of numbers, as a term of Coq and as a line for the extracted program."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Value = int | Fraction | tuple[int, int] | list[Any]


def record(numbers: DataclassInstance) -> str:
    """Return a record of Coq, with its fields by name."""
    values = _values(numbers)
    named = [f"{name} := {_term(value)}%num" for name, value in values.items()]
    return "{|\n  " + ";\n  ".join(named) + "\n|}"


def pair(value: Fraction) -> str:
    """Return a fraction of Coq: its numerator and its denominator."""
    return f"{_term(value)}%num"


def line(kind: str, *records: DataclassInstance) -> str:
    """Return records as the extracted program reads them: each list after its length."""
    values = [value for numbers in records for value in _values(numbers).values()]
    return " ".join([kind, *_words(values)])


def _values(numbers: DataclassInstance) -> dict[str, Value]:
    return {field.name: cast("Value", getattr(numbers, field.name)) for field in fields(numbers)}


def _term(value: Value) -> str:
    """Return a number, a pair or a list."""
    match value:
        case list():
            return "[" + ";\n    ".join(map(_term, value)) + "]"
        case Fraction() | tuple():
            return "({}, {})".format(*_pair(value))
    return str(value)


def _words(values: list[Value]) -> list[str]:
    """Return numbers in the order of their fields."""
    found: list[str] = []
    for value in values:
        match value:
            case list():
                found += [str(len(value)), *_words(value)]
            case Fraction() | tuple():
                found += map(str, _pair(value))
            case _:
                found.append(str(value))
    return found


def _pair(value: Fraction | tuple[int, int]) -> tuple[int, int]:
    return value.as_integer_ratio() if isinstance(value, Fraction) else value
