"""The budget: public quantities of one moment, folded from the entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from app.privacy.voting.query_decision import Phase
from app.release.classifier.switch import switch_phase
from app.release.views.budget import budget_view
from tests.builders.release.small_release import (
    HIT,
    STABLE,
    RowAnswerer,
    SmallRelease,
    ask,
    seeded_noise,
)
from tests.builders.release.student_release import STUDENT
from tests.builders.release.svt_release import NOISY_VOTE, changed

if TYPE_CHECKING:
    from app.ledger.entries.fold import LedgerState
    from app.release.release import Release


def test_it_shows_what_is_charged_reserved_and_left(small_release: SmallRelease) -> None:
    """Every member that the interface names, with numbers as JSON numbers."""
    answerer = small_release.answerer([STABLE, HIT, STABLE])
    answerer.answer_batch([ask(1), ask(2), ask(3)])
    head = answerer.release.state.head
    withheld = 0.01 * 2**-20
    assert budget_view(answerer.release).model_dump() == {
        "release": {"name": "small"},
        "unit": "row",
        "phase": "ensemble",
        "student": False,
        "switching": False,
        "closed": None,
        "epsilon": 20.0,
        "delta": 0.01,
        "composed": None,
        "charged": [
            {"mechanism": "relabel", "epsilon": 2.0, "delta": withheld / 2},
            {"mechanism": "answers", "epsilon": 12.0, "delta": 0.01 * (1 - 2**-20)},
        ],
        "reserved": [{"mechanism": "classifier", "epsilon": 6.0, "delta": withheld / 2}],
        "left": {"epsilon": 0.0, "delta": 0.0},
        "accounting": "joint",
        "with_scores": False,
        "follows": {"limit": "classifier", "cutoff": "halt"},
        "queries": {"answered": 3, "limit": 4, "left": 1},
        "unstable": {"count": 1, "cutoff": 2, "left": 1},
        "ensemble": {"size": 5},
        "hopeless": True,
        "generations": [],
        "erased": None,
        "quorum": None,
        "tick": None,
        "ledger": {"sequence": head.sequence, "head": head.hash},
    }


def test_it_shows_a_switch_under_way_and_its_end(small_release: SmallRelease) -> None:
    """Between the last answer and the publication the phase is the classifier's already."""
    release = small_release.answerer([STABLE] * 4)
    release.answer_batch([ask(margin) for margin in (1, 2, 3, 4)])
    waiting = budget_view(release.release).model_dump()
    assert (waiting["phase"], waiting["switching"]) == ("classifier", True)
    assert waiting["queries"] == {"answered": 4, "limit": 4, "left": 0}
    switch_phase(release.release, seeded_noise())
    done = budget_view(release.release).model_dump()
    assert (done["phase"], done["switching"], done["reserved"]) == ("classifier", False, [])


def test_it_shows_a_student_from_the_last_answer_on(small_release: SmallRelease) -> None:
    """A student is told from a drawn classifier while it is trained and once it answers."""
    answerer = changed(small_release, STUDENT).answerer([STABLE] * 4)
    release = answerer.release
    assert budget_view(release).model_dump()["student"] is False
    answerer.answer_batch([ask(margin) for margin in (1, 2, 3, -4)])
    waiting, charged = (
        budget_view(release).model_dump(),
        budget_view(release).model_dump()["charged"],
    )
    assert (waiting["phase"], waiting["student"], waiting["switching"]) == (
        "classifier",
        True,
        True,
    )
    switch_phase(release, seeded_noise())
    done = budget_view(release).model_dump()
    assert (done["phase"], done["student"], done["switching"]) == ("classifier", True, False)
    assert (done["charged"], done["reserved"]) == (charged, [])


def test_it_shows_a_halt(small_release: SmallRelease) -> None:
    """After hit T the phase is halted; what is reserved stays reserved."""
    release = small_release.answerer([HIT, HIT])
    release.answer_batch([ask(1), ask(2), ask(3)])
    halted = budget_view(release.release).model_dump()
    assert halted["phase"] == "halted"
    assert halted["unstable"] == {"count": 2, "cutoff": 2, "left": 0}
    assert halted["queries"] == {"answered": 2, "limit": 4, "left": 2}
    assert halted["reserved"] != []


def test_the_noisy_vote_has_no_limit_of_unstable_answers(small_release: SmallRelease) -> None:
    """Its cutoff, and what is left of it, are null, from the first entry on."""
    release = changed(small_release, NOISY_VOTE).open()
    shown = budget_view(release).model_dump()
    assert shown["unstable"] == {"count": 0, "cutoff": None, "left": None}
    assert shown["queries"] == {"answered": 0, "limit": 4, "left": 4}
    assert release.state.release is not None
    assert release.state.release.cutoff is None


def test_without_an_answers_share_there_is_no_ensemble(small_release: SmallRelease) -> None:
    """A release that starts in phase classifier has no answer left and no learner."""
    release = SmallRelease(small_release.folder, {"privacy__shares__answers": "0"}).open()
    shown = budget_view(release).model_dump()
    assert shown["ensemble"] == {"size": 0}
    assert shown["queries"] == {"answered": 0, "limit": 0, "left": 0}
    assert shown["unstable"] == {"count": 0, "cutoff": None, "left": None}
    assert shown["phase"] == "classifier"


class MovingRelease:
    """A release that commits a hit as soon as its state has been looked at once."""

    def __init__(self, answerer: RowAnswerer) -> None:
        """Wrap an answerer that has a hit left to give."""
        self._answerer = answerer
        self._looked = False

    @property
    def state(self) -> LedgerState:
        """Return the state of now, and move on."""
        state = self._answerer.release.state
        if not self._looked:
            self._looked = True
            self._answerer.answer_batch([ask(2)])
        return state

    def __getattr__(self, name: str) -> object:
        """Return everything else as it is."""
        return getattr(self._answerer.release, name)


def test_it_is_of_one_moment(small_release: SmallRelease) -> None:
    """A commit in the middle of reading does not mix two states in one reply."""
    answerer = small_release.answerer([HIT, HIT])
    answerer.answer_batch([ask(1)])
    before = answerer.release.state
    shown = budget_view(cast("Release", MovingRelease(answerer))).model_dump()
    assert answerer.phase is Phase.HALTED
    assert shown["phase"] == "ensemble"
    assert shown["unstable"] == {"count": 1, "cutoff": 2, "left": 1}
    assert shown["ledger"] == {"sequence": before.head.sequence, "head": before.head.hash}
