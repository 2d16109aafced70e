"""``conclave append``: add a batch of rows (a generation), also while the release is served."""

from __future__ import annotations

import os
import re
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Final

import typer

from app.errors import ConfigurationError

DECIMAL: Final = re.compile(r"[0-9]{1,4}(\.[0-9]{1,20})?(e-[0-9]{1,2})?")


def register(application: typer.Typer) -> None:
    """Add the command ``conclave append`` to the application."""
    application.command("append")(append)


def append(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="Source of the rows, in a form of data.source."),
    ],
    config: Annotated[Path, typer.Option("--config", help="conclave.toml.")],
    epsilon: Annotated[
        str | None,
        typer.Option(help="Epsilon of its records, a decimal; privacy.epsilon if unset."),
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option(help="Delta of its records, a decimal; privacy.delta if unset."),
    ] = None,
) -> None:
    """Append a batch of rows (generation) with a budget of its own; its models vote later.

    A smaller budget is divided in the same way, and pays for fewer unstable answers. If a row does
    not fit the schema, nothing is appended or charged. A server on the ledger trains the
    generation's models, and their votes count from the tick (a fixed point in time, such as
    midnight) that the ledger names. If data.person names persons, the new persons form the
    generation, and rows of known persons are added to their existing rows.
    """
    from app.cli.logs import configure_logs
    from app.cli.opening_progress import OpeningProgress
    from app.main import append_from_settings
    from app.noise.system import SystemNoise
    from app.settings.settings import load_settings

    configure_logs()
    settings = load_settings(config, os.environ)
    with OpeningProgress() as progress:
        appended = append_from_settings(
            settings,
            source,
            noise=SystemNoise(),
            progress=progress,
            warn=_tell,
            budget=(_decimal("--epsilon", epsilon), _decimal("--delta", delta)),
        )
    if appended.number is None:
        typer.echo("nobody in it is new: no generation is appended, and nothing is charged")
    else:
        rules, when = settings.generations, "at the second tick from now"
        if rules and rules.labelling == "cohort" and appended.number < rules.quorum:
            when = f"together with generation {rules.quorum}, the last of its cohort"
        typer.echo(f"generation {appended.number} is appended; it joins {when}")
    if appended.further_count:
        typer.echo(
            f"rows of {appended.further_count} known persons go into their slots at the next tick"
        )
    if appended.unused_count:
        typer.echo(
            f"rows of {appended.unused_count} persons are not used: their generations have retired"
        )


def _decimal(option: str, text: str | None) -> Fraction | None:
    """Return an exact decimal; None where the option is not given."""
    if text is None:
        return None
    if DECIMAL.fullmatch(text) is None:
        raise ConfigurationError(option, "must be a decimal, such as 0.75 or 1e-7")
    return Fraction(text)


def _tell(line: str) -> None:
    typer.echo(f"conclave: {line}", err=True)
