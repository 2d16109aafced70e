"""One step of the universal answering algorithm, and the phase that follows.

**Algorithm.** A_UnvPrivCl (Nandi and Bassily 2020, Algorithm 4) around
A_SubSamp's loop (Algorithm 5, steps 6 to 11): answer by the ensemble until T
unstable answers or m_o answers were given, then halt or switch.

**Claim.** The outcomes are as private as those of the mechanism inside:
``app.privacy.stability.mechanism``, ``sparse_vector``, ``soft_labels`` around either of
the two, or ``noisy_vote``; the phase is a function of the public counters, so
switching costs what the next mechanism is charged and nothing more: a student,
trained on what was released, nothing.

**Proof.** Post-processing of the mechanism's outcomes: ``app/privacy/voting/universal_proof.md``.

**Inputs and outputs.** A ``Tally`` of the votes, or ``PrivateBins`` of the scores
(secret).  Out: ``Outcome``, public: the label (a class index or none), the stable
flag and, with scores, the bin.  The state's counters are public and its threshold
noise, where there is one, is secret.

**Utility.** m_o = 32 (d ln(1/alpha) + ln(1/beta)) / alpha queries suffice for
the semi-private learner that follows (Theorem 11).

**Deviations.** The counter stops the loop at ``c < T`` (erratum b).  An
unstable answer has no label, or a fair coin's, which never depends on the
votes (erratum j).  The noisy vote has no unstable answer and no cutoff.  With
scores, the label of a stable answer is the second class where the bin's mid-point
is 1/2 or more: post-processing.

**Raises.** ``InvariantError``: a step outside the ensemble phase.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, cast

from app.errors import InvariantError, invariant
from app.privacy.noisy_vote import mechanism as noisy_vote
from app.privacy.soft_labels import mechanism as soft_labels
from app.privacy.soft_labels.mechanism import PrivateBins
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.stability import mechanism as stability

if TYPE_CHECKING:
    from app.noise.source import NoiseSource
    from app.privacy.soft_labels.mechanism import ScoreBin
    from app.privacy.voting.votes import Tallies, Tally

Answering: TypeAlias = stability.Parameters | sparse_vector.Parameters | noisy_vote.Parameters


class Phase(StrEnum):
    """What answers the next new query."""

    ENSEMBLE = "ensemble"
    CLASSIFIER = "classifier"
    HALTED = "halted"


class Sequel(StrEnum):
    """What follows the ensemble's last answer."""

    HALT = "halt"
    CLASSIFIER = "classifier"
    STUDENT = "student"


@dataclass(frozen=True, slots=True)
class Parameters:
    """Public parameters of a release's answers.

    Attributes:
        answering: the mechanism that answers; None where the answers have no
            share, so that the release starts with what follows them.
        class_count: the number L of labels.
        answer_limit: m_o, fresh answers of the ensemble.
        after: what follows answer m_o.
        on_cutoff: what follows unstable answer T.
        unstable_gets_coin: whether an unstable answer carries a fair coin's label.
        with_scores: whether the bin of a score is answered, by soft labels around
            the mechanism.

    """

    answering: Answering | None
    class_count: int
    answer_limit: int
    after: Sequel
    on_cutoff: Sequel
    unstable_gets_coin: bool
    with_scores: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot run."""
        invariant(self.class_count >= 2, "there are two or more classes")  # noqa: PLR2004 -- says itself
        invariant(self.answer_limit >= 0, "the number of answers is not negative")
        if isinstance(self.answering, noisy_vote.Parameters):
            own = (self.answering.class_count, self.answering.answer_limit)
            same = own == (self.class_count, self.answer_limit)
            invariant(same, "the noise is that of these classes and answers")
        if self.with_scores:
            binary = self.class_count == 2  # noqa: PLR2004 -- says itself
            tested = not isinstance(self.answering, noisy_vote.Parameters)
            invariant(binary and tested, "scores are of two classes, and tested for stability")

    @property
    def cutoff(self) -> int | None:
        """T; None where no count of unstable answers ends the run."""
        test = self.answering
        if test is None or isinstance(test, noisy_vote.Parameters):
            return None
        return test.cutoff

    @property
    def is_refreshed(self) -> bool:
        """Whether each hit draws the threshold's next noise, which ends an epoch."""
        return isinstance(self.answering, sparse_vector.Parameters) and self.answering.refreshed


@dataclass(frozen=True, slots=True)
class State:
    """What a run has come to: public counters, and the threshold's noise, secret.

    Attributes:
        answered_count: fresh answers of the ensemble.
        unstable_count: the hits, each a unit of the cutoff: one an unstable answer
            where labels are answered, and 0 to 2 an answer with scores.
        halted: no fresh answer may follow, whatever the counters say.
        private_threshold_noise: rho of the sparse vector; None without one.

    """

    answered_count: int = 0
    unstable_count: int = 0
    halted: bool = False
    private_threshold_noise: int | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What leaves.

    Attributes:
        label: a class index or none.
        stable: whether the answer is stable.
        released_bin: of the score, where there are scores and the answer is stable.

    """

    label: int | None
    stable: bool
    released_bin: ScoreBin | None = None


def initial_state(parameters: Parameters, noise: NoiseSource) -> State:
    """Return the state before the first query; draws the threshold's noise, if there is one."""
    if not isinstance(parameters.answering, sparse_vector.Parameters):
        return State()
    tested = sparse_vector.initial_state(parameters.answering, noise)
    return State(private_threshold_noise=tested.private_threshold_noise)


def sequel(parameters: Parameters, state: State) -> Sequel | None:
    """Return what follows the ensemble by the counters; None while they let it answer.

    ``on_cutoff`` decides where both limits are reached by the same answer.
    """
    if parameters.answering is None:
        return parameters.after
    cutoff = parameters.cutoff
    if cutoff is not None and state.unstable_count >= cutoff:
        return parameters.on_cutoff
    return parameters.after if state.answered_count >= parameters.answer_limit else None


def phase(parameters: Parameters, state: State) -> Phase:
    """Return the phase that the counters put the release in; a student is a classifier too."""
    following = sequel(parameters, state)
    if following is None:
        return Phase.HALTED if state.halted else Phase.ENSEMBLE
    return Phase.HALTED if following is Sequel.HALT else Phase.CLASSIFIER


def step(
    parameters: Parameters, state: State, private_value: Tally | PrivateBins, noise: NoiseSource
) -> tuple[State, Outcome]:
    """Answer one query whose votes, or scores, come to ``private_value``."""
    ended = state.halted or state.answered_count >= parameters.answer_limit
    if parameters.answering is None or ended:
        message = "no step outside the ensemble phase"
        raise InvariantError(message)
    invariant(
        parameters.with_scores == isinstance(private_value, PrivateBins),
        "scores are taken where scores are answered",
    )
    if isinstance(private_value, PrivateBins):
        following, released = _decide_bin(parameters.answering, state, private_value, noise)
        label = None if released is None else released.label
    else:
        following, label = _decide(parameters.answering, state, private_value, noise)
        released = None
    if released is not None:
        return following, Outcome(label=label, stable=True, released_bin=released)
    if label is not None:
        return following, _stable(label)
    return following, _unstable(parameters, noise)


def steps(
    parameters: Parameters, state: State, private_votes: Tallies, noise: NoiseSource
) -> tuple[State, list[Outcome]] | None:
    """Answer queries in order, up to the ensemble's last answer: what as many steps do.

    They draw the same words for the same queries, before the coins of unstable answers.

    Args:
        parameters: of the run.
        state: in which the ensemble answers.
        private_votes: on one query or more; secret.
        noise: whence a word comes for each, and a coin.

    Returns:
        The state after the last query that was answered, and an outcome for each; None
        where queries are answered one by one: only the stability test knows no noise
        but a word a query.

    """
    test, left = parameters.answering, parameters.answer_limit - state.answered_count
    if not isinstance(test, stability.Parameters) or parameters.with_scores:
        return None
    invariant(not state.halted and left > 0, "no step outside the ensemble phase")
    hits, is_hit = stability.steps(
        test, stability.State(state.unstable_count), private_votes.distance[:left], noise
    )
    outcomes = list(map(_stable, private_votes.plurality[: len(is_hit)].tolist()))
    for place in is_hit.nonzero()[0].tolist():
        outcomes[place] = _unstable(parameters, noise)
    return State(state.answered_count + len(outcomes), hits.hit_count), outcomes


def redo(
    parameters: Parameters,
    state: State,
    outcome: Outcome,
    *,
    drawn: tuple[State, State],
    noise: NoiseSource,
) -> tuple[State, Outcome]:
    """Record in this state an answer that was drawn in another, with the hits that it had.

    The first of two hits may be the last unit here.  It then ends the run, and the
    answer is unstable, whatever its second test came to.

    Args:
        parameters: of the run.
        state: in which the ensemble answers, with no fewer hits than that of the draw.
        outcome: as it was drawn.
        drawn: the states before and after the draw.
        noise: of a coin, where the answer turns unstable.

    """
    before, after = drawn
    hit_count, cutoff = after.unstable_count - before.unstable_count, parameters.cutoff
    if cutoff is not None:
        hit_count = min(hit_count, cutoff - state.unstable_count)
        if hit_count and outcome.stable and state.unstable_count + hit_count == cutoff:
            outcome = _unstable(parameters, noise)
        ends = state.unstable_count + hit_count == cutoff
        whole = not parameters.with_scores or outcome.stable or hit_count > 1 or ends
        invariant(whole, "only the last unit leaves a second test out")
    following = State(
        state.answered_count + 1,
        state.unstable_count + hit_count,
        private_threshold_noise=after.private_threshold_noise,
    )
    return following, outcome


@lru_cache(maxsize=256)
def _stable(label: int) -> Outcome:
    """Return a stable answer without a score, of which there are as many as labels."""
    return Outcome(label, stable=True)


def _unstable(parameters: Parameters, noise: NoiseSource) -> Outcome:
    """Return an unstable answer, with its coin where it gets one."""
    coin = noise.below(parameters.class_count) if parameters.unstable_gets_coin else None
    return Outcome(label=coin, stable=False)


def _decide_bin(
    answering: Answering, state: State, private_value: PrivateBins, noise: NoiseSource
) -> tuple[State, ScoreBin | None]:
    """Take one step of soft labels around the mechanism; at an unstable answer there is no bin."""
    inside = cast("soft_labels.Parameters", answering)  # parameters refuse the noisy vote
    before = soft_labels.State(state.unstable_count, state.private_threshold_noise)
    after, outcome = soft_labels.step(inside, before, private_value, noise)
    following = State(
        state.answered_count + 1,
        after.hit_count,
        private_threshold_noise=after.private_threshold_noise,
    )
    return following, outcome.released_bin


@lru_cache(maxsize=256)
def _hits(count: int) -> stability.State:
    """Return the state of a test with so many hits."""
    return stability.State(count)


def _decide(
    answering: Answering, state: State, private_value: Tally, noise: NoiseSource
) -> tuple[State, int | None]:
    """Take one step of the mechanism inside; at a hit there is no label."""
    if isinstance(answering, stability.Parameters):
        hits = _hits(state.unstable_count)
        hits, hit = stability.step(answering, hits, private_value.distance, noise)
        following = State(state.answered_count + 1, hits.hit_count)
        return following, None if hit else private_value.plurality
    if isinstance(answering, sparse_vector.Parameters):
        return _decide_with_threshold(answering, state, private_value, noise)
    answers = noisy_vote.State(state.answered_count)
    answers, voted = noisy_vote.step(answering, answers, private_value.counts, noise)
    return State(answers.answered_count, state.unstable_count), voted.label


def _decide_with_threshold(
    answering: sparse_vector.Parameters, state: State, private_value: Tally, noise: NoiseSource
) -> tuple[State, int | None]:
    """Take one step of the sparse vector, whose state includes the threshold's noise."""
    if state.private_threshold_noise is None:
        message = "the threshold's noise is kept while it answers"
        raise InvariantError(message)
    before = sparse_vector.State(state.unstable_count, state.private_threshold_noise)
    after, outcome = sparse_vector.step(answering, before, private_value.distance, noise)
    following = State(
        state.answered_count + 1,
        after.hit_count,
        private_threshold_noise=after.private_threshold_noise,
    )
    return following, None if outcome.hit else private_value.plurality
