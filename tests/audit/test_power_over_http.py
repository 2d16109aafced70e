"""How many releases a fault takes to be caught over HTTP: worked out, not hoped.

The probabilities of the event that tells are exact; the counts on both sides are
binomial; a bound is Clopper and Pearson's at a false alarm of 10^-6 for both orders of
the sides.  One run in four chooses the event and is not counted.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import exp
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import binom

from app.auditing.event_bounds import bounds_shown
from app.auditing.hypothesis_draws import ROWS_OF_A_PERSON
from app.auditing.transcripts.http_audit import Claim, plan_runs
from app.cli.audit.audited_releases import RUNS_LONG
from app.cli.audit.neighbours import HITS_BEYOND
from app.learning.chunks import chunk_offsets
from app.privacy.noisy_vote import bit_vote, vote_table
from app.privacy.stability import hit_table as profile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.auditing.transcripts.transcripts import Trials

pytestmark = pytest.mark.audit

# An event that always comes on one side and never on the other: at epsilon 0.1 and delta
# 0.01, 25 runs a side are enough, and 24 are not.  34 a side leave 26, and 8 that choose.
RUNS_OF_A_VOTE = 68
# A record in both of two chunks, whose votes of 2 to 0 become 0 to 2: the noise of one
# answer at epsilon 3/2 and delta 1/2 gives the label of the 2 with probability 0.827 and
# 0.003, which of all claims takes the fewest runs.  With 638 a side a bound is above 3/2 in
# all but one try in two thousand; with 525 it is not in one of sixty.
RUNS_OF_A_RECORD = 1700
CLAIM_OF_A_RECORD = Claim(Fraction(3, 2), Fraction(1, 2))
# A person with fifty rows beside nine with one, all alike but for labels: the person's are one
# vote of ten, and where rows are cut and not persons, eight or nine.  The noise of one answer
# at epsilon 1/2 and delta 1/10 then gives the other label nearly always; 160 runs miss that
# once in a thousand tries, and 100 in one of twenty.
VOTES_OF_PERSONS = 10
RUNS_OF_A_PERSON = 160
CLAIM_OF_A_PERSON = Claim(Fraction(1, 2), Fraction(1, 10))
# What is not caught: a record in two chunks of a stability test, which moves the chance of
# a hit by two votes near its threshold.  At delta 10^-6, epsilon 1/2 and 2, T = 1 and 20,
# the long audit's 6000 releases see it with a probability below 10^-6.  That is for the
# exact part of an audit, which needs no runs.
UNSEEN_CUTOFFS = (1, 20)


def law_of(claim: Claim, runs: int) -> Trials:
    """Return how the runs of one pair are tested."""
    return plan_runs(claim, runs=runs, pair_count=1).trials


@cache
def limits(law: Trials) -> NDArray[np.int64]:
    """Return for each count on one side the largest on the other that shows too much, or -1."""
    counts = np.arange(law.runs + 1)
    shown = bounds_shown(
        counts[:, None], counts[None, :], trials=law.runs, delta=law.delta, miss=law.miss
    )
    largest: NDArray[np.int64] = (shown > law.epsilon).sum(axis=1) - 1
    return largest


def power(likely: float, unlikely: float, law: Trials) -> float:
    """Return the probability of a bound above the claim, by the exact laws of both counts."""
    chances = binom.pmf(np.arange(law.runs + 1), law.runs, likely)
    return float(np.sum(chances * binom.cdf(limits(law), law.runs, unlikely)))


def test_an_event_that_a_vote_decides_is_always_seen() -> None:
    """The runs of each such fault are enough with certainty, and two thirds are not."""
    claim = Claim(Fraction(1, 10), Fraction(1, 100))
    assert power(1.0, 0.0, law_of(claim, RUNS_OF_A_VOTE)) == 1.0
    assert power(1.0, 0.0, law_of(claim, RUNS_OF_A_VOTE * 2 // 3)) == 0.0


def test_a_record_in_two_chunks_is_missed_twice_in_a_thousand_at_most() -> None:
    """Its power is that of the table's own law; a record in one chunk is within the claim."""
    claim = CLAIM_OF_A_RECORD
    made = vote_table.calibrate(epsilon=claim.epsilon, delta=claim.delta, answer_limit=1)
    given = bit_vote.Parameters(half=made.even, ensemble_size=2, answer_limit=1)
    two, one, none = (given.words_of_one(votes) / bit_vote.WORD_RANGE for votes in (2, 1, 0))
    law = law_of(claim, RUNS_OF_A_RECORD)
    assert law.runs == 638
    assert power(two, none, law) > 0.998
    assert power(two, one, law) < 1e-6
    assert two <= exp(claim.epsilon) * one + claim.delta


def votes_cut_apart(before: int) -> int:
    """Return the votes of the nine where rows are cut, so many of them before the person's."""
    labels = np.ones(VOTES_OF_PERSONS - 1 + ROWS_OF_A_PERSON, dtype=np.int64)
    labels[before : before + ROWS_OF_A_PERSON] = 0
    chunks = pairwise(chunk_offsets(len(labels), VOTES_OF_PERSONS).tolist())
    return sum(2 * int(labels[start:stop].sum()) > stop - start for start, stop in chunks)


def test_rows_that_are_cut_apart_are_missed_once_in_a_thousand_at_most() -> None:
    """With the person at any of ten places alike; one in a chunk with all rows is in the claim."""
    claim, votes = CLAIM_OF_A_PERSON, VOTES_OF_PERSONS
    made = vote_table.calibrate(epsilon=claim.epsilon, delta=claim.delta, answer_limit=1)
    given = bit_vote.Parameters(half=made.even, ensemble_size=votes, answer_limit=1)
    chance = [given.words_of_one(count) / bit_vote.WORD_RANGE for count in range(votes + 1)]
    cut_apart = [votes_cut_apart(before) for before in range(votes)]
    assert max(cut_apart) == 2
    seen = sum(chance[count] for count in cut_apart) / votes
    law = law_of(claim, RUNS_OF_A_PERSON)
    assert law.runs == 60
    assert power(chance[votes], seen, law) > 0.999
    assert power(chance[votes], chance[votes - 1], law) < 1e-6
    assert chance[votes] <= exp(claim.epsilon) * chance[votes - 1] + claim.delta


@pytest.mark.parametrize("runs", [10, 100])
def test_power_is_the_false_alarm_where_nothing_is_wrong(runs: int) -> None:
    """Probabilities at the very edge of the claim are exceeded as seldom as is said."""
    claim = Claim(Fraction(1, 2), Fraction(1, 50))
    law = law_of(claim, runs * 4)
    assert power(exp(0.5) * 0.3 + 0.02, 0.3, law) <= law.false_alarm


@pytest.mark.parametrize("cutoff", UNSEEN_CUTOFFS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_two_votes_near_the_threshold_are_not_seen(epsilon: Fraction, cutoff: int) -> None:
    """By no number of questions or hits do the runs of the long audit tell them from one."""
    claim = Claim(epsilon, Fraction(1, 10**6))
    law = plan_runs(claim, runs=RUNS_LONG, pair_count=2).trials
    table = profile.calibrate(epsilon=epsilon, delta=claim.delta, cutoff=cutoff, is_by_cutoff=True)
    away = table.distance_at(0.5)
    near, far = table.hit_probability(away - 2), table.hit_probability(away)
    asked = np.arange(cutoff, 2 * (cutoff + HITS_BEYOND) + 1)
    hits = [binom.sf(cutoff - 1, asked, chance) for chance in (near, far)]
    for likely, unlikely in (hits, [1 - chance for chance in reversed(hits)]):
        seen = [power(one, other, law) for one, other in zip(likely, unlikely, strict=True)]
        assert max(seen) < 1e-6
