"""``conclave audit``: a lower bound on epsilon from the outside, against the claim."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from app.auditing.audit import AuditReport
    from app.settings.settings import Settings

EXIT_EXCEEDED: Final = 1


def register(application: typer.Typer) -> None:
    """Add ``conclave audit``."""
    application.command("audit")(audit)


def audit(
    config: Annotated[Path, typer.Option(help="Configuration: classes, privacy, answers.")],
    quick: Annotated[bool, typer.Option("--quick", help="Under a minute, by fewer runs.")] = False,
    http: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="RUNS",
            help="Whole releases to run over HTTP; 0 for none.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Bound the epsilon of what would serve from below, and compare it with the claim.

    No private record is read: releases that are run have generated ones.
    """
    from app.auditing.audit import STEPS_LONG, STEPS_QUICK
    from app.auditing.audit import audit as run
    from app.cli.audit import audited_releases
    from app.cli.logs import configure_logs
    from app.noise.system import SystemNoise

    configure_logs(level=logging.ERROR)
    settings, is_whole = _settings(config)
    report = run(
        settings,
        steps=STEPS_QUICK if quick else STEPS_LONG,
        noise=SystemNoise(),
        with_draws=is_whole,
    )
    runs = audited_releases.RUNS_QUICK if quick else audited_releases.RUNS_LONG
    runs = runs if http is None else http
    if runs:
        report = replace(report, served=audited_releases.audit_releases(settings, runs=runs))
    _show(report, as_json=json)
    if not report.holds:
        raise typer.Exit(EXIT_EXCEEDED)


def _settings(config: Path) -> tuple[Settings, bool]:
    """Read a whole configuration, or classes, privacy and answers alone, and say which."""
    from app.settings.settings import load_settings, load_simulation_settings

    environ = dict(os.environ)
    try:
        return load_settings(config, environ), True
    except ConfigurationError:
        return load_simulation_settings(config, environ), False


def _show(report: AuditReport, *, as_json: bool) -> None:
    import msgspec

    from app.auditing.audit import audit_document
    from app.cli.audit.table import print_table

    document = audit_document(report)
    if as_json:
        typer.echo(msgspec.json.encode(document).decode())
    else:
        print_table(document)
