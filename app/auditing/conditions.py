"""What the proofs need of a step, asked exactly: some faults change no bound that is seen.

One hit too many, or a distance that is off where the plurality changes, may cost less
than the proof leaves unused; words of few bits differ where no sample reaches.  Each
condition is asked of the step itself and either holds or is broken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from app.auditing.asking import (
    hit_noise,
    hit_words,
    hits_allowed,
    hits_paid,
    outcome_of_a_hit,
    released_from,
)
from app.mechanisms import noisy_vote, sparse_vector, stability
from app.noise.scripted import ScriptedNoise, seeded_words
from app.noise.source import WORD_BOUND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.auditing.audited import Audited

THRESHOLD_NOISE: Final = np.arange(-3, 4)
LEADS_ASKED: Final = 40
LEADS_NEAR: Final = 500
EVERY_BIT: Final = "a word decides with all of its bits"
COINS_ASKED: Final = 8
QUERIES_PLAYED: Final = 3


def broken_conditions(audited: Audited) -> list[str]:
    """Return which conditions of the proofs do not hold, in words; none where all do."""
    answering = audited.parameters.answering
    checks = {"every query draws noise of its own": _draws_afresh(audited)}
    if not isinstance(answering, noisy_vote.Parameters):
        checks |= _of_hits(audited)
    if isinstance(answering, stability.Parameters):
        checks[EVERY_BIT] = _words_decide(audited, answering)
    if isinstance(answering, sparse_vector.Parameters):
        checks["the noisy distance is compared with the noisy threshold"] = _compares(
            audited, answering
        )
        checks[EVERY_BIT] = _words_are_whole(audited, answering)
    return [name for name, holds in checks.items() if not holds]


def _of_hits(audited: Audited) -> dict[str, bool]:
    """Ask what a test for stability needs, whatever its noise."""
    return {
        "a run ends at the last hit that is paid for": _ends_in_time(audited),
        "one record moves a distance by 1 at most": _moves_by_one(audited),
        "the distance is 0 where one record changes the plurality": _is_zero_at_a_flip(audited),
        "the label of an unstable answer is the same for all votes": _labels_agree(audited),
    }


def _ends_in_time(audited: Audited) -> bool:
    return hits_allowed(audited) == hits_paid(audited)


def _pairs(audited: Audited) -> Iterator[tuple[int, int]]:
    """Yield neighbouring leads, the label's defeat included."""
    moved = audited.votes_moved
    for lead in _leads(audited):
        yield lead, lead + moved


def _leads(audited: Audited) -> list[int]:
    """Return all leads, or those around the tie and some of the others where they are many."""
    last = audited.lead_max - audited.votes_moved
    near = range(-min(last, LEADS_NEAR), min(last, LEADS_NEAR) + 1)
    return sorted({*near, *(round(lead) for lead in np.linspace(-last, last, LEADS_NEAR).tolist())})


def _moves_by_one(audited: Audited) -> bool:
    return all(
        abs(audited.tally_of(one).distance - audited.tally_of(other).distance) <= 1
        for one, other in _pairs(audited)
    )


def _is_zero_at_a_flip(audited: Audited) -> bool:
    for one, other in _pairs(audited):
        tallies = audited.tally_of(one), audited.tally_of(other)
        flips = tallies[0].plurality != tallies[1].plurality
        if flips and any(tally.distance for tally in tallies):
            return False
    return True


def _labels_agree(audited: Audited) -> bool:
    """Compare the outcome of hits over pluralities and distances, coin by coin."""
    return all(
        len({outcome_of_a_hit(audited, lead, coin) for lead in (-2, -1, 0, 1, 2)}) == 1
        for coin in range(0, WORD_BOUND, WORD_BOUND // COINS_ASKED)
    )


def _words_decide(audited: Audited, answering: stability.Parameters) -> bool:
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
