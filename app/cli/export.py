"""``conclave export``: write the published classifier in the form of ``GET /classifier``."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from app.errors import ConfigurationError, VerificationError


class Format(StrEnum):
    """The output formats of ``conclave export``."""

    JSON = "json"
    ONNX = "onnx"


def register(application: typer.Typer) -> None:
    """Add the command ``conclave export`` to the application."""
    application.command("export")(export)


def export(
    file_format: Annotated[
        Format, typer.Option("--format", help="The JSON document, or an ONNX model.")
    ],
    config: Annotated[
        Path | None,
        typer.Option("--config", help="conclave.toml. Default: the embedded demo."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file. Default: standard output.")
    ] = None,
) -> None:
    """Write the published classifier of a release, if there is one."""
    if file_format is Format.JSON:
        write_document(_published(config), output)
        return
    if output is None and sys.stdout.isatty():
        raise ConfigurationError("--output", "an ONNX model is binary; name a file or a pipe")
    _write_model(_published(config), output)


def write_document(document: str, output: Path | None) -> None:
    """Write a document byte for byte, plus a final newline on a terminal."""
    if output is None:
        typer.echo(document, nl=sys.stdout.isatty())
    else:
        output.write_bytes(document.encode())


def _write_model(document: str, output: Path | None) -> None:
    """Write a document as an ONNX model."""
    from app.release.classifier.classifier_document import read_document
    from app.release.classifier.onnx.onnx_model import to_onnx

    model = to_onnx(read_document(document))
    if output is None:
        sys.stdout.buffer.write(model)
    else:
        output.write_bytes(model)


def _published(config: Path | None) -> str:
    """Return the classifier's document from its entry."""
    from app.ledger.ledger import open_ledger
    from app.settings.settings import load_settings

    settings = load_settings(config, os.environ)
    ledger = open_ledger(settings.ledger_url, create=False, name=settings.release.name)
    try:
        published = ledger.read_state().classifier
    finally:
        ledger.close()
    if published is None:
        raise VerificationError("no classifier is published yet; export it after the switch")
    return published.classifier
