"""``conclave check``: show the operator which fields of the rows do not fit the schema."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from app.data.checks.source_check import Finding, SourceReport
    from app.settings.settings import Settings

EXIT_DOES_NOT_FIT: Final = 1
PRIVATE: Final = (
    "what follows is private: it was counted on the rows, no noise was added, and no epsilon"
    " covers it. Keep it on this terminal. A schema that is chosen or changed by it is a release"
    " of its own about these rows, which the promise of this one leaves out. Nothing is charged,"
    " and no ledger was opened."
)
NAMES_SHOWN_MAX: Final = 5


def register(application: typer.Typer) -> None:
    """Add the command ``conclave check`` to the application."""
    application.command("check")(check)


def check(
    config: Annotated[Path, typer.Option("--config", help="conclave.toml.")],
    public: Annotated[
        Path | None,
        typer.Option(
            "--public", metavar="CSV", help="Public points; print how many of them equal a record."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Read the private rows, and report for every column the fields that do not fit the schema.

    The output is private. The command charges nothing and opens no ledger. The exit code is 0
    if all fields fit, and 1 if a field does not fit.
    """
    from app.cli.init.next_command import after_check
    from app.settings.settings import load_settings

    settings = load_settings(config, os.environ)
    report = _report(settings, public)
    if as_json:
        import msgspec

        typer.echo(msgspec.json.encode(_document(report)).decode())
    else:
        for line in _lines(report):
            typer.echo(line)
        if not report.findings:
            typer.echo(after_check(config, settings, public=public), err=True)
    if report.findings:
        raise typer.Exit(EXIT_DOES_NOT_FIT)


def _report(settings: Settings, public: Path | None) -> SourceReport:
    from app.cli.logs import configure_logs
    from app.cli.opening_progress import OpeningProgress
    from app.release.drawing import check_private_rows, read_points

    configure_logs()
    points = None if public is None else read_points(settings, public)
    with OpeningProgress(transient=True) as progress:
        return check_private_rows(settings, points, progress)


def _document(report: SourceReport) -> dict[str, object]:
    return {
        "private": PRIVATE,
        "rows": report.row_count,
        "fits": not report.findings,
        "findings": [asdict(finding) for finding in report.findings],
        "public_points_equal_share": report.equal_share,
        **({} if report.person_count is None else {"persons": report.person_count}),
    }


def _lines(report: SourceReport) -> list[str]:
    lines = [PRIVATE, *map(_line, report.findings)]
    if report.equal_share is not None:
        lines.append(f"public points: {report.equal_share:.1%} of them equal a record")
    if report.findings:
        return lines
    persons = "" if report.person_count is None else f" about {report.person_count} persons"
    return [*lines, f"all columns of {report.row_count} rows{persons} fit the schema"]


def _line(finding: Finding) -> str:
    """Write one finding as a sentence without any value."""
    place = "rows" if finding.column is None else f'column "{finding.column}"'
    if finding.row_count is None:
        return f"{place}: {finding.problem}"
    rows = "1 row" if finding.row_count == 1 else f"{finding.row_count} rows"
    line = f"{place}: {rows}, the first is row {finding.first_row}: {finding.problem}"
    shown = [f'"{name}"' for name in finding.names[:NAMES_SHOWN_MAX]]
    more = len(finding.names) - len(shown)
    named = ", ".join(shown) + (f" and {more} more" if more else "")
    return f"{line}; public names near it: {named}" if shown else line
