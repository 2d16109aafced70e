"""Opening a release: charged before it is drawn, drawn once, continued as it was."""

from __future__ import annotations

import pytest

from app.data.rows import PrivateRows
from app.errors import (
    ConfigurationError,
    LedgerCorruptError,
    ReleaseMismatchError,
)
from app.ledger.entries.entry_kinds import EnsembleFitted, ReleaseOpened
from app.ledger.verification import verify
from app.planning.from_settings import plan_request
from app.planning.plan import plan_answers
from app.privacy.voting.query_decision import Phase
from app.release import opening
from tests.builders.ledger.releases import tamper
from tests.builders.release.opened_release import (
    PIECES,
    RESTORE,
    NoNoise,
    changed,
    kinds,
    pieces,
    shares,
    statement_of,
)
from tests.builders.release.small_release import (
    ROW_COUNT,
    STABLE,
    SmallRelease,
    ask,
    private_rows,
    seeded_noise,
)


def test_shares_are_charged_before_anything_is_drawn(small_release: SmallRelease) -> None:
    """The first transaction promises, charges and reserves; the second holds what was drawn."""
    release = small_release.open()
    assert kinds(small_release) == [
        "ReleaseOpened",
        "ShareCharged",
        "ShareCharged",
        "ShareReserved",
        "EnsembleFitted",
    ]
    assert shares(release.state) == {
        "charged": [("relabel", "2"), ("answers", "12")],
        "reserved": [("classifier", "6")],
    }
    assert release.phase is Phase.ENSEMBLE
    assert release.ensemble_size == release.ensemble.size == 5
    verify(release.ledger, expect_head=None)


def test_the_first_entry_binds_settings_and_the_number_of_rows(
    small_release: SmallRelease,
) -> None:
    """It holds the promise, every bound setting and n, and the rows only by fingerprint."""
    opened = small_release.open().state.release
    assert opened is not None
    assert (opened.name, opened.epsilon, opened.delta) == ("small", "20", "1/100")
    assert (opened.queries, opened.cutoff) == (4, 2)
    assert opened.parameters["data.rows"] == str(ROW_COUNT)
    assert opened.parameters["answers.ensemble"] == "5"
    assert len(opened.fingerprint) == 64


def test_a_later_start_draws_nothing(small_release: SmallRelease) -> None:
    """Without a word of noise the release continues, with the same pieces and the same votes."""
    first = small_release.open()
    before, head = pieces(small_release), first.state.head
    again = small_release.open(noise=NoNoise())
    assert pieces(small_release) == before
    assert again.state.head == head
    assert again.mechanism == first.mechanism
    values = private_rows().values
    assert (
        again.ensemble.vote_counts(values).tolist() == first.ensemble.vote_counts(values).tolist()
    )


def test_rows_may_come_in_another_order(small_release: SmallRelease) -> None:
    """The release is bound to the multiset of rows, not to their order in the source."""
    small_release.open()
    rows = private_rows()
    shuffled = PrivateRows(values=rows.values[::-1].copy(), labels=rows.labels[::-1].copy())
    small_release.open(rows=shuffled, noise=NoNoise())


# -- refusals ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"privacy__delta": "1e-20"},
            (
                "privacy.delta: is too small for this cutoff: a tenth of it over the cutoff must "
                "be at least 2^-60"
            ),
        ),
        (
            {"privacy__epsilon": "1000", "privacy__shares__relabel": "0.1"},
            (
                "privacy.shares.classifier: allows no exact draw, for which truncation costs no "
                "more than the delta withheld for it; change it, epsilon or delta"
            ),
        ),
        (
            {
                "privacy__epsilon": "1000",
                "privacy__shares__relabel": "0.75",
                "privacy__shares__answers": "0.02",
                "privacy__shares__classifier": "0.01",
            },
            (
                "privacy.shares.relabel: allows no exact draw, for which its weights stay within "
                "the range of doubles; change it, epsilon or delta"
            ),
        ),
        (
            {
                "hypotheses__depth": "7",
                "learner__rule": "halving",
                "answers__ensemble": "60",
            },
            (
                "hypotheses.depth: the halving rule takes about 2.3 hours to search trees of depth "
                "7 over 7 tests for 60 learners: lower it, list fewer tests or give "
                "learner.estimator; classifier.depth may be larger"
            ),
        ),
        (
            {"classifier__depth": "16"},
            (
                "classifier.depth: trees of depth 16 over 7 tests number about 10^75112; exact "
                "weights take at most 4e+10 terms, 2e+09 bytes, a depth of 8 and sums in the range "
                "of doubles: lower the depth or list fewer tests"
            ),
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_it_is_charged(
    small_release: SmallRelease, changes: dict[str, str], line: str
) -> None:
    """One line names the setting, and the ledger holds no release that could not be used."""
    release = changed(small_release, **changes)
    with pytest.raises(ConfigurationError) as refused:
        release.open()
    assert str(refused.value) == line
    assert release.ledger().read_state().release is None
    assert small_release.open().phase is Phase.ENSEMBLE


def test_another_setting_is_refused(small_release: SmallRelease) -> None:
    """The first setting that differs is named, and nothing is written."""
    head = small_release.open().state.head
    with pytest.raises(ReleaseMismatchError) as refused:
        changed(small_release, answers__cutoff="3").open()
    assert str(refused.value) == (
        "answers.cutoff: the ledger's release was opened with 2, the configuration says 3; "
        f"{RESTORE}"
    )
    assert small_release.ledger().read_state().head == head


def test_another_number_of_rows_is_refused(small_release: SmallRelease) -> None:
    """Both numbers, which are public, are said."""
    small_release.open()
    with pytest.raises(ReleaseMismatchError) as refused:
        small_release.open(rows=private_rows(61))
    assert str(refused.value) == (
        "data.source: has 61 rows, and the ledger's release was opened on 60; " + RESTORE
    )


@pytest.mark.parametrize("column", ["values", "labels"])
def test_other_rows_are_refused(small_release: SmallRelease, column: str) -> None:
    """One changed value or label is another data set; which one is not said."""
    small_release.open()
    rows = private_rows()
    values, labels = rows.values.copy(), rows.labels.copy()
    if column == "values":
        values[17, 0] += 0.001
    else:
        labels[17] = 1 - labels[17]
    with pytest.raises(ReleaseMismatchError) as refused:
        small_release.open(rows=PrivateRows(values=values, labels=labels))
    assert str(refused.value) == (
        "data.source: holds other rows than those that the ledger's release was opened on; "
        + RESTORE
    )


@pytest.mark.parametrize("damage", ["altered", "missing"])
def test_the_secret_is_checked_where_nothing_else_is_kept(
    small_release: SmallRelease, damage: str
) -> None:
    """A release without an ensemble has one piece, and it is checked like any other."""
    release = changed(small_release, privacy__shares__answers="0")
    release.open().ledger.close()
    tamper(small_release.folder / "conclave.db", statement_of(damage, "release-secret"))
    with pytest.raises(LedgerCorruptError, match="private state"):
        release.open()


@pytest.mark.parametrize("name", PIECES)
@pytest.mark.parametrize("damage", ["altered", "missing"])
def test_a_piece_that_is_not_what_was_written_refuses_to_start(
    small_release: SmallRelease, name: str, damage: str
) -> None:
    """Nothing is drawn again for a piece that is altered or gone, and nothing is served."""
    small_release.open().ledger.close()
    tamper(small_release.folder / "conclave.db", statement_of(damage, name))
    with pytest.raises(LedgerCorruptError, match="private state"):
        small_release.open(noise=NoNoise())


# -- shares of zero, and what is kept ------------------------------------------------


@pytest.mark.parametrize("query_id", [1, 2, 3])
def test_an_answer_that_is_gone_refuses_to_start(
    small_release: SmallRelease, query_id: int
) -> None:
    """A vector whose recorded answer is lost would be drawn again: nothing is served."""
    small_release.answerer([STABLE] * 3).answer_batch([ask(1), ask(2), ask(3)])
    statement = f"DELETE FROM answers WHERE query_id = {query_id}"  # noqa: S608 -- a number of ours
    tamper(small_release.folder / "conclave.db", statement)
    with pytest.raises(LedgerCorruptError) as refused:
        small_release.answerer()
    assert str(refused.value) == f"answer {query_id} of entry 6 is missing from the answers table"


def test_without_a_relabel_share_rows_keep_their_labels(small_release: SmallRelease) -> None:
    """No hypothesis is drawn or charged; the private piece says that there is none."""
    release = changed(small_release, privacy__shares__relabel="0").open()
    assert shares(release.state)["charged"] == [("answers", "12")]
    assert pieces(small_release)["hypothesis"] == b"null"


def test_without_an_answers_share_nothing_is_fitted(small_release: SmallRelease) -> None:
    """The release starts in phase classifier, with no ensemble, and keeps the rows for the draw."""
    without = changed(small_release, privacy__shares__answers="0")
    for noise in (seeded_noise(), NoNoise()):
        release = without.open(noise=noise)
        assert release.phase is Phase.CLASSIFIER
        assert release.is_switching
        assert release.private_ensemble is None
        assert release.private_rows is not None
    assert "EnsembleFitted" not in kinds(without)


@pytest.mark.parametrize(
    ("after", "on_cutoff", "kept"),
    [("halt", "halt", False), ("classifier", "halt", True), ("halt", "classifier", True)],
)
def test_rows_are_kept_only_where_a_classifier_may_follow(
    small_release: SmallRelease, after: str, on_cutoff: str, *, kept: bool
) -> None:
    """Where nothing will be drawn from them any more the rows are let go at once."""
    release = changed(small_release, answers__after=after, answers__on_cutoff=on_cutoff).open()
    assert (release.private_rows is not None) == kept


def test_auto_takes_the_size_from_public_numbers(small_release: SmallRelease) -> None:
    """With ``auto`` k depends on n and the configuration, so other rows give the same k."""
    sizes = []
    for seed in (1, 2):
        folder = small_release.folder / str(seed)
        folder.mkdir()
        release = SmallRelease(folder, {"answers__ensemble": "auto"})
        sizes.append(release.open(rows=private_rows(seed=seed)).ensemble_size)
    assert sizes[0] == sizes[1] >= 1


def test_auto_gives_cells_a_learner_a_row(small_release: SmallRelease) -> None:
    """The opening takes k = n where learners vote by cell, and so does planning."""
    cells = {"hypotheses__class": "cells", "hypotheses__cells": '["margin >= 0", "", ""]'}
    release = changed(small_release, answers__ensemble="auto", **cells)
    assert release.open().ensemble_size == ROW_COUNT
    planned = plan_answers(plan_request(release.settings(), ROW_COUNT))
    assert planned.ensemble_size == ROW_COUNT
    assert not any("often disagree" in note for note in planned.notes)


def test_the_opening_tells_stages_and_public_counts(small_release: SmallRelease) -> None:
    """Progress is told by stage; totals are one or the number of chunks."""
    told: list[tuple[str, int, int | None]] = []
    opening.open_release(
        small_release.configuration(),
        ledger=small_release.ledger(),
        rows=private_rows(),
        noise=seeded_noise(),
        progress=lambda stage, done, total: told.append((stage, done, total)),
    )
    assert {(stage, total) for stage, _, total in told} == {
        ("calibrating the answers", 1),
        ("drawing the labelling hypothesis", 1),
        ("fitting learners", 5),
    }
    assert told[-1] == ("fitting learners", 5, 5)


def test_the_opening_counts_the_regions_of_deep_trees(small_release: SmallRelease) -> None:
    """What relabels is drawn in steps, whose number depends on the tests and the depth alone."""
    told: list[tuple[str, int, int | None]] = []
    opening.open_release(
        changed(small_release, hypotheses__depth="4").configuration(),
        ledger=small_release.ledger(),
        rows=private_rows(),
        noise=seeded_noise(),
        progress=lambda stage, done, total: told.append((stage, done, total)),
    )
    _, *steps, last = [step for step in told if step[0] == "drawing the labelling hypothesis"]
    assert len(steps) > 1
    assert steps[-1][1] == steps[-1][2]
    assert last[1:] == (1, 1)


def test_private_bodies_are_bound_by_the_entries_beside_them(
    small_release: SmallRelease,
) -> None:
    """The secret comes with the first entry, what was drawn with the last."""
    state = small_release.open().state
    assert isinstance(state.release, ReleaseOpened)
    assert isinstance(state.ensemble, EnsembleFitted)
    assert set(state.release.private_digests) == {"release-secret"}
    assert set(state.ensemble.private_digests) == set(PIECES) - {"release-secret"}
