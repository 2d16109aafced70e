"""The conditions of answers that share one account with the draws of every kind of learner."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from app.auditing.audit import audited_answers
from app.auditing.bounds_by_mechanism import broken_conditions
from app.auditing.laws.proof_conditions import ANSWERS_PAID, HITS_PAID
from tests.builders.release.small_release import SmallRelease

if TYPE_CHECKING:
    from pathlib import Path

    from app.auditing.audited_mechanism import Audited

PAID = {"stability": HITS_PAID, "noisy-vote": ANSWERS_PAID}


def audited_with(tmp_path: Path, mechanism: str, learner: str) -> Audited:
    """Return the answers of a release whose classifier is in their account."""
    changes = {
        "answers__mechanism": mechanism,
        "classifier__learner": learner,
        "privacy__accounting": "joint",
        "privacy__epsilon": "2",
        "answers__queries": "20",
        "answers__cutoff": "2",
    }
    return audited_answers(SmallRelease(tmp_path, changes).settings())


@pytest.mark.parametrize("learner", ["exponential", "linear", "kernel", "auto", "scored-tree"])
@pytest.mark.parametrize("mechanism", list(PAID))
def test_the_answers_pay_for_what_the_draws_leave(
    tmp_path: Path, mechanism: str, learner: str
) -> None:
    """No condition is broken, whether a draw is priced by its range or as normal noise."""
    audited = audited_with(tmp_path, mechanism, learner)
    assert len(audited.draws) == 2
    assert broken_conditions(audited) == []


@pytest.mark.parametrize("learner", ["linear", "auto"])
@pytest.mark.parametrize("mechanism", list(PAID))
def test_a_descent_that_shows_more_than_the_account_has_for_it_is_seen(
    tmp_path: Path, mechanism: str, learner: str
) -> None:
    """A table that was made for a smaller distance of the descent pays too little."""
    audited = audited_with(tmp_path, mechanism, learner)
    relabelling, descent = audited.draws
    assert descent.squared_separation is not None
    # Far enough that the normal price is the larger one of a draw of either kind.
    larger = max(2 * descent.squared_separation, descent.epsilon**2 / 2)
    further = replace(descent, squared_separation=larger)
    faulty = replace(audited, draws=(relabelling, further))
    assert broken_conditions(faulty) == [PAID[mechanism]]
