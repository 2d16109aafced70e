"""Every fault that is planted in whole servers is in what serves, shown without a sample.

A plant that no longer bites makes each audit that should find it one that cannot fail.
So a release or a few are run on either neighbour, over HTTP as an audit runs them, and
what the fault changes is looked at: votes as the ensemble cast them, or what came back.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
import structlog

from app.answering import answer_query
from app.auditing.transcripts.http_audit import Promised
from app.cli.audit import audited_release
from app.cli.audit.audited_releases import Part, run_part
from app.cli.audit.neighbours import audited_claim, neighbours
from tests.audit.planted import planted_servers as planted
from tests.audit.test_over_http import (
    ANSWERS_ALONE,
    FLIP,
    FORGETFUL,
    MOVE,
    NOISY,
    PERSONS,
    RELABEL,
    RELABELLED,
    TELLING,
    TEN_PERSONS,
    TWO_CHUNKS,
    by,
    settings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from app.auditing.transcripts.http_audit import Heard
    from app.cli.audit.neighbours import Neighbours
    from app.privacy.voting.votes import Tally
    from app.settings.settings import Settings
    from tests.audit.planted.planted_servers import Plant

pytestmark = pytest.mark.audit

# A plant that no longer bites leaves a relabelling that is a fair coin, nearly: five releases
# on either neighbour all follow the labels once in 2^10 tries.  At a thousand times its epsilon
# of 1/20 it draws the other label with a weight of exp(-25), once in 10^9 of these tests.
RUNS_OF_A_COIN = 5


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run releases without a restart, which none of these faults needs, and log errors alone."""
    monkeypatch.setattr(audited_release, "PROCESSES", 1)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    yield
    structlog.reset_defaults()


def heard(given: Settings, pair: int | Neighbours, side: int, *, runs: int = 1) -> list[Heard]:
    """Return what some releases on one neighbour said."""
    chosen = neighbours(given)[pair] if isinstance(pair, int) else pair
    promised = Promised(audited_claim(given), cutoff=None, abstains=False)
    part = Part(given, chosen, (side,) * runs, promised, suspicion=None)
    return [kept.heard for kept in run_part(part) if kept.heard is not None]


def votes_on_both(
    patch: pytest.MonkeyPatch, given: Settings, pair: int | Neighbours, *, runs: int = 1
) -> list[set[tuple[int, ...]]]:
    """Return for either neighbour the counts of votes that any query had."""
    counts: set[tuple[int, ...]] = set()
    planted_or_real: Callable[..., Sequence[Tally]] = vars(answer_query)["private_tallies"]

    def witnessed(*of_queries: object) -> Sequence[Tally]:
        values = planted_or_real(*of_queries)
        counts.update(value.counts for value in values)
        return values

    patch.setattr(answer_query, "private_tallies", witnessed)
    found = []
    for side in (0, 1):
        counts.clear()
        heard(given, pair, side, runs=runs)
        found.append(set(counts))
    return found


def told_on(patch: pytest.MonkeyPatch, plant: Plant, channel: str) -> list[set[str]]:
    """Return for either neighbour what a planted server said on the channels of a name."""
    plant(patch)
    sides = [heard(settings(), FLIP, side) for side in (0, 1)]
    return [
        {read for run in side for name, read in run.transcript.items() if channel in name}
        for side in sides
    ]


def test_the_record_of_one_chunk_casts_one_vote(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing planted, both agree, and where the record differs one of two votes does."""
    given = settings(ANSWERS_ALONE, TWO_CHUNKS, **NOISY)
    assert votes_on_both(monkeypatch, given, MOVE) == [{(0, 2)}, {(1, 1)}]


def test_the_record_in_two_chunks_casts_two_votes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both votes of the planted server are the record's, on either neighbour."""
    planted.record_in_two_chunks(monkeypatch)
    given = settings(ANSWERS_ALONE, TWO_CHUNKS, **NOISY)
    assert votes_on_both(monkeypatch, given, MOVE) == [{(0, 2)}, {(2, 0)}]


def test_the_person_of_one_chunk_casts_one_vote(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing planted, fifty rows are one vote of ten."""
    given = by("person", settings(ANSWERS_ALONE, TEN_PERSONS, **NOISY))
    assert votes_on_both(monkeypatch, given, PERSONS) == [{(1, 9)}, {(0, 10)}]


def test_the_person_whose_rows_are_cut_apart_casts_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the planted server's ten votes eight or nine are the person's."""
    planted.rows_cut_apart(monkeypatch)
    given = by("person", settings(ANSWERS_ALONE, TEN_PERSONS, **NOISY))
    (one,), other = votes_on_both(monkeypatch, given, PERSONS)
    assert one in {(8, 2), (9, 1)}
    assert other == {(0, 10)}


def test_the_relabelling_without_noise_follows_the_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every learner of every release votes as most of the rows are labelled."""
    planted.relabelling_without_noise(monkeypatch)
    one, other = votes_on_both(monkeypatch, settings(RELABELLED), RELABEL, runs=RUNS_OF_A_COIN)
    ((first, none),), ((nothing, second),) = one, other
    assert (none, nothing) == (0, 0)
    assert first == second > 0


def test_queries_without_noise_are_decided_alike_in_every_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All releases on a neighbour answer alike, and otherwise than those on the other."""
    planted.no_noise(monkeypatch)
    sides = [heard(settings(), MOVE, side, runs=RUNS_OF_A_COIN) for side in (0, 1)]
    one, other = ({run.transcript["the answers"] for run in side} for side in sides)
    assert len(one) == len(other) == 1
    assert one != other


def test_the_label_of_an_unstable_answer_is_the_plurality(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where answers abstain a planted server has a label all the same, the votes' own."""
    planted.label_of_votes(monkeypatch)
    labels = [
        {answer.label for run in heard(settings(), FLIP, side) for answer in run.lives[0].answers}
        for side in (0, 1)
    ]
    assert labels == [{"no"}, {"yes"}]


TOLD: dict[Plant, str] = {
    planted.error_of_votes: "detail",
    planted.entry_of_votes: "GET /ledger",
    planted.budget_of_votes: "GET /budget",
}


@pytest.mark.parametrize("plant", TOLD, ids=lambda plant: plant.__name__)
def test_the_votes_are_told_on_the_channel(monkeypatch: pytest.MonkeyPatch, plant: Plant) -> None:
    """What a planted server says there has the votes in it, which differ between neighbours."""
    one, other = told_on(monkeypatch, plant, TOLD[plant])
    assert any("counts=(2, 2)" in text for text in one)
    assert any("counts=(1, 3)" in text for text in other)


def test_no_plant_is_left_out() -> None:
    """Each fault is shown here to bite, or breaks a promise in every run there is."""
    shown = {
        planted.no_noise,
        planted.record_in_two_chunks,
        planted.rows_cut_apart,
        planted.relabelling_without_noise,
        planted.label_of_votes,
        *TOLD,
    }
    assert shown == {*TELLING, planted.record_in_two_chunks, planted.rows_cut_apart}
    assert set(FORGETFUL) == {planted.counter_lost_at_restart, planted.charged_after_speaking}
