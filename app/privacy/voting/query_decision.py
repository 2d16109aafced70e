"""The decision on one query by any mechanism, and the release's phase after it.

**Algorithm.** A_UnvPrivCl (Nandi and Bassily 2020, Algorithm 4) around the loop of A_SubSamp
(Algorithm 5, steps 6 to 11): the models answer until T unstable answers or m_o answers were given;
then the release halts or switches to a classifier.

**Claim.** The outcomes are as private as those of the inner mechanism:
``app.privacy.stability.mechanism``, ``sparse_vector``, ``soft_labels`` around one of these two, or
``noisy_vote``. The phase is a function of the public counters, so a switch costs only the charge of
the next mechanism. A student, trained on released labels, has no charge.

**Proof.** Post-processing of the mechanism's outcomes:
``app/privacy/voting/query_decision_proof.md``.

**Inputs and outputs.** In: a ``Tally`` of the votes, or ``PrivateBins`` of the scores (secret).
Out: ``Outcome``, public: the label (a class index or none), whether the answer is stable and, with
scores, the bin. The state's counters are public. With the sparse vector technique the state also
has the noise of the threshold, which is secret.

**Utility.** m_o = 32 (d ln(1/alpha) + ln(1/beta)) / alpha queries suffice for the semi-private
learner that follows (Nandi and Bassily 2020, Theorem 11), d being the VC dimension, alpha the
accuracy target and beta the failure probability.

**Deviations.** The loop runs while fewer than T answers were unstable, which corrects an error in
the paper. An unstable answer has no label, or a uniformly random label, which never depends on the
votes; the paper has both versions. The noisy vote has no unstable answer and no cutoff. With
scores, the label of a stable answer is the second class if the bin's mid-point is at least 1/2,
which is post-processing.

**Raises.** ``InvariantError``: a step outside the phase ``ensemble``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from app.errors import InvariantError, invariant
from app.privacy.mechanism_registration import MechanismRegistration, State
from app.privacy.mechanisms import row_of
from app.privacy.soft_labels import mechanism as soft_labels
from app.privacy.soft_labels.mechanism import PrivateBins

if TYPE_CHECKING:
    from collections.abc import Collection

    from app.noise.source import NoiseSource
    from app.privacy.mechanism_registration import Answering
    from app.privacy.soft_labels.mechanism import ScoreBin
    from app.privacy.voting.votes import Tallies, Tally

__all__ = ["Outcome", "Parameters", "Phase", "Sequel", "State", "initial_state", "step", "steps"]


class Phase(StrEnum):
    """The phases of a release: models vote, a classifier answers, or new queries are refused."""

    ENSEMBLE = "ensemble"
    WAITING = "waiting"
    CLASSIFIER = "classifier"
    HALTED = "halted"


class Sequel(StrEnum):
    """The successor of the models: a published classifier, a student model, or none (halt)."""

    HALT = "halt"
    CLASSIFIER = "classifier"
    STUDENT = "student"


@dataclass(frozen=True, slots=True)
class Parameters:
    """The public parameters of a release's answers.

    Attributes:
        answering: the parameters of the answering mechanism; None if the answers have no share of
            epsilon, so that the release starts in the phase after the models.
        class_count: the number L of labels.
        answer_limit: m_o, the number of new answers after which the models stop.
        after: the successor of the models (classifier, student or halt) after answer m_o.
        on_cutoff: the successor of the models (classifier, student or halt) after unstable answer
            T.
        unstable_gets_coin: whether an unstable answer carries a uniformly random label.
        with_scores: whether answers are bins (intervals) of scores.
        row: the mechanism's entry in the table of mechanisms.

    """

    answering: Answering | None
    class_count: int
    answer_limit: int
    after: Sequel
    on_cutoff: Sequel
    unstable_gets_coin: bool
    with_scores: bool = False
    row: MechanismRegistration | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise an error for parameters that are out of range."""
        invariant(self.class_count >= 2, "there are two or more classes")  # noqa: PLR2004 -- says itself
        invariant(self.answer_limit >= 0, "the number of answers is not negative")
        row = None if self.answering is None else row_of(self.answering)
        object.__setattr__(self, "row", row)
        if self.answering is not None and row is not None:
            same = row.fits(self.answering, (self.class_count, self.answer_limit))
            invariant(same, "the noise is that of these classes and answers")
        if self.with_scores:
            binary = self.class_count == 2  # noqa: PLR2004 -- says itself
            tested = row is None or row.test is not None
            invariant(binary and tested, "scores are of two classes, and tested for stability")

    @property
    def cutoff(self) -> int | None:
        """The number T of unstable answers after which the models stop; None without limit."""
        return None if self.answering is None else self.answering.cutoff

    @property
    def sequels(self) -> frozenset[Sequel]:
        """The possible successors of the models, after answer m_o or at the cutoff."""
        return frozenset((self.after, self.on_cutoff))

    def keeping(self, kept: Collection[Sequel]) -> Parameters:
        """Return the parameters with a halt in place of successors that are not in ``kept``.

        A successor (classifier, student or halt) takes over when the models stop.
        """
        after, on_cutoff = (
            sequel if sequel in kept else Sequel.HALT for sequel in (self.after, self.on_cutoff)
        )
        return replace(self, after=after, on_cutoff=on_cutoff)

    @property
    def is_refreshed(self) -> bool:
        """Whether the sparse vector technique draws threshold noise after each unstable answer."""
        if self.answering is None or self.row is None:
            return False
        return self.row.is_refreshed(self.answering)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The released outcome of one query: a label, or the fact that the query is unstable.

    Attributes:
        label: a class index, or None.
        stable: whether the answer is stable.
        released_bin: the bin of the score, if the answer has a score and is stable; otherwise None.

    """

    label: int | None
    stable: bool
    released_bin: ScoreBin | None = None


def initial_state(parameters: Parameters, noise: NoiseSource) -> State:
    """Return the state before the first query; only the sparse vector technique draws noise."""
    if parameters.answering is None or parameters.row is None:
        return State()
    return State().after(parameters.row.start(parameters.answering, noise), answers=0)


def sequel(parameters: Parameters, state: State) -> Sequel | None:
    """Return the successor of the models: classifier, student or halt; None while models answer.

    If one answer reaches both the limit of answers and the cutoff, the successor at the cutoff is
    returned.
    """
    answering = parameters.answering
    if answering is None:
        return parameters.after
    cutoff = answering.cutoff
    if cutoff is not None and state.unstable_count >= cutoff:
        return parameters.on_cutoff
    return parameters.after if state.answered_count >= parameters.answer_limit else None


def phase(parameters: Parameters, state: State) -> Phase:
    """Return the release's phase, which follows from the counts of answers."""
    following = sequel(parameters, state)
    if following is None:
        return Phase.HALTED if state.halted else Phase.ENSEMBLE
    return Phase.HALTED if following is Sequel.HALT else Phase.CLASSIFIER


def step(
    parameters: Parameters, state: State, private_value: Tally | PrivateBins, noise: NoiseSource
) -> tuple[State, Outcome]:
    """Return the next state and the outcome of one query, given the counted votes on it."""
    ended = state.halted or state.answered_count >= parameters.answer_limit
    if parameters.answering is None or parameters.row is None or ended:
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
        following, label = parameters.row.step(parameters.answering, state, private_value, noise)
        released = None
    if released is not None:
        return following, Outcome(label=label, stable=True, released_bin=released)
    if label is not None:
        return following, _outcome(label, stable=True)
    return following, _unstable(parameters, noise)


def steps(
    parameters: Parameters, state: State, private_votes: Tallies, noise: NoiseSource
) -> tuple[State, list[Outcome]] | None:
    """Return the results of several queries at once, up to the models' last answer.

    The random words for the stability tests are drawn first, in the order of the queries, and the
    random labels of unstable answers after them.

    Args:
        parameters: the public parameters of the release's answers.
        state: a state in which the models answer.
        private_votes: the counted votes on one query or more; secret.
        noise: the source of randomness.

    Returns:
        The state after the last query that was answered, and an outcome for each answered query;
        None if the mechanism can only decide queries one by one.

    """
    row, left = parameters.row, parameters.answer_limit - state.answered_count
    answering = parameters.answering
    if answering is None or row is None or row.tests is None or parameters.with_scores:
        return None
    invariant(not state.halted and left > 0, "no step outside the ensemble phase")
    tested, is_hit = row.tests(answering, state.tested, private_votes.distance[:left], noise)
    labels = private_votes.plurality[: len(is_hit)].tolist()
    stable = {label: _outcome(label, stable=True) for label in set(labels)}
    outcomes = list(map(stable.__getitem__, labels))
    for place in is_hit.nonzero()[0].tolist():
        outcomes[place] = _unstable(parameters, noise)
    return state.after(tested, answers=len(outcomes)), outcomes


def redo(
    parameters: Parameters,
    state: State,
    outcome: Outcome,
    *,
    drawn: tuple[State, State],
    noise: NoiseSource,
) -> tuple[State, Outcome]:
    """Return an earlier drawn answer, adapted to the present state, and the next state.

    If an answer could not be recorded when it was drawn, it is recorded later, at a state with
    possibly more unstable answers. With scores, two stability tests of a query may fail, and the
    first failure may be the last one that the cutoff permits at the present state. It then ends the
    run, and the answer is unstable, whatever the second test decided.

    Args:
        parameters: the public parameters of the release's answers.
        state: a state in which the models answer, with at least as many unstable answers as the
            state before the draw.
        outcome: the outcome that was drawn.
        drawn: the states before and after the draw.
        noise: the source of randomness, for a random label if the answer becomes unstable.

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
def _outcome(label: int | None, *, stable: bool) -> Outcome:
    """Return an answer without a score; there are few, and each takes as long to return."""
    return Outcome(label, stable)


def _unstable(parameters: Parameters, noise: NoiseSource) -> Outcome:
    """Return an unstable answer, with its coin where it gets one."""
    coin = noise.below(parameters.class_count) if parameters.unstable_gets_coin else None
    return _outcome(coin, stable=False)


def _decide_bin(
    answering: Answering, state: State, private_value: PrivateBins, noise: NoiseSource
) -> tuple[State, ScoreBin | None]:
    """Take one step of soft labels around the mechanism; at an unstable answer there is no bin."""
    after, outcome = soft_labels.step(answering, state.tested, private_value, noise)
    return state.after(after), outcome.released_bin
