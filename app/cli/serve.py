"""``conclave serve``: open or continue a release and serve it over HTTP."""

from __future__ import annotations

import gc
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from app.cli.opening_progress import OpeningProgress


def register(application: typer.Typer) -> None:
    """Add the command ``conclave serve`` to the application."""
    application.command()(serve)


def serve(
    config: Annotated[
        Path | None,
        typer.Option(help="Configuration file; without one, the embedded public demo."),
    ] = None,
    expect_head: Annotated[
        str | None,
        typer.Option(
            "--expect-head",
            metavar="HASH",
            help="A noted hash from GET /ledger/head; refuse a chain without it.",
        ),
    ] = None,
    even_if_hopeless: Annotated[
        bool,
        typer.Option(
            "--even-if-hopeless", help="Open even a hopeless release; the ledger records it."
        ),
    ] = False,
) -> None:
    """Serve a release: open it on first start, continue it afterwards."""
    gc.disable()  # imports leave nothing to collect, and a tenth of their time goes into a search
    import os

    from app.cli.init.next_command import after_serve
    from app.cli.logs import configure_logs, level_of
    from app.cli.opening_progress import OpeningProgress
    from app.cli.web_server import WebServer, address_of, end_process, listen, place_of
    from app.main import Server
    from app.settings.settings import demo_settings, load_settings

    gc.enable()
    configure_logs()
    environment = dict(os.environ)
    settings = demo_settings(environment) if config is None else load_settings(config, environment)
    configure_logs(level=level_of(settings.logs.level), console=settings.logs.format == "console")
    with OpeningProgress() as progress:
        server = Server(
            settings,
            progress=progress,
            warn=_warn,
            expect_head=expect_head,
            even_if_hopeless=even_if_hopeless,
        )
        application = server.application()
        listening = listen(settings.server.host, settings.server.port)
        web_server = WebServer(application, server, listening)
        address = address_of(listening)
        lines = [f"conclave: serving {settings.release.name} on {address}"]
        lines += after_serve(config, settings, address, is_terminal=sys.stdout.isatty())
        server.on_open = partial(_opened, progress, lines)
        # On stdout: a start that is refused says on stderr why.
        typer.echo(f"conclave: opening {settings.release.name} on {address}")
        if web_server.grpc_listening is not None:
            typer.echo(f"conclave: gRPC on {place_of(web_server.grpc_listening)}")
        web_server.serve_until_stopped()
    end_process(0)


def _opened(progress: OpeningProgress, lines: list[str]) -> None:
    """End the bars, and say that the release has opened and what comes next."""
    _keep()
    progress.end()  # they would be drawn again ten times a second for as long as it serves
    for line in lines:
        typer.echo(line)


def _keep() -> None:
    """Keep what an opening leaves from every later collection: it stays as long as the process."""
    gc.collect()
    gc.freeze()


def _warn(line: str) -> None:
    typer.echo(f"conclave: warning: {line}", err=True)
