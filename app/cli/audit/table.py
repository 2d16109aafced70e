"""``conclave audit`` for people: the claim, what each adversary shows, the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rich.console import Console
from rich.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def print_table(document: Mapping[str, object]) -> None:
    """Print a document of ``conclave audit`` on standard output."""
    console = Console()
    claim, exact, sampled = (_part(document, key) for key in ("claim", "exact", "sampled"))
    claimed = f"epsilon {claim['epsilon']:.6g}, delta {claim['delta']:.3g}"
    shown = Table(
        Column("lower bound on epsilon", justify="right"),
        Column("of the claim", justify="right"),
        "shown by",
        title=f"{document['mechanism']}: {claimed}",
    )
    _row(shown, exact, "exactly: ")
    for bound in sampled["adversaries"]:
        _row(shown, bound, "sampled: ")
    for draw in cast("Sequence[Mapping[str, Any]]", document["draws"]):
        _row(shown, draw["exact"], f"exactly, {draw['mechanism']}: ")
    served = cast("Mapping[str, Any] | None", document["http"])
    for pair in [] if served is None else served["pairs"]:
        _row(shown, pair, f"over HTTP, {pair['neighbours']}: ")
    console.print(shown)
    limit = sampled["detection_limit"]
    seen = "no epsilon" if limit is None else f"an epsilon from {limit:.4g} on"
    console.print(
        f"Sampling, {sampled['runs']} runs or more a half and side, sees {seen}; it cannot show"
        f" more than {sampled['largest_shown']:.4g}. Any of its bounds is too large with"
        f" probability {sampled['false_alarm_probability']:.0e} at most."
    )
    if served is not None:
        console.print(_releases(served))
        for promise, runs in served["broken_promises"].items():
            console.print(f"Broken in {runs} releases: {promise}.")
    for condition in cast("Sequence[str]", document["broken_conditions"]):
        console.print(f"Broken: {condition}.")
    console.print("The claim holds." if document["holds"] else "THE CLAIM IS EXCEEDED.")


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
