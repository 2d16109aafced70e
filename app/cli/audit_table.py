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
    console.print(shown)
    limit = sampled["detection_limit"]
    seen = "no epsilon" if limit is None else f"an epsilon from {limit:.4g} on"
    console.print(
        f"Sampling, {sampled['runs']} runs or more a half and side, sees {seen}; it cannot show"
        f" more than {sampled['largest_shown']:.4g}. Any of its bounds is too large with"
        f" probability {sampled['false_alarm_probability']:.0e} at most."
    )
    for condition in cast("Sequence[str]", document["broken_conditions"]):
        console.print(f"Broken: {condition}.")
    console.print("The claim holds." if document["holds"] else "THE CLAIM IS EXCEEDED.")


def _row(table: Table, bound: Mapping[str, Any], how: str) -> None:
    epsilon, share = bound["epsilon"], bound["share_of_claim"]
    if epsilon is None:
        table.add_row("unbounded", "", how + bound["adversary"])
    else:
        table.add_row(f"{epsilon:.4f}", f"{share:.1%}", how + bound["adversary"])


def _part(document: Mapping[str, object], key: str) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", document[key])
