"""A generation with a budget of its own: what it buys, what its draws cost, when it retires."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from app.errors import ConfigurationError, InvariantError
from app.ledger.entries.generations import generations_of
from app.ledger.verification import verify
from app.noise.scripted import ScriptedNoise
from app.privacy.budget.composition import Mechanism
from app.privacy.generations import accounts
from app.release.generations import fitting, generations_opening
from app.release.generations.appending import append_generation
from app.release.generations.labelling import Labelled, draw_labels
from app.release.terms.answer_terms import (
    calibration_piece,
    check_accounts,
    check_pieces,
    checked_piece,
    read_calibration,
)
from tests.builders.ledger.outside_audit import faults_in
from tests.builders.release.growing_release import GrowingRelease
from tests.builders.release.small_release import (
    HIT,
    STABLE,
    SmallRelease,
    ask,
    private_rows,
    seeded_noise,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from app.ledger.ledger import Ledger
    from app.privacy.stability.hit_table import ProfileTable
    from app.release.terms.configuration import Configuration

DELTA = Fraction(1, 100)
SMALLER = Fraction(19), DELTA


@pytest.fixture
def growing(tmp_path: Path) -> GrowingRelease:
    """Return the release of a temporary folder, yet to be opened: epsilon 20, T 2."""
    return GrowingRelease(tmp_path)


def append(
    growing: GrowingRelease, ledger: Ledger, budget: tuple[Fraction, Fraction]
) -> int | None:
    """Append a generation with a budget."""
    return append_generation(
        growing.small.configuration(),
        ledger=ledger,
        rows=private_rows(seed=9),
        noise=seeded_noise(9),
        period=growing.ticker(ledger).period,
        budget=budget,
    ).number


def test_a_smaller_budget_buys_fewer_unstable_answers_and_retires_first(
    growing: GrowingRelease,
) -> None:
    """One of two: both are charged the first, with which the smaller one retires."""
    answerer = growing.answerer([])
    ledger = answerer.release.ledger
    assert append(growing, ledger, SMALLER) == 2
    growing.pass_periods(answerer, 2)
    answerer._noise = ScriptedNoise([HIT, STABLE, STABLE, STABLE])
    answerer.answer_batch([ask(1), ask(2), ask(3)])
    known = generations_of(answerer.release.state.generations)
    assert [(each.standing, each.unstable, each.cutoff) for each in known.all] == [
        ("active", 1, 2),
        ("retired", 1, 1),
    ]
    assert known.all[1].shares["answers"][0] == str(Fraction(9, 10) * 19)
    verify(ledger)
    check_pieces(growing.small.settings(), ledger)
    assert faults_in(ledger.public_entries(0, 1000)) == []
    ledger.close()
    again = growing.answerer([])
    assert again.release.answering_state.unstable_count == 1


def test_what_is_drawn_is_what_the_append_was_charged(
    growing: GrowingRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The labelling of the smaller generation is drawn at a tenth of its own epsilon."""
    answerer = growing.answerer([])
    append(growing, answerer.release.ledger, SMALLER)
    drawn: list[Fraction] = []
    real = draw_labels

    def noted(configuration: Configuration, *given: Any, **named: Any) -> Labelled:
        drawn.append(configuration.charges[Mechanism.RELABEL].epsilon)
        return real(configuration, *given, **named)

    monkeypatch.setattr(fitting, "draw_labels", noted)
    growing.ticker(answerer.release.ledger).fit_waiting()
    assert drawn == [Fraction(19, 10)]


def test_the_release_s_own_budget_is_the_ordinary_class(growing: GrowingRelease) -> None:
    """Written out or not, its entry has version 1 and the table's T."""
    ledger = growing.answerer([]).release.ledger
    append(growing, ledger, (Fraction(20), DELTA))
    assert "account" not in str(ledger.public_entries(0, 1000)[-1])


@pytest.mark.parametrize(
    ("budget", "option", "problem"),
    [
        ((Fraction(21), DELTA), "--epsilon", "at most what the release promises"),
        ((Fraction(0), DELTA), "--epsilon", "above 0"),
        ((Fraction(20), DELTA * 2), "--delta", "at most what the release promises"),
        ((Fraction(5), DELTA), "--epsilon", "buys no unstable answer"),
    ],
)
def test_what_a_budget_may_not_be(
    growing: GrowingRelease, budget: tuple[Fraction, Fraction], option: str, problem: str
) -> None:
    """One line names the option; nothing is appended."""
    ledger = growing.answerer([]).release.ledger
    head = ledger.read_state().head
    with pytest.raises(ConfigurationError, match=problem) as refused:
        append(growing, ledger, budget)
    assert refused.value.key == option
    assert ledger.read_state().head == head


def test_a_certificate_is_of_one_class(tmp_path: Path) -> None:
    """Another budget is refused."""
    growing = GrowingRelease(tmp_path, {"privacy__calibration": "certified"})
    with pytest.raises(ConfigurationError, match="a certificate is of one class"):
        append(growing, growing.answerer([]).release.ledger, SMALLER)


# -- planted faults ------------------------------------------------------------


def test_the_largest_class_s_cutoff_for_all_is_refused(growing: GrowingRelease) -> None:
    """Fault 5: T of the table for an account that pays for less; where the fold cannot, verify."""
    ledger = growing.answerer([]).release.ledger
    append(growing, ledger, SMALLER)
    state, calibration = ledger.read_state(), read_calibration(growing.small.settings(), ledger)
    check_accounts(state, calibration)
    known = generations_of(state.generations)
    for changes in ({"cutoff": 2}, {"account": {**known.all[1].account, "ln_ratio": "1/1024"}}):
        planted = known.with_one(replace(known.all[1], **changes))
        with pytest.raises(InvariantError):
            check_accounts(replace(state, generations=planted), calibration)


def test_a_table_of_one_class_with_the_first_threshold_of_another_is_refused(
    growing: GrowingRelease,
) -> None:
    """Fault 7: p_0 made for a larger delta lets a differing label out too often."""
    ledger = growing.answerer([]).release.ledger
    append(growing, ledger, SMALLER)
    calibration = read_calibration(growing.small.settings(), ledger)
    bought = generations_of(ledger.read_state().generations).all[1]
    account = accounts.ProfileAccount.from_plain(
        {
            **bought.account,
            "epsilon": bought.shares["answers"][0],
            "delta": bought.shares["answers"][1],
            "cutoff": "1",
        }
    )
    thresholds = calibration.thresholds  # type: ignore[attr-defined]  # a table of Theorem A
    assert accounts.holds(account, thresholds)
    lower = (thresholds[0] * 99 // 100, *thresholds[1:])
    assert not accounts.holds(account, lower)


# -- a table for a stricter class than the release's own ------------------------

TABLE = {"privacy__table": '{"epsilon": 10, "hits_max": 12}'}


def test_a_table_of_the_strictest_class_lets_larger_budgets_buy_more(tmp_path: Path) -> None:
    """Epsilon 10 buys the table's T of 2, and 20 several times as many, from account entries."""
    growing = GrowingRelease(tmp_path, TABLE)
    answerer = growing.answerer([])
    ledger = answerer.release.ledger
    append(growing, ledger, (Fraction(10), DELTA))
    growing.pass_periods(answerer, 2)
    first, second = generations_of(answerer.release.state.generations).all
    assert (second.cutoff, second.account) == (2, {})
    assert 2 < first.cutoff <= 12
    answerer._noise = ScriptedNoise([HIT, HIT, STABLE, HIT, STABLE])
    answerer.answer_batch([ask(1), ask(2), ask(3), ask(4)])
    known = generations_of(answerer.release.state.generations)
    assert [(each.standing, each.unstable) for each in known.all] == [
        ("active", 3),
        ("retired", 2),
    ]
    verify(ledger)
    check_pieces(growing.small.settings(), ledger)
    opened = ledger.read_state().release
    assert opened is not None
    assert opened.parameters["generations.table"].endswith(" 2 12")
    ledger.close()
    again = growing.answerer([])
    assert again.release.answering_state.unstable_count == 12 - first.cutoff + 3


def _kept_altered(
    monkeypatch: pytest.MonkeyPatch, recorded: Callable[[ProfileTable], dict[str, bytes]]
) -> None:
    """Let an opening keep a table whose second word is one lower, with a record of its check."""

    def altered(table: ProfileTable) -> ProfileTable:
        first, second, *others = table.thresholds
        return dataclasses.replace(table, thresholds=(first, second - 1, *others))

    pieces = {"calibration_piece": calibration_piece, "checked_piece": recorded}
    for name, piece in pieces.items():
        monkeypatch.setattr(
            generations_opening, name, lambda table, piece=piece: piece(altered(table))
        )


def test_a_start_refuses_a_table_of_generations_that_nobody_checked(
    growing: GrowingRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an earlier version kept it: with no record the table is decided exactly."""
    with monkeypatch.context() as patched:
        _kept_altered(patched, lambda _: {})
        with pytest.raises(InvariantError, match="within R"):
            growing.open()
    with pytest.raises(InvariantError, match="within R"):
        growing.open()


def test_verify_decides_exactly_about_a_table_of_generations(
    growing: GrowingRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorded as checked, a wrong word starts, and is found by the check of all pieces."""
    with monkeypatch.context() as patched:
        _kept_altered(patched, checked_piece)
        growing.open().ledger.close()
    growing.open().ledger.close()
    with pytest.raises(InvariantError, match="within R"):
        check_pieces(growing.small.settings(), growing.small.ledger())


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"privacy__table": '{"epsilon": 21, "hits_max": 12}'}, "privacy.table.epsilon"),
        ({"privacy__table": '{"epsilon": 10, "hits_max": 1}'}, "privacy.table.hits_max"),
        ({**TABLE, "privacy__calibration": "certified"}, "privacy.table"),
    ],
)
def test_what_such_a_table_may_not_be(tmp_path: Path, changes: dict[str, str], key: str) -> None:
    """One line names the setting."""
    with pytest.raises(ConfigurationError) as refused:
        GrowingRelease(tmp_path, changes).small.settings()
    assert refused.value.key == key


def test_a_fixed_release_has_one_class(tmp_path: Path) -> None:
    """A table for another is refused."""
    with pytest.raises(ConfigurationError, match="a fixed one has one class"):
        SmallRelease(tmp_path, TABLE).settings()
