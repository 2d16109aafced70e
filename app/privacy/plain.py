"""Parameters as strings, without loss, to be kept and read back."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, ClassVar, Protocol

from app.errors import InvariantError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from dataclasses import Field


class Record(Protocol):
    """Any dataclass, as the type checker sees it."""

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]


def to_plain(record: Record) -> dict[str, str]:
    """Write every field as a string; rationals, integers and names are exact so."""
    return {each.name: str(getattr(record, each.name)) for each in fields(record)}


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Refuse in one sentence what :func:`to_plain` never wrote.

    Args:
        what: whose parameters they are.

    Raises:
        InvariantError: where a key is absent or a value is not a number.

    """
    try:
        yield
    except (KeyError, ValueError, ZeroDivisionError) as error:
        message = f"the persisted {what} are not such"
        raise InvariantError(message) from error
