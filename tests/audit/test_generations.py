"""A release with generations against every adversary: exact, and with each planted fault caught.

Nothing is sampled.  The delta of a record in a release of several generations equals that of a
single release with the same table, to the digits computed; docs/audit.md has what is found of
faulty rules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

from app.auditing.generations.adversary_game import LivingGame
from app.auditing.generations.generation_rules import Rules, Standing, broken_rules
from app.auditing.generations.worst_case import WorstCase
from app.ledger.entries import generations as living
from app.ledger.entries.entry_kinds import (
    AnswersReleased2,
    GenerationRetired,
    GenerationsJoined,
    SlotsChanged,
    slots_name,
)
from app.ledger.entries.generations import Generation, Generations
from app.privacy.generations.accounts import check, holds, open_account
from app.privacy.generations.shared_table import joint_thresholds
from app.privacy.stability.hit_table import ProfileTable, calibrate, find_thresholds
from app.privacy.stability.profile_parameters import first_threshold
from tests.audit.planted.planted_generations import (
    DELTA,
    DEPTH,
    EPSILON,
    FAULTS,
    MOVES_MAX,
    Fault,
    find,
    letters_of,
    single_release,
    worst_of,
)
from tests.builders.ledger.releases import opened
from tests.tidy.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.audit

SAME: Final = 1e-6
"""Relative difference of two values of one grid that count as equal: the last move of each gains
less."""
RULES: Final = {
    "generations.quorum": "1",
    "generations.active_max": "null",
    "generations.labelling": '"own"',
    "generations.table": "1 1/1000 2",
}


@dataclass(frozen=True)
class ServedRules(Rules):
    """The rules that serve: joins, charges and retirements are those of the ledger's fold."""

    def charged(self, standing: Standing, indices: Sequence[int]) -> Standing:
        """Fold an unstable answer, and the retirements that must follow."""
        known = self._known(standing)
        assert tuple(each.number - 1 for each in known.active) == tuple(indices)
        hit = AnswersReleased2(
            first_query_id=1,
            digests=["00" * 16],
            labels=[None],
            stable=[False],
            active=known.active_set,
        )
        known = living.charged(known, opened(parameters=RULES), hit)
        while known.spent:
            event = GenerationRetired(
                number=known.spent[0].number, reason="cutoff", active=known.active_set + 1
            )
            known = living.retired(known, event)
        return _standing_of(known, standing.joined)

    def events(self, standing: Standing) -> list[Standing]:
        """Fold a tick at which the next generation joins, if there is one; and one without."""
        following = []
        for joins in {0, min(1, self.generation_count - standing.joined)}:
            known = self._known(standing, due=joins)
            names = [slots_name(each.number, known.tick + 1) for each in known.kept]
            tick = SlotsChanged(
                tick=known.tick + 1, period=1, private_digests=dict.fromkeys(names, "ab" * 32)
            )
            known = living.ticked(known, opened(parameters=RULES), tick)
            if known.joining:
                event = GenerationsJoined(numbers=list(known.joining), active=known.active_set + 1)
                known = living.joined(known, event)
            following.append(_standing_of(known, standing.joined + joins))
        return following

    def _known(self, standing: Standing, *, due: int = 0) -> Generations:
        """Return what entries establish at a standing."""
        return Generations(
            all=tuple(
                Generation(
                    number=index + 1,
                    slots=self.votes[index],
                    chunks=self.votes[index],
                    epsilon="1",
                    delta="1/1000",
                    shares={},
                    cutoff=self.cutoffs[index],
                    unstable=standing.hits[index],
                    joins_at=1 if index < standing.joined + due else 2,
                    fingerprint="",
                    kept_at=0,
                    labelled_by=1,
                    standing=_word(standing, index),
                )
                for index in range(self.generation_count)
            ),
            active_set=1,
        )


def _word(standing: Standing, index: int) -> living.Standing:
    if standing.retired[index]:
        return "retired"
    return "active" if index < standing.joined else "waiting"


def _standing_of(known: Generations, joined: int) -> Standing:
    return Standing(
        joined,
        tuple(each.unstable for each in known.all),
        tuple(each.standing == "retired" for each in known.all),
    )


@cache
def thresholds(cutoff: int) -> tuple[int, ...]:
    """Return the table of all generations."""
    return calibrate(epsilon=EPSILON, delta=DELTA, cutoff=cutoff).thresholds


def served(count: int, cutoff: int, *, record: int, points: int = 400) -> WorstCase[Standing]:
    """Return the worst case of the rules that serve."""
    rules = ServedRules((48 // count,) * count, (cutoff,) * count)
    game = LivingGame(rules, thresholds(cutoff), record)
    return WorstCase(game, float(EPSILON), points=points, moves_max=MOVES_MAX)


@pytest.mark.parametrize("cutoff", [1, 2])
@pytest.mark.parametrize(
    ("count", "points"),
    [
        (2, 400),
        pytest.param(2, 3000, marks=pytest.mark.long),
        pytest.param(4, 1500, marks=pytest.mark.long),
    ],
)
def test_generations_cost_a_record_what_a_single_release_does(
    count: int, points: int, cutoff: int
) -> None:
    """Upper and lower bounds of the exact delta equal the single release's, first or last."""
    alone = single_release(cutoff, points)
    assert alone.upper <= DELTA
    for record in (0, count - 1):
        together = served(count, cutoff, record=record, points=points)
        assert together.upper == pytest.approx(alone.upper, rel=SAME)
        assert together.lower(DEPTH + count) >= alone.lower(DEPTH) * (1 - SAME)


def test_the_rules_that_serve_break_no_condition() -> None:
    """Hits of each generation end at its T, and distances are as Lemma S has them."""
    assert broken_rules(ServedRules((6, 7), (2, 3))) == []


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_conditions_see_a_fault_as_the_page_says(fault: Fault) -> None:
    """The letters of docs/audit.md are exactly the conditions that are broken."""
    assert letters_of(fault) == page()[fault.name][2]


@cache
def page() -> dict[str, tuple[float, float, str]]:
    """Return the table of docs/audit.md: proved deltas and letters, by the fault's name."""
    text = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    text = text[text.index("## Generations") :]
    row = re.compile(
        r"^\| ([^|]+) \| ([\d.]+e-\d+) \| ([\d.]+e-\d+) \| ([a-z, ]*) ?\|$", re.MULTILINE
    )
    return {
        name: (float(one), float(two), letters.strip())
        for name, one, two, letters in row.findall(text)
    }


def test_the_page_has_every_fault() -> None:
    """And no other."""
    assert list(page()) == [fault.name for fault in FAULTS]


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_the_worst_case_of_a_fault_is_as_the_page_says(fault: Fault) -> None:
    """What adversaries of seven moves prove, to the digits of docs/audit.md."""
    assert find(fault).deltas == pytest.approx(page()[fault.name][:2], rel=0.06)


@pytest.mark.parametrize(
    "name", ["one counter for all", "only the newest is charged", "one hit more than T"]
)
def test_a_fault_shows_above_the_single_release(name: str) -> None:
    """With two generations and T of 1 an adversary proves more than the single release costs."""
    fault = next(each for each in FAULTS if each.name == name)
    found = worst_of(fault, 1, generations=2).lower(DEPTH)
    assert found > 1.5 * single_release(1).upper


def two_classes() -> tuple[ProfileTable, ProfileTable]:
    """Return tables of two classes that cross."""
    return (
        calibrate(epsilon=Fraction(6), delta=Fraction(1, 10**15), cutoff=1),
        calibrate(epsilon=Fraction(1, 2), delta=Fraction(1, 1000), cutoff=5),
    )


@pytest.mark.long
def test_the_larger_of_two_tables_breaks_a_claim_and_the_joint_one_keeps_it() -> None:
    """A record of the second class: above its delta under one table, below it under the other."""
    one, two = two_classes()
    accounts = [open_account(each, epsilon=each.epsilon, delta=each.delta) for each in (one, two)]
    length = max(len(one.thresholds), len(two.thresholds))
    larger = tuple(max(one.threshold(d), two.threshold(d)) for d in range(length))
    rules = Rules((90,), (5,))
    broken = WorstCase(LivingGame(rules, larger, 0), 0.5, points=700)
    assert broken.lower(DEPTH) > two.delta
    assert not holds(accounts[1], larger)
    joint = joint_thresholds(accounts)
    sound = WorstCase(LivingGame(rules, joint, 0), 0.5, points=700)
    assert sound.upper <= two.delta
    for account in accounts:
        check(account, joint)


def test_a_table_of_one_class_with_the_first_entry_of_another_is_refused() -> None:
    """The planted fault: steps for five hits, p_0 for one; labels are not paid for."""
    _, two = two_classes()
    first = first_threshold(two.delta_release, 1)
    mixed = find_thresholds(alpha=two.alpha, ln_ratio=two.ln_ratio, first=first)
    account = open_account(two, epsilon=two.epsilon, delta=two.delta)
    assert holds(account, two.thresholds)
    assert not holds(account, mixed)
