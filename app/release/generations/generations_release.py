"""An open release that accepts further rows: its phase, votes and committed state.

All models of all active generations (batches of rows) vote, and their votes are added up. An
unstable answer is charged to each active generation. The mechanism therefore counts down the
unstable answers of the generation that has the fewest left, until this generation retires (its
models stop voting, since its budget is used up); then it does the same for the remaining ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from app.errors import InvariantError
from app.ledger.entries import generations as living
from app.ledger.entries.generations import generations_of
from app.privacy.voting import query_decision
from app.privacy.voting.query_decision import Phase
from app.release.classifier.published_classifier import read_published
from app.release.generations.fitting import read_fitted
from app.release.generations.slots import read_slots
from app.release.generations.waiting_fits import WaitingFits
from app.release.release import Release

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from app.learning.hypothesis import Ensemble
    from app.ledger.entries.entry_kinds import ClassifierPublished, StudentPublished
    from app.ledger.entries.fold import LedgerState
    from app.ledger.entries.generations import Generation
    from app.privacy.voting.query_decision import Sequel, State


class CommonVote:
    """The models of several batches of rows, each with one vote on every query."""

    def __init__(self, private_ensembles: Sequence[Ensemble]) -> None:
        """Combine the models of one or more batches of rows."""
        self._private_ensembles = private_ensembles

    @property
    def size(self) -> int:
        """The number of votes on each query."""
        return sum(each.size for each in self._private_ensembles)

    @property
    def class_count(self) -> int:
        """The number L of labels."""
        return self._private_ensembles[0].class_count

    @property
    def is_scored(self) -> bool:
        """Whether votes have scores: False, since such a release answers with labels only."""
        return False

    def vote_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return each label's number of votes on each query, shape ``(queries, labels)``."""
        first, *others = (each.vote_counts(values) for each in self._private_ensembles)
        return np.asarray(sum(others, start=first.astype(np.int64)))

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Raise an error, since a release that accepts further rows has no scores."""
        del values
        raise InvariantError("generations vote on labels")

    def to_bytes(self) -> bytes:
        """Raise an error, since the models of each batch of rows are stored separately."""
        raise InvariantError("each generation's learners are kept by themselves")


@dataclass(slots=True)
class LivingRelease(Release):
    """An open release that accepts further rows; changed only by the ledger's thread.

    Attributes:
        private_fitted: for each generation that votes, by its number, its models and the number of
            the tick since which they vote.
        waiting: trained models that are not in the ledger yet.

    """

    private_fitted: dict[int, tuple[int, Ensemble]] = field(
        default_factory=dict, init=False, repr=False
    )
    waiting: WaitingFits = field(default_factory=WaitingFits, init=False, repr=False)
    _published: ClassifierPublished | StudentPublished | None = field(
        default=None, init=False, repr=False
    )

    def __post_init__(self) -> None:
        """Read the models of every generation that votes, and the newest classifier."""
        self._read_fitted(self.state)
        self._read_classifier(self.state)

    @property
    def answering_state(self) -> State:
        """The committed state, in the form that the answering mechanism needs."""
        return self.counters_at(self.state)

    def counters_at(self, state: LedgerState) -> State:
        """Return the numbers of answers and of unstable answers, as the mechanism needs them.

        The mechanism stops after T unstable answers in total. Therefore the number of unstable
        answers that is returned is T minus the number that the voting batch with the least budget
        may still pay for.
        """
        cutoff, active = self.mechanism.cutoff or 0, generations_of(state.generations).active
        left = min((each.left for each in active), default=cutoff)
        return query_decision.State(state.answered, cutoff - left, self._has_ended(state))

    def phase_at(self, state: LedgerState) -> Phase:
        """Return the release's phase in a given state: votes, waits for batches, or halted."""
        if self._has_ended(state) or state.release is None:
            return Phase.HALTED
        may_vote = living.may_vote(state.release, generations_of(state.generations))
        return Phase.ENSEMBLE if may_vote else Phase.WAITING

    def sequel_at(self, state: LedgerState) -> Sequel | None:
        """Return None, since voting never ends in a release that accepts further rows."""
        del state
        return None

    @property
    def must_open_statistics(self) -> bool:
        """Whether statistics must be drawn now: False, since such a release has none."""
        return False

    @property
    def ensemble_size(self) -> int:
        """The public number of votes on the next query."""
        return self.state.votes

    @property
    def ensemble(self) -> Ensemble:
        """The models of all batches of rows that vote in the committed state."""
        return self.ensemble_at(self.state)

    def ensemble_at(self, state: LedgerState) -> Ensemble:
        """Return the models of all batches of rows that vote in a given state."""
        active = generations_of(state.generations).active
        return CommonVote([self.private_fitted[each.number][1] for each in active])

    def take_over(self, fitted: Mapping[int, Ensemble], tick: int, kept: Iterable[int]) -> None:
        """Use, from now on, the models that join the vote at a scheduled update (tick).

        Args:
            fitted: newly trained models, by their generation's number.
            tick: the number of the tick.
            kept: the numbers of the generations whose stored rows did not change.

        """
        for number in kept:
            if number in self.private_fitted:
                self.private_fitted[number] = tick, self.private_fitted[number][1]
        for number, ensemble in fitted.items():
            self.private_fitted[number] = tick, ensemble

    def adopt(self, state: LedgerState) -> None:
        """Replace the state by a newer committed one, and drop models that left the vote."""
        self._read_fitted(state)
        self._read_classifier(state)
        self.state = state

    def _read_classifier(self, state: LedgerState) -> None:
        """Hold the newest classifier; each generation's replaces the one before."""
        if state.classifier is not None and state.classifier is not self._published:
            self.classifier = read_published(state.classifier)
            self._published = state.classifier

    def _has_ended(self, state: LedgerState) -> bool:
        return state.halted is not None or state.closed is not None

    def _read_fitted(self, state: LedgerState) -> None:
        """Hold the learners of those that vote by ``state``, as they are kept, and no others."""
        kept = generations_of(state.generations).kept
        numbers = {each.number for each in kept}
        for number in self.private_fitted.keys() - numbers:
            del self.private_fitted[number]
        if self._has_ended(state):
            self.private_fitted.clear()
            return
        for each in kept:
            if each.is_active and not self._holds(each):
                slots = read_slots(self.ledger, each)
                ensemble = read_fitted(self.configuration, slots)
                self.private_fitted[each.number] = each.kept_at, ensemble

    def _holds(self, generation: Generation) -> bool:
        kept_at, _ = self.private_fitted.get(generation.number, (None, None))
        return kept_at == generation.kept_at
