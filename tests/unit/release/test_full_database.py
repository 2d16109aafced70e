"""A ledger whose database is at its limit, and another server that answers meanwhile."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from app.answering.answer_query import NOT_COUNTED
from app.answering.queries import Fresh
from app.errors import BudgetExhaustedError, LedgerUnavailableError, UncountedDrawsError
from app.ledger.database.driver import KeptWriting
from app.ledger.entries.entry_kinds import ReleaseHalted
from app.ledger.verification import verify
from app.privacy.voting.query_decision import Phase
from tests.builders.release.opened_release import NoNoise, changed
from tests.builders.release.small_release import (
    HIT,
    STABLE,
    RowAnswerer,
    SmallRelease,
    ask,
    seeded_noise,
)
from tests.builders.release.svt_release import HIT as NOISE_OF_HIT
from tests.builders.release.svt_release import NOISY_VOTE, RELEASED, svt_answerer

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.answering.queries import Query

SQLITE_PAGES_MAX = 1 << 30
BATCH: list[Query] = [ask(margin) for margin in range(-45, 45)]
"""New vectors whose answers take more pages than a file of any size has half full."""
FIRST, SECOND = BATCH[:2]


@pytest.fixture
def release(small_release: SmallRelease) -> SmallRelease:
    """Return a release that may answer more than the batch, up to two hits."""
    return changed(small_release, answers__queries="200")


def limit_pages(answerer: RowAnswerer, pages: int) -> None:
    """Let a server's connection make its database no larger than it is, or than so many pages."""
    writing = answerer.release.ledger._database.writing
    assert isinstance(writing, KeptWriting)
    kept = writing._kept
    assert kept is not None
    driver = kept.connection.dbapi_connection
    assert isinstance(driver, sqlite3.Connection)
    driver.execute(f"PRAGMA max_page_count = {pages}")


def refused_by_a_full_database(answerer: RowAnswerer) -> None:
    """Ask a batch that the database has no room for, and make room."""
    with answerer.release.ledger.transaction():
        pass  # so that there is a connection
    limit_pages(answerer, 1)
    before = answerer.release.ledger.read_state()
    for _ in range(2):
        with pytest.raises(LedgerUnavailableError):
            answerer.answer_batch(BATCH)
    assert answerer.release.ledger.read_state() == before
    limit_pages(answerer, SQLITE_PAGES_MAX)


def by_profile(release: SmallRelease) -> RowAnswerer:
    """Return a server that draws a hit, and then stable answers."""
    return release.answerer([HIT] + [STABLE] * (len(BATCH) - 1))


def by_one_threshold(release: SmallRelease) -> RowAnswerer:
    """Return the same of the sparse vector with one threshold."""
    sparse = changed(release, privacy__calibration="svt")
    return svt_answerer(sparse, [NOISE_OF_HIT] + [RELEASED] * (len(BATCH) - 1))


def by_noisy_vote(release: SmallRelease) -> RowAnswerer:
    """Return a server of noisy votes, whose every answer counts."""
    return RowAnswerer(changed(release, **NOISY_VOTE).open(), seeded_noise())


def beside(answerer: RowAnswerer, release: SmallRelease) -> RowAnswerer:
    """Return another server of the release, which draws stable answers."""
    settings = answerer.release.configuration.settings
    if settings.answers.mechanism == "noisy-vote":
        return by_noisy_vote(release)
    if settings.privacy.calibration == "svt":
        sparse = changed(release, privacy__calibration="svt")
        return svt_answerer(sparse, [RELEASED])
    return release.answerer([STABLE])


SERVERS = [by_profile, by_one_threshold, by_noisy_vote]
TESTS = [by_profile, by_one_threshold]


@pytest.mark.parametrize("server", SERVERS)
def test_what_was_refused_is_recorded_once_there_is_room(
    release: SmallRelease, server: Callable[[SmallRelease], RowAnswerer]
) -> None:
    """Every draw counts, none is made again, and the callers get what was drawn first."""
    answerer = server(release)
    refused_by_a_full_database(answerer)
    answers = answerer.answer_batch(BATCH)
    assert not any(isinstance(each, Fresh) for each in answers)
    state = answerer.release.ledger.read_state()
    assert (state.answered, state.unstable) == (len(BATCH), int(server is not by_noisy_vote))
    verify(answerer.release.ledger)


@pytest.mark.parametrize("server", SERVERS)
def test_a_refused_draw_that_counts_is_not_lost_to_another_server(
    release: SmallRelease, server: Callable[[SmallRelease], RowAnswerer]
) -> None:
    """Another server answers its vector: nothing can count it, so the release halts for good."""
    answerer = server(release)
    refused_by_a_full_database(answerer)
    other = beside(answerer, release)
    assert isinstance(other.answer_batch([FIRST])[0], Fresh)
    with pytest.raises(UncountedDrawsError):
        answerer.answer_batch([])
    state = answerer.release.ledger.read_state()
    assert state.halted == ReleaseHalted(reason=NOT_COUNTED)
    assert state.answered == 1
    replayed, refused = other.answer_batch([FIRST, SECOND])
    assert not isinstance(replayed, BudgetExhaustedError)
    assert isinstance(refused, BudgetExhaustedError)
    assert other.phase is Phase.HALTED
    verify(answerer.release.ledger)


@pytest.mark.parametrize("server", TESTS)
def test_a_refused_stable_draw_may_be_lost_to_another_server(
    release: SmallRelease, server: Callable[[SmallRelease], RowAnswerer]
) -> None:
    """It costs a test nothing: the other server's answer stands, and the rest is recorded."""
    answerer = server(release)
    refused_by_a_full_database(answerer)
    beside(answerer, release).answer_batch([SECOND])
    assert not answerer.answer_batch([])
    state = answerer.release.ledger.read_state()
    assert state.halted is None
    assert (state.answered, state.unstable) == (len(BATCH), 1)
    verify(answerer.release.ledger)


def test_an_equal_answer_of_another_server_is_not_taken_for_a_refused_hit(
    release: SmallRelease,
) -> None:
    """A hit of the other server, of the same vector and number, counts for itself alone."""
    answerer = by_profile(release)
    refused_by_a_full_database(answerer)
    release.answerer([HIT] + [STABLE] * (len(BATCH) - 1)).answer_batch(BATCH)
    with pytest.raises(UncountedDrawsError):
        answerer.answer_batch([])
    assert changed(release).open(noise=NoNoise()).phase is Phase.HALTED
