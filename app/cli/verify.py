"""``conclave verify``: replay the ledger from entry one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fractions import Fraction

    from app.ledger.verify import VerificationReport


def register(application: typer.Typer) -> None:
    """Add ``conclave verify``."""
    application.command("verify")(verify)


def verify(
    config: Annotated[
        Path | None,
        typer.Option("--config", help="conclave.toml. Default: the embedded demo."),
    ] = None,
    expect_head: Annotated[
        str | None,
        typer.Option(
            "--expect-head",
            metavar="HASH",
            help="A hash noted before, from GET /ledger/head; it must occur in the chain.",
        ),
    ] = None,
) -> None:
    """Replay the ledger from entry one: chain, sequence, counters, budget, every table.

    Exit code 0, or 1 with a plain account of the first thing wrong.
    """
    from app.ledger import verify as ledger_verify
    from app.ledger.store import open_ledger
    from app.settings import load_settings

    settings = load_settings(config, os.environ)
    ledger = open_ledger(settings.ledger.url.get_secret_value(), create=False)
    try:
        typer.echo(_line(ledger_verify.verify(ledger, expect_head)))
    finally:
        ledger.close()


def _line(report: VerificationReport) -> str:
    return (
        f"verified: sequence {report.head.sequence}, head {report.head.hash}, "
        f"answered {report.answered}, unstable {report.unstable}, "
        f"charged epsilon {_decimal(report.epsilon_charged)}, "
        f"delta {_decimal(report.delta_charged)}"
    )


def _decimal(cost: Fraction) -> str:
    return f"{float(cost):.12g}"
