"""The statistics table: one charge, one draw, one publication, and never in between."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import (
    ConfigurationError,
    InvalidHypothesisError,
    InvariantError,
    LedgerCorruptError,
    LedgerUnavailableError,
    VerificationError,
)
from app.ledger.verification import verify
from app.noise.scripted import ScriptedNoise
from app.privacy.voting.query_decision import Phase
from app.release.classifier.switch import switch_phase
from app.release.progress import no_progress
from app.release.statistics import opening_table as module
from app.release.statistics.opening_table import (
    check_openable,
    open_at_once,
    open_statistics,
    table_of,
)
from app.release.statistics.posted_hypotheses import parse_hypotheses
from app.release.statistics.released_table import POINTS_PIECE, DrawnStatistics, released_table
from tests.builders.ledger.faulty_ledger import FaultyLedger
from tests.builders.ledger.releases import tamper
from tests.builders.release.opened_release import statement_of
from tests.builders.release.small_release import (
    HIT,
    ROW_COUNT,
    STABLE,
    SmallRelease,
    ask,
    private_rows,
    seeded_noise,
)

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from app.ledger.entries.fold import LedgerState
    from app.noise.source import NoiseSource
    from app.release.release import Release
    from tests.builders.ledger.faulty_ledger import Fault

MARGINS = (-30, -1, 1, 30)
SHARES = {
    "privacy__shares__relabel": "0.1",
    "privacy__shares__answers": "0.3",
    "privacy__shares__classifier": "0.1",
    "privacy__shares__statistics": "0.5",
}
ALONE = {**dict.fromkeys(SHARES, "0"), "privacy__shares__statistics": "1"}
POINTS = np.array([[-40.0, 0.0], [-10.0, 1.0], [10.0, 2.0], [40.0, 3.0]])


def tree(cut: float) -> dict[str, object]:
    """Return a stump that says yes from a cut of the margin on."""
    node = {"feature": 0, "at_least": cut, "true": {"label": "yes"}, "false": {"label": "no"}}
    return {"tree": node}


def value(release: Release, *asked: dict[str, object]) -> list[float]:
    """Return the values that the release's table gives."""
    assert release.statistics is not None
    return release.statistics.answer(parse_hypotheses(release.schema, asked)).values


@pytest.fixture
def release(tmp_path: Path) -> SmallRelease:
    """Return a release with a share of statistics, not opened yet."""
    return SmallRelease(tmp_path, SHARES)


def answered(release: SmallRelease, *, ledger: FaultyLedger | None = None) -> Release:
    """Give every answer of the ensemble, and return the release that is to draw the table."""
    answerer = release.answerer([STABLE] * 4, ledger=ledger)
    answerer.answer_batch([ask(margin) for margin in MARGINS])
    return answerer.release


def opened_at_once(
    release: SmallRelease,
    points: NDArray[np.float64] = POINTS,
    *,
    noise: NoiseSource | None = None,
    ledger: FaultyLedger | None = None,
) -> LedgerState:
    """Open the table without a server."""
    return open_at_once(
        release.configuration(),
        ledger=ledger or release.ledger(),
        rows=private_rows(),
        public_values=points,
        noise=noise or seeded_noise(3),
        progress=no_progress,
        tell=lambda _: None,
    )


def kinds(release: SmallRelease) -> list[str]:
    """Return the kinds of the entries after the opening's own five."""
    return [str(entry["kind"]) for entry in release.ledger().public_entries(5, 100)]


def mechanisms(state: LedgerState) -> list[str]:
    """Return the mechanisms that were charged, in order."""
    return [share.mechanism for share in state.charged]


def test_it_is_reserved_until_the_last_answer(release: SmallRelease) -> None:
    """An opening sets the share aside, delta included; it is charged when the table opens."""
    opened = release.open()
    (_, reserved) = opened.state.reserved
    assert (reserved.mechanism, reserved.epsilon) == ("statistics", "10")
    assert float(Fraction(reserved.delta)) == pytest.approx(1e-3, rel=1e-5)
    assert not opened.must_open_statistics
    halfway = release.answerer([STABLE] * 4)
    halfway.answer_batch([ask(1)])
    assert not halfway.release.must_open_statistics
    with pytest.raises(VerificationError):
        open_statistics(halfway.release, ScriptedNoise([]))
    assert release.ledger().read_state().charge_of("statistics") is None


@pytest.mark.parametrize(
    ("faults", "failures"),
    [([None, "refused", None, "refused"], 2), ([None, "lost"], 1), (["refused"], 1), ([], 0)],
)
def test_the_table_is_drawn_once(
    release: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    faults: list[Fault | None],
    failures: int,
) -> None:
    """A publication that fails, which may tell of the draw, is tried again with the same draw."""
    release.open()
    ledger = FaultyLedger(release)
    drawing = answered(release, ledger=ledger)
    drawn: list[DrawnStatistics] = []

    def draw(given: Release, noise: NoiseSource) -> DrawnStatistics:
        state = release.ledger().read_state()
        assert state.charge_of("statistics") is not None
        assert state.reserve_of("statistics") is None
        assert state.statistics is None
        drawn.append(original(given, noise))
        return drawn[-1]

    original = module.draw_after_answers
    monkeypatch.setattr(module, "draw_after_answers", draw)
    ledger.faults = list(faults)
    for _ in range(failures):
        assert drawing.must_open_statistics
        with pytest.raises(LedgerUnavailableError):
            open_statistics(drawing, seeded_noise(5))
    open_statistics(drawing, seeded_noise(5))
    (only,) = drawn
    state = ledger.read_state()
    assert state.statistics is not None
    assert state.statistics.statistics == only.document
    assert mechanisms(state) == ["relabel", "answers", "statistics"]
    assert drawing.private_statistics is None
    assert not drawing.must_open_statistics
    verify(ledger)


def test_rows_are_kept_until_both_draws_are_out(release: SmallRelease) -> None:
    """The switch lets the rows go only once the table has been released, and the other way."""
    first = answered(release)
    switch_phase(first, seeded_noise(4))
    assert first.private_rows is not None
    open_statistics(first, seeded_noise(5))
    assert first.private_rows is None
    values = value(first, tree(0.0), tree(-25.0))
    restarted = release.open(noise=ScriptedNoise([]))
    assert restarted.private_rows is None
    assert value(restarted, tree(0.0), tree(-25.0)) == values
    open_statistics(restarted, ScriptedNoise([]))
    assert kinds(release)[-4:] == [
        "ShareCharged",
        "ClassifierPublished",
        "ShareCharged",
        "StatisticsReleased",
    ]


def test_a_release_that_halts_draws_it_too(tmp_path: Path) -> None:
    """After the T-th unstable answer nothing new is answered, and the table opens."""
    release = SmallRelease(tmp_path, SHARES)
    answerer = release.answerer([HIT, HIT])
    answerer.answer_batch([ask(0), ask(2)])
    assert answerer.phase is Phase.HALTED
    assert answerer.release.must_open_statistics
    open_statistics(answerer.release, seeded_noise(5))
    assert answerer.release.private_rows is None


def test_a_crash_after_the_charge_draws_at_the_next_start(release: SmallRelease) -> None:
    """Charged and not published, a restart draws under that charge."""
    with pytest.raises(InvariantError, match="the scripted noise has ended"):
        open_statistics(answered(release), ScriptedNoise([]))
    restarted = release.open(noise=ScriptedNoise([]))
    assert restarted.must_open_statistics
    assert restarted.state.charge_of("statistics") is not None
    open_statistics(restarted, seeded_noise(5))
    assert kinds(release).count("ShareCharged") == 1
    assert value(restarted, tree(0.0)) == pytest.approx([0.0], abs=0.5)


def test_before_the_first_answer_it_opens_on_public_points(release: SmallRelease) -> None:
    """The release begins there; the ensemble is fitted and answers later, beside the table."""
    state = opened_at_once(release)
    assert mechanisms(state) == ["relabel", "answers", "statistics"]
    assert state.ensemble is None
    drawing = answered(release)
    assert not drawing.must_open_statistics
    assert value(drawing, tree(0.0), tree(100.0)) == pytest.approx([0.0, -1.0], abs=0.5)
    assert kinds(release)[-3:] == ["StatisticsReleased", "EnsembleFitted", "AnswersReleased"]


def test_between_the_answers_it_is_refused(release: SmallRelease) -> None:
    """With or without points, after the first answer and before the last nothing is charged."""
    answerer = release.answerer([STABLE] * 4)
    answerer.answer_batch([ask(1)])
    before = kinds(release)
    for has_points in (True, False):
        with pytest.raises(VerificationError, match="before the ensemble's first answer"):
            check_openable(release.configuration(), release.ledger(), has_points=has_points)
    with pytest.raises(VerificationError, match="1 answers are given"):
        opened_at_once(release)
    assert kinds(release) == before


def test_a_table_drawn_before_the_first_answer_is_not_published_after_it(
    release: SmallRelease,
) -> None:
    """Where a server answers while another process draws, the draw is forgotten, not released."""
    release.open()
    ledger = FaultyLedger(release)
    ledger.faults = [None, "refused"]
    with pytest.raises(LedgerUnavailableError):
        opened_at_once(release, ledger=ledger)
    answerer = release.answerer([STABLE] * 4)
    answerer.answer_batch([ask(1)])
    with pytest.raises(VerificationError):
        table_of(release.configuration(), release.ledger()).publish(DrawnStatistics("{}", b""))
    assert release.ledger().read_state().charge_of("statistics") is not None
    answerer.answer_batch([ask(margin) for margin in (-30, -1, 30)])
    assert answerer.release.must_open_statistics
    open_statistics(answerer.release, seeded_noise(5))
    assert mechanisms(answerer.release.state).count("statistics") == 1


@pytest.mark.parametrize(
    ("changes", "has_points", "answers", "line"),
    [
        ({}, False, 0, "--public: the statistics table is not open: give public points"),
        ({}, True, 4, "--public: is for a release that has not answered"),
        (dict.fromkeys(SHARES, "0.2") | {"privacy__shares__statistics": "0"}, True, 0, "is 0, and"),
    ],
)
def test_what_cannot_open_is_one_line(
    tmp_path: Path,
    changes: dict[str, str],
    has_points: bool,  # noqa: FBT001 -- a parameter of the table above
    answers: int,
    line: str,
) -> None:
    """Points that are missing, or not wanted any more, and no share at all."""
    release = SmallRelease(tmp_path, SHARES | changes)
    release.answerer([STABLE] * 4).answer_batch([ask(each) for each in MARGINS[:answers]])
    with pytest.raises(ConfigurationError, match=line):
        check_openable(release.configuration(), release.ledger(), has_points=has_points)


def test_statistics_alone_need_no_ensemble(tmp_path: Path) -> None:
    """With the whole budget theirs a table opens at any time, and queries find a halt."""
    release = SmallRelease(tmp_path, ALONE)
    opened = release.open()
    assert (opened.phase, opened.private_rows) == (Phase.HALTED, None)
    assert not opened.must_open_statistics
    state = opened_at_once(release)
    assert mechanisms(state) == ["statistics"]
    assert opened_at_once(release, noise=ScriptedNoise([])).statistics == state.statistics
    assert value(release.open(), tree(0.0)) == pytest.approx([0.0], abs=0.3)


def test_the_values_are_means_of_minus_one_and_one(tmp_path: Path) -> None:
    """At a large epsilon they are the exact means, and the fractions those of the second class."""
    release = SmallRelease(tmp_path, ALONE | {"privacy__epsilon": "500"})
    table = released_table(opened_at_once(release), release.ledger(), release.open().schema)
    asked = [tree(cut) for cut in (-25.0, 0.0, 25.0)]
    answer = table.answer(parse_hypotheses(release.open().schema, asked))
    margins = private_rows().values[:, 0]
    exact = [float(2 * (margins >= cut).mean() - 1) for cut in (-25, 0, 25)]
    assert answer.values == pytest.approx(exact)
    assert answer.fractions == pytest.approx([(1 + each) / 2 for each in exact])
    assert answer.beta == 0.05


def test_a_hypothesis_is_projected_on_the_public_points(tmp_path: Path) -> None:
    """Cuts between the same points get one value; deeper trees that agree on them as well."""
    release = SmallRelease(tmp_path, ALONE)
    opened_at_once(release)
    opened = release.open()
    twice = {
        "feature": 1,
        "category": "a",
        "true": tree(0.0)["tree"],
        "false": tree(3.0)["tree"],
    }
    same = value(opened, tree(0.0), tree(3.0), {"tree": twice})
    assert len(set(same)) == 1


def test_a_table_takes_so_many_points(
    release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A longer file is refused before anything is charged; of more queries the first count."""
    monkeypatch.setattr(module, "POINTS_MAX", 3)
    with pytest.raises(ConfigurationError, match=r"^--public: has more than"):
        opened_at_once(release)
    assert release.ledger().read_state().release is None
    first = answered(release)
    open_statistics(first, seeded_noise(5))
    assert first.statistics is not None
    assert first.statistics.document.point_count == 3


def test_a_hypothesis_outside_the_table_is_refused(tmp_path: Path) -> None:
    """What no hypothesis of the table is near is named, with how far off it is."""
    release = SmallRelease(tmp_path, ALONE | {"privacy__epsilon": "500"})
    points = np.array([[margin, code] for margin in (-40.0, 40.0) for code in (0.0, 1.0)] * 5)
    opened_at_once(release, points)
    opened = release.open()
    either = {
        "feature": 1,
        "category": "a",
        "true": tree(0.0)["tree"],
        "false": {
            "feature": 0,
            "at_least": 0.0,
            "true": {"label": "no"},
            "false": {"label": "yes"},
        },
    }
    with pytest.raises(InvalidHypothesisError) as refused:
        value(opened, tree(0.0), {"tree": either})
    assert refused.value.detail.startswith("hypotheses[1] lies outside the table, whose nearest")
    assert refused.value.number == 1


@pytest.mark.parametrize("damage", ["altered", "missing"])
def test_altered_points_refuse_to_start(release: SmallRelease, damage: str) -> None:
    """The points are bound by the table's entry and checked before they are used."""
    open_statistics(answered(release), seeded_noise(5))
    tamper(release.folder / "conclave.db", statement_of(damage, POINTS_PIECE))
    with pytest.raises(LedgerCorruptError, match="private state"):
        release.open()


def test_the_document_holds_no_query_and_no_row(release: SmallRelease) -> None:
    """Tests, hypotheses and counts are in the entry; the points are a private piece."""
    first = answered(release)
    open_statistics(first, seeded_noise(5))
    assert first.state.statistics is not None
    document = json.loads(first.state.statistics.statistics)
    assert document["row_count"] == ROW_COUNT
    assert document["point_count"] == len(MARGINS)
    assert len(document["hypotheses"]) == len(document["counts"])
    assert list(first.state.statistics.private_digests) == [POINTS_PIECE]
    assert first.statistics is not None
    assert first.statistics.json.decode() == first.state.statistics.statistics
