"""``conclave correct``: records are replaced at the next tick, beside a running server too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from app.cli.rows.erase import CORRECTED, show, tell


def register(application: typer.Typer) -> None:
    """Add ``conclave correct``."""
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
    now: Annotated[bool, typer.Option("--now", help="Make a tick at once.")] = False,
) -> None:
    """Replace records by rows of the same identifiers; their chunks are fitted anew.

    Where persons are named, all rows of a person are replaced by those in the file.  Where a row
    does not fit, nothing changes.  Exit code 1 where a record is not known; the others are
    corrected all the same.
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
