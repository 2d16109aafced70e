"""Exact checks of the privacy proofs' conditions, for faults that lower bounds cannot show.

Some faults increase the true epsilon so little that it stays below the claim: one unstable answer
too many, a wrong distance (number of votes that may change before another label wins) where the
winning label changes, or noise for too few unstable answers. Other faults, for example a random
number with too few bits, concern outcomes that are too rare for any sample. Each condition is
therefore checked directly, by calling the mechanism's own step (the function that answers one
query), and either holds or is broken.

The *stability test* is the noisy test that decides whether an answer is stable. A *random word* is
the random 64-bit number from which it takes its noise. A *certificate* is a numeric proof that is
stored with a noise table. The *noisy vote* answers every query with the label that has the most
votes after noise is added; the *two-label vote* draws one of two labels by a table of
probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from app.auditing.laws.proof_inequalities import (
    answers_are_paid,
    bits_are_paid,
    certified_words_are_paid,
    decisions_are_paid,
    threshold_is_paid,
    words_are_paid,
)
from app.auditing.laws.step_law import (
    answers_allowed,
    hit_noise,
    hit_words,
    hits_allowed,
    hits_of_words,
    hits_paid,
    label_noise,
    label_words,
    labels_of_words,
    labels_with,
    outcome_of_a_hit,
    released_from,
    threshold_noises,
    vote_of_bit,
    vote_without_noise,
    words_heard,
)
from app.noise.scripted import ScriptedNoise, seeded_words
from app.noise.source import WORD_BOUND
from app.privacy.mechanism_registration import own
from app.privacy.noisy_vote import bit_vote
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.stability import mechanism as stability

if TYPE_CHECKING:
    from app.auditing.audited_mechanism import Audited
    from app.privacy.voting.votes import Tally

Checks: TypeAlias = "dict[str, bool]"
"""Whether each condition holds, in words."""

THRESHOLD_NOISE: Final = np.arange(-3, 4)
LEADS_ASKED: Final = 40
LEADS_NEAR: Final = 500
COINS_ASKED: Final = 8
QUERIES_PLAYED: Final = 3
WORDS_PLAYED: Final = 4096
NOISES_PLAYED: Final = 64
NOISE_SPREAD: Final = 4
BINARY: Final = 2

FRESH: Final = "every query draws noise of its own"
EVERY_BIT: Final = "a word decides with all of its bits"
LAST_HIT: Final = "a run ends at the last hit that is paid for"
BY_ONE: Final = "one record moves a distance by 1 at most"
AT_A_FLIP: Final = "the distance is 0 where one record changes the plurality"
SAME_LABEL: Final = "the label of an unstable answer is the same for all votes"
COMPARED: Final = "the noisy distance is compared with the noisy threshold"
THRESHOLD_KEPT: Final = "the threshold's noise is drawn when it is paid for, and kept"
HITS_PAID: Final = "the noise pays for every hit that a run answers"
LABELS_PAID: Final = "a label that one record changes gets out as seldom as delta pays for"
LAST_ANSWER: Final = "a run ends at the last answer that is paid for"
ONE_VOTE: Final = "one record moves one vote"
LARGEST_WINS: Final = "the label of the largest noisy count is answered"
ANSWERS_PAID: Final = "the noise pays for every answer"
DECISIONS_PAID: Final = "the table pays for every decision that one record moves"


def _of_hits(audited: Audited, *, hits: bool, labels: bool) -> Checks:
    """Ask what a test for stability needs, whatever its noise, with what that pays for."""
    return {
        LAST_HIT: hits_allowed(audited) == hits_paid(audited),
        HITS_PAID: hits,
        **_of_test(audited, labels=labels),
    }


def _of_test(audited: Audited, *, labels: bool) -> Checks:
    """Ask what is so of every test for stability, whether hits or decisions are paid for."""
    return {
        BY_ONE: _moves_by_one(audited),
        AT_A_FLIP: _is_zero_at_a_flip(audited),
        SAME_LABEL: _labels_agree(audited),
        LABELS_PAID: labels,
    }


def of_words(audited: Audited) -> Checks:
    """Return which privacy conditions the stability test meets, for every possible random word."""
    return _of_paid_words(audited, words_are_paid(audited))


def of_certified_words(audited: Audited) -> Checks:
    """Return which privacy conditions the stability test meets, by the certificate of its table."""
    return _of_paid_words(audited, certified_words_are_paid(audited))


def of_decisions(audited: Audited) -> Checks:
    """Return which privacy conditions the stability test meets if a cell is answered only once."""
    paid, labels = decisions_are_paid(audited)
    return _of_test(audited, labels=labels) | _of_fresh_words(audited) | {DECISIONS_PAID: paid}


def _of_paid_words(audited: Audited, paid: tuple[bool, bool]) -> Checks:
    hits, labels = paid
    return _of_hits(audited, hits=hits, labels=labels) | _of_fresh_words(audited)


def _of_fresh_words(audited: Audited) -> Checks:
    return {
        FRESH: _draws_afresh(audited) and _each_decides_alone(audited),
        EVERY_BIT: _words_decide(audited, own(audited.answering, stability.HitProfile)),
    }


def of_threshold(audited: Audited) -> Checks:
    """Return which privacy conditions the noise of the sparse vector technique meets."""
    answering, heard = own(audited.answering, sparse_vector.Parameters), _Heard.of(audited)
    hits, labels = threshold_is_paid(audited)
    return _of_hits(audited, hits=hits, labels=labels) | {
        FRESH: _draws_afresh(audited) and heard.are_fresh,
        EVERY_BIT: heard.are_whole and _words_are_whole(audited, answering),
        COMPARED: _compares(audited, answering),
        THRESHOLD_KEPT: _keeps_threshold(audited, answering),
    }


def of_votes(audited: Audited) -> Checks:
    """Return which privacy conditions the noisy vote meets."""
    heard = _Heard.of(audited)
    return {
        FRESH: _draws_afresh(audited) and heard.are_fresh,
        EVERY_BIT: heard.are_whole,
        LAST_ANSWER: answers_allowed(audited, vote_without_noise)
        == audited.parameters.answer_limit,
        ONE_VOTE: _moves_one_vote(audited),
        LARGEST_WINS: _largest_wins(audited),
        ANSWERS_PAID: answers_are_paid(audited),
    }


def of_bits(audited: Audited) -> Checks:
    """Return which privacy conditions the probability table of the two-label vote meets."""
    return {
        FRESH: _draws_afresh(audited) and _each_label_alone(audited),
        EVERY_BIT: _table_decides(audited),
        LAST_ANSWER: answers_allowed(audited, vote_of_bit) == audited.parameters.answer_limit,
        ONE_VOTE: _moves_one_vote(audited),
        ANSWERS_PAID: bits_are_paid(audited),
    }


def _each_label_alone(audited: Audited) -> bool:
    """Play a word of one label after a word of the other; either decides by itself."""
    found = labels_of_words(audited, 0, [0, WORD_BOUND - 1])
    return found == [1, 0][: audited.parameters.answer_limit]


def _table_decides(audited: Audited) -> bool:
    """Ask whether exactly the words below ``P(v)`` give the second label, on either side."""
    answering = own(audited.answering, bit_vote.Parameters)
    return all(
        label_words(audited, lead) == answering.words_of_one(audited.tally_of(lead).counts[1])
        for away in _asked(audited)
        for lead in (away, -away)
    )


def _neighbors(audited: Audited) -> list[tuple[Tally, Tally]]:
    """Return what neighbouring votes come to, the label's defeat included."""
    leads = _leads(audited)
    others = [lead + audited.votes_moved for lead in leads]
    return list(zip(audited.tallies_of(leads), audited.tallies_of(others), strict=True))


def _leads(audited: Audited) -> list[int]:
    """Return all leads, or those around the tie and some of the others where they are many."""
    last = audited.lead_max - audited.votes_moved
    near = range(-min(last, LEADS_NEAR), min(last, LEADS_NEAR) + 1)
    return sorted({*near, *(round(lead) for lead in np.linspace(-last, last, LEADS_NEAR).tolist())})


def _moves_by_one(audited: Audited) -> bool:
    return all(abs(one.distance - other.distance) <= 1 for one, other in _neighbors(audited))


def _is_zero_at_a_flip(audited: Audited) -> bool:
    return not any(
        one.distance or other.distance
        for one, other in _neighbors(audited)
        if one.plurality != other.plurality
    )


def _moves_one_vote(audited: Audited) -> bool:
    return all(
        sum(abs(before - after) for before, after in zip(one.counts, other.counts, strict=True))
        <= 2  # noqa: PLR2004 -- one label loses a vote and another gains it
        for one, other in _neighbors(audited)
    )


def _labels_agree(audited: Audited) -> bool:
    """Compare the outcome of hits over pluralities and distances, coin by coin."""
    return all(
        len({outcome_of_a_hit(audited, lead, coin) for lead in (-2, -1, 0, 1, 2)}) == 1
        for coin in range(0, WORD_BOUND, WORD_BOUND // COINS_ASKED)
    )


def _words_decide(audited: Audited, answering: stability.HitProfile) -> bool:
    """Ask whether exactly the words below a distance's threshold are hits."""
    thresholds = answering.thresholds
    return all(
        hit_words(audited, lead)
        == thresholds[min(audited.tally_of(lead).distance, len(thresholds) - 1)]
        for lead in _asked(audited)
    )


def _draws_afresh(audited: Audited) -> bool:
    """See every query draw from the source, and no outcome come from what was drawn before."""
    noise = ScriptedNoise(seeded_words(0))
    state, value = audited.start(audited.parameters, noise), audited.tally_of(audited.lead_max)
    for _ in range(QUERIES_PLAYED):
        if not audited.answers(state):
            break
        drawn = noise.drawn_count
        state, _ = audited.step(audited.parameters, state, value, noise)
        if noise.drawn_count == drawn:
            return False
    return True


def _each_decides_alone(audited: Audited) -> bool:
    """Play a word that releases before one that does not; either does so by itself."""
    released, hit = WORD_BOUND - 1, 0
    found = hits_of_words(audited, audited.lead_max, [released, hit])
    return found == [False, True][: audited.parameters.answer_limit]


@dataclass(frozen=True, slots=True)
class _Heard:
    """What the laws of noise are handed, query by query.

    Attributes:
        are_fresh: whether each query's are there, and are those of no other.
        are_whole: whether they are the source's.

    """

    are_fresh: bool
    are_whole: bool

    @classmethod
    def of(cls, audited: Audited) -> _Heard:
        """Return whether some queries use every random word, each once and with all its bits."""
        source = ScriptedNoise(seeded_words(0))
        opening, *queries = words_heard(audited, source, queries=QUERIES_PLAYED)
        words = [word for heard in (opening, *queries) for word in heard]
        return cls(
            are_fresh=all(queries) and len(set(words)) == len(words),
            are_whole={*words} <= {*islice(seeded_words(0), WORDS_PLAYED)},
        )


def _keeps_threshold(audited: Audited, answering: sparse_vector.Parameters) -> bool:
    """Ask for a release and, where the run goes on after it, a hit; restart after each."""
    goes_on = hits_paid(audited) > 1
    following = 2 if answering.refreshed else 1
    expected = [1, 1, following, following] if goes_on else [1, 1]
    played = [False, True, False] if goes_on else [False]
    return (
        threshold_noises(audited, played[: audited.parameters.answer_limit])
        == (expected[: audited.parameters.answer_limit + 1])
    )


def _largest_wins(audited: Audited) -> bool:
    """Ask from which noise on the second of two labels comes, or which label of more does."""
    if audited.parameters.class_count == BINARY:
        return all(label_noise(audited, lead) == lead + 1 for lead in _asked(audited))
    words = seeded_words(1)
    noises = [
        [next(words) % (2 * NOISE_SPREAD + 1) - NOISE_SPREAD for _ in audited.tally_of(0).counts]
        for _ in range(NOISES_PLAYED)
    ]
    return all(
        labels_with(audited, lead, noises)
        == [int(np.argmax(np.add(audited.tally_of(lead).counts, noise))) for noise in noises]
        for lead in range(NOISE_SPREAD)
    )


def _compares(audited: Audited, answering: sparse_vector.Parameters) -> bool:
    """Ask which noise makes a query a hit, at some values of the threshold's noise."""
    return all(
        (
            hit_noise(audited, lead, THRESHOLD_NOISE)
            == answering.threshold + THRESHOLD_NOISE - audited.tally_of(lead).distance
        ).all()
        for lead in _asked(audited)
    )


def _words_are_whole(audited: Audited, answering: sparse_vector.Parameters) -> bool:
    """Ask which word releases a query near the threshold, and whether its law says the same."""
    leads = {min(audited.lead_max, max(1, answering.threshold - less)) for less in range(3)}
    turns = [released_from(audited, lead) for lead in leads]
    return all(by_step == by_law for by_step, by_law in turns)


def _asked(audited: Audited) -> list[int]:
    return sorted({round(lead) for lead in np.linspace(0, audited.lead_max, LEADS_ASKED).tolist()})
