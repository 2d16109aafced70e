"""Print ``docs/settings.md`` from the settings themselves; ``make docs`` writes it.

A test compares the page with what this prints, so a setting, its default and
its bounds cannot be documented otherwise than they are.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic_core import PydanticUndefined

from app.settings.data_section import (
    BooleanFeatureSettings,
    CategoricalFeatureSettings,
    DateFeatureSettings,
    NumericFeatureSettings,
)
from app.settings.field_types import OneOf, Section, Unit, section_of
from app.settings.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

INTRODUCTION: Final = """\
# Settings

This page is printed from the program's settings by `make docs`; to change it, change
`app/settings/`.

A configuration is one TOML file, `conclave.toml`. Relative paths in this file are relative to
its folder. Environment variables take precedence over the file, for the embedded demo too. The
environment variable of a setting is called `CONCLAVE_<SECTION>__<KEY>`, with one more `__` for a
nested table, as in `CONCLAVE_PRIVACY__SHARES__RELABEL=0.1`. An environment variable contains lists
and tables as JSON, and relative paths in it are relative to the working directory. The environment
variables `CONCLAVE_LEDGER__URL_FILE` and `CONCLAVE_DATA__SOURCE_FILE` name files that contain the
address of the ledger and of the private rows. An environment variable whose name has no `__` is not
a setting. The program refuses an unknown setting. `conclave serve` without a configuration file
serves the embedded demo.

The settings `epsilon`, `delta` and all shares are read as exact decimals. The schema, and the
public settings of hypotheses, learners, privacy and answers, are fixed when a release opens and
cannot change afterwards: if one of them differs from the ledger's, the server refuses to start and
names the difference.
"""
BOUNDS: Final = {Ge: "≥", Gt: ">", Le: "≤", Lt: "<"}


def page() -> str:
    """Return the whole page."""
    parts = [INTRODUCTION]
    for heading, section in _sections():
        summary = (
            (section.__doc__ or "").split("\n", maxsplit=1)[0].partition(": ")[2].replace("``", "`")
        )
        rows = [_row(name, field) for name, field in section.model_fields.items()]
        table = "\n".join(row for row in rows if row)
        head = "| setting | default | unit | meaning |\n| --- | --- | --- | --- |"
        if table:
            text = f"{summary[:1].upper()}{summary[1:]}\n\n" if summary else ""
            parts.append(f"## {heading}\n\n{text}{head}\n{table}\n")
    return "\n".join(parts)


def _sections() -> Iterator[tuple[str, type[Section]]]:
    """Yield every table with its heading, in the order of the file."""
    for name, field in Settings.model_fields.items():
        yield from _nested(name, field)
        if name == "data":
            yield "`[[data.features]]`, numeric", NumericFeatureSettings
            yield "`[[data.features]]`, date", DateFeatureSettings
            yield "`[[data.features]]`, categorical", CategoricalFeatureSettings
            yield "`[[data.features]]`, boolean", BooleanFeatureSettings


def _nested(path: str, field: FieldInfo) -> Iterator[tuple[str, type[Section]]]:
    """Yield a table and the tables inside it."""
    section = section_of(field.annotation)
    if section is not None:
        yield f"`[{path}]`", section
        for name, inner in section.model_fields.items():
            yield from _nested(f"{path}.{name}", inner)


def _is_section(field: FieldInfo) -> bool:
    """Tell whether a field is a table of its own."""
    return isinstance(field.annotation, type) and issubclass(field.annotation, Section)


def _row(name: str, field: FieldInfo) -> str:
    """Return the line of one setting; nothing for a table of its own."""
    if _is_section(field):
        return ""
    unit = next((item.name for item in field.metadata if isinstance(item, Unit)), "")
    cells = (f"`{field.alias or name}`", _default(field), unit, _meaning(field))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(field: FieldInfo) -> str:
    """Return the default as it would stand in the file."""
    value = field.default
    if value is PydanticUndefined:
        # The ledger's address is filled in from where the file lies.
        return "unset" if "; unset, " in (field.description or "") else "required"
    if value is None:
        return "unset"
    if isinstance(value, str):
        return f'`"{value}"`'
    if isinstance(value, Decimal):
        return f"`{value}`".replace("E", "e")
    return "`[]`" if value == () else f"`{value}`"


def _meaning(field: FieldInfo) -> str:
    """Return the description, the values to choose from and the bounds."""
    choices = ", ".join(f"`{choice}`" for choice in _choices(field))
    bounds = " and ".join(
        f"{sign} {getattr(item, kind.__name__.lower())}"
        for item in field.metadata
        for kind, sign in BOUNDS.items()
        if isinstance(item, kind)
    )
    return " ".join(
        [
            field.description or "",
            *([f"One of {choices}."] if choices else []),
            *([f"Range: {bounds}."] if bounds else []),
        ]
    )


def _choices(field: FieldInfo) -> tuple[str, ...]:
    """Return the strings that a setting may be, where they are listed."""
    annotation = field.annotation
    for item in field.metadata:
        if isinstance(item, OneOf):
            return tuple(item.names())
    if get_origin(annotation) is Literal and len(get_args(annotation)) > 1:
        return tuple(str(choice) for choice in get_args(annotation))
    return ()


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 -- its output is the page
