"""``conclave learn``: publish a classifier at once, without a server.

If the configuration also provides for answers by vote, a server answers by vote first; the switch
is the moment at which the models stop and the published classifier answers instead.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.cli.export import write_document
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from app.release.classifier.published_classifier import PublishedClassifier
    from app.settings.settings import Settings

SPENT: Final = (
    "the classifier is published, and its share of epsilon is spent for good; keep {ledger}, "
    "which records this"
)


def register(application: typer.Typer) -> None:
    """Add the command ``conclave learn`` to the application."""
    application.command("learn")(learn)


def learn(
    config: Annotated[
        Path | None,
        typer.Option("--config", help="conclave.toml. Default: the embedded demo."),
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(
            "--public",
            metavar="CSV",
            help="Public points: rows of features, by name. They must not come from the records.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file. Default: standard output.")
    ] = None,
    even_if_hopeless: Annotated[
        bool,
        typer.Option(
            "--even-if-hopeless", help="Open even a hopeless release; the ledger records it."
        ),
    ] = False,
) -> None:
    """Publish a classifier at once, which spends the classifier's share of epsilon, once.

    Public points restrict the class of rules from which the classifier is drawn. A server on
    the same ledger serves the classifier, and answers by it after the switch.
    """
    if output is not None and not output.parent.is_dir():
        raise ConfigurationError("--output", f"there is no folder {output.parent}")
    from app.settings.settings import load_settings

    settings = load_settings(config, os.environ)
    published = _learn(settings, public, even_if_hopeless=even_if_hopeless)
    _tell(SPENT.format(ledger=_ledger_in_words(settings.ledger_url)))
    try:
        write_document(published.json.decode(), output)
    except OSError as error:
        problem = "it is published all the same, and `conclave export` writes it"
        raise ConfigurationError("--output", f"{error.strerror}: {problem}") from None
    if config is not None and output is not None:
        from app.cli.init.next_command import after_learn

        typer.echo(after_learn(config), err=True)


def _learn(
    settings: Settings, public: Path | None, *, even_if_hopeless: bool
) -> PublishedClassifier:
    from app.cli.logs import configure_logs
    from app.cli.opening_progress import OpeningProgress
    from app.main import learn_from_settings
    from app.noise.system import SystemNoise

    configure_logs()
    with OpeningProgress() as progress:
        return learn_from_settings(
            settings,
            public=public,
            noise=SystemNoise(),
            progress=progress,
            tell=_tell,
            even_if_hopeless=even_if_hopeless,
        )


def _ledger_in_words(url: str) -> str:
    """Return the file of a ledger, or words for a database, whose address may have a password."""
    from app.ledger.database.database import is_shared
    from app.ledger.database.sqlite import database_path

    return "the ledger's database" if is_shared(url) else f"the ledger {database_path(url)}"


def _tell(line: str) -> None:
    typer.echo(f"conclave: {line}", err=True)
