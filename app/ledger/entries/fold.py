"""The state of a release, computed from its ledger entries alone (the fold).

Balances are never stored. The function ``fold`` is pure, processes one entry at a time and refuses
any entry that may not follow the earlier ones, both before the entry is written and whenever it is
read.

In a joint privacy account the cost of answers is computed together with that of the draws of a
relabelling rule and of a classifier.

Models can give scores in place of labels. A stability test then decides, with noise, whether the
scores agree on one bin (interval of scores). If it fails, a second test is made with bins shifted
by half a bin. The models stop after a number of failed tests, the cutoff; each failed test uses one
unit of it.

Some stability tests compare each query's distance with a threshold, to which secret noise is added;
this noise is drawn again after an unstable answer.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from app.errors import LedgerCorruptError
from app.ledger.entries import generations as living
from app.ledger.entries.chain import GENESIS, Entry, Head, computed_hash, read_event
from app.ledger.entries.entry_kinds import (
    ASKED_PREFIX,
    AnswersReleased,
    AnswersReleased2,
    ClassifierPublished,
    ClassifierPublished2,
    EnsembleFitted,
    GenerationAppended,
    GenerationRetired,
    GenerationsJoined,
    LabellingDrawn,
    LedgerEvent,
    ReleaseClosed,
    ReleaseHalted,
    ReleaseMoved,
    ReleaseOpened,
    ReleaseReopened,
    ScoresReleased,
    ShareCharged,
    ShareReserved,
    SlotsChanged,
    StatisticsReleased,
    StudentPublished,
    ThresholdRefreshed,
    VectorsAsked,
    asked_vectors_name,
    threshold_noise_name,
)
from app.ledger.entries.generations import Generations
from app.ledger.entries.illegal_entries import IllegalError, allow, cost, exact
from app.ledger.entries.scored_answers import OUTPUT, SCORE, illegal_scores
from app.privacy.learner_properties import LEARNERS


class LedgerState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a release, computed from its ledger entries.

    Attributes:
        head: the number and hash of the newest entry.
        release: the first entry's event; None for an empty ledger.
        charged: the shares of the budget that are spent, in the order of their entries.
        reserved: the shares that are reserved and not spent yet, in the order of their entries.
        answered: the number of new answers by the models' vote, which is also the newest answer's
            number.
        unstable: the number of unstable answers among them; with scores, here and in the following
            lines, the number of units of the cutoff that all answers used, one for each failed
            stability test.
        ended_epoch: the number of unstable answers before the newest entry, if the newest entry has
            unstable answers; otherwise None.
        refreshed_at: the number of unstable answers after which the threshold's noise was last
            drawn again; None if it never was.
        asked: the number of vectors that are recorded as asked, if each cell is decided once.
        ensemble: the event of the trained models; None before it.
        classifier: the event of the published classifier, drawn or trained on the answers; None
            before it. In a release that accepts further rows, the newest such event.
        halted: the event that ended the release early; None if there is none.
        closed: the event that closed the ledger; None while the ledger is not closed.
        statistics: the event of the released statistics table; None before it.
        generations: the state of all batches of rows; None if the release accepts no further rows.
        private_digests: the keyed digest of every private value that is still needed, by name: of
            the threshold's noise the first and the newest, of the stored query vectors the newest.
        written_at: the number and hash of the entries of ``release``, ``classifier`` and
            ``statistics``, by these names.

    """

    head: Head = GENESIS
    release: ReleaseOpened | None = None
    charged: tuple[ShareCharged, ...] = ()
    reserved: tuple[ShareReserved, ...] = ()
    answered: int = 0
    unstable: int = 0
    ended_epoch: int | None = None
    refreshed_at: int | None = None
    asked: int = 0
    ensemble: EnsembleFitted | None = None
    classifier: ClassifierPublished | StudentPublished | None = None
    halted: ReleaseHalted | None = None
    closed: ReleaseClosed | None = None
    statistics: StatisticsReleased | None = None
    generations: Generations | None = None
    private_digests: dict[str, str] = {}
    written_at: dict[str, Head] = {}

    @property
    def is_finished(self) -> bool:
        """Whether the transaction of the newest entry may end without a further entry."""
        return self.generations is None or self.generations.is_finished()

    @property
    def votes(self) -> int:
        """The number of votes on each query."""
        if self.generations is not None:
            return self.generations.size
        return 0 if self.ensemble is None else self.ensemble.size

    @property
    def has_last_answer(self) -> bool:
        """Whether the models have given their last answer, according to the ledger entries."""
        if self.release is None or self.charge_of("answers") is None:
            return False
        limit, cutoff = self.release.queries, self.release.cutoff
        return (
            self.halted is not None
            or (limit is not None and self.answered >= limit)
            or (cutoff is not None and self.unstable >= cutoff)
        )

    @property
    def decides_cells(self) -> bool:
        """Whether all vectors of a public cell share one answer."""
        return self.release is not None and self.release.parameters.get(REPLAYED_BY) == CELL

    @property
    def is_between_answers(self) -> bool:
        """Whether the models have given their first answer and not their last one."""
        return self.answered > 0 and not self.has_last_answer

    @property
    def may_open_statistics(self) -> bool:
        """Whether the statistics table may be drawn now.

        It may be drawn before the models' first answer or after their last one. With a joint
        privacy account it may be drawn before both the first answer and the classifier, or after
        both the last answer and the classifier.
        """
        is_between = self.is_inside_account if self.is_joint else self.is_between_answers
        return self.statistics is None and not is_between

    @property
    def is_joint(self) -> bool:
        """Whether answers, relabelling and classifier share one joint privacy account."""
        return self.release is not None and self.release.parameters.get(ACCOUNTING) == JOINT

    @property
    def is_inside_account(self) -> bool:
        """Whether some mechanism of the joint privacy account has begun and not all have ended."""
        draws = self.charge_of(CLASSIFIER) or self.reserve_of(CLASSIFIER)
        is_over = self.has_last_answer and (draws is None or self.classifier is not None)
        return (self.answered > 0 or self.charge_of(CLASSIFIER) is not None) and not is_over

    @property
    def classifier_waits(self) -> bool:
        """Whether a classifier whose learner uses delta must now wait for the models' last answer.

        With a joint privacy account it need not wait, except with calibration ``certified``.
        """
        opened = {} if self.release is None else self.release.parameters
        if self.is_joint:
            is_certified = (opened.get(CALIBRATION), opened.get(MECHANISM)) == CERTIFIED
            return is_certified and not self.has_last_answer
        return opened.get(LEARNER) not in (None, *PURE) and self.is_between_answers

    def charge_of(self, mechanism: str) -> ShareCharged | None:
        """Return the share of the budget that ``mechanism`` has spent, or None."""
        return next((share for share in self.charged if share.mechanism == mechanism), None)

    def reserve_of(self, mechanism: str) -> ShareReserved | None:
        """Return the share of the budget that is reserved for ``mechanism``, or None."""
        return next((share for share in self.reserved if share.mechanism == mechanism), None)


EMPTY: Final = LedgerState()
DOCUMENTS: Final = ("release", "classifier", "statistics")
"""Fields of the state that hold long events."""

REPLAYED_BY: Final = "answers.replayed_by"
"""The parameter of ``ReleaseOpened`` that says what an answer is found again by."""
CELL: Final = '"cell"'
"""Its text where that is a public cell; absent where it is the vector as posted."""

EPSILON_KEY: Final = "privacy.composed.epsilon"
DELTA_KEY: Final = "privacy.composed.delta"
"""Parameters of ``ReleaseOpened``: what all releases of the database promise together."""

ACCOUNTING: Final = "privacy.accounting"
"""The parameter of ``ReleaseOpened`` that says how shares are accounted; absent, they add up."""
JOINT: Final = "joint"
"""Its text where relabelling, answers and classifier are one account."""

CALIBRATION: Final = "privacy.calibration"
MECHANISM: Final = "answers.mechanism"
CERTIFIED: Final = ('"certified"', '"stability"')
"""Both parameters' texts where one account has the classifier after the last answer alone."""

STATISTICS: Final = "statistics"
CLASSIFIER: Final = "classifier"
LEARNER: Final = "classifier.learner"
"""Bound where the classifier is not drawn from a class."""
# What is bound of a learner whose draw uses no delta; the delta of others adds as a table's does.
PURE: Final = tuple(f'"{row.name}"' for row in LEARNERS.values() if not row.uses_delta)

BACKUP: Final = "backup"
RETIRED: Final = "retired"
NEWEST: Final = "newest"
MOVED: Final = "moved"
BETWEEN_ANSWERS: Final = "after the ensemble's first answer and before its last"
INSIDE_ACCOUNT: Final = "inside the account of answers and classifier"


LivingEvent: TypeAlias = (
    GenerationAppended
    | LabellingDrawn
    | ClassifierPublished2
    | SlotsChanged
    | GenerationsJoined
    | GenerationRetired
)
LIVING_KINDS: Final = (
    GenerationAppended,
    LabellingDrawn,
    ClassifierPublished2,
    SlotsChanged,
    GenerationsJoined,
    GenerationRetired,
)
"""Kinds of entries about generations."""


def fold(state: LedgerState, entry: Entry) -> LedgerState:
    """Return the release's state after one further ledger entry.

    Args:
        state: the state that the earlier entries determine.
        entry: the next entry.

    Raises:
        LedgerCorruptError: the entry may not follow, because of its number, hash, kind, body or
            contents.

    """
    number, found = state.head.sequence + 1, entry.sequence
    if found != number:
        message = f"entry {number} is missing: entry {found} is where it should be"
        raise LedgerCorruptError(message)
    if entry.previous_hash != state.head.hash or entry.hash != computed_hash(entry):
        raise LedgerCorruptError(
            f"entry {number} does not have the hash that its contents and the entry before it give"
        )
    return followed_by(state, entry)


def followed_by(state: LedgerState, entry: Entry) -> LedgerState:
    """Return the release's state after one further entry, whose number and hash need no check.

    Args:
        state: the state that the earlier entries determine.
        entry: the next entry, newly made by ``next_entry``.

    Raises:
        LedgerCorruptError: the entry may not follow, because of its kind, body or contents.

    """
    event = read_event(entry)
    try:
        following = _apply(state, event)
    except IllegalError as illegal:
        message = f"entry {entry.sequence} ({entry.kind}) {illegal}"
        raise LedgerCorruptError(message) from None
    ended_epoch = state.unstable if following.unstable > state.unstable else None
    head, written_at = entry.head, state.written_at
    if not isinstance(event, AnswersReleased | ScoresReleased):
        written = {
            name: head for name in DOCUMENTS if getattr(following, name) is not getattr(state, name)
        }
        written_at = {**written_at, **written} if written else written_at
    return replace(following, head=head, ended_epoch=ended_epoch, written_at=written_at)


def _apply(state: LedgerState, event: LedgerEvent) -> LedgerState:  # noqa: C901, PLR0911, PLR0912 -- one line a kind
    if isinstance(event, ReleaseOpened):
        return _open(state, event)
    if state.release is None:
        raise IllegalError("stands where ReleaseOpened should")
    if isinstance(event, ReleaseReopened):
        return _reopen(state, event)
    allow(state.closed is None or _marks_copy(state.closed, event), "comes after ReleaseClosed")
    if state.generations is not None:
        living.check_due(state.generations, event)
    if isinstance(event, LIVING_KINDS):
        return _live(state, state.release, event)
    if isinstance(event, AnswersReleased | ScoresReleased):
        return _answer(state, state.release, event)
    match event:
        case ShareReserved():
            return _reserve(state, state.release, event)
        case ShareCharged():
            return _charge(state, state.release, event)
        case EnsembleFitted():
            return _fit(state, event)
        case ThresholdRefreshed():
            return _refresh(state, event)
        case VectorsAsked():
            return _ask(state, event)
        case ClassifierPublished():
            return _publish(state, event)
        case StudentPublished():
            return _publish_student(state, state.release, event)
        case StatisticsReleased():
            return _release_statistics(state, event)
        case ReleaseHalted() | ReleaseClosed() | ReleaseMoved():
            return _end(state, event)


def _end(state: LedgerState, event: ReleaseHalted | ReleaseClosed | ReleaseMoved) -> LedgerState:
    if isinstance(event, ReleaseMoved):
        return replace(state, closed=retirement(event))
    if isinstance(event, ReleaseHalted):
        allow(state.halted is None, "halts a release that had halted")
        return replace(state, halted=event)
    if state.closed is not None:
        return state  # a copy of what is retired is as retired
    may_transfer = event.transfer is None or event.reason == RETIRED
    allow(may_transfer, "lets a code reopen what was not retired")
    return replace(state, closed=event)


def retirement(event: ReleaseMoved) -> ReleaseClosed:
    """Return the event that retires the old ledger of a moved release."""
    return ReleaseClosed(reason=RETIRED, transfer=event.transfer)


def _marks_copy(closed: ReleaseClosed, event: LedgerEvent) -> bool:
    """Return whether a copy of a retired ledger says that it is one."""
    return closed.reason == RETIRED and event == ReleaseClosed(reason=BACKUP)


def _reopen(state: LedgerState, event: ReleaseReopened) -> LedgerState:
    closed = state.closed
    if closed is None:
        raise IllegalError("reopens a release that is not closed")
    may_go_on = closed.reason == BACKUP if event.reason == NEWEST else closed.transfer is not None
    allow(may_go_on, "reopens a release that was closed for good")
    return replace(state, closed=None)


def _open(state: LedgerState, event: ReleaseOpened) -> LedgerState:
    allow(state.release is None, "opens a release a second time")
    exact(event.epsilon)
    exact(event.delta)
    generations = None
    if living.has_generations(event):
        living.table_of(event)
        allow(event.cutoff is None and event.queries is None, "ends what generations go on with")
        generations = Generations()
    following = replace(state, release=event, generations=generations)
    return _bind(following, event.private_digests)


def _live(state: LedgerState, release: ReleaseOpened, event: LivingEvent) -> LedgerState:
    """Return the state after an entry about generations; what it leaves unused is unbound."""
    before = state.generations
    if before is None:
        raise IllegalError("is of a release that takes no generations")
    allow(state.halted is None, "comes after ReleaseHalted")
    match event:
        case GenerationAppended():
            after = living.appended(before, release, event)
        case LabellingDrawn():
            after = living.labelled(before, release, event)
        case ClassifierPublished2():
            after = living.published(before, event)
            state = replace(state, classifier=event)
        case SlotsChanged():
            after = living.ticked(before, release, event)
        case GenerationsJoined():
            after = living.joined(before, event)
        case GenerationRetired():
            after = living.retired(before, event)
    lost = living.forgotten(before, after, release, state.private_digests)
    kept = {name: digest for name, digest in state.private_digests.items() if name not in lost}
    following = replace(state, generations=after, private_digests=kept)
    return _bind(following, getattr(event, "private_digests", {}))


def _reserve(state: LedgerState, release: ReleaseOpened, event: ShareReserved) -> LedgerState:
    known = state.reserve_of(event.mechanism) or state.charge_of(event.mechanism)
    allow(known is None, f"sets a share aside a second time, for {event.mechanism}")
    following = replace(state, reserved=(*state.reserved, event))
    _check_budget(following, release)
    return following


def _charge(state: LedgerState, release: ReleaseOpened, event: ShareCharged) -> LedgerState:
    allow(state.generations is None, "charges a share beside those of generations")
    allow(
        state.charge_of(event.mechanism) is None,
        f"charges a share a second time, that of {event.mechanism}",
    )
    allow(
        event.mechanism != STATISTICS or state.may_open_statistics,
        f"charges {STATISTICS} {INSIDE_ACCOUNT if state.is_joint else BETWEEN_ANSWERS}",
    )
    allow(
        event.mechanism != CLASSIFIER or not state.classifier_waits,
        f"charges a {CLASSIFIER} {_out_of_turn(state)}",
    )
    reserve = state.reserve_of(event.mechanism)
    allow(
        reserve is None or cost(reserve) == cost(event),
        f"charges {event.mechanism} another share than was set aside for it",
    )
    following = replace(
        state,
        charged=(*state.charged, event),
        reserved=tuple(share for share in state.reserved if share is not reserve),
    )
    _check_budget(following, release)
    return following


def _fit(state: LedgerState, event: EnsembleFitted) -> LedgerState:
    allow(state.ensemble is None, "fits an ensemble a second time")
    allow(state.generations is None, "fits an ensemble beside generations")
    allow(state.charge_of("answers") is not None, "comes before the charge of answers")
    return _bind(replace(state, ensemble=event), event.private_digests)


def _answer(
    state: LedgerState, release: ReleaseOpened, event: AnswersReleased | ScoresReleased
) -> LedgerState:
    count = len(event.stable)
    answered = state.answered + count
    hits = sum(event.units) if isinstance(event, ScoresReleased) else event.stable.count(False)
    unstable = state.unstable + hits
    generations = _charged(state, release, event)
    allow(state.halted is None, "comes after ReleaseHalted")
    allow(
        state.refreshed_at in (None, state.unstable),
        "comes after an unstable answer that drew no noise for the threshold",
    )
    allow(
        isinstance(event, ScoresReleased) == (release.parameters.get(OUTPUT) == SCORE),
        "answers otherwise than the release was opened to",
    )
    allow(
        event.first_query_id == state.answered + 1,
        f"begins with answer {event.first_query_id} where answer {state.answered + 1} is next",
    )
    allow(
        len(event.digests) == len(event.labels) == count,
        "does not give every answer a digest, a label and a stable flag",
    )
    allow(
        None not in event.labels
        or (None, True) not in zip(event.labels, event.stable, strict=True),
        "has a stable answer without a label",
    )
    allow(release.queries is None or answered <= release.queries, "exceeds the limit of answers")
    if isinstance(event, ScoresReleased):
        allow(not (problem := illegal_scores(event, state.unstable, release.cutoff)), problem)
    if release.cutoff is not None:
        allow(state.unstable < release.cutoff, "comes after the cutoff")
        allow(
            unstable < release.cutoff or (unstable == release.cutoff and not event.stable[-1]),
            "goes on past the unstable answer at which the ensemble stops",
        )
    return replace(state, answered=answered, unstable=unstable, generations=generations)


def _charged(
    state: LedgerState, release: ReleaseOpened, event: AnswersReleased | ScoresReleased
) -> Generations | None:
    """Return the generations after answers, in a release that takes them; None in a fixed one."""
    if state.generations is not None:
        return living.charged(state.generations, release, event)
    allow(not isinstance(event, AnswersReleased2), "is of a release that takes no generations")
    allow(state.ensemble is not None, "comes before EnsembleFitted")
    return None


def _refresh(state: LedgerState, event: ThresholdRefreshed) -> LedgerState:
    allow(
        threshold_noise_name(0) in state.private_digests,
        "refreshes a threshold that has no noise",
    )
    allow(
        state.ended_epoch == (state.refreshed_at or 0),
        "does not follow the unstable answers that end an epoch",
    )
    allow(
        list(event.private_digests) == [threshold_noise_name(state.unstable)],
        f"does not bind the noise after unstable answer {state.unstable}",
    )
    # Of the noise of an epoch that has ended nothing is read again.
    ended = None if state.refreshed_at is None else threshold_noise_name(state.refreshed_at)
    kept = {name: digest for name, digest in state.private_digests.items() if name != ended}
    following = replace(state, refreshed_at=state.unstable, private_digests=kept)
    return _bind(following, event.private_digests)


def _ask(state: LedgerState, event: VectorsAsked) -> LedgerState:
    allow(state.decides_cells, "records vectors beside answers that are each a vector's own")
    allow(state.halted is None, "comes after ReleaseHalted")
    allow(
        event.first_number == state.asked + 1,
        f"begins with vector {event.first_number} where vector {state.asked + 1} is next",
    )
    allow(
        len(event.digests) == len(event.query_ids) and max(event.query_ids) <= state.answered,
        "does not give every vector an answer that was released",
    )
    allow(
        list(event.private_digests) == [asked_vectors_name(event.first_number)],
        f"does not bind the vectors from number {event.first_number} on",
    )
    kept = {
        name: digest
        for name, digest in state.private_digests.items()
        if not name.startswith(ASKED_PREFIX)
    }
    following = replace(state, asked=state.asked + len(event.digests), private_digests=kept)
    return _bind(following, event.private_digests)


def _out_of_turn(state: LedgerState) -> str:
    """Say when a classifier came that had to wait."""
    if state.is_joint:
        return "before the ensemble's last answer, by a certificate that has it after that"
    return f"that uses delta {BETWEEN_ANSWERS}"


def _publish(state: LedgerState, event: ClassifierPublished) -> LedgerState:
    allow(state.classifier is None, "publishes a classifier a second time")
    allow(state.charge_of(CLASSIFIER) is not None, "comes before the classifier's charge")
    allow(not state.classifier_waits, f"publishes a {CLASSIFIER} {_out_of_turn(state)}")
    return _bind(replace(state, classifier=event), event.private_digests)


def _publish_student(
    state: LedgerState, release: ReleaseOpened, event: StudentPublished
) -> LedgerState:
    allow(state.classifier is None, "publishes a classifier a second time")
    allow(state.ensemble is not None, "comes before EnsembleFitted")
    allow(
        state.answered == release.queries or state.unstable == release.cutoff,
        "comes before the ensemble's last answer",
    )
    return _bind(replace(state, classifier=event), event.private_digests)


def _release_statistics(state: LedgerState, event: StatisticsReleased) -> LedgerState:
    allow(state.statistics is None, f"releases {STATISTICS} a second time")
    allow(state.charge_of(STATISTICS) is not None, f"comes before the charge of {STATISTICS}")
    between = INSIDE_ACCOUNT if state.is_joint else BETWEEN_ANSWERS
    allow(state.may_open_statistics, f"releases {STATISTICS} {between}")
    return _bind(replace(state, statistics=event), event.private_digests)


def _bind(state: LedgerState, private_digests: dict[str, str]) -> LedgerState:
    allow(
        state.private_digests.keys().isdisjoint(private_digests),
        "binds a piece of private state a second time",
    )
    return replace(state, private_digests={**state.private_digests, **private_digests})


def _check_budget(state: LedgerState, release: ReleaseOpened) -> None:
    costs = [*map(cost, state.charged), *map(cost, state.reserved)]
    allow(
        sum(epsilon for epsilon, _ in costs) <= exact(release.epsilon)
        and sum(delta for _, delta in costs) <= exact(release.delta),
        "takes the shares above the budget of the release",
    )
