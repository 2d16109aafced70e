"""A hopeless opening: refused before the charge, or opened on record with a warning that stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.errors import ConfigurationError
from app.planning.from_settings import advising, plan_request
from app.planning.plan import plan_answers
from app.release.terms.hopeless_release import (
    ALL_THE_SAME,
    HOPELESS_KEY,
    REFUSED,
    WARNING,
    is_hopeless,
    warn_if_hopeless,
)
from app.release.views.budget import budget_view
from tests.builders.release.learning import learned
from tests.builders.release.opened_release import NoNoise, changed
from tests.builders.release.small_release import ROW_COUNT, SmallRelease

MANY_CHUNKS = {"answers__ensemble": str(ROW_COUNT + 1)}
# At this budget fifty-one votes that agree are stable.
HOPEFUL = {"answers__ensemble": "51"}
NOISY = {"answers__mechanism": "noisy-vote"}
AT_ONCE = {
    "privacy__shares__answers": "0",
    "privacy__shares__relabel": "0",
    "privacy__shares__classifier": "1",
}
FOREST = {"learner__estimator": "sklearn.tree.DecisionTreeClassifier"}
LOGISTIC = {"learner__estimator": "sklearn.linear_model.LogisticRegression"}
CELLS = {"hypotheses__class": "cells", "hypotheses__cells": '["margin >= 0", "", ""]'}
STUMPS = {"hypotheses__class": "stumps"}


def strict(release: SmallRelease, **changes: str) -> SmallRelease:
    """Return the release with other settings, as somebody opens it who gives no flag."""
    return replace(changed(release, **changes), even_if_hopeless=False)


def refusal(release: SmallRelease) -> str:
    """Return the line with which an opening is refused, once it left the ledger empty."""
    with pytest.raises(ConfigurationError) as refused, advising(release.settings()):
        release.open(noise=NoNoise())
    state = release.ledger().read_state()
    assert (state.head.sequence, state.release, state.charged) == (0, None, ())
    return str(refused.value)


@pytest.mark.parametrize(
    "changes",
    [{}, MANY_CHUNKS, {"privacy__calibration": "svt"}, NOISY | MANY_CHUNKS],
    ids=["unanimous", "chunks", "svt", "noisy vote"],
)
def test_it_is_refused_before_anything_is_charged(
    small_release: SmallRelease, changes: dict[str, str]
) -> None:
    """The line says why, gives every line of advice of a plan, and how to open it all the same."""
    release = strict(small_release, **changes)
    line = refusal(release)
    advice = plan_answers(plan_request(release.settings(), ROW_COUNT)).advice
    assert line.startswith(f"answers.ensemble: {REFUSED}: ")
    assert advice
    assert all(each in line for each in advice)
    assert line.endswith(ALL_THE_SAME)


def test_learn_refuses_it_as_well(small_release: SmallRelease) -> None:
    """A release whose ensemble is drawn later is opened by it: nothing is charged."""
    release = strict(small_release)
    with pytest.raises(ConfigurationError, match=REFUSED):
        learned(release, noise=NoNoise())
    assert release.ledger().read_state().release is None


def test_the_flag_opens_it_on_record_for_good(small_release: SmallRelease) -> None:
    """The first entry says it, and so do budget and warning, after a start without the flag too."""
    for release in (small_release, strict(small_release)):
        opened = release.open()
        entry = opened.ledger.public_entries(0, 1)[0]
        assert entry["body"]["parameters"][HOPELESS_KEY] == "true"  # type: ignore[index]  # JSON
        assert budget_view(opened).model_dump()["hopeless"] is True
        said: list[str] = []
        warn_if_hopeless(opened.state.release, said.append)
        assert said == [WARNING]


def test_another_release_says_nothing_of_it(small_release: SmallRelease) -> None:
    """Where it is not hopeless, flag or not, the first entry is what it was before the rule."""
    for release in (strict(small_release, **HOPEFUL), changed(small_release, **HOPEFUL)):
        opened = release.open()
        assert opened.state.release is not None
        assert HOPELESS_KEY not in opened.state.release.parameters
        assert budget_view(opened).model_dump()["hopeless"] is False
        said: list[str] = []
        warn_if_hopeless(opened.state.release, said.append)
        assert said == []


def test_a_ledger_from_before_the_rule_goes_on(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hopeless release that no entry calls so restarts without the flag, as it was opened."""
    with monkeypatch.context() as earlier:
        earlier.setattr("app.release.opening.refuse_hopeless", lambda *_, **__: False)
        head = strict(small_release).open().state.head
    again = strict(small_release).open(noise=NoNoise())
    assert again.state.head == head
    assert not is_hopeless(again.state.release)


def test_a_release_that_starts_with_its_classifier_is_never_hopeless(
    small_release: SmallRelease,
) -> None:
    """Where answers have no share there is no vote to be unstable."""
    opened = strict(small_release, **AT_ONCE, **MANY_CHUNKS).open()
    assert budget_view(opened).model_dump()["hopeless"] is False


def test_a_limit_that_will_not_be_reached_is_no_refusal(small_release: SmallRelease) -> None:
    """That m is out of reach stays a warning: a plan calls it infeasible, and it opens."""
    release = strict(small_release, **HOPEFUL, answers__queries="1000000", privacy__epsilon="6")
    assert plan_answers(plan_request(release.settings(), ROW_COUNT)).reasons
    assert budget_view(release.open()).model_dump()["hopeless"] is False


@pytest.mark.parametrize(
    "changes",
    [{}, STUMPS, CELLS, FOREST, LOGISTIC, NOISY],
    ids=["trees", "stumps", "cells", "forest", "logistic", "noisy vote"],
)
def test_chunks_without_rows_vote_all_the_same(
    small_release: SmallRelease, changes: dict[str, str]
) -> None:
    """With the flag every learner has a vote, those without a row a fixed one."""
    opened = changed(small_release, **changes, **MANY_CHUNKS).open()
    ensemble = opened.private_ensemble
    assert ensemble is not None
    assert ensemble.size == ROW_COUNT + 1
    again = strict(small_release, **changes, **MANY_CHUNKS).open(noise=NoNoise())
    assert again.private_ensemble is not None
    assert again.private_ensemble.size == ROW_COUNT + 1
