"""``conclave plan`` for people: one table of parameters, then what to know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    "votes_needed.noisy-vote": "k where two thirds agree",
    "alpha": "order of the divergence, or accuracy target",
    "lnR": "price of one unstable answer",
    "word_bits": "bits of a fresh word",
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
}
COUNTS: Final = {"rows": "rows", "rows_explicit": "explicitly", "queries": "queries"}
CONSTANTS: Final = (
    "* up to a constant, which the theorem does not state; explicitly: with the constants of"
    " textbooks. Queries are public points in PAP 10."
)
LISTS: Final = ("reasons", "advice", "notes")
ENTRIES_SHOWN: Final = 12


def print_document(document: Mapping[str, object]) -> None:
    """Print a plan's document as tables on stdout."""
    console = Console(highlight=False)
    table = document.get("table", document)
    if isinstance(table, dict) and "threshold" in table:
        console.print(_thresholds(table["threshold"], table["hit_probability"]))
    parameters = Table(
        Column("parameter", no_wrap=True),
        Column("value", no_wrap=True),
        Column("meaning"),
        title="conclave plan",
    )
    for name, value in _flat(document):
        meaning = MEANINGS.get(name) or MEANINGS.get(name.split(".")[-1], "")
        parameters.add_row(name, _text(value), meaning)
    console.print(parameters)
    if "sample_complexity" in document:
        console.print(_theorems(_items(document["sample_complexity"])))
        console.print(CONSTANTS, soft_wrap=True)
    for name in LISTS:
        for line in _items(document.get(name)):
            console.print(f"{name.removesuffix('s')}: {escape(str(line))}", soft_wrap=True)


def _thresholds(thresholds: object, probabilities: object) -> Table:
    """Show about a dozen distances, evenly spread, the last one included."""
    rows = list(zip(_items(thresholds), _items(probabilities), strict=True))
    table = Table("distance", "a hit below", "probability", title="hits by distance")
    step = max(1, (len(rows) - 1) // ENTRIES_SHOWN)
    for distance in sorted({*range(0, len(rows), step), len(rows) - 1}):
        threshold, probability = rows[distance]
        table.add_row(str(distance), str(threshold), _text(probability))
    return table


def _theorems(theorems: list[object]) -> Table:
    """Show what each theorem asks for, and of what."""
    table = Table(
        *(Column(name, no_wrap=True) for name in ("theorem", "setting")),
        *(Column(name, justify="right", no_wrap=True) for name in COUNTS.values()),
        Column("error", justify="right", no_wrap=True),
        title="sample complexity",
    )
    for theorem in cast("list[dict[str, object]]", theorems):
        counts = [_count(theorem[name]) for name in COUNTS]
        name = f"{theorem['theorem']}{'' if theorem['constant'] == 'as proved' else ' *'}"
        table.add_row(name, str(theorem["setting"]), *counts, _count(theorem["error"]))
    return table


def _count(value: object) -> str:
    return "" if value is None else f"{value:.4g}"


def _flat(document: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield single values under dotted names; absent ones and lists are left out."""
    for name, value in document.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        elif name == "charges":
            yield from _charges(value)
        elif value is not None and not isinstance(value, list | tuple):
            yield prefix + name, value


def _charges(charges: object) -> Iterator[tuple[str, object]]:
    """Yield what each mechanism may use, under its name."""
    for charge in cast("list[dict[str, float]]", charges):
        name = f"charge.{charge['mechanism']}"
        yield name, f"({charge['epsilon']:g}, {charge['delta']:.6g})"


def _items(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []


def _text(value: object) -> str:
    if isinstance(value, msgspec.Raw):
        return f"{float(bytes(value)):.10g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
