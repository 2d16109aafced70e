"""``conclave statistics``: print each rule's mean outcome over the rows, from a noisy table.

A rule (hypothesis) has two outcomes, for example a tree with two labels in its leaves. Its mean
outcome over the private rows counts the first outcome as -1 and the second as 1.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from app.release.statistics.released_table import StatisticsAnswer

ARGUMENT: Final = "HYPOTHESES.json"
SHAPE: Final = (
    'must be {"hypotheses": [...]}, a list of hypotheses, or one: each a classifier document as '
    '`conclave export` writes it, or {"tree": ...}'
)
BYTES_MAX: Final = 64 << 20


def register(application: typer.Typer) -> None:
    """Add the command ``conclave statistics`` to the application."""
    application.command("statistics")(statistics)


def statistics(
    hypotheses: Annotated[
        Path, typer.Argument(metavar=ARGUMENT, help="File of the hypotheses (rules) to ask about.")
    ],
    config: Annotated[
        Path | None,
        typer.Option("--config", help="conclave.toml. Default: the embedded demo."),
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(
            "--public",
            metavar="CSV",
            help="Public points: rows of features, by name. They must not come from the records.",
        ),
    ] = None,
    even_if_hopeless: Annotated[
        bool,
        typer.Option(
            "--even-if-hopeless", help="Open even a hopeless release; the ledger records it."
        ),
    ] = False,
) -> None:
    """Print each rule's mean outcome over the rows, from the release's noisy statistics table.

    The first call draws the table and spends the statistics' share of epsilon, once.  Before the
    ensemble's first answer the table is drawn on public points; after its last answer it is drawn
    on the answered queries.
    """
    import msgspec

    answer = _answer(config, public, _read(hypotheses), even_if_hopeless=even_if_hopeless)
    typer.echo(msgspec.json.encode(answer).decode(), nl=sys.stdout.isatty())


def _read(path: Path) -> list[object]:
    """Return the documents of a file."""
    import msgspec

    try:
        if path.stat().st_size > BYTES_MAX:
            raise ConfigurationError(ARGUMENT, f"is longer than {BYTES_MAX} bytes")
        read = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        reason = (error.strerror or "the system refuses").lower()
        raise ConfigurationError(ARGUMENT, f"cannot read {path}: {reason}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ConfigurationError(ARGUMENT, f"{path} is not JSON") from None
    if isinstance(read, dict):
        read = read.get("hypotheses", [read])
    if not isinstance(read, list) or not read:
        raise ConfigurationError(ARGUMENT, SHAPE)
    return read


def _answer(
    config: Path | None, public: Path | None, raw: list[object], *, even_if_hopeless: bool
) -> StatisticsAnswer:
    from app.cli.logs import configure_logs
    from app.cli.opening_progress import OpeningProgress
    from app.errors import RequestError
    from app.main import statistics_from_settings
    from app.noise.system import SystemNoise
    from app.settings.settings import load_settings

    configure_logs()
    settings = load_settings(config, os.environ)
    try:
        with OpeningProgress() as progress:
            return statistics_from_settings(
                settings,
                raw,
                public=public,
                noise=SystemNoise(),
                progress=progress,
                tell=_tell,
                even_if_hopeless=even_if_hopeless,
            )
    except RequestError as refused:
        raise ConfigurationError(ARGUMENT, refused.detail) from None


def _tell(line: str) -> None:
    typer.echo(f"conclave: {line}", err=True)
