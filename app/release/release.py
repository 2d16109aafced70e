"""One open release: its public parameters, private state and committed state.

The module also decides which services remain in a release that has ended, or whose rows are not
recognised, and which are refused.

A hypothesis is a rule that gives each row the outcome -1 or +1. The statistics table has, for each
hypothesis of a class, the noisy mean of its outcomes over the private rows.

A student is a classifier that is trained on the released answers.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from app.errors import InvariantError, VerificationError
from app.learning.ensemble import cells_of
from app.ledger.entries.fold import BACKUP, RETIRED
from app.privacy.budget.composition import Mechanism
from app.privacy.voting import query_decision
from app.privacy.voting.query_decision import Phase, Sequel
from app.release.classifier.published_classifier import read_classifier
from app.release.private_state import read_threshold_noise
from app.release.statistics.released_table import released_statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from app.data.schema import Schema
    from app.data.streaming.streamed_rows import AnyRows
    from app.learning.cells.cell_class import CellSplits
    from app.learning.hypothesis import Ensemble
    from app.ledger.entries.digests import Digests
    from app.ledger.entries.fold import LedgerState
    from app.ledger.ledger import Ledger
    from app.privacy.voting.query_decision import Parameters, State
    from app.release.classifier.published_classifier import PublishedClassifier, TrainedStudent
    from app.release.statistics.released_table import DrawnStatistics, ReleasedStatistics
    from app.release.terms.configuration import Configuration


@dataclass(slots=True)
class Release:
    """The open release of a server; changed only by the thread that writes the ledger.

    Attributes:
        configuration: the public parameters with which it was opened.
        ledger: the ledger, which records every answer before it leaves the server.
        digests: the functions that compute digests with the secret key of the ledger's database.
        mechanism: the public parameters of the answers.
        state: the state that follows from the ledger entries up to the newest one known.
        private_ensemble: the k trained models, as long as they answer.
        private_rows: the private rows, as long as the classifier or the statistics table may be
            drawn from them.
        has_unknown_rows: whether the rows are not recognised as the release's, so that nothing may
            be drawn.
        classifier: the published classifier; None before the publication.
        private_classifier: a drawn classifier whose publication is not confirmed yet; private.
        trained_student: a trained student whose publication is not confirmed yet.
        statistics: the released statistics table; None before the publication.
        private_statistics: a drawn statistics table whose publication is not confirmed yet;
            private.
        private_threshold_noise: the present noise of the threshold with which the mechanism
            compares distances, as long as the models answer; None if it has no such threshold.

    """

    configuration: Configuration
    ledger: Ledger
    digests: Digests
    mechanism: Parameters
    state: LedgerState
    private_ensemble: Ensemble | None
    private_rows: AnyRows | None
    has_unknown_rows: bool = False
    classifier: PublishedClassifier | None = None
    private_classifier: PublishedClassifier | None = None
    trained_student: TrainedStudent | None = None
    statistics: ReleasedStatistics | None = field(default=None, init=False, repr=False)
    private_statistics: DrawnStatistics | None = field(default=None, init=False, repr=False)
    private_threshold_noise: int | None = field(default=None, init=False, repr=False)
    # Asked for several times a query: of which state and mechanism it is, and the phase.
    _known_phase: tuple[LedgerState, Parameters, Phase] | None = field(
        default=None, init=False, repr=False
    )

    def __post_init__(self) -> None:
        """Drop the parts of the private state that are not needed any more."""
        self._end_where_closed(self.state)
        self._read_threshold_noise(self.state)
        self.statistics = released_statistics(self.state, self.ledger, self.schema)
        self._forget()

    @property
    def name(self) -> str:
        """The name of the release."""
        return self.configuration.name

    @property
    def is_shared(self) -> bool:
        """Whether other servers may answer from the same ledger."""
        return self.ledger.is_shared

    @property
    def schema(self) -> Schema:
        """The public schema of features and labels."""
        return self.configuration.schema

    @property
    def precision(self) -> int | None:
        """The default number of equal bins (intervals) of a score; None if answers are labels."""
        answers = self.configuration.settings.answers
        return answers.precision if self.mechanism.with_scores else None

    @property
    def answering_state(self) -> State:
        """The committed state, in the form that the answering mechanism needs."""
        return self._counters(self.state, self.private_threshold_noise)

    @property
    def phase(self) -> Phase:
        """The release's phase (votes, classifier or halted), by the committed entries."""
        state, mechanism, phase = self._known_phase or (None, None, None)
        if phase is None or state is not self.state or mechanism is not self.mechanism:
            phase = self.phase_at(self.state)
            self._known_phase = self.state, self.mechanism, phase
        return phase

    def phase_at(self, state: LedgerState) -> Phase:
        """Return the release's phase (votes, classifier or halted) in a given state."""
        return query_decision.phase(self.mechanism, self._counters(state))

    @property
    def sequel(self) -> Sequel | None:
        """The successor of the models: classifier, student or halt; None while models answer."""
        return self.sequel_at(self.state)

    def sequel_at(self, state: LedgerState) -> Sequel | None:
        """Return the successor of the models in a given state; None while the models answer."""
        return query_decision.sequel(self.mechanism, self._counters(state))

    @property
    def is_switching(self) -> bool:
        """Whether new queries wait for a classifier that is not published yet."""
        return self.phase is Phase.CLASSIFIER and self.classifier is None

    @property
    def may_switch(self) -> bool:
        """Whether the models still vote and a classifier may follow their last answer."""
        return self.phase is Phase.ENSEMBLE and self.mechanism.sequels != {Sequel.HALT}

    @property
    def may_draw(self) -> bool:
        """Whether the classifier may still be drawn from the private rows."""
        known = self.sequel
        sequels = self.mechanism.sequels if known is None else {known}
        follows = self.phase is not Phase.HALTED and Sequel.CLASSIFIER in sequels
        return follows and self.classifier is None

    @property
    def must_open_statistics(self) -> bool:
        """Whether the statistics table must be drawn now, since the last answer was given."""
        state = self.state
        return (
            self._awaits_statistics  # asked first: most releases have no share for statistics
            and not self._is_ended(state)
            and state.answered > 0
            and state.has_last_answer
            and state.may_open_statistics
        )

    @property
    def _awaits_statistics(self) -> bool:
        """Whether a share of statistics has no table yet."""
        has_share = Mechanism.STATISTICS in self.configuration.charges
        return has_share and self.state.statistics is None

    @property
    def decided_cells(self) -> CellSplits | None:
        """The public cells, if all vectors of one cell share an answer; None if they do not."""
        if not self.state.decides_cells:
            return None
        return cells_of(self.configuration.hypotheses)

    @property
    def ensemble_size(self) -> int:
        """The public number of models, k; 0 if answers have no share of the budget."""
        return 0 if self.state.ensemble is None else self.state.ensemble.size

    @property
    def ensemble(self) -> Ensemble:
        """The trained models, which exist as long as they vote."""
        if self.private_ensemble is None:
            raise InvariantError("the ensemble is kept while it answers, and not after")
        return self.private_ensemble

    def rows_for_drawing(self) -> AnyRows:
        """Return the private rows for a draw whose budget was charged before."""
        if self.private_rows is None:
            raise InvariantError("the rows are kept until the classifier is drawn")
        return self.private_rows

    def keep_classifier(self, drawn: PublishedClassifier) -> None:
        """Keep the drawn classifier until its publication is committed."""
        self.private_classifier = drawn

    def keep_student(self, trained: TrainedStudent) -> None:
        """Keep the trained student model until its publication is committed."""
        self.trained_student = trained

    def keep_statistics(self, drawn: DrawnStatistics) -> None:
        """Keep the drawn statistics table until its publication is committed."""
        self.private_statistics = drawn

    def adopt(self, state: LedgerState) -> None:
        """Replace the state by a newer committed one, and load what was published since."""
        before = self.phase, self.classifier, self.statistics
        self._end_where_closed(state)
        if state.classifier is not None and self.classifier is None:
            published = read_classifier(self.configuration, self.ledger, state.classifier)
            self.classifier = published
            self.private_classifier = self.trained_student = None
        if self.statistics is None and state.statistics is not None:
            self.statistics = released_statistics(state, self.ledger, self.schema)
        if state.unstable != self.state.unstable and self.mechanism.is_refreshed:
            self._read_threshold_noise(state)
        self.state = state
        if (self.phase, self.classifier, self.statistics) != before:
            self._forget()

    def _is_ended(self, state: LedgerState) -> bool:
        """Return whether no vote is cast and nothing drawn from rows any more."""
        return state.closed is not None or self.has_unknown_rows

    def _end_where_closed(self, state: LedgerState) -> None:
        """Let a halt follow the answers where nothing is drawn; a student needs no row."""
        if state.classifier is not None or not self._is_ended(state):
            return
        kept = () if state.closed is not None else (Sequel.STUDENT,)
        self.mechanism = self.mechanism.keeping(kept)

    def _counters(self, state: LedgerState, private_threshold_noise: int | None = None) -> State:
        counted = _answering_state(state, private_threshold_noise)
        return replace(counted, halted=True) if self.has_unknown_rows else counted

    def _read_threshold_noise(self, state: LedgerState) -> None:
        """Take over the threshold's noise as it is committed, the draw of this process included."""
        if self.mechanism.row is not None and self.mechanism.row.keeps_threshold:
            hits = state.unstable if self.mechanism.is_refreshed else 0
            self.private_threshold_noise = read_threshold_noise(self.ledger, state, hits)

    def _forget(self) -> None:
        """Let go of private state that nothing will read again."""
        if self.phase is not Phase.ENSEMBLE:
            self.private_ensemble = None
            self.private_threshold_noise = None
        # A classifier that an operator draws may end the account, and the table is due then.
        is_to_come = self.state.is_joint and self.state.is_inside_account
        may_count = self._awaits_statistics and (
            self.phase is Phase.ENSEMBLE or self.must_open_statistics or is_to_come
        )
        if self.statistics is not None:
            self.private_statistics = None
        if not self.may_draw and not may_count:
            self.private_rows = None


def _answering_state(state: LedgerState, private_threshold_noise: int | None) -> State:
    halted = state.halted is not None or state.closed is not None
    return query_decision.State(state.answered, state.unstable, halted, private_threshold_noise)


CLOSED: Final = {
    BACKUP: "this ledger is a backup, and the one that it was made of may have gone on",
    RETIRED: "this ledger is retired",
}
SOURCE: Final = "data.source"
UNKNOWN_ROWS: Final = (
    "holds other rows than those that the ledger's release was opened on, or rows that the "
    "earlier version, which opened it, read otherwise where a column has values of several types"
)
HALTED: Final = "this release has halted for good"
DRAWS_NOTHING: Final = "it casts no vote and draws nothing any more"
REPLAYS: Final = "recorded answers are given again, and new queries are refused"
CLASSIFIER_SERVES: Final = "the published classifier goes on answering"


def refuse_closed(state: LedgerState) -> None:
    """Raise an error for a draw in a release whose ledger is closed.

    Raises:
        VerificationError: the ledger is closed.

    """
    if state.closed is not None:
        raise VerificationError(f"{CLOSED[state.closed.reason]}: {DRAWS_NOTHING}")


@contextmanager
def ending_where_closed(release: Release) -> Iterator[None]:
    """Stop answering, instead of failing, if the ledger is closed before a publication.

    An operator may close or move a ledger between a server's last answer and its draw.

    Raises:
        VerificationError: the ``with`` block raised it for another reason.

    """
    try:
        yield
    except VerificationError:
        state = release.ledger.read_state()
        if state.closed is None:
            raise
        release.adopt(state)


def warn_if_ended(release: Release, warn: Callable[[str], None]) -> None:
    """Log which services remain, one line each, in a release that can draw nothing more."""
    halted, closed = release.state.halted, release.state.closed
    serves = CLASSIFIER_SERVES if release.phase is Phase.CLASSIFIER else REPLAYS
    if halted is not None:
        warn(f"{HALTED} ({halted.reason}): {REPLAYS}")
    if closed is not None:
        warn(f"{CLOSED[closed.reason]}: {serves}")
    elif release.has_unknown_rows:
        warn(f"{SOURCE} {UNKNOWN_ROWS}: {DRAWS_NOTHING}; {serves}")
