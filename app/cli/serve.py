"""``conclave serve``: open or continue a release and serve it over HTTP."""

from __future__ import annotations

import gc
from functools import partial
from pathlib import Path
from typing import Annotated

import typer


def register(application: typer.Typer) -> None:
    """Add the command."""
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
            help="A hash noted before, from GET /ledger/head; without it in the chain, refuse.",
        ),
    ] = None,
    even_if_hopeless: Annotated[
        bool,
        typer.Option(
            "--even-if-hopeless", help="Open a release that is hopeless all the same, on record."
        ),
    ] = False,
) -> None:
    """Serve a release: open it on first start, continue it afterwards."""
    import os

    from app.cli.logs import configure_logs, level_of
    from app.cli.opening_progress import OpeningProgress
    from app.cli.web_server import WebServer, address_of, end_process, listen
    from app.main import Server
    from app.settings.settings import demo_settings, load_settings

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
        where = f"{settings.release.name} on {address_of(listening)}"
        server.on_open = partial(_serving, where)
        # On stdout: a start that is refused says on stderr why.
        typer.echo(f"conclave: opening {where}")
        WebServer(application, server, listening).serve_until_stopped()
    end_process(0)


def _serving(where: str) -> None:
    """Say that the release has opened, once it has."""
    _keep()
    typer.echo(f"conclave: serving {where}")


def _keep() -> None:
    """Keep what an opening leaves from every later collection: it stays as long as the process."""
    gc.collect()
    gc.freeze()


def _warn(line: str) -> None:
    typer.echo(f"conclave: warning: {line}", err=True)
