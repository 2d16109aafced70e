"""The number of unstable answers for which each added batch of rows can pay.

A generation is one such batch. Its privacy account is the part of its budget that unstable answers
use up, at a fixed price for each.

**Algorithm.** Corollary G1 of the proof: one stability table (the probability of an unstable answer
at each distance) serves for all generations. Theorem A (calibration ``profile``) or Theorem C
(calibration ``certified``) proves the table private. A generation with its own budget has a privacy
account, from which every unstable answer takes the same price. The generation stops voting with the
unstable answer that uses the account up, so the account is a counter.

**Claim.** Consider a release in which all active generations (those that have begun to vote and
have not stopped) vote on each query that models answer, and every unstable answer is charged to
each of them. Take a generation whose account :func:`check` accepts, and which stops voting at its
unstable answer number ``cutoff``. The outputs of the release are (epsilon, delta)-differentially
private in every record of this generation, for any number of queries, generations and adaptive
adversaries, under replacement of one record's whole history, which is all that its slot contains at
any time.

**Proof.** For a record, the other generations are part of the adversary. The proof is by induction
over the unstable answers that the account of the record's generation still allows:
``app/privacy/generations/accounts_proof.md``.

**Inputs and outputs.** In: the table's thresholds, 64-bit integers, and a generation's epsilon and
delta for answers, exact rationals; all public. Out: the generation's account, public. No private
value is read here.

**Utility.** A generation with the budget for which the table was made pays for T unstable answers,
T being the table's own cutoff. A generation with a larger budget pays for more, up to a limit set
by ``thresholds[0]``. A generation with a smaller budget pays for few or none, so a table is made
for the smallest budget.

**Deviations.** None: no paper prints this algorithm.

**Raises.** ``ConfigurationError``: a budget that pays for no unstable answer. ``InvariantError``:
an account that does not satisfy the theorem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError, InvariantError, invariant
from app.privacy.arithmetic import reading, to_plain
from app.privacy.generations.renyi_orders import best_order
from app.privacy.stability.certified.certificate import NODE_BITS, SLOPE_BITS
from app.privacy.stability.certified.certified_table import factor_holds
from app.privacy.stability.hit_table import TABLES_KEPT, check_pairs
from app.privacy.stability.profile_parameters import (
    EPSILON_KEY,
    RELEASE_DELTA_PER_HIT_MIN,
    choose_ln_ratio,
    hits_hold,
    refuse_out_of_range,
    release_holds,
    split_delta,
)
from app.privacy.stability.table_inequality import WORD_RANGE, Inequality

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.privacy.stability.certified.certified_table import CertifiedTable
    from app.privacy.stability.hit_table import ProfileTable

HITS_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileAccount:
    """The public budget of a batch of rows for answers, computed by Renyi divergence.

    Attributes:
        epsilon: the generation's share of epsilon for answers.
        delta: the generation's share of delta for answers.
        cutoff: T_g, the number of unstable answers after which the generation stops voting.
        alpha: alpha_g, the generation's order of Renyi divergence.
        ln_ratio: the price of one unstable answer. The budget limits the moment, of order alpha_g,
            of the likelihood ratio of the outputs on two neighbouring data sets. The price is the
            logarithm of this limit, divided by T_g.
        delta_release: the part of delta that covers the release of a label that differs between two
            neighbouring data sets.
        delta_svt: the part of delta that covers the unstable answers.

    """

    epsilon: Fraction
    delta: Fraction
    cutoff: int
    alpha: Fraction
    ln_ratio: Fraction
    delta_release: Fraction
    delta_svt: Fraction

    def to_plain(self) -> dict[str, str]:
        """Return the privacy account as strings, without loss of precision."""
        return to_plain(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, str]) -> ProfileAccount:
        """Return the account that :meth:`to_plain` wrote; :func:`check` verifies it.

        Raises:
            InvariantError: a parameter is missing, or its value is not a number.

        """
        names = ("epsilon", "delta", "alpha", "ln_ratio", "delta_release", "delta_svt")
        with reading("numbers of a generation's account"):
            numbers = {name: Fraction(plain[name]) for name in names}
            return cls(cutoff=int(plain["cutoff"]), **numbers)


def open_account(table: ProfileTable, *, epsilon: Fraction, delta: Fraction) -> ProfileAccount:
    """Return the privacy account of a batch of rows that allows the most unstable answers.

    Args:
        table: the stability table of the release; no draw of a relabelling rule or of a classifier
            may share the account of its answers.
        epsilon: the generation's share of epsilon for answers.
        delta: the generation's share of delta for answers.

    Returns:
        An account that :func:`check` accepts.

    Raises:
        ConfigurationError: the budget is out of range, or pays for no unstable answer.

    """
    invariant(not table.draws, "a table of generations shares no account with draws")
    return _opened(table.thresholds, table.alpha, epsilon, delta)


@lru_cache(maxsize=TABLES_KEPT)
def _opened(
    thresholds: tuple[int, ...], own_order: Fraction, epsilon: Fraction, delta: Fraction
) -> ProfileAccount:
    """Try the order that promises the most hits, and fewer hits until all is held exactly."""
    refuse_out_of_range(epsilon=epsilon, delta=delta, cutoff=1)
    delta_release, delta_svt = split_delta(delta)
    label_limit = _hits_by_label(thresholds[0], delta_release)
    alpha, promised = best_order(
        thresholds, own_order=own_order, epsilon=epsilon, delta_svt=delta_svt
    )
    for cutoff in range(min(label_limit, promised), 0, -1):
        ln_ratio = choose_ln_ratio(alpha, epsilon=epsilon, delta_svt=delta_svt, cutoff=cutoff)
        account = ProfileAccount(
            epsilon=epsilon,
            delta=delta,
            cutoff=cutoff,
            alpha=alpha,
            ln_ratio=ln_ratio,
            delta_release=delta_release,
            delta_svt=delta_svt,
        )
        if holds(account, thresholds):
            return account
    problem = "buys no unstable answer of the release's table, which is made for larger budgets"
    raise ConfigurationError(EPSILON_KEY, problem)


def _hits_by_label(first: int, delta_release: Fraction) -> int:
    """Return the most hits T with ``1 - p_0^T <= delta_release``, exactly."""
    most = math.floor(delta_release / RELEASE_DELTA_PER_HIT_MIN)
    low, high = 0, min(most, HITS_MAX) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if release_holds(first, delta_release, middle) else (low, middle)
    return low


def holds(account: ProfileAccount, thresholds: tuple[int, ...]) -> bool:
    """Return whether :func:`check` accepts a batch's privacy account for a stability table."""
    try:
        check(account, thresholds)
    except InvariantError:
        return False
    return True


def check(account: ProfileAccount, thresholds: tuple[int, ...]) -> None:
    """Raise an error unless a batch's account meets the privacy theorem, in exact arithmetic.

    Args:
        account: the privacy account of a generation.
        thresholds: the thresholds of the stability table by which the generation votes.

    Raises:
        InvariantError: a condition of the theorem does not hold.

    """
    _check(account, thresholds)


@lru_cache(maxsize=TABLES_KEPT)
def _check(account: ProfileAccount, thresholds: tuple[int, ...]) -> None:
    """Decide once a process about each account that holds."""
    invariant(1 <= account.cutoff <= HITS_MAX, "a generation buys one hit at least")
    invariant(account.epsilon > 0, "epsilon is above zero")
    invariant(account.delta_release > 0 < account.delta_svt, "both parts of delta are above zero")
    each = account.delta_release / account.cutoff
    invariant(each >= RELEASE_DELTA_PER_HIT_MIN, "delta_release is 2^-60 a hit at least")
    within = account.delta_release + account.delta_svt <= account.delta < 1
    invariant(within, "both parts stay within delta")
    inside = len(thresholds) > 0 and all(0 < word < WORD_RANGE for word in thresholds)
    invariant(inside, "thresholds lie strictly inside a word")
    kept = release_holds(thresholds[0], account.delta_release, account.cutoff)
    invariant(kept, "p_0 keeps differing labels in")
    covered = hits_hold(
        epsilon=account.epsilon,
        delta_svt=account.delta_svt,
        alpha=account.alpha,
        ln_ratio=account.ln_ratio,
        cutoff=account.cutoff,
    )
    invariant(covered, "delta_svt covers the generation's hits")
    check_pairs(Inequality(alpha=account.alpha, ln_ratio=account.ln_ratio), thresholds)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedAccount:
    """The public budget of a batch of rows for answers, if a certificate proves the table private.

    Attributes:
        epsilon: the generation's share of epsilon for answers, at least the epsilon for which the
            certificate holds.
        delta: the generation's share of delta for answers.
        cutoff: T_g, the number of unstable answers after which the generation stops voting.

    """

    epsilon: Fraction
    delta: Fraction
    cutoff: int


def open_certified_account(
    table: CertifiedTable, *, epsilon: Fraction, delta: Fraction
) -> CertifiedAccount:
    """Return the account of a batch of rows with the most unstable answers that delta allows.

    Raises:
        ConfigurationError: the budget pays for no unstable answer.

    """
    for cutoff in range(table.cutoff, 0, -1):
        account = CertifiedAccount(epsilon=epsilon, delta=delta, cutoff=cutoff)
        if _certificate_pays(account, table):
            return account
    problem = "buys no unstable answer of the release's table, which is made for larger budgets"
    raise ConfigurationError(EPSILON_KEY, problem)


def check_certified(account: CertifiedAccount, table: CertifiedTable) -> None:
    """Raise an error unless a certificate covers the account of a batch of rows.

    Raises:
        InvariantError: the certificate does not cover the account.

    """
    invariant(1 <= account.cutoff <= table.cutoff, "a certificate pays for a generation's hits")
    invariant(_certificate_pays(account, table), "V_T(1) is within the generation's delta")


def _certificate_pays(account: CertifiedAccount, table: CertifiedTable) -> bool:
    certificate = table.certificate
    one = certificate.nodes.index(1 << NODE_BITS)
    cost = Fraction(certificate.values[account.cutoff][one], 1 << (NODE_BITS + SLOPE_BITS))
    return factor_holds(certificate.factor, account.epsilon) and cost <= account.delta
