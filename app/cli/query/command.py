"""``conclave query``: send the rows of a CSV to a server, and add the answers to a copy."""

from __future__ import annotations

import csv
import os
import re
import sys
from collections import Counter
from contextlib import contextmanager, nullcontext
from functools import partial
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import typer

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from app.cli.query.client import QueryClient, Reply
    from app.cli.query.table_rows import Row, Table
    from app.data.sources.csv_dialect import CsvDialect

COLUMNS: Final = ("query_id", "label", "stable", "phase", "replayed")
SCORE_COLUMNS: Final = ("score", "bin_lower", "bin_upper", "precision")
PROBLEM: Final = "problem"
EXIT_REFUSED: Final = 1
SCHEME: Final = re.compile(r"https?://", re.IGNORECASE)
URL_SHOWN_MAX: Final = 200
ROWS_A_REQUEST: Final = 500
STANDARD_INPUT: Final = "standard input"


def register(application: typer.Typer) -> None:
    """Add the command ``conclave query`` to the application."""
    application.command("query")(query)


def query(
    *,
    url: Annotated[str, typer.Option("--url", help="Address of the server.")],
    file: Annotated[
        Path | None, typer.Argument(help="CSV with a header line. Default: standard input.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Default: standard output.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", envvar="CONCLAVE_KEY", help="A key with the role query.")
    ] = None,
    precision: Annotated[
        int | None,
        typer.Option(
            "--precision", min=2, max=1000, help="Number of bins of a score. Default: the server's."
        ),
    ] = None,
    separator: Annotated[
        str, typer.Option("--separator", help="Character between the fields, in and out.")
    ] = ",",
    decimal: Annotated[
        str, typer.Option("--decimal", help="Decimal point of the numbers: . or a comma.")
    ] = ".",
    encoding: Annotated[
        str, typer.Option("--encoding", help="Text encoding of the input.")
    ] = "utf-8",
    problems: Annotated[
        bool,
        typer.Option("--problems", help="Add a last column with the reason for each refused row."),
    ] = False,
) -> None:
    """Send every row of a CSV to a server as a query, and write the answers.

    Feature columns are found by their names in the header; other columns are copied.  The output
    has the input columns, followed by query_id, label, stable, phase and replayed.  For a row
    that the server refuses these are empty: the reason is on standard error, and the exit code
    is 1.  If the server answers with scores, score, bin_lower, bin_upper and precision follow.
    Sending a row again is safe: it gets its recorded answer.
    """
    from app.cli.query.client import QueryClient
    from app.settings.data_section import dialect_of

    dialect = dialect_of(separator, decimal, encoding)
    source = None if file == Path("-") else file
    _refuse_to_overwrite(source, output)
    _check_scheme(url)
    with QueryClient(url, key) as client:
        schema = client.schema()
        if precision is not None and "precision" not in schema:
            raise ConfigurationError("--precision", "is for scores, and this server has labels")
        # A file is read twice, so that a bad cell is found before anything is charged.
        count = None if source is None or not source.is_file() else _check(source, schema, dialect)
        with _open_input(source, dialect) as table, _open_output(output) as out:
            answered, refusals = _ask_all(
                client, schema, table, out, count=count, precision=precision, problems=problems
            )
    _tell(answered, refusals)
    if refusals:
        raise typer.Exit(EXIT_REFUSED)


def _check_scheme(url: str) -> None:
    """Refuse an address such as localhost:8000, which no client of HTTP takes."""
    from app.cli.query.client import without_password

    if not SCHEME.match(url):
        host = without_password(url).rpartition("://")[2][:URL_SHOWN_MAX]
        shown = host if host and host.isprintable() else "HOST:PORT"
        problem = f"begins with http:// or https://; did you mean http://{shown} ?"
        raise ConfigurationError("--url", problem)


def _refuse_to_overwrite(source: Path | None, output: Path | None) -> None:
    if source and output and output.exists() and output.samefile(source):
        raise ConfigurationError("--output", f"{output} is the input; write to another file")


def _check(source: Path, schema: dict[str, object], dialect: CsvDialect) -> int:
    """Read a whole file without asking anything, and return its number of rows."""
    from app.cli.query.table_rows import LineWriter

    with _open_input(source, dialect) as table:
        writer = LineWriter(schema, table)
        return sum(1 for row in table.rows() if writer.line(row))


def _ask_all(
    client: QueryClient,
    schema: dict[str, object],
    table: Table,
    out: TextIO,
    *,
    count: int | None,
    precision: int | None,
    problems: bool,
) -> tuple[int, Counter[str]]:
    """Copy ``table`` to ``out`` with its answers.

    Returns:
        The number of rows that got an answer, and of those that did not, by the reason.

    """
    from app.cli.query.table_rows import LineWriter

    writer = LineWriter(schema, table, precision=precision)
    columns = (*COLUMNS, *SCORE_COLUMNS) if "precision" in schema else COLUMNS
    copy = csv.writer(out, lineterminator="\n", delimiter=table.dialect.separator)
    copy.writerow([*table.header, *columns, *([PROBLEM] if problems else [])])
    answered, refusals = 0, Counter[str]()
    rows = table.rows()
    with _progress(count) as advance:
        while window := list(islice(rows, ROWS_A_REQUEST)):
            replies = client.ask([writer.line(row) for row in window])
            copied = map(partial(_row_out, columns), window, replies)
            if problems:
                copied = map(_with_problem, copied, replies)
            copy.writerows(copied)
            out.flush()
            refused = [reply["detail"] for reply in replies if "detail" in reply]
            refusals.update(refused)
            answered += len(window) - len(refused)
            advance(len(window))
    return answered, refusals


def _row_out(columns: Sequence[str], row: Row, reply: Reply) -> list[str]:
    from app.cli.query.client import is_answer

    if not is_answer(reply):
        return [*row.cells, *("" for _ in columns)]
    known = reply.get("bin") or {}
    flat = {**reply, "bin_lower": known.get("lower"), "bin_upper": known.get("upper")}
    return [*row.cells, *(_cell(flat.get(name)) for name in columns)]


def _with_problem(cells: list[str], reply: Reply) -> list[str]:
    return [*cells, str(reply.get("detail", ""))]


def _cell(value: object) -> str:
    """Write booleans as JSON does, and null as an empty cell."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _tell(answered: int, refusals: Counter[str]) -> None:
    typer.echo(f"conclave: {answered} rows answered", err=True)
    for detail, count in refusals.most_common():
        typer.echo(f"conclave: {count} rows refused: {detail}", err=True)


@contextmanager
def _open_input(source: Path | None, dialect: CsvDialect) -> Iterator[Table]:
    """Open a CSV; a byte order mark at its beginning is no part of the header."""
    from app.cli.query.table_rows import Table

    if source is None:
        file = TextIOWrapper(sys.stdin.buffer, encoding=dialect.codec, newline="")
        yield Table(file, STANDARD_INPUT, dialect)
        file.detach()
    else:
        with source.open(encoding=dialect.codec, newline="") as file:
            yield Table(file, os.fspath(source), dialect)


def _open_output(output: Path | None) -> AbstractContextManager[TextIO]:
    if output is None:
        return nullcontext(sys.stdout)
    return output.open("w", encoding="utf-8", newline="")


@contextmanager
def _progress(count: int | None) -> Iterator[Callable[[int], None]]:
    """Show rows done and the time left on a terminal; say nothing elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("rows", total=count)
        yield lambda rows: progress.advance(task, rows)
