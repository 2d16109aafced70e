"""One open release: its public parameters, its private state, what is committed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.errors import InvariantError
from app.mechanisms import universal
from app.service.published_classifier import read_published

if TYPE_CHECKING:
    from app.data.rows import PrivateRows
    from app.data.schema import Schema
    from app.ensembles.ensemble import Ensemble
    from app.ledger.digests import Digests
    from app.ledger.fold import LedgerState
    from app.ledger.store import Ledger
    from app.mechanisms.universal import Parameters, Phase, State
    from app.service.configure import Configuration
    from app.service.published_classifier import PublishedClassifier


@dataclass(slots=True)
class Release:
    """What serves; changed only by the one writer, and only to what is committed.

    Attributes:
        configuration: what it was opened with; public.
        ledger: where every answer is recorded before it leaves.
        digests: keyed digests of the ledger's database.
        mechanism: parameters of the answers; public.
        state: what the entries up to the known head establish.
        private_ensemble: the k fitted learners; None where answers have no share.
        private_rows: kept until the classifier is drawn; None afterwards.
        classifier: the published classifier, once there is one.

    """

    configuration: Configuration
    ledger: Ledger
    digests: Digests
    mechanism: Parameters
    state: LedgerState
    private_ensemble: Ensemble | None
    private_rows: PrivateRows | None
    classifier: PublishedClassifier | None = None

    @property
    def name(self) -> str:
        """The release's name."""
        return self.configuration.name

    @property
    def schema(self) -> Schema:
        """The public schema."""
        return self.configuration.schema

    @property
    def answering_state(self) -> State:
        """The committed counters, as the mechanism takes them."""
        return universal.State(self.state.answered, self.state.unstable)

    @property
    def phase(self) -> Phase:
        """The phase that the committed counters put the release in."""
        return universal.phase(self.mechanism, self.answering_state)

    @property
    def ensemble_size(self) -> int:
        """k, public; 0 where answers have no share."""
        return 0 if self.state.ensemble is None else self.state.ensemble.size

    @property
    def ensemble(self) -> Ensemble:
        """The fitted learners, which exist wherever the ensemble answers."""
        if self.private_ensemble is None:
            raise InvariantError("no ensemble was fitted where answers have no share")
        return self.private_ensemble

    def rows_for_drawing(self) -> PrivateRows:
        """Return the private rows; their share must be charged by now."""
        if self.private_rows is None:
            raise InvariantError("the rows are kept until the classifier is drawn")
        return self.private_rows

    def adopt(self, state: LedgerState) -> None:
        """Take over committed state, the published classifier included."""
        if state.classifier is not None and self.classifier is None:
            self.classifier = read_published(state.classifier)
            self.private_rows = None
        self.state = state
