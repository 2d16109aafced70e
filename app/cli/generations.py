"""``conclave generations``: list each batch of rows, its remaining budget, and its state."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HEADINGS: Final = ("number", "records", "votes", "unstable", "of", "left", "state")
SIZES: Final = {"row": "records", "person": "persons"}


def register(application: typer.Typer) -> None:
    """Add the command ``conclave generations`` to the application."""
    application.command("generations")(generations)


def generations(
    config: Annotated[Path, typer.Option("--config", help="conclave.toml.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document, as in GET /budget.")
    ] = False,
) -> None:
    """List a release's batches of rows (generations) from its ledger, also while it is served."""
    import json

    from app.main import generations_from_settings
    from app.settings.settings import load_settings

    settings = load_settings(config, os.environ)
    shown = generations_from_settings(settings)
    if as_json:
        typer.echo(json.dumps({"generations": shown}))
        return
    typer.echo("\n".join(_lines(shown, unit=settings.data.unit)))


def _lines(shown: Sequence[Mapping[str, object]], *, unit: str) -> list[str]:
    """Return a table of the generations, or a line that there is none."""
    if not shown:
        return ["the release is fixed, or has no generation yet"]
    rows = [(HEADINGS[0], SIZES[unit], *HEADINGS[2:]), *(_cells(each) for each in shown)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]


def _cells(shown: Mapping[str, object]) -> tuple[str, ...]:
    unstable = shown["unstable"]
    counts = unstable if isinstance(unstable, dict) else {}
    return (
        str(shown["number"]),
        str(shown["size"]),
        str(shown["ensemble"]),
        str(counts.get("count")),
        str(counts.get("cutoff")),
        str(counts.get("left")),
        str(shown["state"]),
    )
