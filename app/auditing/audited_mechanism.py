"""The answering mechanism under audit, run as a server runs it, with its privacy claim.

The steps of the mechanism are functions in fields, whose defaults are the functions that the server
uses; a test replaces a function by a faulty one.

The *audited label* is one fixed label; one other label gets all other votes. A *lead* is the number
of votes above half of all votes for the audited label, which the audit varies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import numpy as np

from app.errors import invariant
from app.noise.source import NoiseSource
from app.privacy.mechanism_registration import State
from app.privacy.stability.cell_table import DECISIONS_MOVED
from app.privacy.voting import query_decision
from app.privacy.voting import votes as subsample_aggregate
from app.privacy.voting.query_decision import Outcome, Parameters, Phase

if TYPE_CHECKING:
    from app.privacy.budget.account import Draw
    from app.privacy.mechanism_registration import Answering, MechanismRegistration
    from app.privacy.voting.votes import Tally

Start: TypeAlias = Callable[[Parameters, NoiseSource], State]
Step: TypeAlias = "Callable[[Parameters, State, Tally, NoiseSource], tuple[State, Outcome]]"
Tallies: TypeAlias = "Callable[[np.ndarray[tuple[int, ...], np.dtype[np.int64]]], list[Tally]]"

BINARY: Final = 2
LABEL: Final = 0
"""The label whose lead in votes is varied; one other label has the other votes."""


def restart(state: State) -> State:
    """Return a copy of a mechanism's state as a restarted server would read it from the ledger."""
    return state


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """An answering mechanism under audit, with its claimed epsilon and delta.

    Attributes:
        parameters: the public parameters with which a server would run the mechanism.
        epsilon: the claimed epsilon.
        delta: the claimed delta.
        ensemble_size: the number k of models, which is even; every query gets k votes.
        draws: the rules (for relabelling, or the published classifier) whose random draw the
            claimed epsilon covers together with the answers; empty if each draw has a share of
            epsilon of its own.
        relabel_epsilon: the epsilon of drawing the rule whose labels replace those of the rows
            before training; 0 if there is no such draw.
        votes_moved: the largest number of votes that one record can change; 1 if the record is in
            one chunk only.
        decisions_moved: the number of answers that one record can change, in a release that answers
            each public cell only once.
        start: the function that opens a run.
        step: the function that answers a query.
        phase: the function that returns the phase: whether another query may be answered.
        tally: the function that turns votes into the step's input.
        restart: the function that returns the state after a restart of the server.

    """

    parameters: Parameters
    epsilon: Fraction
    delta: Fraction
    ensemble_size: int
    draws: tuple[Draw, ...] = ()
    relabel_epsilon: Fraction = Fraction(0)
    votes_moved: int = 1
    decisions_moved: int = DECISIONS_MOVED
    start: Start = query_decision.initial_state
    step: Step = query_decision.step
    phase: Callable[[Parameters, State], Phase] = query_decision.phase
    tally: Tallies = subsample_aggregate.tally
    restart: Callable[[State], State] = restart

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        invariant(self.parameters.answering is not None, "there is something that answers")
        invariant(self.epsilon > 0 <= self.delta < 1, "there is a claim")
        invariant(self.ensemble_size % 2 == 0, "votes divide into halves")

    @property
    def answering(self) -> Answering:
        """The public parameters of the audited mechanism."""
        return cast("Answering", self.parameters.answering)

    @property
    def row(self) -> MechanismRegistration:
        """The audit functions of the mechanism, as an entry of the table of mechanisms."""
        return cast("MechanismRegistration", self.parameters.row)

    @property
    def lead_max(self) -> int:
        """The largest tested lead, in votes above half of all votes for the audited label."""
        return self.ensemble_size // 2 - self.votes_moved

    def tally_of(self, lead: int) -> Tally:
        """Return vote counts in which the audited label has half of all votes plus ``lead``."""
        (value,) = self.tallies_of([lead])
        return value

    def tallies_of(self, leads: Sequence[int]) -> list[Tally]:
        """Return vote counts for each of several leads.

        A lead is the number of votes above half that the audited label gets; one other label gets
        all other votes.
        """
        votes = np.zeros((len(leads), self.parameters.class_count), dtype=np.int64)
        votes[:, :BINARY] = self.ensemble_size // 2
        votes[:, LABEL] += leads
        votes[:, 1 - LABEL] -= leads
        return self.tally(votes)

    def answers(self, state: State) -> bool:
        """Return whether the audited mechanism, in this state, answers another query."""
        return self.phase(self.parameters, state) is Phase.ENSEMBLE
