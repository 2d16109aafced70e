"""``conclave demo``: private answers and a published classifier on generated data.

Two real releases on generated rows are served over HTTP and get the same queries, which are rows
that no model was trained on. The first release is the demo itself, which relabels its rows before
training: it replaces their labels by those of a rule that is drawn at random. The second release
does not relabel, and spends the epsilon of the relabelling on its answers. All printed figures come
from HTTP replies.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.cli.background_server import BackgroundServer
    from app.cli.demo.report import Report
    from app.settings.settings import Settings

COMPARISON_SHARES = {"relabel": "0", "answers": "0.7", "classifier": "0.3"}
COMPARISON_QUERIES = 1_000_000
REMOVAL_TRIES_MAX: Final = 50
REMOVAL_WAIT_SECONDS: Final = 0.02
_NOTES_NOTHING: Final[dict[tuple[str, ...], object]] = {("ledger", "head_file"): False}
"""A ledger that is deleted with its folder leaves no note where others keep theirs."""


def register(application: typer.Typer) -> None:
    """Add the command ``conclave demo`` to the application."""
    application.command()(demo)


def demo(
    exit_: Annotated[bool, typer.Option("--exit", help="End after the queries.")] = False,
    json: Annotated[
        Path | None, typer.Option("--json", help="Write the report to this file.")
    ] = None,
) -> None:
    """Open the demo's release anew, serve it, query it, and show the results."""
    import signal
    import time

    from app.cli.demo.report import show, write
    from app.cli.logs import configure_logs
    from app.cli.web_server import end_process

    configure_logs(level=logging.WARNING)
    # A wish to end is one however it comes: the server drains, the folder is removed.
    for wish in (signal.SIGTERM, signal.SIGINT):  # a shell's background jobs ignore the second
        signal.signal(wish, signal.default_int_handler)
    started = time.monotonic()
    try:
        with _fresh_folder() as folder, _serving(_demo_settings(folder)) as server:
            report = _play(server, folder, started)
            show(report, server.address)
            if json is not None:
                write(report, json)
            if not exit_:
                server.wait_for_interrupt()
    except KeyboardInterrupt:
        end_process(128 + signal.SIGINT)
    end_process(0)


def _play(server: BackgroundServer, folder: Path, started: float) -> Report:
    """Ask both releases the same queries, one after the other."""
    import time

    from app.cli.demo.report import ask_all, read_budget, report_of

    replies = ask_all(server.address, "with relabelling")
    budget = read_budget(server.address)
    with _serving(_comparison_settings(folder)) as comparison:
        without = ask_all(comparison.address, "without relabelling")
    return report_of(replies, without, budget, seconds=time.monotonic() - started)


def _demo_settings(folder: Path) -> Settings:
    import os

    from app.settings.settings import DEMO_LEDGER_NAME, demo_settings
    from app.settings.toml_and_environment import sqlite_address

    environ = dict(os.environ)
    settings = demo_settings(environ, folder=folder)
    if settings.ledger_url != sqlite_address(folder / DEMO_LEDGER_NAME):
        return settings
    return demo_settings(environ, folder=folder, overrides=_NOTES_NOTHING)


def _comparison_settings(folder: Path) -> Settings:
    """Give the relabel share to the answers; nothing else cuts the run short."""
    import os

    from app.settings.settings import demo_settings
    from app.settings.toml_and_environment import sqlite_address

    overrides: dict[tuple[str, ...], object] = {
        ("privacy", "shares", name): Decimal(share) for name, share in COMPARISON_SHARES.items()
    }
    return demo_settings(
        dict(os.environ),
        overrides=overrides
        | {
            ("release", "name"): "demo-without-relabelling",
            ("answers", "queries"): COMPARISON_QUERIES,
            ("answers", "after"): "halt",
            ("answers", "on_cutoff"): "halt",
            ("ledger", "url"): sqlite_address(folder / "without-relabelling.db"),
            ("server", "port"): 0,
        }
        | _NOTES_NOTHING,
    )


@contextmanager
def _fresh_folder() -> Iterator[Path]:
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="conclave-demo-"))
    try:
        yield folder
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder, into which the thread of an interrupted opening may still write a file."""
    import shutil
    import time

    for _ in range(REMOVAL_TRIES_MAX):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(REMOVAL_WAIT_SECONDS)
    typer.echo(f"conclave: warning: {folder} could not be removed", err=True)


@contextmanager
def _serving(settings: Settings) -> Iterator[BackgroundServer]:
    from app.cli.background_server import BackgroundServer
    from app.cli.opening_progress import OpeningProgress

    server = BackgroundServer(settings)
    with OpeningProgress() as progress:
        server.start(progress)
    try:
        yield server
    finally:
        server.stop()
