"""What a generation buys of one table, and what a check of it refuses."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from app.errors import ConfigurationError, InvariantError
from app.privacy.budget.account import Draw
from app.privacy.generations.accounts import (
    CertifiedAccount,
    ProfileAccount,
    check,
    check_certified,
    holds,
    open_account,
    open_certified_account,
)
from app.privacy.generations.shared_table import JointInequality, joint_thresholds
from app.privacy.stability.certified.certified_table import calibrate as certify
from app.privacy.stability.hit_table import ProfileTable, calibrate

DELTA = Fraction(1, 10**6)


def table() -> ProfileTable:
    """Return a table of epsilon 1 and five hits."""
    return calibrate(epsilon=Fraction(1), delta=DELTA, cutoff=5)


def own_account() -> ProfileAccount:
    """Return the account of a generation with the table's own budget."""
    return open_account(table(), epsilon=Fraction(1), delta=DELTA)


def test_the_budget_of_the_table_buys_its_hits() -> None:
    """A generation like the one that the table is made for buys T, and so does a larger budget."""
    assert own_account().cutoff == 5
    assert open_account(table(), epsilon=Fraction(2), delta=DELTA).cutoff == 5


def test_a_smaller_budget_buys_fewer_hits_and_a_tiny_one_none() -> None:
    """At three quarters of epsilon one hit is left of five, at a half none."""
    account = open_account(table(), epsilon=Fraction(3, 4), delta=DELTA)
    assert account.cutoff == 1
    check(account, table().thresholds)
    assert not holds(replace(account, cutoff=2), table().thresholds)
    with pytest.raises(ConfigurationError, match=r"privacy\.epsilon: buys no unstable answer"):
        open_account(table(), epsilon=Fraction(1, 2), delta=DELTA)


def test_a_budget_without_a_label_in_reserve_buys_none() -> None:
    """A delta below what one differing label may cost buys no hit, whatever epsilon."""
    with pytest.raises(ConfigurationError, match="buys no unstable answer"):
        open_account(table(), epsilon=Fraction(4), delta=DELTA / 100)


def test_a_table_that_shares_an_account_with_draws_is_refused() -> None:
    """Theorem G is about answers alone; draws have shares of their own."""
    draws = (Draw(Fraction(1, 10), has_bounded_range=False),)
    with pytest.raises(InvariantError, match="shares no account with draws"):
        open_account(replace(table(), draws=draws), epsilon=Fraction(1), delta=DELTA)


def test_an_account_is_read_as_it_was_written() -> None:
    """Strings keep every number, and text that is no account is refused."""
    account = own_account()
    assert ProfileAccount.from_plain(account.to_plain()) == account
    with pytest.raises(InvariantError, match="generation's account"):
        ProfileAccount.from_plain({"epsilon": "much"})


FAULTS: dict[str, dict[str, Any]] = {
    "buys one hit at least": {"cutoff": 0},
    "epsilon is above zero": {"epsilon": Fraction(0)},
    "parts of delta are above zero": {"delta_svt": Fraction(0)},
    "2\\^-60 a hit": {"delta_release": Fraction(1, 1 << 62)},
    "within delta": {"delta": DELTA / 2},
    "differing labels": {"cutoff": 6},
    "delta_svt covers": {"epsilon": Fraction(99, 100)},
    "stay within R": {"ln_ratio": own_account().ln_ratio * Fraction(4, 5)},
}


@pytest.mark.parametrize("claim", FAULTS)
def test_an_account_that_does_not_hold_is_refused(claim: str) -> None:
    """Each condition of Theorem G is decided by itself."""
    with pytest.raises(InvariantError, match=claim):
        check(replace(own_account(), **FAULTS[claim]), table().thresholds)


def test_a_table_of_no_words_is_refused() -> None:
    """Thresholds lie strictly inside a word."""
    with pytest.raises(InvariantError, match="strictly inside a word"):
        check(own_account(), (1 << 64,))


def test_one_table_with_the_hits_of_another_class_is_refused() -> None:
    """The planted fault: T of the largest class for a smaller one."""
    small = open_account(table(), epsilon=Fraction(3, 4), delta=DELTA)
    assert not holds(replace(small, cutoff=own_account().cutoff), table().thresholds)


def test_a_joint_table_holds_for_each_class_and_the_larger_of_two_does_not() -> None:
    """Tables of two budgets that cross: their joint one passes both checks, the larger fails."""
    one = calibrate(epsilon=Fraction(6), delta=Fraction(1, 10**15), cutoff=1)
    two = calibrate(epsilon=Fraction(1, 2), delta=Fraction(1, 1000), cutoff=5)
    accounts = [open_account(each, epsilon=each.epsilon, delta=each.delta) for each in (one, two)]
    joint = joint_thresholds(accounts)
    length = max(len(one.thresholds), len(two.thresholds))
    larger = tuple(max(one.threshold(d), two.threshold(d)) for d in range(length))
    assert [holds(account, joint) for account in accounts] == [True, True]
    assert [holds(account, larger) for account in accounts] == [True, False]


def test_a_joint_table_of_none_is_refused() -> None:
    """It serves one account at least."""
    with pytest.raises(InvariantError, match="one account at least"):
        JointInequality([])


def test_a_certificate_pays_for_as_many_hits_as_a_generations_delta_covers() -> None:
    """V_h(1) decides: the table's own delta buys T, a part of it fewer, a tiny one none."""
    certified = certify(epsilon=Fraction(1), delta=DELTA, cutoff=2)
    whole = open_certified_account(certified, epsilon=Fraction(1), delta=DELTA)
    assert whole == CertifiedAccount(epsilon=Fraction(1), delta=DELTA, cutoff=2)
    check_certified(whole, certified)
    fewer = open_certified_account(certified, epsilon=Fraction(3, 2), delta=DELTA * 3 / 4)
    assert fewer.cutoff == 1
    for epsilon, delta in ((Fraction(1), DELTA / 10**6), (Fraction(1, 2), DELTA)):
        with pytest.raises(ConfigurationError, match="buys no unstable answer"):
            open_certified_account(certified, epsilon=epsilon, delta=delta)


def test_a_certificate_does_not_pay_for_more() -> None:
    """More hits than it has functions, or a delta below V_T(1), are refused."""
    certified = certify(epsilon=Fraction(1), delta=DELTA, cutoff=2)
    for account, claim in (
        (CertifiedAccount(epsilon=Fraction(1), delta=DELTA, cutoff=3), "pays for a generation"),
        (CertifiedAccount(epsilon=Fraction(1), delta=DELTA / 2, cutoff=2), "within the generation"),
    ):
        with pytest.raises(InvariantError, match=claim):
            check_certified(account, certified)
