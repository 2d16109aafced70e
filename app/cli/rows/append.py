"""``conclave append``: add a batch of rows (a generation), also while the release is served."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


def register(application: typer.Typer) -> None:
    """Add the command ``conclave append`` to the application."""
    application.command("append")(append)


def append(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="Source of the rows, in a form of data.source."),
    ],
    config: Annotated[Path, typer.Option("--config", help="conclave.toml.")],
) -> None:
    """Append rows as a new batch (generation) with its own budget, which votes from an update on.

    A tick is a fixed point in time, such as midnight.  If a row does not fit the schema, nothing
    is appended or charged.  A server on the ledger fits the generation's learners, and their votes
    count from the tick that the ledger names.
    """
    from app.cli.logs import configure_logs
    from app.cli.opening_progress import OpeningProgress
    from app.main import append_from_settings
    from app.noise.system import SystemNoise
    from app.settings.settings import load_settings

    configure_logs()
    settings = load_settings(config, os.environ)
    with OpeningProgress() as progress:
        number = append_from_settings(
            settings, source, noise=SystemNoise(), progress=progress, warn=_tell
        )
    typer.echo(f"generation {number} is appended; it joins at the second tick from now")


def _tell(line: str) -> None:
    typer.echo(f"conclave: {line}", err=True)
