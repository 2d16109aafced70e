"""A hint about the next command to run, printed after a command's output.

On the way from a configuration to the first answer, each command names the next one:

* ``conclave init`` names ``plan``, and ``plan`` names ``check``.
* ``check`` names ``learn`` if the release publishes a classifier, else ``serve``.
* ``learn`` names ``serve``.
* ``serve`` names an example query, ``query`` and ``verify``, for another terminal.

Each hint is one line, which begins with ``next: ``. Where output is kept, for example in the log of
a container, ``serve`` prints its first hint only: the lines come with every start, and one query
shows that the server answers.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Final

from app.data.field_values import iso_date
from app.data.schema import BooleanFeature, DateFeature, NumericFeature

if TYPE_CHECKING:
    from pathlib import Path

    from app.data.schema import Feature, Schema
    from app.settings.settings import Settings

NEXT: Final = "next: "
FREE: Final = "at no charge: "
ROWS_SHOWN: Final = 30_000


def after_init(config: Path, *, public: Path | None, rows_known: bool) -> str:
    """Return the hint after ``conclave init`` wrote a configuration."""
    rows = "" if rows_known else f" --rows {ROWS_SHOWN}"
    note = "" if rows_known else "   # in place of 30000: your number of rows"
    return f"{NEXT}conclave plan {_of(config, public)}{rows}{note}"


def after_twin(config: Path, rows: Path, row_count: int | None) -> str:
    """Return the hint after made-up rows were written: how to serve them with a separate ledger.

    Args:
        config: the path of the configuration that the rows fit.
        rows: the path of the made-up rows.
        row_count: the number of made-up rows; None if the configuration sets no number of rows.

    """
    source = shlex.quote(str(rows))
    count = "" if row_count is None else f" CONCLAVE_DATA__ROWS={row_count}"
    ledger = shlex.quote(f"sqlite:///{rows.with_suffix('.db')}")
    places = f"CONCLAVE_DATA__SOURCE={source}{count} CONCLAVE_LEDGER__URL={ledger}"
    return f"{FREE}{places} conclave serve {_of(config, None)}"


def after_plan(config: Path, *, public: Path | None) -> str:
    """Return the hint that follows a feasible plan."""
    return f"{NEXT}conclave check {_of(config, public)}"


def after_check(config: Path, settings: Settings, *, public: Path | None) -> str:
    """Return the hint that follows a check in which all rows fit."""
    if settings.privacy.shares.answers > 0:
        return f"{NEXT}conclave serve {_of(config, None)}"
    return f"{NEXT}conclave learn {_of(config, public)} -o classifier.json"


def after_learn(config: Path) -> str:
    """Return the hint that follows the publication of a classifier."""
    return f"{NEXT}conclave serve {_of(config, None)}"


def after_serve(
    config: Path | None, settings: Settings, address: str, *, is_terminal: bool
) -> list[str]:
    """Return the hints after a server's start: one query, many queries, and verification.

    Args:
        config: the path of the configuration; None for the embedded demo.
        settings: the settings of the server.
        address: the URL of the server.
        is_terminal: whether the output is a terminal; elsewhere there is one hint, the first.

    """
    body = json.dumps({"features": _example(settings.data.public_schema())}, ensure_ascii=False)
    key = [] if settings.server.keys_file is None else ["-H", "Authorization: Bearer KEY"]
    content = ["-H", "Content-Type: application/json"]
    ask = ["curl", "-s", f"{address}/query", *content, *key, "-d", body]
    many = "" if settings.server.keys_file is None else " --key KEY"
    lines = [
        shlex.join(ask),
        f"conclave query --url {address}{many} questions.csv > answered.csv",
    ]
    if config is not None:
        lines.append(f"conclave verify {_of(config, None)}")
    return [f"{NEXT}{line}" for line in (lines if is_terminal else lines[:1])]


def _example(schema: Schema) -> dict[str, float | str]:
    """Return a made-up query that fits the schema."""
    return {feature.name: _value(feature) for feature in schema.features}


def _value(feature: Feature) -> float | str:
    """Return a value in the middle of a feature's bounds, or its first category."""
    if isinstance(feature, BooleanFeature):
        return True
    if not isinstance(feature, NumericFeature):
        return feature.categories[0]
    middle = feature.lower / 2 + feature.upper / 2
    if isinstance(feature, DateFeature):
        return iso_date(middle)
    whole = round(middle)
    return whole if feature.lower <= whole <= feature.upper else middle


def _of(config: Path, public: Path | None) -> str:
    """Return the options that name files, quoted for a shell."""
    points = [] if public is None else ["--public", str(public)]
    return shlex.join(["--config", str(config), *points])
