"""An opening that is cut short, or overtaken: nothing is charged or served twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from app.data.streaming.streamed_rows import fingerprint_by
from app.errors import (
    InvariantError,
    LedgerUnavailableError,
    MachineError,
    ReleaseMismatchError,
)
from app.privacy.mechanism_registration import BY_CUTOFF, ORDER_KEY
from app.privacy.stability.hit_table import calibrate
from app.release import drawing, opening
from app.release.progress import no_progress
from app.release.terms.answer_terms import read_calibration
from tests.builders.learners.plain_estimators import Plain
from tests.builders.ledger.faulty_ledger import FaultyLedger
from tests.builders.release.opened_release import NoNoise, changed, kinds, shares
from tests.builders.release.small_release import SmallRelease, private_rows, seeded_noise

if TYPE_CHECKING:
    from app.data.rows import PrivateRows
    from app.release.drawing import DrawnEnsemble

PLAIN = "tests.builders.learners.plain_estimators:Plain"


def test_a_crash_before_the_draw_is_persisted_draws_under_the_same_charge(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was charged and not drawn is drawn at the next start; nothing is charged twice."""
    with monkeypatch.context() as patched:
        patched.setattr(opening, "draw_ensemble", _crash)
        with pytest.raises(KeyboardInterrupt):
            small_release.open()
    charged = small_release.ledger().read_state()
    assert charged.ensemble is None
    assert [share.mechanism for share in charged.charged] == ["relabel", "answers"]
    release = small_release.open(noise=seeded_noise(9))
    assert shares(release.state) == shares(charged)
    assert kinds(small_release)[-1] == "EnsembleFitted"


@pytest.mark.parametrize("is_earlier", [False, True])
def test_a_table_has_the_order_that_its_first_entry_says(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch, *, is_earlier: bool
) -> None:
    """Stopped between entry and table, a release of an earlier version gets that version's."""
    small_release = changed(small_release, privacy__accounting="sum")
    with monkeypatch.context() as patched:
        patched.setattr(opening, "draw_ensemble", _crash)
        if is_earlier:
            patched.setattr(opening, "order_parameter", lambda _: {})
        with pytest.raises(KeyboardInterrupt):
            small_release.open()
    opened = small_release.ledger().read_state().release
    assert opened is not None
    assert opened.parameters.get(ORDER_KEY) == (None if is_earlier else BY_CUTOFF)
    small_release.open().ledger.close()
    settings = small_release.settings()
    table = read_calibration(settings, small_release.ledger())
    made = [
        calibrate(epsilon=table.epsilon, delta=table.delta, cutoff=2, is_by_cutoff=by_cutoff)
        for by_cutoff in (False, True)
    ]
    assert made[0] != made[1]
    assert table == made[0 if is_earlier else 1]


@pytest.mark.parametrize(
    ("changes", "ordered"),
    [
        ({"privacy__accounting": "sum"}, True),
        ({}, False),
        ({"privacy__calibration": "certified"}, False),
        ({"privacy__calibration": "svt"}, False),
    ],
)
def test_only_theorem_as_own_table_has_an_order_by_its_cutoff(
    small_release: SmallRelease, changes: dict[str, str], *, ordered: bool
) -> None:
    """Where the table shares an account, or is another mechanism's, its entry says nothing."""
    opened = changed(small_release, **changes).open().state.release
    assert opened is not None
    assert (ORDER_KEY in opened.parameters) == ordered


def test_an_order_that_this_version_does_not_know_is_refused(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release of a later version is not gone on with, before its table and after it."""
    with monkeypatch.context() as patched:
        patched.setattr(opening, "order_parameter", lambda _: {ORDER_KEY: "by weekday"})
        patched.setattr(opening, "draw_ensemble", _crash)
        patched.setattr(opening, "_check_same", lambda *_, **__: None)
        with pytest.raises(KeyboardInterrupt):
            small_release.open()
    for _ in range(2):
        with pytest.raises(ReleaseMismatchError, match="by weekday, which this version"):
            small_release.open()


def test_a_fit_that_the_machine_fails_is_fitted_again_under_the_same_charge(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No ensemble is stored, with votes for class 0 or without; the next start charges nothing."""
    forests = changed(small_release, learner__estimator=PLAIN)

    def refused(*_: object) -> None:
        raise MemoryError

    def draw_without_memory(*given: Any, **named: Any) -> DrawnEnsemble:
        with monkeypatch.context() as patched:
            patched.setattr(Plain, "fit", refused)
            return drawing.draw_ensemble(*given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(opening, "draw_ensemble", draw_without_memory)
        with pytest.raises(MachineError):
            forests.open()
    charged = forests.ledger().read_state()
    assert charged.ensemble is None
    assert [share.mechanism for share in charged.charged] == ["relabel", "answers"]
    release = forests.open(noise=seeded_noise(9))
    assert shares(release.state) == shares(charged)
    assert kinds(forests)[-1] == "EnsembleFitted"


def test_a_draw_that_was_not_persisted_does_not_serve(small_release: SmallRelease) -> None:
    """Where the second commit fails the opening fails, and the next start draws anew."""
    ledger = FaultyLedger(small_release)
    ledger.faults = [None, "refused"]
    with pytest.raises(LedgerUnavailableError):
        small_release.open(ledger=ledger)
    assert ledger.read_state().ensemble is None
    assert small_release.open(noise=seeded_noise(9)).state.ensemble is not None


def test_a_draw_whose_commit_was_lost_is_found(small_release: SmallRelease) -> None:
    """Where the second commit did happen the next start reads it and draws nothing."""
    ledger = FaultyLedger(small_release)
    ledger.faults = [None, "lost"]
    with pytest.raises(LedgerUnavailableError):
        small_release.open(ledger=ledger)
    small_release.open(noise=NoNoise())


def test_a_charge_whose_commit_was_lost_is_not_repeated(small_release: SmallRelease) -> None:
    """Where the first commit did happen the next start goes on from it."""
    ledger = FaultyLedger(small_release)
    ledger.faults = ["lost"]
    with pytest.raises(LedgerUnavailableError):
        small_release.open(ledger=ledger)
    small_release.open()
    assert kinds(small_release).count("ReleaseOpened") == 1


def test_of_two_openings_at_once_the_first_draw_holds(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was overtaken while it drew serves what the other persisted."""
    draw, first = drawing.draw_ensemble, []

    def overtaken(*arguments: object, **named: object) -> object:
        monkeypatch.setattr(opening, "draw_ensemble", draw)
        first.append(small_release.open(noise=seeded_noise(5)))
        return draw(*arguments, **named)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(opening, "draw_ensemble", overtaken)
    second = small_release.open(noise=seeded_noise(6))
    values = private_rows().values
    votes = [release.ensemble.vote_counts(values).tolist() for release in (first[0], second)]
    assert votes[0] == votes[1]
    assert kinds(small_release).count("EnsembleFitted") == 1


def test_of_two_openings_at_once_one_charges(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was overtaken before its charge joins the release that it finds."""

    def overtaken(rule: str, rows: PrivateRows, key: bytes) -> str:
        monkeypatch.setattr(opening, "fingerprint_by", fingerprint_by)
        small_release.open(noise=seeded_noise(5))
        return fingerprint_by(rule, rows, key)

    monkeypatch.setattr(opening, "fingerprint_by", overtaken)
    small_release.open(noise=seeded_noise(6))
    assert kinds(small_release).count("ReleaseOpened") == 1
    assert kinds(small_release).count("ShareCharged") == 2


def test_a_table_of_another_share_is_refused(small_release: SmallRelease) -> None:
    """A table is checked against the answers' charge and against the theorem when it is read."""
    other = changed(small_release, privacy__delta="1e-3").configuration()
    configuration = small_release.configuration()
    ledger = small_release.ledger()
    opening.open_release(
        configuration,
        ledger=ledger,
        rows=private_rows(),
        noise=seeded_noise(),
        progress=no_progress,
    )
    with pytest.raises(InvariantError, match="the one of the answers' share"):
        drawing.read_ensemble(other, ledger)


def _crash(*_: object, **__: object) -> object:
    raise KeyboardInterrupt
