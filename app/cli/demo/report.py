"""The demo's queries, its table of results and its JSON report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import httpx
import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from app.answering.service import Budget
from app.cli.query.client import QueryClient
from app.data.demo_data import demo_queries

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT_SECONDS: Final = 120.0
WINDOW_QUERIES: Final = 250


class Reply(msgspec.Struct, frozen=True):
    """The reply to one query of the demo: an answer, or a refusal, which has no phase."""

    label: str | None = None
    stable: bool | None = None
    phase: str | None = None


class EnsembleFigures(msgspec.Struct, frozen=True):
    """The demo's figures on answers by vote: their counts, and the accuracy of stable ones."""

    answered: int
    unstable: int
    accuracy: float | None


class ClassifierFigures(msgspec.Struct, frozen=True):
    """The demo's figures on the published classifier: counts, and accuracy on held-out rows."""

    answered: int
    accuracy: float | None


class ComparisonFigures(msgspec.Struct, frozen=True):
    """The demo's figures on a second release, whose models are trained on the original labels."""

    answered: int


class Report(msgspec.Struct, frozen=True):
    """The JSON report of the demo (``--json``)."""

    ensemble: EnsembleFigures
    classifier: ClassifierFigures
    without_relabelling: ComparisonFigures
    budget: dict[str, object]
    seconds: float


def ask_all(address: str, title: str) -> list[Reply]:
    """Return the server's replies to queries for every held-out row of the demo, in order.

    A query that is refused because it waited too long for the classifier is sent again.
    """
    queries = demo_queries().vectors
    lines = [msgspec.json.encode({"features": vector}) + b"\n" for vector in queries]
    replies: list[Reply] = []
    with Progress(console=Console(stderr=True)) as progress, QueryClient(address, None) as client:
        task = progress.add_task(f"asking, {title}", total=len(queries))
        for start in range(0, len(lines), WINDOW_QUERIES):
            answered = client.ask(lines[start : start + WINDOW_QUERIES])
            replies += msgspec.convert(answered, list[Reply])
            progress.update(task, completed=len(replies))
    return replies


def read_budget(address: str) -> Budget:
    """Return the server's ``GET /budget`` document."""
    reply = httpx.get(f"{address}/budget", timeout=TIMEOUT_SECONDS)
    return Budget.model_validate_json(reply.content)


def report_of(
    replies: list[Reply], without: list[Reply], budget: Budget, *, seconds: float
) -> Report:
    """Return every figure of the demo, from the replies and the held-out rows' labels.

    Args:
        replies: the replies of the demo's release, one for each held-out row.
        without: the replies of the second release, which does not relabel its rows.
        budget: the budget of the demo's release after the queries.
        seconds: the time since the demo began.

    """
    labels = demo_queries().labels
    ensemble = [pair for pair in zip(replies, labels, strict=True) if pair[0].phase == "ensemble"]
    stable = [pair for pair in ensemble if pair[0].stable]
    published = [
        pair for pair in zip(replies, labels, strict=True) if pair[0].phase == "classifier"
    ]
    return Report(
        ensemble=EnsembleFigures(len(ensemble), len(ensemble) - len(stable), _accuracy(stable)),
        classifier=ClassifierFigures(len(published), _accuracy(published)),
        without_relabelling=ComparisonFigures(sum(reply.phase == "ensemble" for reply in without)),
        budget=budget.model_dump(),
        seconds=round(seconds, 2),
    )


def show(report: Report, address: str) -> None:
    """Print the demo's table of results and the dashboard's address."""
    table = Table("", "answered", "unstable", "accuracy", title="Private answers on held-out rows")
    ensemble, classifier = report.ensemble, report.classifier
    table.add_row(
        "ensemble", str(ensemble.answered), str(ensemble.unstable), _percent(ensemble.accuracy)
    )
    table.add_row("classifier", str(classifier.answered), "", _percent(classifier.accuracy))
    table.add_row("ensemble without relabelling", str(report.without_relabelling.answered), "", "")
    console = Console(stderr=True)
    console.print(table)
    console.print(f"Accuracy is on labels of which one in ten is noise. {report.seconds:.0f} s.")
    console.print(f"Dashboard: {address}/", highlight=False)


def write(report: Report, path: Path) -> None:
    """Write the demo's report as one JSON document."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def _accuracy(pairs: list[tuple[Reply, str]]) -> float | None:
    if not pairs:
        return None
    return sum(reply.label == label for reply, label in pairs) / len(pairs)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.2%}"
