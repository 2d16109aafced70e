"""A public count of erasures: what two lives show of it, and what is said to be lost."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from app.answering.generations.generations_answerer import LivingAnswerer
from app.errors import ConfigurationError, ReleaseMismatchError
from app.ledger.verification import verify
from app.noise.scripted import ScriptedNoise
from app.release.generations.waiting_requests import erasures_of, take_down
from app.release.views.budget import budget_view
from app.release.views.stated_release import read_stated
from app.release.views.statement import ERASURES, statement, statement_document
from tests.builders.release.growing_release import MINUTE
from tests.builders.release.named_rows import NamedRelease
from tests.builders.release.small_release import SmallRelease

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HEXADECIMAL = re.compile("[0-9a-f]{32,}")


def live(folder: Path, count: str, *ticks: Sequence[str]) -> tuple[list[str], int | None]:
    """Return the public entries of a life that forgets records at each tick, and its budget's sum.

    Digests, hashes and the release's random name are masked.
    """
    folder.mkdir()
    growing = NamedRelease(folder, {"erasure__count": count})
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger = answerer.release.ledger
    ticker = growing.ticker(ledger)
    for names in ticks:
        take_down(ledger, erasures_of(ledger, names))
        growing.now += MINUTE
        ticker.fit_waiting()
        answerer.tick(ticker)
    verify(ledger)
    erased = budget_view(answerer.release).erased
    entries = [json.dumps(entry) for entry in ledger.public_entries(0, 100)]
    ledger.close()
    return [HEXADECIMAL.sub("x", entry) for entry in entries], erased


def test_what_is_lost_is_when_somebody_was_forgotten_and_nothing_else(tmp_path: Path) -> None:
    """Lives that forget at other ticks differ in the count; those that forget others do not."""
    one, sums = live(tmp_path / "1", "public", ["a1", "a2"], [], ["a3"])
    other, _ = live(tmp_path / "2", "public", ["a4", "a5"], [], ["a6"])
    assert one == other
    assert sums == 3
    later, sums = live(tmp_path / "3", "public", [], [], ["a1"])
    assert sums == 1
    differing = [(a, b) for a, b in zip(one, later, strict=True) if a != b]
    counts = [re.sub('"erased": [0-9]+', "", each) for pair in differing for each in pair]
    assert len(differing) == 1
    assert counts[0] == counts[1]
    assert '"kind": "SlotsChanged"' in counts[0]


def test_while_the_count_is_secret_nothing_is_lost(tmp_path: Path) -> None:
    """Every public byte is the same, and no sum is shown."""
    one = live(tmp_path / "1", "secret", ["a1", "a2"], [])
    assert one == live(tmp_path / "2", "secret", [], ["a3"])
    assert one[1] is None


@pytest.mark.parametrize("count", ["secret", "public"])
def test_the_statement_says_which_of_the_two_holds(tmp_path: Path, count: str) -> None:
    """One sentence, by the setting."""
    configuration = NamedRelease(tmp_path, {"erasure__count": count}).small.configuration()
    lines = statement(read_stated(configuration, None, audit=None, version="0"))
    assert statement_document(lines)["erasure"] == {"count": count}
    assert [line.words for line in lines if line.place == "erasure.count"] == [ERASURES[count]]


def test_the_setting_stays_as_it_was_opened(tmp_path: Path) -> None:
    """Another value is another release; and a fixed release has no erasure to count."""
    growing = NamedRelease(tmp_path)
    growing.open().ledger.close()
    growing.changes = {**growing.changes, "erasure__count": "public"}
    with pytest.raises(ReleaseMismatchError, match=r"erasure\.count"):
        growing.open()
    with pytest.raises(ConfigurationError, match="a fixed one can erase no row"):
        SmallRelease(tmp_path, {"erasure__count": "public"}).settings()
