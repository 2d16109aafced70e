"""The release that the pages' examples ask: some people of an income, made up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 3000
CONFIGURATION = """\
[release]
name = "adult-income"
[data]
source = "records.csv"
label = "income"
classes = ["<=50K", ">50K"]
[[data.features]]
name = "age"
kind = "numeric"
bounds = [17, 90]
thresholds = [25, 40, 60]
[[data.features]]
name = "workclass"
kind = "categorical"
categories = ["Private", "State-gov"]
[hypotheses]
class = "trees"
depth = 1
[privacy]
epsilon = 20
[privacy.shares]
relabel = {relabel}
answers = 0.4
classifier = 0.2
statistics = {statistics}
[answers]
queries = 200
ensemble = 100
{answers}
"""
HYPOTHESES = '[{"tree": {"label": ">50K"}}]'


def write_release(
    folder: Path, *, relabel: float = 0.1, statistics: float = 0.3, answers: str = ""
) -> None:
    """Write ``conclave.toml``, its records, public points and hypotheses into a folder."""
    text = CONFIGURATION.format(relabel=relabel, statistics=statistics, answers=answers)
    (folder / "conclave.toml").write_text(text, encoding="utf-8")
    generator = np.random.default_rng(2)
    ages = generator.integers(17, 91, ROWS)
    work = generator.choice(["Private", "State-gov"], ROWS)
    rows = [
        f"{age},{kind},{'>50K' if age >= 40 else '<=50K'}"
        for age, kind in zip(ages, work, strict=True)
    ]
    (folder / "records.csv").write_text("\n".join(["age,workclass,income", *rows]) + "\n")
    others = zip(generator.integers(17, 91, 200), reversed(work[:200]), strict=True)
    points = [f"{age},{kind}" for age, kind in others]
    (folder / "public.csv").write_text("\n".join(["age,workclass", *points]) + "\n")
    (folder / "hypotheses.json").write_text(HYPOTHESES)
