"""A small private CSV whose queries are answered or unstable by choice.

Two features and one rule: who is 50 or older is approved, and so is a younger
member of the rare group.  A chunk holds eight rows, and every second chunk
holds no young member of the rare group: about half of the learners are wrong
about such a query, the votes are split, and it is unstable.  Everywhere else
nearly all of them agree.  The rule is in the hypothesis class, so this holds
with relabelling and without.

With 2,400 learners, 0.6 of epsilon for the answers, delta 1e-12 and T = 3, an agreed
query is unstable with probability 1e-8, and a split one answered with 3e-8.
``chances`` works that out for every release that is written here, and refuses
one on which its test would fail by chance.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from app.settings.settings import load_settings
from tests.builders.server.chances import CHUNK_ROWS, check_chances

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from app.settings.settings import Settings
    from tests.builders.server.chances import Asked

Row: TypeAlias = tuple[str, str, str]

ENSEMBLE_SIZE = 2400
ROW_COUNT = CHUNK_ROWS * ENSEMBLE_SIZE
# Half of the chunks miss a group of this share of the rows: (1 - share)^8 = 1/2.
RARE_YOUNG_SHARE = 1 - 0.5 ** (1 / CHUNK_ROWS)
RARE_OLD_SHARE = 0.02
COMING_OF_AGE = 50

TEMPLATE = """\
[release]
name = "members"

[data]
source = "members.csv"
label = "approved"
classes = ["no", "yes"]
missing = ["?"]

[[data.features]]
name = "age"
kind = "numeric"
bounds = [0, 100]
thresholds = [50]
threshold_shares = [0.5]

[[data.features]]
name = "group"
kind = "categorical"
categories = ["common", "rare"]
category_shares = [0.92, 0.08]

[hypotheses]
{hypotheses}

[learner]
{learner}

[student]
{student}

[classifier]
{classifier}

[privacy]
{privacy}

[privacy.shares]
{shares}

[answers]
{answers}

[server]
port = 0
"""
DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "hypotheses": {"class": '"trees"', "depth": "2"},
    "privacy": {"epsilon": "6", "delta": "1e-12"},
    "learner": {"rule": '"canonical"'},
    "student": {},
    "classifier": {},
    "shares": {"relabel": "0.3", "answers": "0.1", "classifier": "0.6"},
    "answers": {
        "queries": "40",
        "cutoff": "3",
        "ensemble": str(ENSEMBLE_SIZE),
        "after": '"classifier"',
        "on_cutoff": '"halt"',
    },
}


@dataclass(frozen=True)
class SmallRelease:
    """A folder with a configuration and its private rows.

    Attributes:
        folder: where everything of the release lies.
        changes: what differs from the defaults above, by table, as TOML; a
            table with a rule or an estimator replaces the default learner.

    """

    folder: Path
    changes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        """The configuration file."""
        return self.folder / "conclave.toml"

    @property
    def source(self) -> Path:
        """The private rows."""
        return self.folder / "members.csv"

    @property
    def ledger(self) -> Path:
        """The database of the ledger."""
        return self.folder / "conclave.db"

    def write(
        self, rows: Sequence[Row] | None = None, *, asked: Asked | None = None
    ) -> SmallRelease:
        """Write rows and configuration, and return the release itself.

        Args:
            rows: private rows of a test's own, of which nothing is checked.
            asked: new queries whose answers a test relies on; as many as the
                limits allow where it is absent.

        Raises:
            AssertionError: the rows are those of this module, and such a test
                would fail by chance too often.

        """
        write_rows(self.source, private_rows() if rows is None else rows)
        self.config.write_text(self.text(), encoding="utf-8")
        if rows is None:
            check_chances(self.settings(), asked)
        return self

    def text(self) -> str:
        """Return the configuration."""
        tables = {name: dict(DEFAULTS[name]) for name in DEFAULTS}
        for name, changes in self.changes.items():
            tables[name] = dict(changes) if name == "learner" else tables[name] | dict(changes)
        return TEMPLATE.format(
            **{
                name: "\n".join(f"{key} = {value}" for key, value in table.items())
                for name, table in tables.items()
            }
        )

    def settings(self, environ: Mapping[str, str] | None = None) -> Settings:
        """Return the settings as a server reads them."""
        return load_settings(self.config, environ or {})

    def copy_to(self, folder: Path) -> SmallRelease:
        """Return the same release, its ledger included, in another folder."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return SmallRelease(folder, self.changes)


def private_rows(seed: int = 7, count: int = ROW_COUNT) -> list[Row]:
    """Return so many rows of age, group and approval that follow the rule above."""
    generator = np.random.default_rng(seed)
    rare_count = round(RARE_YOUNG_SHARE * count)
    rare_young = [_row(age, "rare") for age in generator.uniform(0, 49, rare_count)]
    others = generator.uniform(0, 100, count - rare_count)
    is_rare = (generator.random(len(others)) < RARE_OLD_SHARE) & (others >= COMING_OF_AGE)
    return rare_young + [
        _row(age, "rare" if rare else "common")
        for age, rare in zip(others.tolist(), is_rare.tolist(), strict=True)
    ]


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as a CSV of age, group and approved."""
    lines = ["age,group,approved", *(",".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def agreed(number: int) -> list[object]:
    """Return the ``number``-th vector that the learners agree on."""
    distinct = round(number * 0.618034 % 25, 6)
    return [distinct if number % 2 else 75 + distinct, "common"]


def agreed_label(number: int) -> str:
    """Return the label that the learners agree on."""
    return "no" if number % 2 else "yes"


def split(number: int) -> list[object]:
    """Return the ``number``-th vector that the learners are split about."""
    return [round(number * 0.618034 % 25, 6), "rare"]


def _row(age: float, group: str) -> Row:
    approved = age >= COMING_OF_AGE or group == "rare"
    return (f"{age:.3f}", group, "yes" if approved else "no")
