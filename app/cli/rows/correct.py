"""``conclave correct``: replace records at the next scheduled update of the release."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from app.cli.rows.erase import CORRECTED, show, tell


def register(application: typer.Typer) -> None:
    """Add the command ``conclave correct`` to the application."""
    application.command("correct")(correct)


def correct(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="Rows as they should be, with their identifiers (data.id or data.person).",
        ),
    ],
    config: Annotated[Path, typer.Option("--config", help="conclave.toml.")],
    *,
    now: Annotated[
        bool, typer.Option("--now", help="Apply the change now, not at the next tick.")
    ] = False,
) -> None:
    """Replace records by rows with the same identifiers; the affected models are trained anew.

    If data.person names persons, the file's rows of a person replace all rows that the person has.
    If a row does not fit the schema, nothing changes.  The exit code is 1 if a record is not known;
    the command still corrects the others.
    """
    from app.cli.opening_progress import OpeningProgress
    from app.main import change_from_settings
    from app.noise.system import SystemNoise
    from app.settings.settings import load_settings

    settings = load_settings(config, os.environ)
    with OpeningProgress(transient=True) as progress:
        receipt = change_from_settings(
            settings, source=source, now=now, noise=SystemNoise(), progress=progress, warn=tell
        )
    show(receipt, done=CORRECTED, unit=settings.data.unit)
