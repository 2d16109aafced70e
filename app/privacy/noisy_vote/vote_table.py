"""The table of integer label probabilities by which the two-label noisy vote answers.

The table gives the probability of each label by its number of votes. The losing label is the label
with fewer votes.

The lead of a label is its number of votes minus that of the next label.

Claim: let a mechanism answer label 1 if and only if a new uniform 64-bit word is below ``P(v)``, v
being the number of votes for label 1, and let it end after answer m. With a table P that
:func:`check` accepts, the mechanism is (epsilon, delta)-differentially private for any adaptive
queries under replacement of one record. Since ``P(k - v) = 2^64 - P(v)``, only half of the table is
stored, from a tie outwards: entry j is the number of words that give a label that is j votes short
of half of the k votes, rounded down. If k is even the first entry, for a tie, is 2^63. If k is odd,
changing one vote exchanges the two labels in the closest vote. Proof:
``app/privacy/noisy_vote/bit_vote_proof.md``.

The number k is chosen after the table, so the table is built for even and for odd k, at one Renyi
order ``alpha`` and one price per answer, ``alpha - 1`` times the answer's Renyi divergence. The
parameters are rationals, fixed before a table is built. :func:`check` decides from the stored table
every condition of the claim, with every rounding on the safe side.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError, invariant
from app.privacy.arithmetic import reading
from app.privacy.budget.account import Draw, left_for_answers, log_moment
from app.privacy.noisy_vote.calibration import (
    ANSWERS_KEY,
    gaussian_order,
    refuse_out_of_range,
)
from app.privacy.noisy_vote.vote_curve import VoteCurve, answers_within, vote_curve
from app.privacy.stability.hit_table import extended
from app.privacy.stability.probability_curve import CurveInequality
from app.privacy.stability.profile_parameters import ALPHA_GRID, choose_ln_ratio, hits_hold
from app.privacy.stability.table_inequality import WORD_RANGE, Inequality

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.privacy.noisy_vote.vote_curve import Floats

HALF: Final = WORD_RANGE // 2
ENTRY_COUNT_MAX: Final = 1 << 14
"""Entries of a half: more of them take minutes to find, and votes that nobody has."""
TABLES_KEPT: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickVoteTable:
    """Approximate label probabilities of the two-label vote, for planning only.

    Attributes:
        epsilon: the answers' share of epsilon; if there are draws, the epsilon of answers and draws
            together.
        delta: the answers' share of delta.
        answer_limit: m, the number of answers after which the models stop.
        draws: the draws of a relabelling rule and of a classifier whose cost is computed jointly
            with that of the answers; empty if shares of epsilon are added up.

    """

    epsilon: Fraction
    delta: Fraction
    answer_limit: int
    draws: tuple[Draw, ...] = ()

    @property
    def cutoff(self) -> None:
        """None, since the noisy vote has no unstable answers to limit."""
        return

    def lead_at(self, probability: float, /) -> int:
        """Return the smallest lead, in votes, that noise overturns with at most this probability.

        Args:
            probability: the largest probability that the other label is answered, in (0, 1/2).

        """
        return max(1, math.ceil(self.curve.lead(probability)))

    @property
    def curve(self) -> VoteCurve:
        """The floating-point model of the table of label probabilities."""
        return self._curve(self.answer_limit)

    def lost(self, leads: Floats, /, *, answers: int) -> Floats:
        """Return the chance that noise changes the label, for each lead and this many answers.

        Args:
            leads: the leads of the label with the most votes, in votes.
            answers: the number m of answers.

        """
        return self._curve(answers).lost(leads)

    def answers_within(self, lead: int, /) -> int:
        """Return the largest number of answers for which this lead is large enough.

        At this number noise changes at most 1 in 100 labels with this lead.
        """
        found = answers_within(
            lead,
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            gaussian_order=self._gaussian_order,
            start=float(self.answer_limit),
            draws=self.draws,
        )
        return math.floor(found)

    def _curve(self, answers: int) -> VoteCurve:
        return vote_curve(
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            answers=float(answers),
            gaussian_order=self._gaussian_order,
            draws=self.draws,
        )

    @property
    def _gaussian_order(self) -> float:
        """The order of the Gaussian vote at what the answers have for themselves."""
        return float(gaussian_order(left_for_answers(self.epsilon, self.draws), self.delta))


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteTable(QuickVoteTable):
    """The integer table by which the two-label vote answers, with the budget that it keeps.

    Attributes:
        alpha: the order of the Renyi divergence by which the cost of the answers is computed.
        ln_ratio: ``(alpha - 1) r``, the price of one answer, r being its Renyi divergence.
        even: for an even k, the number of 64-bit words that give a label that is 0, 1, ... votes
            short of half the votes.
        odd: the same for an odd k, where in the closest vote a label is half a vote short.

    """

    alpha: Fraction
    ln_ratio: Fraction
    even: tuple[int, ...]
    odd: tuple[int, ...]

    def half(self, ensemble_size: int) -> tuple[int, ...]:
        """Return the losing label's probabilities, from a tie outwards, as 64-bit integers."""
        return self.odd if ensemble_size % 2 else self.even

    def lead_at(self, probability: float, /) -> int:
        """Return the smallest lead, in votes, that noise overturns with at most this probability.

        If all probabilities in the table are larger, return the lead of its last entry.

        Args:
            probability: the largest probability that the other label is answered, in (0, 1/2).

        """
        wanted = math.floor(Fraction(probability) * WORD_RANGE)
        ends = (
            2 * _first_at_most(self.even, wanted),
            2 * _first_at_most(self.odd, wanted) + 1,
        )
        # A lead of the other parity is a vote shorter than the one before that does not do.
        return max(1, max(ends) - 1)

    def to_plain(self) -> dict[str, str | list[str]]:
        """Return the table as strings and lists of strings, without loss of precision."""
        draws = {"draws": [draw.to_plain() for draw in self.draws]} if self.draws else {}
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            **draws,
            "answer_limit": str(self.answer_limit),
            "alpha": str(self.alpha),
            "ln_ratio": str(self.ln_ratio),
            "even": [str(word) for word in self.even],
            "odd": [str(word) for word in self.odd],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, str | list[str]]) -> VoteTable:
        """Return the table that :meth:`to_plain` wrote; :func:`check` verifies it.

        Raises:
            InvariantError: a parameter is missing, or its value is not a number.

        """
        with reading("table of the noisy vote"):
            return cls(
                epsilon=Fraction(str(plain["epsilon"])),
                delta=Fraction(str(plain["delta"])),
                answer_limit=int(str(plain["answer_limit"])),
                alpha=Fraction(str(plain["alpha"])),
                ln_ratio=Fraction(str(plain["ln_ratio"])),
                even=tuple(int(word) for word in plain["even"]),
                odd=tuple(int(word) for word in plain["odd"]),
                draws=tuple(Draw.from_plain(draw) for draw in plain.get("draws", ())),
            )


def calibrate(
    *, epsilon: Fraction, delta: Fraction, answer_limit: int, draws: tuple[Draw, ...] = ()
) -> VoteTable:
    """Return the table of label probabilities with which a two-label vote keeps a budget.

    Args:
        epsilon: the answers' share of epsilon, from 1e-6 to 1000; if there are draws, the epsilon
            of answers and draws together.
        delta: the answers' share of delta, from 1e-200 to 0.5.
        answer_limit: m, the number of answers after which the models stop, at least 1.
        draws: the draws of a relabelling rule and of a classifier whose cost is computed jointly
            with that of the answers.

    Returns:
        A table that :func:`check` accepts.

    Raises:
        ConfigurationError: the budget is out of range, or its table would be too long.

    """
    return _calibrated(epsilon, delta, answer_limit, draws)


@lru_cache(maxsize=TABLES_KEPT)
def _calibrated(
    epsilon: Fraction, delta: Fraction, answer_limit: int, draws: tuple[Draw, ...]
) -> VoteTable:
    """Build a table once a process: planning and opening ask for the same one."""
    curve = quick(epsilon=epsilon, delta=delta, answer_limit=answer_limit, draws=draws).curve
    alpha = 1 + Fraction(max(1, round((curve.alpha - 1) * ALPHA_GRID)), ALPHA_GRID)
    ln_ratio = choose_ln_ratio(
        alpha,
        epsilon=epsilon,
        delta_svt=delta,
        cutoff=answer_limit,
        taken=log_moment(draws, alpha),
    )
    return VoteTable(
        epsilon=epsilon,
        delta=delta,
        answer_limit=answer_limit,
        draws=draws,
        alpha=alpha,
        ln_ratio=ln_ratio,
        even=half_table(alpha=alpha, ln_ratio=ln_ratio, is_odd=False),
        odd=half_table(alpha=alpha, ln_ratio=ln_ratio, is_odd=True),
    )


def quick(
    *, epsilon: Fraction, delta: Fraction, answer_limit: int, draws: tuple[Draw, ...] = ()
) -> QuickVoteTable:
    """Return an approximate table of the two-label vote's label probabilities, for planning."""
    own = left_for_answers(epsilon, draws)
    refuse_out_of_range(epsilon=own, delta=delta, answer_limit=answer_limit)
    refuse_out_of_range(epsilon=epsilon, delta=delta, answer_limit=answer_limit)
    found = QuickVoteTable(epsilon=epsilon, delta=delta, answer_limit=answer_limit, draws=draws)
    length = found.curve.votes[-1]
    if length > ENTRY_COUNT_MAX:
        problem = (
            f"needs a table of about {length:.0f} entries at this epsilon, above {ENTRY_COUNT_MAX}"
        )
        raise ConfigurationError(ANSWERS_KEY, problem)
    return found


def half_table(*, alpha: Fraction, ln_ratio: Fraction, is_odd: bool) -> tuple[int, ...]:
    """Return the losing label's probabilities, from a tie on until they are negligible.

    Args:
        alpha: the Renyi order.
        ln_ratio: ``(alpha - 1) r``, the price of one answer, r being its Renyi divergence.
        is_odd: whether the number k of votes is odd.

    Returns:
        Probabilities as 64-bit integers, each the smallest for which the inequality of the privacy
        proof holds in both orders of neighbouring entries; the last entry is the first one below
        ``1e-12 * 2**64``.

    """
    inequality = _inequality(alpha, ln_ratio)
    first = _closest(inequality) if is_odd else HALF
    price = float(ln_ratio)
    return extended(inequality, CurveInequality(float(alpha), price, price), first)


def _inequality(alpha: Fraction, ln_ratio: Fraction) -> Inequality:
    """Return the inequality of one answer, whose labels have one price."""
    return Inequality(alpha=alpha, ln_ratio=ln_ratio, ln_answer_ratio=ln_ratio)


def _closest(inequality: Inequality) -> int:
    """Return the smallest word that may be the neighbour of what it leaves of a word's range.

    By symmetry both orders are one; its left side falls as the word rises to the half.
    """
    rejected, accepted = 0, HALF
    while accepted - rejected > 1:
        middle = (rejected + accepted) // 2
        if _is_held(inequality, middle, WORD_RANGE - middle):
            accepted = middle
        else:
            rejected = middle
    return accepted


def _is_held(inequality: Inequality, one: int, other: int) -> bool:
    """Tell whether two words may be neighbours, in both orders."""
    return inequality.excess(inequality.entry(one), inequality.entry(other)).accepted


def _first_at_most(words: tuple[int, ...], wanted: int) -> int:
    found = bisect_left(words, -wanted, key=lambda word: -word)
    return min(found, len(words) - 1)


def check(table: VoteTable) -> None:
    """Raise an error unless a table keeps the privacy claim, before it is used.

    Raises:
        InvariantError: a condition of the privacy claim does not hold.

    """
    _check(table)


@lru_cache(maxsize=TABLES_KEPT)
def _check(table: VoteTable) -> None:
    """Decide about every value of a table, once a process for each that holds."""
    invariant(table.epsilon > 0, "epsilon is above zero")
    invariant(0 < table.delta < 1, "delta lies between zero and one")
    invariant(table.answer_limit >= 1, "there is an answer")
    inequality = _inequality(table.alpha, table.ln_ratio)
    covered = hits_hold(
        epsilon=table.epsilon,
        delta_svt=table.delta,
        alpha=table.alpha,
        ln_ratio=table.ln_ratio,
        cutoff=table.answer_limit,
        taken=log_moment(table.draws, table.alpha),
    )
    invariant(covered, "delta covers every answer, and the draws of their account")
    for half in (table.even, table.odd):
        _check_half(inequality, half)
    invariant(table.even[0] == HALF, "a tie of an even k is a fair coin")
    closest = table.odd[0]
    held = closest <= HALF and _is_held(inequality, closest, WORD_RANGE - closest)
    invariant(held, "the two labels of the closest vote stay within the price of an answer")


def _check_half(inequality: Inequality, half: tuple[int, ...]) -> None:
    """Check the range of every word, their order, and the inequality between neighbours."""
    invariant(0 < len(half) <= 2 * ENTRY_COUNT_MAX, "a half has entries, and not too many")
    invariant(all(0 < word < WORD_RANGE for word in half), "words lie strictly inside their range")
    entries = [inequality.entry(word) for word in half]
    for previous, following in pairwise(entries):
        invariant(following.hit <= previous.hit, "words do not rise outwards")
        held = inequality.excess(previous, following).accepted
        invariant(held, "neighbours stay within the price of an answer")
