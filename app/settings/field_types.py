"""Field types of the settings: the values that a setting may have.

Numbers are read as ``int`` or as ``Decimal`` and never as binary floating-point numbers, so that
shares, epsilon and delta stay exact.

The module also contains the base class of every table of the configuration.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    Strict,
)
from pydantic_core import PydanticCustomError, PydanticKnownError, core_schema

from app.data.field_values import NO_DATE, day_in
from app.settings.addresses import is_http_address, is_secure_address

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pydantic import GetCoreSchemaHandler

TEXT_CHARACTERS_MAX = 1000
EXACT_EXPONENT_MIN = -100
EXACT_EXPONENT_MAX = 20
EXACT_DIGITS_MAX = 100


@dataclass(frozen=True)
class Unit:
    """The unit of a setting (seconds, bytes, ...), as printed in ``docs/settings.md``."""

    name: str


def refusal(problem: str) -> PydanticCustomError:
    """Return a validation error, to be printed as the line ``key: problem``."""
    return PydanticCustomError("conclave", "{problem}", {"problem": problem})


def _number(value: object) -> float:
    """Accept a finite TOML or JSON number, and no boolean, as a float."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise refusal("must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise refusal("must be a finite number")
    return number


def _exact(value: object) -> Decimal:
    """Accept a finite number, written with at most 100 digits, exactly."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise refusal("must be a number")
    exact = Decimal(value)
    if not exact.is_finite():
        raise refusal("must be a finite number")
    digits, exponent = exact.as_tuple().digits, exact.adjusted()
    in_range = EXACT_EXPONENT_MIN <= exponent <= EXACT_EXPONENT_MAX
    if len(digits) > EXACT_DIGITS_MAX or (exact and not in_range):
        raise refusal("must be a decimal of ordinary size, such as 0.1 or 1e-6")
    return exact or Decimal(0)


def _bounds(value: object) -> tuple[float, float]:
    """Accept [lower, upper], finite, lower below upper."""
    if not isinstance(value, list | tuple) or len(value) != len(("lower", "upper")):
        raise refusal("must be [lower, upper]")
    lower, upper = _number(value[0]), _number(value[1])
    if lower >= upper:
        raise refusal("lower must be below upper")
    if not math.isfinite(upper - lower):
        raise refusal("must span a finite range")
    return lower, upper


def _day(value: object) -> float:
    """Accept a date of TOML, or a text in its form, as the number of days from 1970-01-01."""
    written = isinstance(value, str) and len(value) == len("2026-12-31")
    day = day_in(value) if written or type(value) is date else None
    if day is None:
        raise refusal(NO_DATE.replace("is not", "must be"))
    return day


def _date_bounds(value: object) -> tuple[float, float]:
    """Accept [first, last], two dates."""
    if not isinstance(value, list | tuple) or len(value) != len(("first", "last")):
        raise refusal('must be [first, last], such as ["1900-01-01", "2026-12-31"]')
    return _bounds([_day(each) for each in value])


def _test_value(value: object) -> float | str:
    """Accept a cut of a numeric feature or of a date, or a category."""
    if isinstance(value, str):
        return value
    return value.isoformat() if type(value) is date else _number(value)


def _separator(value: str) -> str:
    """Accept a character that no number and no quoted text is made of."""
    if len(value) != 1 or value.isalnum() or value in '"+-.\r\n':
        raise refusal('must be one character such as ",", ";", "\\t" or "|"')
    return value


def _encoding(value: str) -> str:
    """Accept the name of a text encoding that Python knows."""
    try:
        "a".encode(value)
        return codecs.lookup(value).name
    except (LookupError, ValueError):
        raise refusal('must be a text encoding such as "utf-8", "utf-16" or "cp1252"') from None


def _parameter(value: object) -> object:
    """Turn exact numbers inside an estimator's parameters into floats."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {str(key): _parameter(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_parameter(item) for item in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise refusal("must hold strings, numbers, booleans, lists and tables only")


def _name(value: str) -> str:
    """Refuse control characters, which would break a line that names it."""
    if not value.isprintable() or value != value.strip():
        raise refusal("must be printable, without spaces around it")
    return value


def _filled(value: object) -> object:
    """Refuse an empty string where a path or an address belongs."""
    if not isinstance(value, str):
        raise refusal("must be a string")
    if not value:
        raise refusal("must not be empty")
    return value


def _http_address(value: str) -> str:
    """Accept the address of an HTTP server, without a user or password in it."""
    if not is_http_address(value):
        raise refusal("must be an address such as http://127.0.0.1:4318/v1/traces")
    return value


def _issuer(value: str) -> str:
    """Accept the identifier of an OpenID provider: an address without parameters."""
    if not is_secure_address(value) or set(value) & set("?#"):
        raise refusal("must be an address such as https://accounts.example.com; http on loopback")
    return value


def _path_or_false(value: object) -> object:
    """Accept a path that is not empty, or ``false``."""
    return value if value is False else _filled(value)


def _auto_or_count(value: object) -> object:
    """Accept ``auto`` or a whole number of at least one."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    if value != "auto" and not is_count:
        raise refusal('must be "auto" or a whole number of at least 1')
    return value


Text = Annotated[str, Strict(), Field(min_length=1, max_length=TEXT_CHARACTERS_MAX)]
"""A string that is not empty."""

Name = Annotated[Text, AfterValidator(_name)]
"""A printable string that is not empty."""

Address = Annotated[SecretStr, BeforeValidator(_filled)]
"""A path or a database address, which may hold a password."""

HttpAddress = Annotated[Text, AfterValidator(_http_address)]
"""The address of an HTTP server, which holds no password."""

Issuer = Annotated[Text, AfterValidator(_issuer)]
"""The identifier of an OpenID provider, which is an address of https, or of http on loopback."""

FilePath = Annotated[Path, BeforeValidator(_filled)]
"""A path that is not empty."""

OptionalFile = Annotated[Literal[False] | Path, BeforeValidator(_path_or_false)]
"""A path that is not empty, or ``false`` for none."""

Whole = Annotated[int, Strict()]
"""A whole number: no boolean, no 1.0, no string."""

Number = Annotated[float, BeforeValidator(_number)]
"""A finite number, kept as float64."""

Exact = Annotated[Decimal, BeforeValidator(_exact)]
"""A finite decimal, kept exactly as it was written."""

Bounds = Annotated[tuple[float, float], BeforeValidator(_bounds)]
"""[lower, upper] of a numeric feature."""

Day = Annotated[float, BeforeValidator(_day)]
"""A date, as the number of days from 1970-01-01."""

DateBounds = Annotated[tuple[float, float], BeforeValidator(_date_bounds)]
"""[first, last] of a date, as days."""

TestValue = Annotated[float | str, BeforeValidator(_test_value)]
"""A cut of a numeric feature or of a date, or a category."""

Separator = Annotated[Text, AfterValidator(_separator)]
"""The character between the fields of a CSV."""

Encoding = Annotated[Text, AfterValidator(_encoding)]
"""A text encoding, by Python's own name of it."""

Parameter = Annotated[object, BeforeValidator(_parameter)]
"""A value among an estimator's parameters."""

EnsembleSize = Annotated[Literal["auto"] | int, BeforeValidator(_auto_or_count)]
"""``auto`` or k."""


@dataclass(frozen=True)
class OneOf:
    """A field type whose allowed values are listed names, for example those of all learners.

    Attributes:
        names: a function that returns the allowed names, in the order of their list; it is called
            when settings are read.

    """

    names: Callable[[], Sequence[str]]

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Look the name up before it is read as a string."""
        return core_schema.no_info_before_validator_function(self._known, handler(source))

    def _known(self, value: object) -> object:
        if not isinstance(value, str) or value not in self.names():
            *others, last = [f"'{name}'" for name in self.names()]
            expected = f"{', '.join(others)} or {last}"
            raise PydanticKnownError("literal_error", {"expected": expected})
        return value


class Section(BaseModel):
    """The base class of every table of the configuration."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def section_of(annotation: object) -> type[Section] | None:
    """Return the class of the table in a setting's type annotation; None for a plain value."""
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, Section):
            return kind
    return None
