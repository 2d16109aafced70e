"""``conclave audit``: a measured lower bound on epsilon, to compare with the promised one."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.table import Table

    from app.auditing.audit import AuditReport
    from app.settings.settings import Settings

EXIT_EXCEEDED: Final = 1


def register(application: typer.Typer) -> None:
    """Add the command ``conclave audit`` to the application."""
    application.command("audit")(audit)


def audit(
    config: Annotated[Path, typer.Option(help="Configuration: classes, privacy, answers.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer runs, in less than a minute.")
    ] = False,
    http: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="RUNS",
            help="Whole releases to run over HTTP; 0 for none.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compute a lower bound on the epsilon of a configured release, to compare with its claim.

    The command reads no private record: the releases that it runs have generated records.
    """
    from app.auditing.audit import STEPS_LONG, STEPS_QUICK, has_answers
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
    if runs and has_answers(settings):
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

    document = audit_document(report)
    if as_json:
        typer.echo(msgspec.json.encode(document).decode())
    else:
        _print_table(document)


def _print_table(document: Mapping[str, object]) -> None:
    """Print a document for people: the claim, what each adversary shows, the verdict."""
    from rich.console import Console
    from rich.table import Column, Table

    console = Console()
    claim = _part(document, "claim")
    exact, sampled = (
        cast("Mapping[str, Any] | None", document[key]) for key in ("exact", "sampled")
    )
    claimed = f"epsilon {claim['epsilon']:.6g}, delta {claim['delta']:.3g}"
    shown = Table(
        Column("lower bound on epsilon", justify="right"),
        Column("of the claim", justify="right"),
        "shown by",
        title=str(document["mechanism"])
        if exact is None
        else f"{document['mechanism']}: {claimed}",
    )
    if exact is not None:
        _row(shown, exact, "exactly: ")
    for bound in [] if sampled is None else sampled["adversaries"]:
        _row(shown, bound, "sampled: ")
    for draw in cast("Sequence[Mapping[str, Any]]", document["draws"]):
        _row(shown, draw["exact"], f"exactly, {draw['mechanism']}: ")
    served = cast("Mapping[str, Any] | None", document["http"])
    for pair in [] if served is None else served["pairs"]:
        _row(shown, pair, f"over HTTP, {pair['neighbours']}: ")
    console.print(shown)
    if sampled is not None:
        console.print(_sampling(sampled))
    if served is not None:
        console.print(_releases(served))
        for promise, runs in served["broken_promises"].items():
            console.print(f"Broken in {runs} releases: {promise}.")
    for condition in cast("Sequence[str]", document["broken_conditions"]):
        console.print(f"Broken: {condition}.")
    console.print("The claim holds." if document["holds"] else "THE CLAIM IS EXCEEDED.")


def _sampling(sampled: Mapping[str, Any]) -> str:
    """Say what sampling could have shown."""
    limit = sampled["detection_limit"]
    seen = "no epsilon" if limit is None else f"an epsilon from {limit:.4g} on"
    return (
        f"Sampling, {sampled['runs']} runs or more a half and side, sees {seen}; it cannot show"
        f" more than {sampled['largest_shown']:.4g}. Any of its bounds is too large with"
        f" probability {sampled['false_alarm_probability']:.0e} at most."
    )


def _releases(served: Mapping[str, Any]) -> str:
    """Say what whole releases could have told over HTTP."""
    claim, limit = served["claim"], served["detection_limit"]
    seen = "No epsilon would show" if limit is None else f"An epsilon from {limit:.4g} on shows"
    return (
        f"{served['runs']} whole releases ran over HTTP, each with a restart, at epsilon"
        f" {claim['epsilon']:.6g} and delta {claim['delta']:.3g}; {served['tested_on_each_side']}"
        f" a pair and side were tested. {seen} there, and none above"
        f" {served['largest_shown']:.4g}. Any of their bounds is too large with probability"
        f" {served['false_alarm_probability']:.0e} at most."
    )


def _row(table: Table, bound: Mapping[str, Any], how: str) -> None:
    epsilon, share = bound["epsilon"], bound["share_of_claim"]
    if epsilon is None:
        table.add_row("unbounded", "", how + bound["adversary"])
    else:
        table.add_row(f"{epsilon:.4f}", f"{share:.1%}", how + bound["adversary"])


def _part(document: Mapping[str, object], key: str) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", document[key])
