"""The printed form of a plan: sentences first, then tables of figures.

On a terminal the tables have frames and colours and are as wide as the terminal. In a pipe each
table row is one line of plain text of any length, so that ``grep`` and ``awk`` can be used.

The module also contains a short explanation of each parameter of a plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from app.planning.output.count_format import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import JustifyMethod

MEANINGS: Final = {
    "feasible": "can work at this n",
    "calibration": "constants of the answers",
    "mechanism": "what answers",
    "output": "what an answer is",
    "best_mechanism": "needs the fewest votes at this budget",
    "best_calibration": "with these constants",
    "epsilon": "of the release",
    "delta": "of the release",
    "sampling": "share of the rows that reach the ensemble",
    "relabel_epsilon": "what the draw may cost on those rows",
    "relabel_parameter": "of the draw's weights, before its numerical error",
    "answers_epsilon": "what the answers may cost on those rows",
    "answers_delta": "what the answers may cost on those rows",
    "unit": "what neighbours replace, and n counts",
    "n": "private rows",
    "n_prime": "rows that reach the ensemble",
    "rows_needed": "smallest n for a release like this",
    "m": "fresh answers of the ensemble",
    "m_o": "answers before the classifier",
    "m_o_wanted": "queries that the classifier's guarantee asks for",
    "T": "unstable answers until the ensemble ends",
    "k": "chunks, learners, votes",
    "chunk_rows": "rows of the smallest chunk",
    "classes": "labels",
    "learner": "of the published classifier",
    "vc_dimension": "of the class that relabels, or a bound of it",
    "hypotheses": "that learners search",
    "variant": "how often the threshold's noise is drawn",
    "b1": "scale of the threshold's noise, in votes",
    "b2": "scale of a query's noise, in votes",
    "delta_svt": "part of delta for the hits",
    "delta_release": "part of delta for a label that should be a hit",
    "variance": "of the noise on a count, in votes squared",
    "lead_needed": "votes by which a label worth answering leads",
    "lead_loses": "its chance of losing to the noise",
    "votes_needed.profile": "k where two thirds agree",
    "votes_needed.svt one-threshold": "k where two thirds agree",
    "votes_needed.svt refreshed": "k where two thirds agree",
    "votes_needed.certified": "k where two thirds agree",
    "votes_needed.noisy-vote": "k where two thirds agree",
    "alpha": "order of the divergence, or accuracy target",
    "lnR": "price of one unstable answer",
    "word_bits": "bits of a fresh word",
    "nodes": "of the certificate's functions",
    "vertices": "of the polygon that bounds neighbouring words",
    "answer_time.evaluation_seconds": "k votes on one query, made-up learners, here",
    "answer_time.seconds": "the same, padding included",
    "answer_time.together": "whether all votes are worked out at once",
    "answer_time.seconds_max": "answers.query_seconds_max",
    "answer_time.opens": "else the release is refused at its opening",
    "charge.relabel": "(epsilon, delta) to relabel the rows",
    "charge.answers": "(epsilon, delta) of all answers",
    "charge.classifier": "(epsilon, delta) of the classifier",
    "charge.statistics": "(epsilon, delta) of the statistics",
    "relabel": "bound on what the draw costs in errors",
    "classifier": "bound on what the draw costs in errors",
    "1e-2": "distance at which hits are this probable",
    "1e-4": "distance at which hits are this probable",
    "needed": "distance of a query worth answering",
    "needed_hits": "its chance of an unstable answer",
    "agreement_needed": "share of the votes that puts it there",
    "unanimous": "distance of unanimous votes",
    "unanimous_hits": "their chance of an unstable answer",
    "hits_max": "chance at which m queries reach the cutoff",
    "T_real": "before rounding up",
    "eps_prime": "of the bootstrap's copies",
    "eps_hat": "of one copy of a record",
    "delta_hat": "of one copy of a record",
    "lambda": "scale of the threshold's noise, in votes",
    "w": "threshold, in votes",
    "m_o_real": "before rounding up",
    "after": "what follows query m",
    "on_cutoff": "what follows unstable answer T",
    "labels_by_mechanism.profile": "labels with these k votes, 90% agree",
    "labels_by_mechanism.svt one-threshold": "labels with these k votes, 90% agree",
    "labels_by_mechanism.svt refreshed": "labels with these k votes, 90% agree",
    "labels_by_mechanism.certified": "labels with these k votes, 90% agree",
    "labels_by_mechanism.noisy-vote": "labels with these k votes, 90% agree",
    "statistics.few_points.alpha": "error of a value, table on few public points",
    "statistics.many_points.alpha": "error of a value, table on many public points",
    "proven": "whatever the rows; else where its updates last",
    "updates": "counts with noise of their own",
    "cells": "that rows are counted by",
    "statistics.few_points.hypotheses": "of the table",
    "statistics.many_points.hypotheses": "of the table",
    "prediction.people": "on whom it was tried: public shares, or public points",
    "prediction.hypotheses": "made-up rules that were tried",
    "prediction.learners": "fitted for each rule",
    "prediction.labels": "that most made-up rules give within a factor of two",
    "labels": "that most made-up rules give within a factor of two",
    "labels_likelihood": "share of the rules that do",
    "labels_otherwise": "what the middle one of the others gives",
    "labels_mean": "the mean over rules",
    "labels_low": "nine rules in ten give more",
    "labels_high": "one rule in ten gives more",
    "labels_unlimited": "by the middle rule, if m did not end them",
    "unpredicted": "why nothing was tried out",
    "cliff.labels": "that the worst leaf leaves",
    "hypotheses_at_risk": "share of the rules that give less than half the mean",
    "publish_at_once": "a published classifier would be better",
    "classifier_learner": "what would publish it, with all of epsilon",
    "recommendation.mechanism": "what should answer",
    "recommendation.calibration": "with these constants",
    "recommendation.k": "learners",
    "recommendation.T": "unstable answers",
    "recommendation.chunk_rows": "rows of a chunk",
    "recommendation.shares.relabel": "of epsilon",
    "recommendation.shares.answers": "of epsilon",
    "labels_at_worst": "that the worst leaf leaves",
    "recommendation.accuracy": "share of made-up labels that made-up rules give",
    "recommendation.likeliest_label": "that the likeliest label alone is",
}

Record = dict[str, object]

COUNTS: Final = {"rows": "rows", "rows_explicit": "explicitly", "queries": "queries"}
CONSTANTS: Final = (
    "* up to a constant, which the theorem does not state; explicitly: with the constants of"
    " textbooks. Queries are public points in PAP 10."
)
LIST_STYLES: Final = {"reasons": "red", "advice": "yellow", "notes": "dim"}
ENTRIES_SHOWN: Final = 12
# A pipe has no width; no table is wider than this.
PIPE_COLUMNS: Final = 1000
# Below this many columns there is no room for a column of sentences.
NARROW_COLUMNS: Final = 72
OFTEN: Final = 0.1
# Of the sparse vector far out; it may be zero in doubles.
CHANCE_LEAST: Final = 1e-18
SETTINGS: Final = {
    "privacy.epsilon": "epsilon {:g}",
    "answers.cutoff": "cutoff {:,.0f}",
    "data.rows": "{:,.0f} rows",
    "data.persons": "{:,.0f} persons",
}


def print_json(document: Mapping[str, object]) -> None:
    """Print a plan as one JSON document on stdout."""
    typer.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())


def print_document(document: Mapping[str, object]) -> None:
    """Print a plan on stdout: sentences, tables, then reasons, advice and notes."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPE_COLUMNS)
    if "summary" in document:
        _print_release(console, document)
    table = document.get("table", document)
    if isinstance(table, dict) and "threshold" in table and "summary" not in document:
        console.print(_thresholds(console, table["threshold"], table["hit_probability"]))
        console.print()
    console.print(_parameters(console, document))
    if "sample_complexity" in document:
        console.print(_theorems(console, _records(document["sample_complexity"])))
        console.print(CONSTANTS)
    _print_lists(console, document, ("notes",))


def _print_lists(console: Console, document: Mapping[str, object], names: Sequence[str]) -> None:
    for name in names:
        style = LIST_STYLES[name]
        for line in _items(document.get(name)):
            console.print(f"[{style}]{name.removesuffix('s')}:[/] {escape(str(line))}")


def _print_release(console: Console, document: Mapping[str, object]) -> None:
    """Print what a release gives, before its parameters."""
    style = "bold green" if document["feasible"] else "bold red"
    for number, line in enumerate(_items(document["summary"])):
        console.print(escape(str(line)), style="" if number else style)
    _print_lists(console, document, ("reasons", "advice"))
    console.print()
    if document["answers_by_agreement"]:
        console.print(_agreements(console, document))
        console.print()
    if document["changes"]:
        console.print(_changes(console, document))
        console.print()


def _agreements(console: Console, document: Mapping[str, object]) -> Table:
    """Show what queries get, by how widely the learners agree on them."""
    stable = document["noisy_vote"] is None
    cutoff = f"labels before unstable answer {document['T']}"
    heading = cutoff if stable else "labels, of which 1 in 100 may be wrong"
    # Where decisions are counted there is no end to labels, or no label that is safe.
    headings = [*(["unstable"] if stable else []), heading]
    if stable and "decisions_moved" in document:
        headings = ["unstable"]
    shares = ["learners that agree", *headings]
    table = _table(console, "how many queries are answered", *shares, numbers=(1, 2))
    limit = cast("int", document["m"])
    for each in _records(document["answers_by_agreement"]):
        answers, labels = cast("int", each["answers"]), cast("int", each["labels"])
        probability = cast("float | None", each["unstable_probability"])
        once = [] if probability is None else [_chance(probability)]
        style = "green" if answers >= limit else "yellow" if labels >= limit / 10 else "red"
        share = cast("float", each["agreement"])
        row = [f"{share:.0%}", *once, f"[{style}]{count(labels)}[/]"]
        table.add_row(*row[: len(shares)])
    return table


def _chance(probability: float) -> str:
    """Write a probability as people say it."""
    if probability >= OFTEN:
        return f"{probability:.0%}"
    return f"1 in {count(round(1 / max(probability, CHANCE_LEAST)))}"


def _changes(console: Console, document: Mapping[str, object]) -> Table:
    """Show what one other setting would give, beside what is planned."""
    usual = {
        cast("float", each["agreement"]): each["labels"]
        for each in _records(document["answers_by_agreement"])
    }[0.9]
    table = _table(
        console, "what a change would give", "setting", "labels, 90% agree", numbers=(1,)
    )
    table.add_row("as configured", count(cast("int", usual)))
    for each in _records(document["changes"]):
        labels = cast("int | None", each["labels"])
        name = SETTINGS[str(each["setting"])].format(each["value"])
        table.add_row(name, "no such release" if labels is None else count(labels))
    return table


def _parameters(console: Console, document: Mapping[str, object]) -> Table:
    """Show every single value of a document under its dotted name."""
    columns = ["parameter", "value", "meaning"]
    has_room = not console.is_terminal or console.width >= NARROW_COLUMNS
    shown = columns if has_room else columns[:2]
    table = _table(console, "conclave plan", *shown, wrapping=(2,))
    for name, value in _flat(document):
        meaning = MEANINGS.get(name) or MEANINGS.get(name.split(".")[-1], "")
        if document.get("unit") == "person":
            meaning = meaning.replace("rows", "persons")
        table.add_row(*[name, _text(value), meaning][: len(shown)])
    return table


def _thresholds(console: Console, thresholds: object, probabilities: object) -> Table:
    """Show about a dozen distances, evenly spread, the last one included."""
    rows = list(zip(_items(thresholds), _items(probabilities), strict=True))
    table = _table(console, "hits by distance", "distance", "a hit below", "probability")
    step = max(1, (len(rows) - 1) // ENTRIES_SHOWN)
    for distance in sorted({*range(0, len(rows), step), len(rows) - 1}):
        threshold, probability = rows[distance]
        table.add_row(str(distance), str(threshold), _text(probability))
    return table


def _theorems(console: Console, theorems: list[Record]) -> Table:
    """Show what each theorem asks for, and of what."""
    columns = ["theorem", "setting", *COUNTS.values(), "error"]
    numbers = range(2, len(columns))
    table = _table(console, "sample complexity", *columns, numbers=tuple(numbers))
    for theorem in theorems:
        counts = [_count(theorem[name]) for name in COUNTS]
        name = f"{theorem['theorem']}{'' if theorem['constant'] == 'as proved' else ' *'}"
        table.add_row(name, str(theorem["setting"]), *counts, _count(theorem["error"]))
    return table


def _table(
    console: Console,
    title: str,
    *columns: str,
    numbers: tuple[int, ...] = (),
    wrapping: tuple[int, ...] = (),
) -> Table:
    """Return an empty table: framed on a terminal, bare in a pipe."""
    made = []
    for index, name in enumerate(columns):
        justify: JustifyMethod = "right" if index in numbers else "left"
        wraps = console.is_terminal and (index in wrapping or console.width < NARROW_COLUMNS)
        made.append(Column(name, justify=justify, no_wrap=not wraps, overflow="fold"))
    if console.is_terminal:
        return Table(*made, title=title, title_justify="left")
    return Table(*made, title=title, title_justify="left", box=None, pad_edge=False)


def _count(value: object) -> str:
    return "" if value is None else f"{value:.4g}"


def _flat(document: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield single values under dotted names; absent ones and lists are left out."""
    for name, value in document.items():
        if isinstance(value, dict) and name != "curves":
            yield from _flat(value, f"{prefix}{name}.")
        elif name == "charges":
            yield from _charges(value)
        elif value is not None and not isinstance(value, dict | list | tuple):
            yield prefix + name, value


def _charges(charges: object) -> Iterator[tuple[str, object]]:
    """Yield what each mechanism may use, under its name."""
    for charge in cast("list[dict[str, float]]", charges):
        name = f"charge.{charge['mechanism']}"
        yield name, f"({charge['epsilon']:g}, {charge['delta']:.6g})"


def _items(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []


def _records(value: object) -> list[Record]:
    return cast("list[Record]", value)


def _text(value: object) -> str:
    if isinstance(value, msgspec.Raw):
        return f"{float(bytes(value)):.10g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
