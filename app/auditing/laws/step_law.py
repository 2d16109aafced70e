"""The exact distribution of one answer: the mechanism's step at every value of its noise.

The step of a mechanism is the function that answers one query. The outcome of a step is a monotone
function of one random value, so bisection finds the value at which the outcome changes. The step is
called as it is, so that a faulty step shows its faulty distribution; only the noise distributions
that the step receives are taken from the mechanism's parameters.

The *audited label* is one fixed label; one other label gets all other votes. A query's *lead* is
the number of votes above half for the audited label. A *random word* is a random 64-bit number. The
*noisy vote* is the mechanism that answers every query with the label that has the most votes after
noise is added.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, repeat
from itertools import count as count_from
from typing import TYPE_CHECKING, Final

import numpy as np

from app.auditing.laws.scripted_noise import (
    ListeningGaussian,
    ListeningLaplace,
    PrescribedGaussian,
    PrescribedLaplace,
)
from app.errors import InvariantError
from app.noise.scripted import ScriptedNoise, seeded_words
from app.noise.source import WORD_BOUND
from app.privacy.mechanism_registration import own
from app.privacy.noisy_vote import bit_vote
from app.privacy.noisy_vote import mechanism as noisy_vote
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.stability import mechanism as stability
from app.privacy.stability.cell_table import DECISIONS_MOVED
from app.privacy.voting.query_decision import State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from app.auditing.audited_mechanism import Audited
    from app.noise.source import NoiseSource
    from app.privacy.mechanism_registration import Answering
    from app.privacy.voting.query_decision import Outcome, Parameters
    from app.privacy.voting.votes import Tally

NOISE_MAX: Final = 1 << 40
HITS_PLAYED_MAX: Final = 64
COIN: Final = 1 << 62
"""A word that no coin of an unstable answer rejects, whatever the number of classes."""
ZEROS: Final = 7
"""As many zeros as other digits of a query's noise may take."""


def smallest_where(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest integer in ``[low, high]`` for which a monotone predicate holds.

    The result is ``high`` if the predicate holds for no smaller integer.
    """
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def hit_words(audited: Audited, lead: int) -> int:
    """Return the number of the ``2**64`` possible random words that make an answer unstable.

    Args:
        audited: the mechanism under audit.
        lead: the query's votes above half for the audited label.

    """
    value = audited.tally_of(lead)
    state = audited.start(audited.parameters, ScriptedNoise(repeat(0)))

    def is_released(word: int) -> bool:
        noise = ScriptedNoise(chain([word], repeat(COIN)))
        return audited.step(audited.parameters, state, value, noise)[1].stable

    expected = _expected_words(audited.parameters.answering, value)
    if is_released(expected) and not is_released(expected - 1):
        return expected
    return smallest_where(is_released, 0, WORD_BOUND)


def _expected_words(answering: Answering | None, value: Tally) -> int:
    """Return where the table says that a query turns; it is only where to look first."""
    thresholds = own(answering, stability.HitProfile).thresholds
    return thresholds[min(value.distance, len(thresholds) - 1)]


def hit_noise(audited: Audited, lead: int, threshold_noise: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the largest query noise that gives an unstable answer, for each threshold noise.

    The mechanism is the sparse vector technique, which adds noise to queries and to a threshold.

    Args:
        audited: the mechanism under audit.
        lead: the query's votes above half for the audited label.
        threshold_noise: R values of the threshold's noise, ascending, shape (R,).

    Returns:
        The largest query noise for each value of the threshold's noise, shape (R,).

    """
    value = audited.tally_of(lead)
    parameters, query = _prescribed(audited)
    found: dict[int, int] = {}

    def ask(index: int, near: int) -> int:
        state = _opened(audited, parameters, int(threshold_noise[index]))
        found[index] = _turn(audited, parameters, query, state, value, near=near) - 1
        return found[index]

    tops = np.empty(len(threshold_noise), dtype=np.int64)
    pending = [(0, len(threshold_noise) - 1)]
    near = ask(0, 0)
    ask(pending[0][1], near)
    while pending:
        low, high = pending.pop()
        steps = threshold_noise[low : high + 1] - threshold_noise[low]
        if high - low <= 1 or found[high] - found[low] in (0, steps[-1]):
            tops[low : high + 1] = np.minimum(found[low] + steps, found[high])
            continue
        middle = (low + high) // 2
        ask(middle, found[low])
        pending += [(low, middle), (middle, high)]
    return tops


def released_from(audited: Audited, lead: int) -> tuple[int, int]:
    """Return the smallest random words that make an answer stable, found in two ways.

    The query's answer depends on one random word; all later words are zero.

    Args:
        audited: the mechanism under audit.
        lead: the query's votes above half for the audited label.

    Returns:
        The smallest word for which the step's answer is stable, and the smallest word for which the
        noise drawn from it exceeds the threshold.

    """
    value, answering = audited.tally_of(lead), own(audited.answering, sparse_vector.Parameters)
    state = _opened(audited, audited.parameters, 0)

    def is_released(word: int) -> bool:
        noise = ScriptedNoise(chain([word], repeat(0, ZEROS), repeat(COIN)))
        return audited.step(audited.parameters, state, value, noise)[1].stable

    def is_above(word: int) -> bool:
        drawn = answering.query_noise.draw(ScriptedNoise(chain([word], repeat(0))))
        return value.distance + drawn > answering.threshold

    return (
        smallest_where(is_released, 0, WORD_BOUND - 1),
        smallest_where(is_above, 0, WORD_BOUND - 1),
    )


def label_words(audited: Audited, lead: int) -> int:
    """Return the number of the ``2**64`` possible random words that give the second of two labels.

    Args:
        audited: the mechanism under audit.
        lead: the query's votes above half for the first label.

    """
    value = audited.tally_of(lead)

    def is_first(word: int) -> bool:
        return audited.step(audited.parameters, State(), value, _of_word(word))[1].label == 0

    given = own(audited.answering, bit_vote.Parameters)
    expected = given.words_of_one(value.counts[1])
    if is_first(expected) and not is_first(expected - 1):
        return expected
    return smallest_where(is_first, 0, WORD_BOUND)


def labels_of_words(audited: Audited, lead: int, words: Sequence[int]) -> list[int | None]:
    """Return the labels of consecutive queries, each with its own given random word.

    Args:
        audited: the mechanism under audit.
        lead: the votes of every query above half for the audited label.
        words: one 64-bit random number per query, which decides its label.

    """
    state, value = _opened_plainly(audited), audited.tally_of(lead)
    labels: list[int | None] = []
    for word in words:
        if not audited.answers(state):
            break
        state, outcome = audited.step(audited.parameters, state, value, _of_word(word))
        labels.append(outcome.label)
    return labels


def _of_word(word: int) -> ScriptedNoise:
    return ScriptedNoise(chain([word], repeat(COIN)))


def label_noise(audited: Audited, lead: int) -> int:
    """Return the smallest noise that gives the second of two labels, in the noisy vote.

    Args:
        audited: the mechanism under audit.
        lead: the query's votes above half for the first label.

    """
    value = audited.tally_of(lead)
    drawn = PrescribedGaussian()
    parameters = _with_vote_noise(audited.parameters, drawn)

    def is_second(noise: int) -> bool:
        drawn.prescribe([noise])
        return audited.step(parameters, State(), value, _quiet())[1].label == 1

    return smallest_where(is_second, -NOISE_MAX, NOISE_MAX)


def labels_with(audited: Audited, lead: int, noises: Sequence[Sequence[int]]) -> list[int | None]:
    """Return the noisy vote's label for each vector of noise, one value per vote count.

    Args:
        audited: the mechanism under audit.
        lead: the query's votes above half for the audited label.
        noises: the vectors of noise that are added to the vote counts.

    """
    value, drawn = audited.tally_of(lead), PrescribedGaussian()
    parameters = _with_vote_noise(audited.parameters, drawn)
    labels = []
    for noise in noises:
        drawn.prescribe(noise)
        labels.append(audited.step(parameters, State(), value, _quiet())[1].label)
    return labels


def words_heard(audited: Audited, source: NoiseSource, *, queries: int) -> list[list[int]]:
    """Return the random 64-bit words that the noise distributions receive.

    The noise distributions record the words and return values that make every answer stable.

    Args:
        audited: the mechanism under audit.
        source: the source of randomness, which gives the words.
        queries: the number of queries.

    Returns:
        The words that were received at the start of the run, and for each query.

    """
    heard: list[int] = []
    parameters = _with_ears(audited.parameters, heard)
    value = audited.tally_of(audited.lead_max)
    state = audited.start(parameters, source)
    found = [heard[:]]
    for _ in range(queries):
        if not audited.answers(state):
            break
        heard.clear()
        state, _ = audited.step(parameters, state, value, source)
        found.append(heard[:])
    return found


def hits_of_words(audited: Audited, lead: int, words: Sequence[int]) -> list[bool]:
    """Return which answers are unstable, each query with its own given random word.

    Args:
        audited: the mechanism under audit.
        lead: the votes of every query above half for the audited label.
        words: one 64-bit random number per query, which decides whether its answer is stable.

    Returns:
        Whether each answer is unstable; shorter than ``words`` if the run ends before the last
        query.

    """
    state, value = _opened_plainly(audited), audited.tally_of(lead)
    hits: list[bool] = []
    for word in words:
        if not audited.answers(state):
            break
        noise = ScriptedNoise(chain([word], repeat(COIN)))
        state, outcome = audited.step(audited.parameters, state, value, noise)
        hits.append(not outcome.stable)
    return hits


def threshold_noises(audited: Audited, queries: Sequence[bool]) -> list[int | None]:
    """Return the noise of the sparse vector's threshold at the start and after each query.

    The server is restarted after each query. The draws of the threshold's noise are replaced by 1,
    2, 3 and so on.

    Args:
        audited: the mechanism under audit, with calibration ``svt`` (sparse vector).
        queries: whether each query's answer is unstable; queries after the end of the run are
            ignored.

    """
    parameters, query = _prescribed(audited)
    drawn = PrescribedLaplace(count_from(1))
    answering = replace(own(parameters.answering, sparse_vector.Parameters), threshold_noise=drawn)
    parameters = replace(parameters, answering=answering)
    state = audited.restart(audited.start(parameters, _quiet()))
    found = [state.private_threshold_noise]
    for is_hit in queries:
        if not audited.answers(state):
            break
        query.prescribe([-NOISE_MAX if is_hit else NOISE_MAX])
        state = audited.restart(audited.step(parameters, state, audited.tally_of(0), _quiet())[0])
        found.append(state.private_threshold_noise)
    return found


def answers_allowed(audited: Audited, vote: Callable[[Audited, State], State]) -> int:
    """Return the number of answers of the noisy vote before it ends.

    Args:
        audited: the mechanism under audit.
        vote: the function that answers a query: :func:`vote_without_noise` or, for the two-label
            vote, :func:`vote_of_bit`.

    """
    paid = audited.parameters.answer_limit
    state = audited.restart(replace(_opened_plainly(audited), answered_count=paid - 1))
    return _count_allowed(audited, state, paid, lambda state: vote(audited, state))


def answers_moved(audited: Audited, vote: Callable[[Audited, State], State]) -> int:
    """Return the number of the noisy vote's answers that one record can change.

    Args:
        audited: the mechanism under audit.
        vote: the function that answers a query: :func:`vote_without_noise` or, for the two-label
            vote, :func:`vote_of_bit`.

    """
    if audited.row.counts_decisions:
        return audited.decisions_moved
    return answers_allowed(audited, vote)


def answers_paid(audited: Audited) -> int:
    """Return the number of answers that the noisy vote's noise must protect."""
    limit = audited.parameters.answer_limit
    return DECISIONS_MOVED if audited.row.counts_decisions else limit


def hits_allowed(audited: Audited) -> int:
    """Return the number of unstable answers before a run ends, also if the server restarts.

    The run is started just before its last unstable answer that the budget pays for. The result
    for a run that does not end is twice the number of unstable answers that the budget pays for.
    """
    paid = hits_paid(audited)
    state = audited.restart(_at_hit(audited, paid - 1))
    return _count_allowed(audited, state, paid, lambda state: _hit(audited, state)[0])


def _count_allowed(
    audited: Audited, state: State, paid: int, following: Callable[[State], State]
) -> int:
    """Play on from the last one that is paid for, restarting after each."""
    played = 0
    while played < HITS_PLAYED_MAX and audited.answers(state):
        try:
            state = audited.restart(following(state))
        except InvariantError:
            break
        played += 1
    return 2 * paid if played == HITS_PLAYED_MAX else paid - 1 + played


def hits_paid(audited: Audited) -> int:
    """Return the number of unstable answers for which the privacy budget pays."""
    cutoff = audited.parameters.cutoff
    limit = audited.parameters.answer_limit
    return limit if cutoff is None else min(cutoff, limit)


def outcome_of_a_hit(audited: Audited, lead: int, coin: int) -> Outcome:
    """Return the outcome of an unstable answer whose label is drawn from a given random word.

    Args:
        audited: the mechanism under audit.
        lead: the query's votes above half for the audited label.
        coin: the 64-bit random number from which the label is drawn.

    """
    return _hit(audited, _at_hit(audited, 0), lead=lead, coin=coin)[1]


def _at_hit(audited: Audited, hit_count: int) -> State:
    """Return the state of a run that has answered hits only."""
    return replace(_opened_plainly(audited), answered_count=hit_count, unstable_count=hit_count)


def _quiet() -> ScriptedNoise:
    """Return a source for steps whose laws are prescribed; what they draw of it does not matter."""
    return ScriptedNoise(repeat(COIN))


def _opened_plainly(audited: Audited) -> State:
    return audited.start(audited.parameters, _quiet())


def vote_of_bit(audited: Audited, state: State) -> State:
    """Return the mechanism's state after the two-label noisy vote has answered one query."""
    noise = ScriptedNoise(seeded_words(0))
    return audited.step(audited.parameters, state, audited.tally_of(0), noise)[0]


def vote_without_noise(audited: Audited, state: State) -> State:
    """Return the mechanism's state after the noisy vote has answered one query without noise."""
    parameters = _with_vote_noise(audited.parameters, PrescribedGaussian(repeat(0)))
    return audited.step(parameters, state, audited.tally_of(0), _quiet())[0]


def _hit(
    audited: Audited, state: State, *, lead: int = 0, coin: int = COIN
) -> tuple[State, Outcome]:
    """Answer a query that is a hit, whatever its votes."""
    parameters, words = audited.parameters, [0]
    if audited.row.keeps_threshold:
        parameters, query = _prescribed(audited)
        query.prescribe([-NOISE_MAX])
        words = []
    noise = ScriptedNoise(chain(words, [coin], repeat(COIN)))
    return audited.step(parameters, state, audited.tally_of(lead), noise)


def _turn(
    audited: Audited,
    parameters: Parameters,
    query: PrescribedLaplace,
    state: State,
    value: Tally,
    *,
    near: int,
) -> int:
    """Return the smallest noise that releases a query; it is sought around ``near`` first."""

    def is_released(noise: int) -> bool:
        query.prescribe([noise])
        return audited.step(parameters, state, value, _quiet())[1].stable

    for low, high in ((near - 4, near + 4), (-NOISE_MAX, NOISE_MAX)):
        if not is_released(low) and is_released(high):
            return smallest_where(is_released, low, high)
    return -NOISE_MAX if is_released(-NOISE_MAX) else NOISE_MAX


def _prescribed(audited: Audited) -> tuple[Parameters, PrescribedLaplace]:
    """Return the sparse vector's parameters with a query's noise to be prescribed."""
    query = PrescribedLaplace()
    answering = own(audited.answering, sparse_vector.Parameters)
    zeros = PrescribedLaplace(repeat(0))
    prescribed = replace(answering, query_noise=query, threshold_noise=zeros)
    return replace(audited.parameters, answering=prescribed), query


def _opened(audited: Audited, parameters: Parameters, threshold_noise: int) -> State:
    """Open a run whose threshold's noise is drawn as given."""
    answering = replace(
        own(parameters.answering, sparse_vector.Parameters),
        threshold_noise=PrescribedLaplace([threshold_noise]),
    )
    return audited.start(replace(parameters, answering=answering), ScriptedNoise(repeat(0)))


def _with_ears(parameters: Parameters, heard: list[int]) -> Parameters:
    """Put listening laws in the place of all noise."""
    if parameters.row is not None and not parameters.row.keeps_threshold:
        return _with_vote_noise(parameters, ListeningGaussian(heard))
    inside = replace(
        own(parameters.answering, sparse_vector.Parameters),
        query_noise=ListeningLaplace(NOISE_MAX, heard),
        threshold_noise=ListeningLaplace(0, heard),
    )
    return replace(parameters, answering=inside)


def _with_vote_noise(parameters: Parameters, drawn: PrescribedGaussian) -> Parameters:
    answering = own(parameters.answering, noisy_vote.Parameters)
    return replace(parameters, answering=replace(answering, vote_noise=drawn))
