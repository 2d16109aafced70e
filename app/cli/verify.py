"""``conclave verify``: recompute the state of a ledger from its first entry.

The noise table of a release has the probability of an unstable answer at each distance (the number
of votes that may change without a change of the winning label). If the setting
``privacy.calibration`` is ``certified``, the ledger also has a certificate for this table: stored
numbers from which the command checks that answers by the table keep the privacy promise.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.errors import HeadFileError, VerificationError

if TYPE_CHECKING:
    from fractions import Fraction

    from app.ledger.ledger import Ledger
    from app.ledger.verification import VerificationReport
    from app.settings.settings import Settings

VERIFYING: Final = "verifying the ledger"


def register(application: typer.Typer) -> None:
    """Add the command ``conclave verify`` to the application."""
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
            help="A noted hash from GET /ledger/head; it must occur in the chain.",
        ),
    ] = None,
) -> None:
    """Check the ledger from its first entry: hashes, order, counts, budget, every table.

    The command also checks exactly, from the stored noise table or its certificate, whether the
    answers keep the privacy promise of the first entry.  The configuration must be that of the
    release.

    The exit code is 0, or 1 with one line about the first failed check.
    """
    from app.cli.opening_progress import at_work
    from app.ledger import verification as ledger_verify
    from app.ledger.ledger import open_ledger
    from app.release.opening import found_state
    from app.release.terms.accounting import as_opened
    from app.release.terms.answer_terms import check_cells, check_pieces, keeps_calibration
    from app.release.terms.configuration import configure
    from app.settings.settings import load_settings

    settings = load_settings(config, os.environ)
    ledger = open_ledger(settings.ledger_url, create=False, name=settings.release.name)
    try:
        with at_work(VERIFYING):
            report = ledger_verify.verify(ledger, expect_head)
            state = ledger.read_state()
            if state.is_joint or state.generations is not None or keeps_calibration(state):
                configuration = as_opened(configure(settings), state.release)
                found_state(configuration, ledger)
                check_cells(configuration, ledger)
                check_pieces(configuration.settings, ledger)
        _compare_with_head_file(settings, ledger)
    finally:
        ledger.close()
    typer.echo(_line(report))


def _compare_with_head_file(settings: Settings, ledger: Ledger) -> None:
    """Raise what the head file says against a ledger that is sound by itself.

    Raises:
        VerificationError: entries that were noted are missing or others, or the file
            is no head file; not where none was kept yet.

    """
    from app.ledger.head.head_file import head_file_of
    from app.ledger.head.rollback import check_head_file

    head_file = head_file_of(settings.ledger_url, settings.ledger.head_file)
    if head_file is None:
        return
    try:
        behind = check_head_file(ledger, head_file).behind
    except HeadFileError as error:
        raise VerificationError(str(error)) from None
    for line in behind:
        typer.echo(f"conclave: warning: {line}", err=True)


def _line(report: VerificationReport) -> str:
    return (
        f"verified: sequence {report.head.sequence}, head {report.head.hash}, "
        f"answered {report.answered}, unstable {report.unstable}, "
        f"charged epsilon {_decimal(report.epsilon_charged)}, "
        f"delta {_decimal(report.delta_charged)}"
        f"{'' if report.closed is None else f', closed: {report.closed}'}"
    )


def _decimal(cost: Fraction) -> str:
    return f"{float(cost):.12g}"
