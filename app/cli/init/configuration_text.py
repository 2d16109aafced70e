"""The text of a configuration: TOML with comments, for people to read and change."""

from __future__ import annotations

import json
import re
from datetime import date
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from app.data.field_values import TRUE_OR_FALSE, iso_date

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.cli.init.columns import Column, Table

WIDTH: Final = 96
WHOLE_MAX: Final = 1e15
BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
# A test of a category is worth its place where so many people have it.
SHARE_MIN: Final = 0.05
HEAD: Final = """\
# {purpose}
# `conclave init` wrote this file; change what is not right.
#
# Three different files: records.csv, named by data.source, has the private records;
# public.csv, for --public, has rows that anybody may know; questions.csv has the queries.
#
# Everything in this file is public: bounds, categories, cuts and shares must come from
# public knowledge, never from the private records.
# Check the bounds: make them as wide as the values can be; `thresholds` may stay as they are.
# A number outside its bounds is moved to the nearest bound; a text that is not among the
# categories counts as the category "other". docs/settings.md explains every setting.
"""
SAMPLED: Final = "   # the range of the sample; widen it to all possible values"
PUBLISH: Final = "A release that publishes a classifier."
ONLINE: Final = "A release that answers queries online, and publishes a classifier after them."
PUBLISH_SECTIONS: Final = """\
[classifier]
learner = "auto"            # chosen by public numbers: a linear or kernel score, or a drawn tree
class = "trees"             # the rules from which a tree is drawn, if `auto` chooses to draw one
depth = 2                   # of such a tree; `bins` would say how finely it divides numbers

[privacy]
epsilon = 1.0
delta = 1e-6                # well below 1 / rows

[privacy.shares]            # all of it for the classifier
relabel = 0
answers = 0
classifier = 1
"""
ONLINE_SECTIONS: Final = """\
[hypotheses]
class = "trees"
depth = 2                   # shallow and coarse rules: their models agree on more queries
bins = 8                    # for a number without `thresholds`
"""
ONLINE_BUDGET: Final = """\
[classifier]
bins = 32                   # cuts of the published classifier, at quantiles of the queries
tests = {}                  # and all categories

[privacy]
epsilon = 1.0
delta = 1e-6                # well below 1 / rows

[privacy.shares]
relabel = 0.1
answers = 0.6
classifier = 0.3

[answers]
queries = 10000             # then the published classifier answers, without limit
cutoff = 20                 # unstable answers that the ensemble may give
after = "classifier"
on_cutoff = "classifier"
"""
SERVER: Final = """\
[server]
host = "127.0.0.1"
port = 8000
# keys_file = "keys.toml"   # needed to be reached from other machines: conclave keys
"""


def configuration_text(table: Table, *, source: str, rows: int | None, online: bool) -> str:
    """Return the TOML text of a whole configuration.

    Args:
        table: the public facts about the table, with at least one feature.
        source: the path of the private records, for the setting ``data.source``.
        rows: the public number of records; None if it is not public.
        online: True if an ensemble answers queries, False if a classifier is published.

    """
    parts = [
        HEAD.format(purpose=ONLINE if online else PUBLISH),
        f"[release]\nname = {_text(_release_name(table.label))}\n",
        _data(table, source, rows),
        *map(_feature, table.features),
        *_left_out(table.columns),
        *([ONLINE_SECTIONS, *_tests(table.features), ONLINE_BUDGET] if online else []),
        *([] if online else [PUBLISH_SECTIONS]),
        SERVER,
    ]
    return "\n".join(parts)


def _release_name(label: str) -> str:
    """Return a name for the release, which may not have a slash."""
    return re.sub(r"[^\w.-]+", "-", label).strip("-") or "release"


def _data(table: Table, source: str, rows: int | None) -> str:
    """Write ``[data]``."""
    lines = [
        "[data]",
        f"source = {_text(source)}   # private; a path is relative to this file",
        f"rows = {rows}   # public; opening checks it"
        if rows
        else "# rows = 30000            # optional: the number of rows, if it is public",
        f"label = {_text(table.label)}   # the column to predict",
        _list("classes", table.classes),
        "# what stands for a missing value, besides an empty cell:",
        _list("missing", table.missing),
    ]
    return "\n".join(lines) + "\n"


def _feature(column: Column) -> str:
    """Write one table of ``[[data.features]]``."""
    lines = ["[[data.features]]", f"name = {_text(column.name)}", f'kind = "{column.kind}"']
    if column.kind == "boolean":
        shares = dict(zip(column.categories, column.category_shares, strict=False))
        share = [f"true_share = {shares[TRUE_OR_FALSE[True]]!r}"] if shares else []
        return "\n".join([*lines, *share]) + "\n"
    as_written: Callable[[float], object] = _date if column.kind == "date" else float
    if column.bounds is not None:
        note = SAMPLED if column.bounds_are_sampled else ""
        lines.append(_list("bounds", [*map(as_written, column.bounds)]) + note)
    lists: dict[str, Sequence[object]] = {
        "thresholds": [*map(as_written, column.cuts)],
        "threshold_shares": column.cut_shares,
        "categories": column.categories,
        "category_shares": column.category_shares,
    }
    lines += [_list(key, values) for key, values in lists.items() if values]
    return "\n".join(lines) + "\n"


def _left_out(columns: Sequence[Column]) -> list[str]:
    """Write a comment about the columns that are no features."""
    lines = [
        f"#   {json.dumps(column.name)}: {column.left_out}" for column in columns if column.left_out
    ]
    return ["\n".join(["# Columns that are left out:", *lines]) + "\n"] if lines else []


def _tests(columns: Sequence[Column]) -> list[str]:
    """Write the categories that a middling share of people have, where shares are known."""
    lists = [
        _list(_key(column.name), tested_categories(column))
        for column in columns
        if column.category_shares
    ]
    head = "[hypotheses.tests]          # of categories, those that 5 to 95 % of people have"
    return ["\n".join([head, *lists]) + "\n"] if lists else []


def tested_categories(column: Column) -> list[str]:
    """Return the categories that get a feature test, a yes-or-no question such as region = north.

    These are the categories of medium frequency or, if there are none, the most frequent ones.
    """
    shares = dict(zip(column.categories, column.category_shares, strict=True))
    chosen = [name for name, share in shares.items() if SHARE_MIN <= share <= 1 - SHARE_MIN]
    if len(chosen) == len(shares) == len(("one", "other")):
        del chosen[1]
    return chosen or [max(shares, key=shares.__getitem__)]


def _date(day: float) -> date:
    """Return a day, which TOML writes bare."""
    return date.fromisoformat(iso_date(day))


def _list(key: str, values: Sequence[object]) -> str:
    """Write a list, on lines of its own where it is long."""
    written = [_text(value) for value in values]
    line = f"{key} = [{', '.join(written)}]"
    if len(line) <= WIDTH:
        return line
    # Blanks in a text must not be broken at, so that they are other characters meanwhile.
    joined = " ".join(text.replace(" ", "\0") + "," for text in written)
    lines = wrap(joined, WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    return "\n".join([f"{key} = [", *(f"    {each.replace(chr(0), ' ')}" for each in lines), "]"])


def _key(name: str) -> str:
    """Write a key, quoted where it must be."""
    return name if BARE_KEY.fullmatch(name) else _text(name)


def _text(value: object) -> str:
    """Write a TOML string, number or date."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str):
        # Of what a string of JSON may hold bare, TOML refuses one character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < WHOLE_MAX
    return f"{value:.0f}" if is_whole else repr(value)
