"""Predictors of a finite class: functions of one row."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.learning.predictors.own_predictors import Row


def large(row: Row) -> str:
    """Give the second class from 5 on; a missing number fails."""
    return "yes" if row["size"] >= 5 else "no"  # type: ignore[operator]  # fails where it is missing


def of_group_a(row: Row) -> str:
    """Give the second class in one group."""
    return "yes" if row["group"] == "a" else "no"


def never(_row: Row) -> str:
    """Give the first class."""
    return "no"


def first_half(row: Row) -> str:
    """Give the second class above the middle of a number."""
    return "yes" if row["number0"] > 0.5 else "no"  # type: ignore[operator]  # never missing


def red(row: Row) -> str:
    """Give the second class in one colour."""
    return "yes" if row["colour"] == "red" else "no"
