"""The proofs' inequalities, checked on the mechanism's exact distribution.

The inequalities say that the noise is large enough for all answers of a run; the file ``proof.md``
of each mechanism in ``app/privacy/`` states them. The distribution of an answer is found by calling
the mechanism's step (the function that answers one query), and the number of unstable answers by
running the mechanism. So too little noise is found, even if no adversary can show that it exceeds
the claim. The inequalities are programmed independently of the code that calibrates the noise; only
the order of a Renyi divergence and a certificate (numeric proof) are taken from that code, because
the proofs allow any choice of them.

A *stability flag* says whether an answer is stable. A *random word* is the random 64-bit number
that decides this, or the label. The *noisy vote* answers every query with the label that has the
most votes after noise is added; the *two-label vote* draws one of two labels by a table of
probabilities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, log_ndtr, ndtr

from app.auditing.bounds.threshold_bound import hit_law
from app.auditing.laws.step_law import (
    answers_moved,
    answers_paid,
    hit_words,
    hits_allowed,
    label_words,
    vote_of_bit,
    vote_without_noise,
)
from app.noise.source import WORD_BOUND
from app.privacy.mechanism_registration import own
from app.privacy.noisy_vote import mechanism as noisy_vote
from app.privacy.noisy_vote import vote_table
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.stability.cell_table import (
    DECISION_RELEASE_PART,
    DECISION_SLOPE,
    DECISIONS_MOVED,
)
from app.privacy.stability.certified import certified_table
from app.privacy.stability.hit_table import order_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.auditing.audited_mechanism import Audited
    from app.privacy.budget.account import Draw

BINARY: Final = 2
ROUNDING: Final = 16
DIGITS: Final = 60
# A left side is at most 1 to so much; sixty digits are exact to far more than that.
MARGIN: Final = Decimal("1e-40")
LABELS_PART: Final = Fraction(1, 10)
LABELS_PART_BY_CUTOFF: Final = Fraction(1, 20)
SLACK: Final = 1e-6
"""More than sums in doubles are off by, relatively."""
LOG_EXCESS_MAX: Final = 40.0


def pairs(audited: Audited) -> Iterator[tuple[int, int]]:
    """Yield each pair of leads that a label can have on two neighbouring data sets.

    A lead is the number of votes above half for the label.
    """
    moved = audited.votes_moved
    for lead in range(-moved, audited.lead_max - moved + 1):
        yield lead, lead + moved


def words_are_paid(audited: Audited) -> tuple[bool, bool]:
    """Return whether the stability test's noise is large enough for stability flags and for labels.

    The proof allows any Renyi order and any division of delta between flags and labels. Two choices
    are tried: those of new releases and those of releases of earlier versions.
    """
    found = [_words_are_paid_by(audited, is_by_cutoff=by_cutoff) for by_cutoff in (True, False)]
    return next((each for each in found if all(each)), found[-1])


def _words_are_paid_by(audited: Audited, *, is_by_cutoff: bool) -> tuple[bool, bool]:
    """Return the same at the order and split of one rule."""
    is_by_cutoff = is_by_cutoff and not audited.draws
    part = LABELS_PART_BY_CUTOFF if is_by_cutoff else LABELS_PART
    hits = hits_allowed(audited)
    kept = (1 - audited.delta * part) * WORD_BOUND**hits
    labels = all(hit_words(audited, lead) ** hits >= kept for lead in _flips(audited))
    delta = audited.delta * (1 - part)
    return _words_are_near(audited, delta, is_by_cutoff=is_by_cutoff), labels


def decisions_are_paid(audited: Audited) -> tuple[bool, bool]:
    """Return whether the noise suffices for stability flags, and for labels.

    The function is for releases that answer each public cell only once.
    """
    labels_delta, count = audited.delta * DECISION_RELEASE_PART, audited.decisions_moved
    kept = (1 - labels_delta) * WORD_BOUND**count
    labels = all(hit_words(audited, lead) ** count >= kept for lead in _flips(audited))
    delta = audited.delta - labels_delta
    alpha = order_of(
        epsilon=audited.epsilon,
        delta_svt=delta,
        cutoff=DECISIONS_MOVED,
        draws=audited.draws,
        slope=DECISION_SLOPE,
        is_answer_priced=True,
    )
    words = {lead: hit_words(audited, lead) for pair in pairs(audited) for lead in pair}
    with localcontext(Context(prec=DIGITS)):
        order = _order(audited, alpha, delta, hits=count)
        exchanged = {(words[one], words[other]) for one, other in pairs(audited)}
        possible = all(0 < word < WORD_BOUND for word in words.values())
        near = possible and all(
            max(_both_labels(order, one, other), _both_labels(order, other, one)) <= 1 - MARGIN
            for one, other in exchanged
        )
    return near, labels


def certified_words_are_paid(audited: Audited) -> tuple[bool, bool]:
    """Return whether a certificate proves that the test's flags and labels are private."""
    hits = hits_allowed(audited)
    if hits > certified_table.CERTIFIED_CUTOFF_MAX:
        return False, False
    relabel = audited.relabel_epsilon
    drawn = sum((draw.epsilon for draw in audited.draws), Fraction(0))
    paying = certified_table.calibrate(
        epsilon=audited.epsilon,
        delta=audited.delta,
        cutoff=hits,
        shared=certified_table.SharedWith(relabel=relabel, classifier=drawn - relabel),
    )
    certified_table.check(paying)
    words = {lead: hit_words(audited, lead) for pair in pairs(audited) for lead in pair}
    exchanged = (sorted((words[one], words[other])) for one, other in pairs(audited))
    falling = ((more, fewer) for fewer, more in exchanged)
    near = all(words.values()) and certified_table.within_polygon(paying.vertices, falling)
    return near, all(words[lead] >= paying.thresholds[0] for lead in _flips(audited))


def threshold_is_paid(audited: Audited) -> tuple[bool, bool]:
    """Return whether the sparse vector's noise suffices for stability flags, and for labels."""
    answering, hits = own(audited.answering, sparse_vector.Parameters), hits_allowed(audited)
    delta, spent = float(audited.delta), _delta_of_hits(audited, answering)
    laws = [
        hit_law(audited, answering, lead, left_out=delta * SLACK / hits) for lead in _flips(audited)
    ]
    leak = hits * max(float(law.stable @ law.weights) for law in laws)
    return spent <= delta * (1 + SLACK), leak + spent <= delta * (1 + SLACK)


def answers_are_paid(audited: Audited) -> bool:
    """Return whether the noisy vote's variance is large enough for all answers of a run.

    It is large enough if one of the conditions in ``app/privacy/noisy_vote/proof.md`` holds.
    """
    answering = own(audited.answering, noisy_vote.Parameters)
    one, other = (
        np.array([tally.counts for tally in audited.tallies_of(leads)])
        for leads in zip(*pairs(audited), strict=True)
    )
    is_binary = audited.parameters.class_count == BINARY
    noisy = slice(1, 2) if is_binary else slice(None)
    squared = int(((one - other)[:, noisy] ** 2).sum(axis=1).max())
    shift = answers_moved(audited, vote_without_noise) * squared
    variance = float(answering.vote_noise.variance)
    spent = _log_delta(shift / (2 * variance), float(audited.epsilon))
    if spent <= math.log(audited.delta) + SLACK:
        return True
    as_normal = _normal_delta(shift / max(variance - ROUNDING, SLACK), float(audited.epsilon))
    return not is_binary and as_normal <= float(audited.delta) * (1 + SLACK)


def bits_are_paid(audited: Audited) -> bool:
    """Return whether the two-label vote's table keeps epsilon for all neighbouring vote counts."""
    limit = answers_paid(audited)
    made = vote_table.calibrate(
        epsilon=audited.epsilon, delta=audited.delta, answer_limit=limit, draws=audited.draws
    )
    with localcontext(Context(prec=DIGITS)):
        moved = answers_moved(audited, vote_of_bit)
        price = _order(audited, made.alpha, audited.delta, hits=moved)
        reach = range(-audited.lead_max - audited.votes_moved, audited.lead_max + 1)
        words = [label_words(audited, lead) for lead in reach]
        exchanged = {*zip(words, words[audited.votes_moved :], strict=False)}
        possible = all(0 < word < WORD_BOUND for word in words)
        return possible and all(
            max(_both_labels(price, one, other), _both_labels(price, other, one)) <= 1 - MARGIN
            for one, other in exchanged
        )


def _flips(audited: Audited) -> list[int]:
    """Return the leads on either side of which one record changes the plurality."""
    exchanged = list(pairs(audited))
    one, other = (audited.tallies_of(leads) for leads in zip(*exchanged, strict=True))
    return sorted(
        {
            lead
            for pair, before, after in zip(exchanged, one, other, strict=True)
            if before.plurality != after.plurality
            for lead in pair
        }
    )


# -- calibration profile ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Order:
    """A Renyi order, and the log of the price of one hit there."""

    alpha: Decimal
    log_price: Decimal


def _words_are_near(audited: Audited, delta: Fraction, *, is_by_cutoff: bool) -> bool:
    """Decide (*) of Theorem A for every two leads that one record may exchange."""
    alpha = order_of(
        epsilon=audited.epsilon,
        delta_svt=delta,
        cutoff=audited.parameters.cutoff or 1,
        draws=audited.draws,
        is_by_cutoff=is_by_cutoff,
    )
    with localcontext(Context(prec=DIGITS)):
        order = _order(audited, alpha, delta, hits=hits_allowed(audited))
        words = {lead: hit_words(audited, lead) for pair in pairs(audited) for lead in pair}
        exchanged = {(words[one], words[other]) for one, other in pairs(audited)}
        possible = all(0 < word < WORD_BOUND for word in words.values())
        return possible and all(
            max(_left_side(order, one, other), _left_side(order, other, one)) <= 1 - MARGIN
            for one, other in exchanged
        )


def _order(audited: Audited, alpha: Fraction, delta: Fraction, *, hits: int) -> _Order:
    """Return ``ln R``, where T hits cost all of this delta: Theorem A solved for it.

    What draws of the same account cost at the order comes off first.
    """
    order, excess = _decimal(alpha), _decimal(alpha - 1)
    whole = excess * _decimal(audited.epsilon) + _decimal(delta).ln()
    whole += order.ln() - excess * (excess / order).ln()
    whole -= excess * sum((_divergence(draw, order) for draw in audited.draws), Decimal(0))
    return _Order(order, whole / hits)


def _divergence(draw: Draw, order: Decimal) -> Decimal:
    """Return what a draw costs at a Renyi order, by ``app/privacy/budget/account_proof.md``."""
    share = _decimal(draw.epsilon)
    pure = min(share, order * share * share / (8 if draw.has_bounded_range else 2))
    if draw.squared_separation is None:
        return pure
    normal = order * _decimal(draw.squared_separation) / 2
    # A bounded range beside a separation: public numbers decide later which of both it is.
    return max(normal, pure) if draw.has_bounded_range else normal


def _left_side(order: _Order, one: int, other: int) -> Decimal:
    """Return ``p^alpha q^(1-alpha) / R + (1-p)^alpha (1-q)^(1-alpha)``, p and q in words."""
    hit, none = _terms(order, one, other)
    return hit + none


def _both_labels(order: _Order, one: int, other: int) -> Decimal:
    """Return the same sum where both labels have the price, p and q in words."""
    first, second = _terms(order, one, other)
    return first + second * (-order.log_price).exp()


def _terms(order: _Order, one: int, other: int) -> tuple[Decimal, Decimal]:
    """Return both terms, the first at its price."""
    alpha, scale = order.alpha, _log(WORD_BOUND)
    hit = alpha * _log(one) + (1 - alpha) * _log(other) - scale - order.log_price
    none = alpha * _log(WORD_BOUND - one) + (1 - alpha) * _log(WORD_BOUND - other) - scale
    return hit.exp(), none.exp()


@cache
def _log(words: int) -> Decimal:
    return Context(prec=DIGITS).ln(Decimal(words))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / value.denominator


# -- calibration svt -------------------------------------------------------------------


def _delta_of_hits(audited: Audited, answering: sparse_vector.Parameters) -> float:
    """Return the delta at which the hits are epsilon-private; 1 where a bound of 0 fails.

    With one threshold they cost ``1/b1 + 2T/b2`` purely; refreshed, T epochs of
    ``1/b1 + 2/b2`` compose.
    """
    one, other = (
        np.array([tally.distance for tally in audited.tallies_of(leads)])
        for leads in zip(*pairs(audited), strict=True)
    )
    moved, hits = max(1, int(np.abs(one - other).max())), hits_allowed(audited)
    first, second = 1 / answering.threshold_noise.scale, 2 / answering.query_noise.scale
    if answering.refreshed:
        each = float(moved * (first + second))
        return _composed_delta(each, hits, float(audited.epsilon))
    return 0.0 if moved * (first + hits * second) <= audited.epsilon else 1.0


def _composed_delta(each: float, count: int, epsilon: float) -> float:
    """Return the delta of randomised responses, of which l lie: their loss is ``(T - 2l) each``."""
    lies = np.arange(count + 1)
    ways = gammaln(count + 1) - gammaln(lies + 1) - gammaln(count - lies + 1)
    chances = np.exp(ways - count * math.log1p(math.exp(-each)) - each * lies)
    above = np.minimum(0.0, epsilon - (count - 2 * lies) * each)
    return float(chances @ -np.expm1(above))


# -- the noisy vote --------------------------------------------------------------------


def _normal_delta(separation: float, epsilon: float) -> float:
    """Return the delta of two normal laws whose means lie so far apart, squared."""
    if separation == 0:
        return 0.0
    apart = math.sqrt(separation)
    near, far = apart / 2 - epsilon / apart, -apart / 2 - epsilon / apart
    return float(ndtr(near) - np.exp(epsilon + log_ndtr(far)))


def _log_delta(rate: float, epsilon: float) -> float:
    """Return the log of the least delta over all orders, of a divergence of ``alpha rate``."""

    def at(log_excess: float) -> float:
        excess = math.exp(log_excess)
        moment = excess * ((1 + excess) * rate - epsilon)
        return moment - excess * math.log1p(1 / excess) - math.log1p(excess)

    bounds = (-LOG_EXCESS_MAX, LOG_EXCESS_MAX)
    found = minimize_scalar(at, bounds=bounds, method="bounded", options={"xatol": 1e-9})
    return float(found.fun)
