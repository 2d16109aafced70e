"""Made-up rows of every source, and what is asked about them."""

from __future__ import annotations

import csv
import gzip
import sqlite3
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import parquet

if TYPE_CHECKING:
    from pathlib import Path

Row: TypeAlias = tuple[float | None, float, str, str]

COLUMNS = ("age", "income", "group", "answer")
GROUPS = ("common", "rare", "elsewhere", "?")
SQL = 'select age, income, grp as "group", answer from people'
ROW_COUNT = 600
MISSING_SHARE = 0.02
GROUP_SHARES = (0.8, 0.12, 0.05, 0.03)
RARE = 1
# Of a release in calibration paper, which needs a row a learner after sampling.
PAPER_ROW_COUNT = 276_900


def label_of(rule: str, age: float, income: float, *, is_rare: bool) -> int:
    """Return the class of a person, by the rule of the rows."""
    if rule == "three":
        return int(age >= 30) + int(age >= 65)
    if rule == "diagonal":
        return int(age + income >= 100)
    if rule == "box":
        return int(25 <= age < 75 and 25 <= income < 75)
    if rule == "interval":
        return int(25 <= age < 75)
    return int(age >= 50 or is_rare)


def people(rule: str, classes: tuple[str, ...], count: int = ROW_COUNT) -> list[Row]:
    """Return rows that follow a rule; about half of the chunks hold nobody young and rare."""
    generator = np.random.default_rng(11)
    ages, incomes = generator.uniform(0, 100, (2, count)).round(2).tolist()
    groups = generator.choice(len(GROUPS), count, p=GROUP_SHARES)
    missing = generator.random(count) < MISSING_SHARE
    rows: list[Row] = []
    for place in range(count):
        label = label_of(rule, ages[place], incomes[place], is_rare=groups[place] == RARE)
        age = None if missing[place] else ages[place]
        rows.append((age, incomes[place], GROUPS[groups[place]], classes[label]))
    return rows


def write_source(folder: Path, form: str, rows: list[Row]) -> dict[str, Any]:
    """Write rows in a form, and return what ``[data]`` says of them."""
    path = folder / {"csv": "rows.csv", "csv.gz": "rows.csv.gz"}.get(form, f"rows.{form}")
    if form in ("csv", "csv.gz"):
        opened = gzip.open if form == "csv.gz" else open
        with opened(path, "wt", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(["" if value is None else value for value in row] for row in rows)
    elif form == "sqlite":
        _write_database(path, rows)
        return {"source": f"sqlite:///{path}", "query": SQL}
    elif form == "npz":
        _write_arrays(path, rows)
    else:
        _write_parquet(folder, form, rows)
    return {"source": path.name}


def _write_database(path: Path, rows: list[Row]) -> None:
    database = sqlite3.connect(path)
    database.execute("create table people (age real, income real, grp text, answer text)")
    database.executemany("insert into people values (?, ?, ?, ?)", rows)
    database.commit()
    database.close()


def _write_arrays(path: Path, rows: list[Row]) -> None:
    age, income, group, answer = zip(*rows, strict=True)
    numbers = np.array([np.nan if value is None else value for value in age])
    np.savez(
        path, age=numbers, income=np.array(income), group=np.array(group), answer=np.array(answer)
    )


def _write_parquet(folder: Path, form: str, rows: list[Row]) -> None:
    """Write one file, or a folder of two parts."""
    names = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    table = pa.table({name: list(values) for name, values in names.items()})
    if form == "parquet":
        parquet.write_table(table, folder / "rows.parquet")
        return
    parts, half = folder / "rows.parts", len(rows) // 2
    parts.mkdir()
    parquet.write_table(table.slice(0, half), parts / "part-0.parquet")
    parquet.write_table(table.slice(half), parts / "part-1.parquet")


def write_paper_rows(folder: Path) -> dict[str, Any]:
    """Write the many rows that the constants as printed need, of one number."""
    ages, incomes = np.random.default_rng(5).uniform(0, 100, (2, PAPER_ROW_COUNT)).round(3)
    answers = np.where(ages >= 50, "yes", "no")
    group = np.where(np.arange(PAPER_ROW_COUNT) % 9, "common", "rare")
    np.savez(folder / "rows.npz", age=ages, income=incomes, group=group, answer=answers)
    return {"source": "rows.npz"}


def questions(seed: int, count: int) -> list[list[Any]]:
    """Return vectors as a client posts them; some are missing something, some are odd."""
    generator = np.random.default_rng([17, seed])
    ages, incomes = generator.uniform(0, 100, (2, count)).round(3).tolist()
    groups = generator.choice(len(GROUPS), count, p=(0.5, 0.4, 0.06, 0.04))
    asked: list[list[Any]] = [
        [age, income, GROUPS[group]]
        for age, income, group in zip(ages, incomes, groups.tolist(), strict=True)
    ]
    asked[3] = [None, incomes[3], None]
    asked[4] = [-5, 1000.0, "never heard of"]
    return asked
