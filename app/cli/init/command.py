"""``conclave init``: write a configuration from public facts, or write made-up rows for one."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.cli import numeric_options as numbers
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from app.cli.init.columns import Column, Table
    from app.cli.init.dictionary import Dictionary

DEFAULT_CONFIGURATION: Final = Path("conclave.toml")
DEFAULT_RECORDS: Final = "records.csv"
TWIN_NAME: Final = "twin.csv"
COMMAND: Final = "init"
OUTPUT: Final = "--output"
STANDARD_OUTPUT: Final = Path("-")
NAMES_SHOWN_MAX: Final = 5
# A name of which less is alike is another name.
LIKENESS: Final = 0.7


def register(application: typer.Typer) -> None:
    """Add the command ``conclave init`` to the application."""
    application.command(COMMAND)(init)


def init(
    *,
    header: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="The records; only their first line is read."),
    ] = None,
    public: Annotated[
        Path | None, typer.Option(metavar="CSV", help="A public sample of rows; never the records.")
    ] = None,
    dictionary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A CSV of name, kind, low, high, values; or a Table Schema in .json.",
        ),
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column to predict.")] = None,
    classes: Annotated[
        str | None, typer.Option(metavar="A,B", help="Labels in that column.")
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A column to leave out; repeatable.")
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="A text for a missing value; repeatable."),
    ] = None,
    rows: Annotated[str | None, typer.Option(help="Number of rows, if it is public.")] = None,
    online: Annotated[
        bool | None,
        typer.Option(
            "--online/--publish", help="Answer queries, or publish a classifier (the default)."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write; - is standard output. Default: conclave.toml; with --config,"
            " twin.csv next to it.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    twin: Annotated[
        str | None,
        typer.Option(metavar="N", help="Also write N made-up rows that fit, as twin.csv."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the made-up rows.")] = 0,
    config: Annotated[
        Path | None,
        typer.Option(help="With --twin: write made-up rows for this file, and no configuration."),
    ] = None,
) -> None:
    """Write a configuration from public facts; no row of the records is read.

    The names of columns come from the records' header line; kinds, bounds, categories and cuts
    come from a public sample or a data dictionary. In a terminal the command asks for missing
    facts.
    """
    twin_count = None if twin is None else numbers.count("--twin", twin)
    if config is not None:
        if twin_count is None:
            raise ConfigurationError("--config", "is for --twin; -o names the file to write")
        _write_twin(config, output or config.parent / TWIN_NAME, twin_count, seed, force=force)
        return
    target = output or DEFAULT_CONFIGURATION
    if target == STANDARD_OUTPUT and twin_count is not None:
        raise ConfigurationError("--twin", "needs a configuration in a file; give another --output")
    twin_target = None if twin_count is None else target.parent / TWIN_NAME
    for path in filter(None, (target, twin_target)):
        _check_target(path, header, force=force)
    facts = _Facts(
        header=header,
        public=public,
        dictionary=dictionary,
        label=label,
        classes=classes,
        skipped=tuple(skip or ()),
        missing=tuple(missing or ()),
        row_count=None if rows is None else numbers.count("--rows", rows),
        online=online,
    )
    _write_configuration(facts, target)
    if twin_count is not None and twin_target is not None:
        _write_twin(target, twin_target, twin_count, seed, force=force)


@dataclass(frozen=True, kw_only=True)
class _Facts:
    """The options that say what is known."""

    header: Path | None
    public: Path | None
    dictionary: Path | None
    label: str | None
    classes: str | None
    skipped: tuple[str, ...]
    missing: tuple[str, ...]
    row_count: int | None
    online: bool | None


@dataclass(frozen=True)
class _Terminal:
    """The operator's terminal; questions go to stderr."""

    def ask(self, question: str, default: str) -> str:
        """Return the operator's typed reply."""
        try:
            shown = bool(default)
            return str(typer.prompt(question, default=default, show_default=shown, err=True))
        except typer.Abort:
            problem = "ended before the last question; nothing was written"
            raise ConfigurationError(COMMAND, problem) from None

    def tell(self, line: str) -> None:
        """Print a line."""
        typer.echo(line, err=True)


def _write_configuration(facts: _Facts, target: Path) -> None:
    """Write a configuration, once it is known to load, and say what comes next."""
    from app.cli.init import questions
    from app.cli.init.configuration_text import configuration_text
    from app.cli.init.next_command import after_init

    terminal = _Terminal() if sys.stdin.isatty() else None
    online, rows = facts.online, facts.row_count
    if online is None and terminal is not None:
        online = questions.asked_path(terminal)
    if terminal is not None and facts.header is facts.public is facts.dictionary is None:
        records = questions.asked_records(terminal, target.parent / DEFAULT_RECORDS)
        _refuse_records(OUTPUT, target, records)
        facts = replace(facts, header=records)
    table = _table(facts, terminal)
    if rows is None and terminal is not None:
        rows = questions.asked_rows(terminal)
    text = configuration_text(
        table, source=_source(facts.header, target), rows=rows, online=bool(online)
    )
    _check_text(text)
    _write(target, text)
    left_out = [column.name for column in table.columns if column.left_out]
    more = f"; left out: {', '.join(left_out)}" if left_out else ""
    is_piped = target == STANDARD_OUTPUT
    written = DEFAULT_CONFIGURATION if is_piped else target
    place = "standard output" if is_piped else target
    typer.echo(f"wrote {place}: {len(table.features)} features{more}", err=is_piped)
    following = after_init(written, public=facts.public, rows_known=rows is not None)
    typer.echo(following, err=is_piped)


def _table(facts: _Facts, terminal: _Terminal | None) -> Table:
    """Put together what is known of the table, and ask for the rest."""
    from app.cli.init import questions
    from app.cli.init.columns import Table
    from app.cli.init.dictionary import Dictionary, read_dictionary
    from app.cli.init.sample import classes_in, missing_in, read_sample

    for option, path in (("--public", facts.public), ("--dictionary", facts.dictionary)):
        _refuse_records(option, path, facts.header)
    known = Dictionary() if facts.dictionary is None else read_dictionary(facts.dictionary)
    sample = {} if facts.public is None else read_sample(facts.public)
    names = _names(facts, known, sample)
    if not names and terminal is not None:
        names = questions.asked_names(terminal)
    label = facts.label or known.label
    if label is None and names and terminal is not None:
        label = questions.asked_label(terminal, names)
    if label is not None:
        _check_label(label, names, may_be_absent=facts.header is None)
    missing = dict.fromkeys((*known.missing, *facts.missing)) or missing_in(sample)
    classes = questions.listed(facts.classes or "")
    if not classes and label is not None:
        in_dictionary = known.columns[label].categories if label in known.columns else ()
        classes = in_dictionary or classes_in(sample.get(label, ()), tuple(missing))
        if not classes and terminal is not None:
            classes = questions.asked_classes(terminal, label)
    if label is not None and classes:
        _check_classes(classes, sample.get(label, ()), missing)
    columns = _columns([name for name in names if name != label], facts, known, sample, missing)
    if terminal is not None:
        columns = questions.asked_columns(terminal, columns)
    _refuse_unknown(names, label, classes, columns)
    return Table(columns=tuple(columns), label=label or "", classes=classes, missing=tuple(missing))


def _check_label(label: str, names: Sequence[str], *, may_be_absent: bool) -> None:
    """Refuse a label that the header lacks; a public sample may have no labels."""
    folded = {name.casefold(): name for name in names}
    near = get_close_matches(label.casefold(), folded, 1, LIKENESS)
    if label in names or (may_be_absent and label.casefold() not in near):
        return
    meant = f'; there is "{folded[near[0]]}"' if near else ""
    raise ConfigurationError("--label", f'no column is named "{label}"{meant}')


def _check_classes(classes: Sequence[str], labels: Sequence[str], missing: Collection[str]) -> None:
    """Refuse classes among which a label of the public sample is not."""
    unknown = sorted({label for label in labels if label and label not in missing} - {*classes})
    if unknown:
        shown = ", ".join(f'"{label}"' for label in unknown[:NAMES_SHOWN_MAX])
        raise ConfigurationError("--classes", f"the sample has {shown}, which they lack")


def _names(
    facts: _Facts, known: Dictionary, sample: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Return the columns: of the header, else of the sample and then of the dictionary."""
    from app.cli.init.header_line import read_header

    if facts.header is not None:
        return read_header(facts.header)
    return tuple(dict.fromkeys((*sample, *known.columns)))


def _columns(
    names: Sequence[str],
    facts: _Facts,
    known: Dictionary,
    sample: Mapping[str, Sequence[str]],
    missing: Mapping[str, None] | Sequence[str],
) -> list[Column]:
    """Return what dictionary and sample say of each column."""
    from app.cli.init.columns import Column
    from app.cli.init.sample import described

    for name in facts.skipped:
        if name not in names:
            raise ConfigurationError("--skip", f'no column is named "{name}", or it is the label')
    found = [
        Column(name=name, left_out="--skip")
        if name in facts.skipped
        else known.columns.get(name, Column(name=name))
        for name in names
    ]
    return [described(column, sample.get(column.name, ()), tuple(missing)) for column in found]


def _refuse_unknown(
    names: Sequence[str], label: str | None, classes: Sequence[str], columns: Sequence[Column]
) -> None:
    """Refuse in one line that has everything that is not known."""
    if not names:
        problem = "there is no terminal to ask in: give --header, --public or --dictionary"
        raise ConfigurationError(COMMAND, problem)
    lacking = [] if label is not None else ["--label NAME"]
    lacking += [] if classes else ["--classes A,B"]
    undescribed = [f'"{column.name}"' for column in columns if not column.is_described]
    if undescribed:
        more = len(undescribed) - NAMES_SHOWN_MAX
        shown = ", ".join(undescribed[:NAMES_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
        lacking.append(f"for {shown} a --dictionary or a --public sample, or --skip NAME")
    if lacking:
        raise ConfigurationError(
            COMMAND, f"there is no terminal to ask in: give {'; '.join(lacking)}"
        )
    if all(column.left_out for column in columns):
        raise ConfigurationError(COMMAND, "every column is left out; a release needs a feature")


def _check_text(text: str) -> None:
    """Refuse what no command would load, by the key at fault."""
    import tomllib
    from decimal import Decimal

    from app.settings.settings import Settings

    tables = tomllib.loads(text, parse_float=Decimal)
    Settings.read({**tables, "ledger": {"url": "sqlite:///conclave.db"}})


def _write_twin(config: Path, target: Path, row_count: int, seed: int, *, force: bool) -> None:
    """Write made-up rows that fit a configuration, and say how they are served."""
    from app.cli.init.made_up_rows import made_up_csv
    from app.cli.init.next_command import after_twin
    from app.settings.settings import load_settings

    settings = load_settings(config, os.environ)
    _check_target(target, Path(settings.source), force=force)
    _refuse_part(target, settings.source)
    _write(target, made_up_csv(settings.data, row_count, seed), settings.data.encoding)
    typer.echo(f"wrote {target}: {row_count} made-up rows")
    typer.echo(after_twin(config, target, None if settings.data.rows is None else row_count))


def _check_target(target: Path, records: Path | None, *, force: bool) -> None:
    """Refuse to write over a file that is there, over the records most of all."""
    if target == STANDARD_OUTPUT:
        return
    if not target.parent.is_dir():
        raise ConfigurationError(OUTPUT, f"there is no folder {target.parent}")
    if not target.exists():
        return
    _refuse_records(OUTPUT, target, records)
    if not force:
        raise ConfigurationError(OUTPUT, f"{target} is there already; --force writes over it")


def _refuse_records(option: str, path: Path | None, records: Path | None) -> None:
    """Refuse the records where another file belongs."""
    if path is None or records is None or not path.exists() or not records.exists():
        return
    if path.samefile(records):
        raise ConfigurationError(option, f"{path} is the file of the private records")


def _refuse_part(target: Path, source: str) -> None:
    """Refuse a file that is, or would be, one of several files of records."""
    from app.data.sources.encoded_parts import list_files
    from app.data.sources.stored_files import SCHEME_END
    from app.errors import DataError

    if target == STANDARD_OUTPUT or SCHEME_END in source:
        return
    is_new = not target.exists()
    try:
        with suppress(DataError, OSError):  # a source, or a file, that is not there
            if is_new:
                target.touch()
            if any(target.samefile(part.file.path) for part in list_files(source)):
                problem = f"{target} would be one of the files of data.source, the private records"
                raise ConfigurationError(OUTPUT, problem)
    finally:
        if is_new:
            target.unlink(missing_ok=True)


def _source(header: Path | None, target: Path) -> str:
    """Return the path of the records as seen from the configuration's folder."""
    if header is None:
        return DEFAULT_RECORDS
    here = target.absolute().parent
    place = header.absolute()
    return str(place.relative_to(here) if place.is_relative_to(here) else place)


def _write(target: Path, text: str, encoding: str = "utf-8") -> None:
    if target == STANDARD_OUTPUT:
        typer.echo(text, nl=False)
        return
    try:
        target.write_bytes(text.encode(encoding))
    except UnicodeEncodeError:
        problem = "lacks a character of a category or class"
        raise ConfigurationError("data.encoding", problem) from None
    except OSError as error:
        raise ConfigurationError(OUTPUT, f"{target}: {error.strerror}") from None
