"""Calibration paper from opening to halt, with few learners and at its printed size."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.answering.queries import Fresh, Query
from app.data.persons import Persons
from app.data.rows import PrivateRows
from app.errors import (
    BudgetExhaustedError,
    ConfigurationError,
    LedgerCorruptError,
    LedgerUnavailableError,
    ReleaseMismatchError,
)
from app.ledger.verification import verify
from app.noise.system import SystemNoise
from app.privacy.paper import paper as paper_formulas
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.voting.query_decision import Phase
from app.release import opening
from app.release.drawing import read_ensemble, sampled_rows
from app.release.views.parameters_in_words import explained
from app.settings.settings import load_settings
from tests.builders.ledger.faulty_ledger import FaultyLedger
from tests.builders.ledger.releases import tamper
from tests.builders.release.opened_release import NoNoise, pieces, statement_of
from tests.builders.release.rows_of_persons import identities
from tests.builders.release.small_release import RowAnswerer, SmallRelease, seeded_noise

if TYPE_CHECKING:
    from pathlib import Path

    from app.settings.settings import Settings

CONFIGURATION = """\
[release]
name = "printed"
[data]
source = "rows.csv"
label = "y"
classes = ["no", "yes"]
[[data.features]]
name = "x"
kind = "numeric"
bounds = [0, 1]
[hypotheses]
class = "thresholds"
[privacy]
epsilon = 5
delta = 0.036
calibration = "paper"
shares = { relabel = 0.2, answers = 0.8, classifier = 0 }
[answers]
queries = 2
alpha = 0.9
beta = 0.5
after = "halt"
"""
# For these settings, by the formulas: T = 1, w = 945 and k = 24715, which 276808 rows feed.
PRINTED_SIZE = 24_715
PRINTED_ROWS = 276_808
FEW_ROWS = 2000


@dataclass(frozen=True)
class PaperRelease(SmallRelease):
    """A release in calibration paper, in a folder of its own."""

    def settings(self) -> Settings:
        """Return the settings."""
        path = self.folder / "conclave.toml"
        path.write_text(CONFIGURATION, encoding="utf-8")
        environ = {f"CONCLAVE_{name}".upper(): value for name, value in self.changes.items()}
        return load_settings(path, environ)


def rows(count: int) -> PrivateRows:
    """Rows of which nine in ten are "yes", by a cut at a tenth."""
    values = np.random.default_rng(1).random(count)
    return PrivateRows(values=values[:, None], labels=(values >= 0.1).astype(np.int64))


def paper(folder: Path, **changes: str) -> PaperRelease:
    """A release of few learners, and whatever a test changes of it."""
    return PaperRelease(folder, {"answers__ensemble": "100", **changes})


@pytest.mark.parametrize("grid", ["public", "private"])
def test_few_learners_open_halt_and_continue(tmp_path: Path, grid: str) -> None:
    """T is the formula's, the resample is persisted, and a later start draws nothing."""
    release = paper(tmp_path, hypotheses__grid=grid)
    opened = release.open(rows=rows(FEW_ROWS))
    assert opened.state.release is not None
    assert opened.state.release.cutoff == 1
    assert opened.ensemble_size == 100
    places = np.frombuffer(pieces(release)["resample"], dtype="<u4")
    assert len(places) == 2000 * 5 // 56 == 178
    assert places.max() < 178
    assert len(np.unique(places)) < 178  # drawn with replacement
    (told,) = (each for each in explained(opened) if each.name == "ensemble (k)")
    assert "A record may be in several groups" in told.meaning
    again = release.open(rows=rows(FEW_ROWS), noise=NoNoise())
    assert again.mechanism == opened.mechanism
    answerer = RowAnswerer(again, seeded_noise())
    # A hundred votes are far below w = 945: the answer is unstable.
    (answer,) = answerer.answer_batch([Query((0.9,), None)])
    assert isinstance(answer, Fresh)
    assert (answer.recorded.label, answer.recorded.stable) == (None, False)
    assert answerer.release.phase is Phase.HALTED
    verify(again.ledger, expect_head=None)


def people(row_counts: list[int]) -> PrivateRows:
    """Rows of persons with so many each, who are alike but for that."""
    numbers, each = np.repeat(np.arange(len(row_counts)), row_counts), rows(len(row_counts))
    persons = Persons(numbers, identities(range(len(row_counts))))
    return PrivateRows(values=each.values[numbers], labels=each.labels[numbers], persons=persons)


@pytest.mark.parametrize("relabel", ["0.2", "0"])
def test_one_row_a_person_is_a_release_of_rows(tmp_path: Path, relabel: str) -> None:
    """From one seed the sample, the resample, the labelling and the learners are the same."""
    shares = f'{{"relabel": {relabel}, "answers": 0.8, "classifier": 0}}'
    found = []
    for folder, given, more in (
        ("rows", rows(FEW_ROWS), {}),
        ("persons", people([1] * FEW_ROWS), {"data__person": "who"}),
    ):
        (tmp_path / folder).mkdir()
        release = paper(tmp_path / folder, privacy__shares=shares, **more)
        release.open(rows=given)
        kept = pieces(release)
        names = ("permutation", "resample", "hypothesis", "ensemble", "release-secret")
        found.append([kept[name] for name in names])
    assert found[0] == found[1]


def test_a_person_who_is_drawn_again_comes_with_all_rows(tmp_path: Path) -> None:
    """Places are of persons: a chunk has as many of them, whatever the rows."""
    release = paper(tmp_path, data__person="who")
    given = people([1 + number % 7 for number in range(FEW_ROWS)])
    opened = release.open(rows=given)
    (told,) = (each for each in explained(opened) if each.name == "ensemble (k)")
    assert "A person may be in several groups" in told.meaning
    kept = pieces(release)
    places, permutation = (np.frombuffer(kept[name], "<u4") for name in ("resample", "permutation"))
    assert len(places) == 178
    assert len(permutation) == FEW_ROWS == given.count
    sample = sampled_rows(given, permutation.astype(np.int64), count=178)
    positions, offsets = sample.cut(places.astype(np.int64), size=100)
    assert given.persons is not None
    whose, row_counts = given.persons.numbers[positions], given.persons.row_counts[positions]
    for start, stop in pairwise(offsets.tolist()):
        drawn = sum(1 / count for count in row_counts[start:stop].tolist())
        assert round(drawn, 9) in {1, 2}
        people_of, there = np.unique(whose[start:stop], return_counts=True)
        whole = given.persons.positions(people_of)[1]
        assert not (there % np.diff(whole)).any()


def test_what_serves_has_the_printed_noise(tmp_path: Path) -> None:
    """The mechanism is the refreshed sparse vector with lambda, 2 lambda and w."""
    answering = paper(tmp_path).open(rows=rows(FEW_ROWS)).mechanism.answering
    assert isinstance(answering, sparse_vector.Parameters)
    assert answering.refreshed
    assert (answering.cutoff, answering.threshold) == (1, 945)
    assert float(answering.threshold_noise.scale) == pytest.approx(60.5582, rel=1e-4)
    assert answering.query_noise.scale == 2 * answering.threshold_noise.scale


def _other_cutoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every later calibration come to T = 2, as another version's formula might."""
    monkeypatch.setattr(paper_formulas, "_realizable_cutoff", lambda **_: 2.0)


def test_a_cutoff_that_comes_out_otherwise_is_not_drawn_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Charged with T = 1 and cut short, a release does not go on with T = 2."""
    release = paper(tmp_path)
    ledger = FaultyLedger(release)
    ledger.faults = [None, "refused"]
    with pytest.raises(LedgerUnavailableError):
        release.open(rows=rows(FEW_ROWS), ledger=ledger)
    with monkeypatch.context() as patched:
        _other_cutoff(patched)
        with pytest.raises(ReleaseMismatchError) as refusal:
            release.open(rows=rows(FEW_ROWS))
    assert refusal.value.key == "answers.cutoff"
    assert "comes to 2, and the ledger's release was opened with 1" in str(refusal.value)
    assert release.open(rows=rows(FEW_ROWS)).mechanism.cutoff == 1


def test_a_cutoff_that_is_not_the_promised_one_does_not_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A persisted calibration for T = 2 beside a first entry that promises 1 is refused."""
    with monkeypatch.context() as patched:
        _other_cutoff(patched)
        other = paper(tmp_path / "other")
        other.folder.mkdir()
        parts = read_ensemble(other.configuration(), other.open(rows=rows(FEW_ROWS)).ledger)
    release = paper(tmp_path)
    release.open(rows=rows(FEW_ROWS))
    monkeypatch.setattr(opening, "read_ensemble", lambda *_: parts)
    with pytest.raises(ReleaseMismatchError, match=r"answers\.cutoff: comes to 2"):
        release.open(rows=rows(FEW_ROWS))


@pytest.mark.parametrize("damage", ["altered", "missing"])
def test_a_resample_that_is_not_what_was_drawn_refuses_to_start(
    tmp_path: Path, damage: str
) -> None:
    """It is one of the pieces that are never drawn again."""
    release = paper(tmp_path)
    release.open(rows=rows(FEW_ROWS)).ledger.close()
    tamper(tmp_path / "conclave.db", statement_of(damage, "resample"))
    with pytest.raises(LedgerCorruptError, match="private state"):
        release.open(rows=rows(FEW_ROWS), noise=NoNoise())


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"answers__ensemble": "auto"},
            (
                'privacy.calibration: "paper" cuts k = 24715 chunks, and its sample of n = 2000 '
                "has 178: it needs n = 276808 at least, a smaller answers.ensemble, or "
                '"profile", which makes the same promise'
            ),
        ),
        (
            {"answers__ensemble": "179"},
            (
                'privacy.calibration: "paper" cuts k = 179 chunks, and its sample of n = 2000 '
                "has 178: it needs n = 2005 at least, a smaller answers.ensemble, or "
                '"profile", which makes the same promise'
            ),
        ),
        (
            {"privacy__epsilon": "5.1"},
            "privacy.epsilon: must be above 0 and at most 5 in calibration paper",
        ),
        (
            {"answers__beta": "1e-60"},
            (
                "answers.beta: is so small that the printed cutoff T = 8 exceeds what the printed "
                "threshold covers at m = 2 queries: set it higher"
            ),
        ),
    ],
)
def test_what_cannot_be_fed_is_refused_with_what_it_needs(
    tmp_path: Path, changes: dict[str, str], line: str
) -> None:
    """Before anything is charged, in one line."""
    release = paper(tmp_path, **changes)
    with pytest.raises(ConfigurationError) as refused:
        release.open(rows=rows(FEW_ROWS))
    assert str(refused.value) == line
    assert release.ledger().read_state().release is None


def test_the_printed_size_answers_from_a_private_grid(tmp_path: Path) -> None:
    """At the n it asks for, k as printed, the whole literal pipeline answers m queries."""
    release = PaperRelease(tmp_path, {"hypotheses__grid": "private"})
    opened = release.open(rows=rows(PRINTED_ROWS), noise=SystemNoise())
    assert opened.ensemble_size == PRINTED_SIZE
    # One row a chunk: nine votes in ten are "yes", a distance near 9,900 against w = 945.
    answerer = RowAnswerer(opened, SystemNoise())
    answers = answerer.answer_batch([Query((0.05,), None), Query((0.5,), None)])
    assert [answer.recorded.label for answer in answers if isinstance(answer, Fresh)] == [1, 1]
    (refused,) = answerer.answer_batch([Query((0.7,), None)])
    assert isinstance(refused, BudgetExhaustedError)
