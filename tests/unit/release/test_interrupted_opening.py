"""An opening that is cut short, or overtaken: nothing is charged or served twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from app.data.plane.streamed_rows import fingerprint_by
from app.errors import (
    InvariantError,
    LedgerUnavailableError,
    MachineError,
)
from app.release import drawing, opening
from app.release.progress import no_progress
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
