"""How a release is accounted: what its first entry says, and what follows from it."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec import structs

from app.auditing.audit import audited_answers
from app.auditing.bounds_by_mechanism import broken_conditions
from app.cli.audit.neighbours import audited_claim
from app.cli.verify import verify
from app.errors import (
    ConfigurationError,
    InvariantError,
    ReleaseMismatchError,
    VerificationError,
)
from app.ledger.entries.entry_kinds import ShareCharged
from app.ledger.entries.fold import ACCOUNTING
from app.noise.scripted import ScriptedNoise
from app.planning.from_settings import plan_settings
from app.privacy.budget.account import ACCOUNT_PROOF, ONE_ACCOUNT, Account, Draw
from app.release.classifier.exponential import ExponentialDraw
from app.release.classifier.learner_table import classifier_draw
from app.release.classifier.publish_at_once import learn
from app.release.classifier.switch import switch_phase
from app.release.progress import no_progress
from app.release.statistics.opening_table import open_at_once, open_statistics
from app.release.terms import answer_terms
from app.release.terms.accounting import account, opened_accounting
from app.release.terms.draw_parameters import ensemble_parameters
from app.release.views.budget import budget_view
from app.release.views.parameters_in_words import explained
from app.release.views.stated_release import read_stated
from app.release.views.statement import statement
from tests.builders.release.small_release import (
    HIT,
    ROW_COUNT,
    STABLE,
    SmallRelease,
    ask,
    private_rows,
    seeded_noise,
)
from tests.builders.release.svt_release import changed

if TYPE_CHECKING:
    from pathlib import Path

    from app.ledger.entries.fold import LedgerState
    from app.release.release import Release
    from app.settings.settings import Settings

JOINT = {"privacy__accounting": "joint"}
SUM = {"privacy__accounting": "sum"}
STATISTICS = JOINT | {
    "privacy__shares__relabel": "0.1",
    "privacy__shares__answers": "0.3",
    "privacy__shares__classifier": "0.1",
    "privacy__shares__statistics": "0.5",
}
POINTS = np.array([[-40.0, 0.0], [-10.0, 1.0], [10.0, 2.0], [40.0, 3.0]])
NO_POINTS = np.empty((0, 2))


def shares(state: LedgerState) -> list[tuple[str, str]]:
    """Return what is charged and set aside."""
    charged = [(share.mechanism, share.epsilon) for share in state.charged]
    return charged + [(share.mechanism, share.epsilon) for share in state.reserved]


@pytest.mark.parametrize(("changes", "recorded"), [(JOINT, "joint"), (SUM, None)])
def test_the_first_entry_says_how_it_is_accounted(
    tmp_path: Path, changes: dict[str, str], recorded: str | None
) -> None:
    """Nothing where shares add up; the configured shares are charged either way."""
    opened = SmallRelease(tmp_path, changes).open()
    assert opened.state.release is not None
    assert opened.state.release.parameters.get(ACCOUNTING) == recorded
    assert shares(opened.state) == [("relabel", "2"), ("answers", "12"), ("classifier", "6")]
    assert budget_view(opened).accounting == (recorded or "sum")


@pytest.mark.parametrize(("changes", "kept"), [(JOINT, "joint"), (SUM, "sum")])
def test_a_release_goes_on_as_it_was_opened(
    tmp_path: Path, changes: dict[str, str], kept: str
) -> None:
    """A start without the setting draws nothing; ledgers of before have no word of it: sum."""
    SmallRelease(tmp_path, changes).open()
    again = SmallRelease(tmp_path).open(noise=ScriptedNoise([]))
    assert budget_view(again).accounting == kept
    verify(tmp_path / "conclave.toml")


@pytest.mark.parametrize(("first", "then"), [(JOINT, SUM), (SUM, JOINT)])
def test_another_accounting_is_refused(
    tmp_path: Path, first: dict[str, str], then: dict[str, str]
) -> None:
    """What a release was opened with stays."""
    SmallRelease(tmp_path, first).open()
    with pytest.raises(ReleaseMismatchError, match=r"privacy\.accounting: the ledger's release"):
        SmallRelease(tmp_path, then).open()


def test_an_accounting_of_a_later_version_is_refused(tmp_path: Path) -> None:
    """A release that says something else is not taken for one that adds up."""
    opened = SmallRelease(tmp_path).open().state.release
    assert opened is not None
    later = structs.replace(opened, parameters={**opened.parameters, ACCOUNTING: "later"})
    with pytest.raises(ReleaseMismatchError, match="which this version does not know"):
        opened_accounting(later)


@pytest.mark.parametrize(
    ("changes", "needed"),
    [
        ({"privacy__calibration": "svt"}, 'calibration = "profile"'),
        (
            {"privacy__calibration": "certified", "classifier__learner": "grid"},
            'classifier.learner = "exponential" with calibration = "certified"',
        ),
        ({"privacy__sampling": "0.5"}, r"all rows: privacy\.sampling = 1"),
        ({"hypotheses__grid": "private"}, r'hypotheses\.grid = "public"'),
        ({"privacy__shares__answers": "0"}, r"answers, and privacy\.shares\.answers is 0"),
        (
            {"answers__mechanism": "noisy-vote", "data__classes": '["no", "yes", "perhaps"]'},
            "or a noisy vote of two labels",
        ),
    ],
)
def test_where_shares_only_add_up_one_account_is_refused(
    tmp_path: Path, changes: dict[str, str], needed: str
) -> None:
    """In one line that says what it takes; without the setting the shares add up."""
    with pytest.raises(ConfigurationError, match=rf'privacy\.accounting: "joint" takes.*{needed}'):
        SmallRelease(tmp_path, changes | JOINT).settings()
    assert SmallRelease(tmp_path, changes).settings().accounting == "sum"


CELLS = {"hypotheses__class": "cells", "hypotheses__cells": '["margin >= 0", "", ""]'}
SMALL_DELTA = {"privacy__delta": "1e-3"}
NO_DRAW = {"privacy__shares__relabel": "0", "privacy__shares__classifier": "0"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "joint"),
        ({"answers__mechanism": "noisy-vote"}, "joint"),
        ({"classifier__learner": "grid"}, "joint"),
        (SMALL_DELTA | {"classifier__learner": "linear"}, "joint"),
        (SMALL_DELTA | {"classifier__learner": "kernel"}, "joint"),
        (SMALL_DELTA | {"classifier__learner": "auto"}, "joint"),
        ({"classifier__learner": "linear"}, "sum"),
        (CELLS, "joint"),
        (CELLS | {"answers__mechanism": "noisy-vote"}, "joint"),
        (NO_DRAW | {"answers__after": "halt"}, "sum"),
        ({"privacy__calibration": "certified"}, "sum"),
        (dict(STATISTICS, privacy__accounting="null"), "sum"),
    ],
)
def test_a_new_release_is_one_account_where_it_may_be(
    tmp_path: Path, changes: dict[str, str], expected: str
) -> None:
    """Not where it draws nothing else, a statistics table would wait, or delta is large."""
    given = {name: value for name, value in changes.items() if value != "null"}
    assert SmallRelease(tmp_path, given).settings().accounting == expected


def test_every_draw_is_one_of_the_account(tmp_path: Path) -> None:
    """Answers are calibrated for the whole with both draws, which pay for its epsilon."""
    configuration = SmallRelease(tmp_path, JOINT).configuration()
    made = account(configuration.settings)
    assert made == Account(Fraction(20), (Draw(Fraction(2)), Draw(Fraction(6))))
    parameters = ensemble_parameters(configuration, row_count=ROW_COUNT, progress=no_progress)
    assert parameters is not None
    assert parameters.calibration.epsilon == configuration.epsilon
    drawn = classifier_draw(configuration, NO_POINTS, row_count=ROW_COUNT)
    assert isinstance(drawn, ExponentialDraw)
    for each in (parameters.relabel, drawn.parameters):
        assert getattr(each, "account_epsilon", None) == configuration.epsilon


# -- planted: an account without the classifier's draw ---------------------------------


def without_classifier(settings: Settings) -> Account | None:
    """Return an account that leaves the classifier's draw out."""
    made = account(settings)
    return None if made is None else Account(made.epsilon, made.draws[:1])


def test_a_table_of_an_account_without_the_classifier_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start and ``conclave verify`` decide the account anew from what was persisted."""
    with monkeypatch.context() as planted:
        planted.setattr(answer_terms, "account", without_classifier)
        SmallRelease(tmp_path, JOINT).open()
    with pytest.raises(InvariantError, match="the one of the answers' share"):
        SmallRelease(tmp_path).open(noise=ScriptedNoise([]))
    with pytest.raises(InvariantError, match="the one of the answers' share"):
        verify(tmp_path / "conclave.toml")


@pytest.mark.parametrize("mechanism", ["stability", "noisy-vote"])
def test_an_audit_finds_the_draw_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    """The law that serves pays for the draws too; one that left room for fewer does not."""
    changes = JOINT | {"privacy__epsilon": "4", "answers__mechanism": mechanism}
    settings = SmallRelease(tmp_path, changes).settings()
    sound = audited_answers(settings)
    assert broken_conditions(sound) == []
    monkeypatch.setattr(answer_terms, "account", without_classifier)
    planted = audited_answers(settings)
    object.__setattr__(planted, "draws", sound.draws)
    assert broken_conditions(planted)


def test_an_audit_over_http_claims_the_whole_account(tmp_path: Path) -> None:
    """Answers leave room for the classifier's draw, and promise nothing less without it."""
    halting = {"answers__after": "halt", "answers__on_cutoff": "halt"}
    assert audited_claim(SmallRelease(tmp_path, JOINT | halting).settings()).epsilon == 20
    assert audited_claim(SmallRelease(tmp_path, SUM | halting).settings()).epsilon == 14


# -- a certificate's own account --------------------------------------------------------

CERTIFIED = JOINT | {"privacy__calibration": "certified", "privacy__epsilon": "4"}


def test_a_certificate_has_the_classifier_after_the_last_answer(tmp_path: Path) -> None:
    """Before it the draw is refused, by the ledger too; then it comes, and all is verified."""
    release = SmallRelease(tmp_path, CERTIFIED)
    answerer = release.answerer([STABLE] * 4)
    with pytest.raises(VerificationError, match="comes after the ensemble's last answer"):
        learned(release)
    (reserve,) = answerer.release.state.reserved
    charge = ShareCharged(reserve.mechanism, reserve.epsilon, reserve.delta)
    with (
        pytest.raises(InvariantError, match="before the ensemble's last answer"),
        release.ledger().transaction() as transaction,
    ):
        transaction.append(charge)
    answerer.answer_batch([ask(margin) for margin in (-30, -1, 1, 30)])
    switch_phase(answerer.release, seeded_noise(4))
    assert answerer.release.state.classifier is not None
    answer_terms.check_pieces(release.settings(), release.ledger())


def test_an_audit_knows_both_draws_of_a_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What serves is paid for; words that left the classifier's draw out are not."""
    settings = SmallRelease(tmp_path, CERTIFIED).settings()
    sound = audited_answers(settings)
    assert broken_conditions(sound) == []
    monkeypatch.setattr(answer_terms, "account", without_classifier)
    planted = audited_answers(settings)
    object.__setattr__(planted, "draws", sound.draws)
    assert broken_conditions(planted)


# -- the statistics table is outside ---------------------------------------------------


def answered(release: SmallRelease, *words: int) -> Release:
    """Ask four queries, and return the release."""
    answerer = release.answerer(words)
    answerer.answer_batch([ask(margin) for margin in (-30, -1, 1, 30)])
    return answerer.release


def learned(release: SmallRelease) -> None:
    """Draw the classifier at once."""
    learn(
        release.configuration(),
        ledger=release.ledger(),
        rows=private_rows(),
        public_values=POINTS,
        noise=seeded_noise(4),
        progress=no_progress,
        tell=lambda _: None,
    )


def opened_at_once(release: SmallRelease, points: np.ndarray = POINTS) -> LedgerState:
    """Open the table without a server."""
    return open_at_once(
        release.configuration(),
        ledger=release.ledger(),
        rows=private_rows(),
        public_values=points,
        noise=seeded_noise(5),
        progress=no_progress,
        tell=lambda _: None,
    )


def test_after_the_last_answer_the_table_waits_for_the_classifier(tmp_path: Path) -> None:
    """Between the two it is refused, by the ledger too; after both it opens."""
    release = SmallRelease(tmp_path, STATISTICS)
    opened = answered(release, *[STABLE] * 4)
    assert not opened.must_open_statistics
    with pytest.raises(VerificationError, match="by one account the statistics table"):
        open_statistics(opened, ScriptedNoise([]))
    (reserve,) = [each for each in opened.state.reserved if each.mechanism == "statistics"]
    charge = ShareCharged(reserve.mechanism, reserve.epsilon, reserve.delta)
    with (
        pytest.raises(InvariantError, match="inside the account of answers and classifier"),
        release.ledger().transaction() as transaction,
    ):
        transaction.append(charge)
    switch_phase(opened, seeded_noise(4))
    assert opened.must_open_statistics
    open_statistics(opened, seeded_noise(5))
    assert opened.state.statistics is not None


def test_a_classifier_before_the_answers_begins_the_account(tmp_path: Path) -> None:
    """Drawn first, it bars the table until the last answer; the table first bars nothing."""
    release = SmallRelease(tmp_path, STATISTICS)
    learned(release)
    with pytest.raises(VerificationError, match="by one account the statistics table"):
        opened_at_once(release)
    opened = answered(release, *[STABLE] * 4)
    assert opened.must_open_statistics
    first = SmallRelease(tmp_path / "first", STATISTICS)
    first.folder.mkdir()
    assert opened_at_once(first).statistics is not None
    learned(first)
    assert answered(first, *[STABLE] * 4).state.answered == 4


def test_after_a_halt_the_classifier_comes_first(tmp_path: Path) -> None:
    """A share that is still set aside may be drawn on, so that the table waits for it."""
    release = SmallRelease(tmp_path, STATISTICS)
    opened = answered(release, HIT, HIT)
    assert not opened.must_open_statistics
    assert opened.private_rows is not None
    with pytest.raises(VerificationError, match="draw the classifier"):
        opened_at_once(release, NO_POINTS)
    learned(release)
    assert opened_at_once(release, NO_POINTS).statistics is not None


# -- in words --------------------------------------------------------------------------


def test_everybody_is_told_of_one_account(tmp_path: Path) -> None:
    """The plan's notes, the statement and the dashboard say so, and of others nothing."""
    told = {}
    for kind, changes in (("joint", JOINT), ("sum", SUM)):
        folder = tmp_path / kind
        folder.mkdir()
        release = SmallRelease(folder, changes)
        opened = release.open()
        lines = statement(
            read_stated(
                SmallRelease(folder).configuration(), release.ledger(), audit=None, version="1"
            )
        )
        told[kind] = (
            [note for note in plan_settings(release.settings(), 5000).notes if ONE_ACCOUNT in note],
            [line.words for line in lines if line.place == "account"],
            [each.value for each in explained(opened) if each.name == "accounting"],
            [line.value for line in lines if line.place == "accounting"],
        )
    assert told["sum"] == ([], [], [], ["sum"])
    said = f"{ONE_ACCOUNT}: {ACCOUNT_PROOF}"
    assert told["joint"] == (
        [said],
        [f"{ONE_ACCOUNT.capitalize()}: {ACCOUNT_PROOF}."],
        ["one account"],
        ["joint"],
    )


@pytest.mark.parametrize(("epsilon", "found"), [("50", "joint"), ("50.1", "sum"), ("1000", "sum")])
def test_at_a_large_epsilon_shares_add_up(
    small_release: SmallRelease, epsilon: str, found: str
) -> None:
    """Where the setting is absent, what could be drawn before there were accounts still can."""
    settings = changed(small_release, {"privacy__epsilon": epsilon}).settings()
    assert settings.accounting == found
