"""One step of the universal answering algorithm, and the phase that follows.

**Algorithm.** A_UnvPrivCl (Nandi and Bassily 2020, Algorithm 4) around
A_SubSamp's loop (Algorithm 5, steps 6 to 11): answer by the ensemble until T
unstable answers or m_o answers were given, then halt or switch.

**Claim.** The outcomes are as private as the stability test is
(``app.mechanisms.stability``); the phase is a function of the public counters,
so switching costs what the next mechanism is charged and nothing more.

**Proof.** Post-processing of the hit bits and of stable labels:
``docs/proofs/universal.md``.

**Inputs and outputs.** A plurality class index and its distance (secret).  Out:
``Outcome``, public: the label (a class index or none) and the stable flag.

**Utility.** m_o = 32 (d ln(1/alpha) + ln(1/beta)) / alpha queries suffice for
the semi-private learner that follows (Theorem 11).

**Deviations.** The counter stops the loop at ``c < T`` (erratum b).  An
unstable answer has no label, or a fair coin's, which never depends on the
votes (erratum j).

**Raises.** ``InvariantError``: a step outside the ensemble phase.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from app.errors import InvariantError, invariant
from app.mechanisms import stability

if TYPE_CHECKING:
    from app.noise.source import NoiseSource


class Phase(StrEnum):
    """What answers the next new query."""

    ENSEMBLE = "ensemble"
    CLASSIFIER = "classifier"
    HALTED = "halted"


class Sequel(StrEnum):
    """What follows the ensemble's last answer."""

    HALT = "halt"
    CLASSIFIER = "classifier"


@dataclass(frozen=True, slots=True)
class Parameters:
    """Public parameters of a release's answers.

    Attributes:
        stability: the stability test; None where the answers have no share,
            so that the release starts with what follows them.
        class_count: the number L of labels.
        answer_limit: m_o, fresh answers of the ensemble.
        after: what follows answer m_o.
        on_cutoff: what follows unstable answer T.
        unstable_gets_coin: whether an unstable answer carries a fair coin's label.

    """

    stability: stability.Parameters | None
    class_count: int
    answer_limit: int
    after: Sequel
    on_cutoff: Sequel
    unstable_gets_coin: bool

    def __post_init__(self) -> None:
        """Refuse what cannot run."""
        invariant(self.class_count >= 2, "there are two or more classes")  # noqa: PLR2004 -- says itself
        invariant(self.answer_limit >= 0, "the number of answers is not negative")


@dataclass(frozen=True, slots=True)
class State:
    """What is public of a run: its counters, and whether it was ended early.

    Attributes:
        answered_count: fresh answers of the ensemble.
        unstable_count: the hits among them.
        halted: no fresh answer may follow, whatever the counters say.

    """

    answered_count: int = 0
    unstable_count: int = 0
    halted: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What leaves: a class index or none, and whether the answer is stable."""

    label: int | None
    stable: bool


def initial_state(parameters: Parameters, noise: NoiseSource) -> State:
    """Return the state before the first query; draws nothing."""
    del parameters, noise
    return State()


def phase(parameters: Parameters, state: State) -> Phase:
    """Return the phase that the counters put the release in.

    ``on_cutoff`` decides where both limits are reached by the same answer.
    """
    if parameters.stability is None:
        return _phase_after(parameters.after)
    if state.unstable_count >= parameters.stability.cutoff:
        return _phase_after(parameters.on_cutoff)
    if state.answered_count >= parameters.answer_limit:
        return _phase_after(parameters.after)
    return Phase.HALTED if state.halted else Phase.ENSEMBLE


def step(
    parameters: Parameters,
    state: State,
    private_value: tuple[int, int],
    noise: NoiseSource,
) -> tuple[State, Outcome]:
    """Answer one query whose plurality and distance are ``private_value``."""
    plurality, distance = private_value
    ended = state.halted or state.answered_count >= parameters.answer_limit
    if parameters.stability is None or ended:
        message = "no step outside the ensemble phase"
        raise InvariantError(message)
    tested, hit = stability.step(
        parameters.stability, stability.State(state.unstable_count), distance, noise
    )
    following = State(state.answered_count + 1, tested.hit_count)
    if not hit:
        return following, Outcome(label=plurality, stable=True)
    coin = noise.below(parameters.class_count) if parameters.unstable_gets_coin else None
    return following, Outcome(label=coin, stable=False)


def _phase_after(sequel: Sequel) -> Phase:
    return Phase.CLASSIFIER if sequel is Sequel.CLASSIFIER else Phase.HALTED
