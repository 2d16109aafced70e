"""``conclave simulate``: run the answering mechanism on vote counts from a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from app.errors import ConfigurationError

TRIALS_MAX = 10**9
VOTE_COUNT = re.compile(r"[0-9]{1,9}")


def register(application: typer.Typer) -> None:
    """Add the command ``conclave simulate`` to the application."""
    application.command()(simulate)


def simulate(
    config: Annotated[Path, typer.Option(help="Configuration: classes, privacy, answers.")],
    votes: Annotated[
        Path, typer.Option(help="CSV without header: one line per query, one column per class.")
    ],
    trials: Annotated[
        int, typer.Option(min=1, max=TRIALS_MAX, help="Number of runs, each from a new state.")
    ],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Run the answering mechanism on vote counts from a file, and count the outcomes."""
    import os

    import msgspec
    from rich.console import Console
    from rich.table import Table

    from app.noise.system import SystemNoise
    from app.release.simulation import simulate as run
    from app.settings.settings import load_simulation_settings

    settings = load_simulation_settings(config, dict(os.environ))
    table = read_votes(votes, class_count=len(settings.data.classes))
    outcomes = run(settings, table, trials=trials, noise=SystemNoise())
    if json:
        typer.echo(msgspec.json.encode({"trials": trials, "outcomes": outcomes}).decode())
        return
    shown = Table("outcome", "count", "share", title=f"{trials} trials")
    for outcome, count in sorted(outcomes.items(), key=lambda item: -item[1]):
        shown.add_row(outcome, str(count), f"{count / trials:.6f}")
    Console().print(shown)


def read_votes(path: Path, *, class_count: int) -> list[list[int]]:
    """Return the vote counts in a file; every line must have the same sum (number of voters).

    Raises:
        ConfigurationError: a line has wrong numbers or another sum; the error names the line.

    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError("--votes", f"cannot read {path}") from None
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line]
    rows = [_vote_line(line, number, class_count) for number, line in numbered]
    if not rows:
        raise ConfigurationError("--votes", f"{path} has no line")
    first, votes = numbered[0][0], sum(rows[0])
    for (number, _), row in zip(numbered, rows, strict=True):
        if sum(row) != votes:
            problem = f"line {number} sums to {sum(row)}, line {first} to {votes}: both are k"
            raise ConfigurationError("--votes", problem)
    if votes == 0:
        raise ConfigurationError("--votes", f"line {first} sums to 0: there is no vote")
    return rows


def _vote_line(line: str, number: int, class_count: int) -> list[int]:
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != class_count:
        problem = f"line {number} has {len(cells)} columns, there are {class_count} classes"
        raise ConfigurationError("--votes", problem)
    if not all(VOTE_COUNT.fullmatch(cell) for cell in cells):
        raise ConfigurationError("--votes", f"line {number} has a cell that is no vote count")
    return [int(cell) for cell in cells]
