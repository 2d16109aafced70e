"""Three classes, missing values and strings outside the categories, from CSV to reply."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.builders.server.http_release import SmallRelease
from tests.builders.server.serving import Served

if TYPE_CHECKING:
    from pathlib import Path

ROW_COUNT = 5760
# With 3.2 of epsilon and delta 1e-6 a query on which 480 agree is unstable below 1e-9.
CONFIGURATION = """\
[release]
name = "parcels"

[data]
source = "members.csv"
rows = 5760
label = "fee"
classes = ["low", "middle", "high"]
missing = ["?", "NA"]

[[data.features]]
name = "weight"
kind = "numeric"
bounds = [0, 10]
thresholds = [5]

[[data.features]]
name = "country"
kind = "categorical"
categories = ["near", "far"]

[hypotheses]
class = "trees"
depth = 2

[privacy]
epsilon = 8

[privacy.shares]
relabel = 0.3
answers = 0.4
classifier = 0.3

[answers]
queries = 12
cutoff = 1
ensemble = 480
after = "classifier"
"""

# A parcel without a country costs most; else its weight decides, and a missing
# weight satisfies no test.
FEES = [
    ([7.5, "near"], "middle"),
    ([7.5, "far"], "middle"),
    ([2, "far"], "low"),
    ([99, "a country of no name"], "middle"),
    ([None, "near"], "low"),
    (["?", "far"], "low"),
    (["NA", "near"], "low"),
    ([7.5, None], "high"),
    ([2, "?"], "high"),
    ([2, ""], "high"),
    ([None, "NA"], "high"),
]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> SmallRelease:
    """Return a release of parcels, written and not yet opened."""
    release = SmallRelease(tmp_path_factory.mktemp("parcels"))
    _write_rows(release.source)
    release.config.write_text(CONFIGURATION, encoding="utf-8")
    return release


def test_three_classes_and_missing_values_are_served(release: SmallRelease) -> None:
    """Each kind of value is answered by its rule, by the ensemble and by the classifier."""
    with Served(release.settings()) as served:
        replies = served.stream(vector for vector, _ in FEES)
        assert [each["label"] for each in replies] == [fee for _, fee in FEES]
        assert [each["query_id"] for each in replies] == list(range(1, 12))
        assert served.answer([5, "near"])["query_id"] == 12
        replies = served.stream(vector for vector, _ in FEES)
        assert [each["label"] for each in replies] == [fee for _, fee in FEES]
        assert {each["phase"] for each in replies} == {"classifier"}


def _write_rows(path: Path) -> None:
    """Write parcels of all kinds, in the spellings that a CSV may have."""
    generator = np.random.default_rng(3)
    lines = ["country,weight,note,fee"]
    for _ in range(ROW_COUNT):
        weight = generator.uniform(0, 10)
        country = generator.choice(["near", "far", "elsewhere", "", "?", "NA"])
        fee = "middle" if weight >= 5 else "low"
        cell = f"{weight:.2f}"
        if generator.random() < 0.2:
            cell, fee = str(generator.choice(["", "?", "NA"])), "low"
        if country in ("", "?", "NA"):
            fee = "high"
        lines.append(f'{country},{cell},"a note, unread",{fee}')
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
