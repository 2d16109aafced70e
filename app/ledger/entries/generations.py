"""The batches of rows (generations) of a release: their state, and the allowed events.

The state is computed from ledger entries, by pure functions that process one event and refuse an
event that may not follow. An unstable answer is charged to every generation that voted. If a
generation must join the vote or retire next, the state says so, and no other event may come before.

A tick is a scheduled update, at which generations join. A period is the time between two ticks on
the clock; periods are counted since 1970. A labelling is the rule by which a generation's rows get
the labels on which its models are trained. The quorum is the least number of generations that must
vote; with fewer, queries are not answered.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal

import msgspec
from msgspec.structs import replace

from app.errors import InvariantError
from app.ledger.entries.entry_kinds import (
    AnswersReleased2,
    ClassifierPublished2,
    GenerationAppended,
    GenerationAppended2,
    GenerationRetired,
    GenerationsJoined,
    LabellingDrawn,
    LedgerEvent,
    ReleaseHalted,
    SlotsChanged,
    SlotsChanged2,
    labelling_name,
    slots_name,
)
from app.ledger.entries.illegal_entries import IllegalError, allow, exact
from app.privacy.generations.accounts import ProfileAccount
from app.privacy.stability.profile_parameters import hits_hold

if TYPE_CHECKING:
    from app.ledger.entries.entry_kinds import AnswersReleased, ReleaseOpened, ScoresReleased

TABLE: Final = "generations.table"
"""The parameter of ``ReleaseOpened`` with epsilon, delta and T of the one table of all.

Where generations of larger budgets may buy more than T, the most that they may is the fourth.
"""
QUORUM: Final = "generations.quorum"
ACTIVE_MAX: Final = "generations.active_max"
LABELLING: Final = "generations.labelling"
INHERIT: Final = '"inherit"'
POOLED: Final = '"pooled"'
COHORT: Final = '"cohort"'
ERASURE_COUNT: Final = "erasure.count"
"""The parameter with which ticks say how many records they forget; absent, none does."""
PUBLIC: Final = '"public"'
RELABEL: Final = "relabel"
ANSWERS: Final = "answers"
CLASSIFIER: Final = "classifier"

Standing = Literal["waiting", "active", "retired"]


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one generation (a batch of rows with its own budget).

    Attributes:
        number: the number of the generation, from 1 without gaps.
        slots: n_g, the number of its records or persons.
        chunks: k_g, the number of its models, each with one vote.
        epsilon: the exact epsilon for each of its records.
        delta: the exact delta for each of its records.
        shares: the epsilon and delta of each mechanism, as charged when the generation was added.
        cutoff: T_g, the number of unstable answers after which it stops voting.
        account: the privacy account from which T_g was computed, if the generation has its own
            budget; otherwise None.
        unstable: the number of unstable answers charged to it: those on which it voted.
        fingerprint: a keyed hash of all its rows; the key is a secret of this generation.
        joins_at: the number of the period at whose tick (scheduled update) it is to join the vote.
        kept_at: the number of the tick at which its rows were last stored.
        labelled_by: the number of the generation whose labelling its rows have; None before it has
            labels.
        is_published: whether its contribution to the classifier is public.
        standing: whether it waits, votes, or has retired.

    """

    number: int
    slots: int
    chunks: int
    epsilon: str
    delta: str
    shares: dict[str, list[str]]
    cutoff: int
    account: dict[str, str] = {}
    unstable: int = 0
    fingerprint: str
    joins_at: int
    kept_at: int
    labelled_by: int | None = None
    is_published: bool = False
    standing: Standing = "waiting"

    @property
    def owes_classifier(self) -> bool:
        """Whether the batch of rows was charged for a classifier that is not published yet."""
        return CLASSIFIER in self.shares and not self.is_published

    @property
    def is_active(self) -> bool:
        """Whether the models of this batch of rows vote."""
        return self.standing == "active"

    @property
    def left(self) -> int:
        """The number of further unstable answers that the batch's budget allows."""
        return self.cutoff - self.unstable

    @property
    def slots_piece(self) -> str:
        """The storage name of the records of this batch of rows.

        Each record or person has a fixed place (slot) in the batch.
        """
        return slots_name(self.number, self.kept_at)


class Generations(msgspec.Struct, frozen=True, kw_only=True):
    """The state of all generations (batches of rows) of a release.

    Attributes:
        all: all generations, in the order of their numbers.
        tick: the number of the newest tick (scheduled update); 0 before the first.
        period: the number of the period at this tick.
        erased: the number of records that were erased at ticks, if ticks publish it.
        active_set: a number that identifies the set of generations that votes; it changes at every
            tick, and whenever a generation joins or retires.
        joining: the numbers of the generations that must join in the next entry.
        is_drawing: whether a labelling was drawn and the entry of its tick is not appended yet;
            that entry has to follow in the same transaction.

    """

    all: tuple[Generation, ...] = ()
    tick: int = 0
    period: int = 0
    erased: int = 0
    active_set: int = 0
    joining: tuple[int, ...] = ()
    is_drawing: bool = False

    @property
    def active(self) -> tuple[Generation, ...]:
        """The batches of rows whose models vote."""
        return tuple(each for each in self.all if each.is_active)

    @property
    def waiting(self) -> tuple[Generation, ...]:
        """The batches of rows whose models do not vote yet."""
        return tuple(each for each in self.all if each.standing == "waiting")

    @property
    def kept(self) -> tuple[Generation, ...]:
        """The batches of rows that have not retired, whose rows are stored."""
        return tuple(each for each in self.all if each.standing != "retired")

    @property
    def spent(self) -> tuple[Generation, ...]:
        """The voting batches of rows that have used up their budget and must retire next."""
        return tuple(each for each in self.all if each.is_active and each.left <= 0)

    @property
    def hits_used(self) -> int:
        """The largest number of unstable answers charged to a voting batch of rows."""
        return max((each.unstable for each in self.active), default=0)

    @property
    def size(self) -> int:
        """The number of votes on the next query, of all voting batches of rows together."""
        return sum(each.chunks for each in self.active)

    def join_period(self, generation: Generation, cohort: int) -> int | None:
        """Return the number of the period at whose tick a batch of rows joins the vote.

        The result is None as long as the number is unknown.

        Args:
            generation: a generation that waits.
            cohort: how many of the first generations join together; 0 if each joins by itself.

        """
        first = self.all[:cohort]
        if len(first) < cohort:
            return None
        return max(each.joins_at for each in (generation, *first))

    def due(self, period: int, cohort: int) -> tuple[Generation, ...]:
        """Return the waiting batches of rows that join the vote at a scheduled update.

        Args:
            period: the number of the period at the update.
            cohort: how many of the first generations join together; 0 if each joins by itself.

        """
        periods = [(each, self.join_period(each, cohort)) for each in self.waiting]
        return tuple(each for each, joins in periods if joins is not None and joins <= period)

    def is_finished(self) -> bool:
        """Return whether the transaction of the newest entry may end without a further entry."""
        return not (self.joining or self.is_drawing or self.spent)

    def dearest(self) -> tuple[Fraction, Fraction]:
        """Return the largest epsilon, and the largest delta, charged to any batch of rows.

        A record is in one generation only, so the promise for a record is the largest charge and
        not the sum.
        """
        costs = [_costs(each.shares).values() for each in self.all]
        epsilons = [sum((cost for cost, _ in each), Fraction(0)) for each in costs]
        deltas = [sum((cost for _, cost in each), Fraction(0)) for each in costs]
        return max(epsilons, default=Fraction(0)), max(deltas, default=Fraction(0))

    def dearest_shares(self) -> dict[str, tuple[Fraction, Fraction]]:
        """Return the largest charge to any batch of rows, by mechanism."""
        most: dict[str, tuple[Fraction, Fraction]] = {}
        for each in self.all:
            for name, cost in _costs(each.shares).items():
                epsilon, delta = most.get(name, cost)
                most[name] = max(epsilon, cost[0]), max(delta, cost[1])
        return dict(sorted(most.items(), reverse=True))

    def with_one(self, changed: Generation) -> Generations:
        """Return a copy in which the state of one batch of rows is replaced."""
        others = list(self.all)
        others[changed.number - 1] = changed
        return replace(self, all=tuple(others))


NONE_YET: Final = Generations()


def generations_of(known: Generations | None) -> Generations:
    """Return the batches of rows (generations) of a release that accepts them.

    Raises:
        InvariantError: the release accepts no further rows.

    """
    if known is None:
        raise InvariantError("the release takes generations")
    return known


def has_generations(opened: ReleaseOpened) -> bool:
    """Return whether a release was opened to accept further batches of rows (generations)."""
    return QUORUM in opened.parameters


def counts_erasures(opened: ReleaseOpened) -> bool:
    """Return whether each scheduled update publishes the number of erased records."""
    return opened.parameters.get(ERASURE_COUNT) == PUBLIC


def quorum_of(opened: ReleaseOpened) -> int:
    """Return the least number of batches of rows that must vote together (the quorum)."""
    return int(opened.parameters[QUORUM])


def cohort_of(opened: ReleaseOpened) -> int:
    """Return how many of the first batches of rows get their labels together, by one rule.

    These batches wait for each other, and join the vote together; their number is the quorum. It is
    0 if the first batches do not get their labels together.
    """
    return quorum_of(opened) if opened.parameters.get(LABELLING) == COHORT else 0


def may_vote(opened: ReleaseOpened, known: Generations) -> bool:
    """Return whether enough batches of rows have joined to vote on queries."""
    return len(known.active) >= quorum_of(opened)


def table_of(opened: ReleaseOpened) -> tuple[Fraction, Fraction, int]:
    """Return the epsilon, delta and cutoff for which the one table of all generations was made.

    The table has the probability of an unstable answer for each distance.
    """
    epsilon, delta, cutoff, *_ = opened.parameters[TABLE].split()
    return exact(epsilon), exact(delta), int(cutoff)


def hits_max_of(opened: ReleaseOpened) -> int:
    """Return the largest number of unstable answers that any batch of rows may pay for."""
    return int(opened.parameters[TABLE].split()[-1])


def check_due(known: Generations, event: LedgerEvent) -> None:
    """Raise an error for an event if another event has to come before it.

    Raises:
        IllegalError: the message names the event that has to come first.

    """
    if isinstance(event, ReleaseHalted) and not known.spent:
        return
    for each in known.spent[:1]:
        retires = isinstance(event, GenerationRetired) and event.number == each.number
        allow(retires, f"comes before the retirement of generation {each.number}, which is due")
    if known.joining:
        allow(isinstance(event, GenerationsJoined), "comes before generations join, which are due")
    if known.is_drawing:
        is_next = isinstance(event, LabellingDrawn | ClassifierPublished2 | SlotsChanged)
        allow(is_next, "stands between a labelling and the tick at which it is taken up")


def appended(known: Generations, opened: ReleaseOpened, event: GenerationAppended) -> Generations:
    """Return the state of all batches of rows, with one more that does not vote yet."""
    number = len(known.all) + 1
    allow(event.number == number, f"appends generation {event.number} where {number} is next")
    name = slots_name(number, known.tick)
    allow(list(event.private_digests) == [name], f"does not bind the slots, {name}")
    allow(event.chunks <= event.slots, "has more chunks than slots")
    allow(event.joins_at > known.period, "joins at a tick that has been")
    _check_shares(opened, event)
    if 1 < number <= cohort_of(opened):
        pays = (RELABEL in event.shares) == (RELABEL in known.all[0].shares)
        allow(pays, "is charged otherwise for the labelling of its cohort than generation 1")
    further = Generation(
        number=number,
        slots=event.slots,
        chunks=event.chunks,
        epsilon=event.epsilon,
        delta=event.delta,
        shares=event.shares,
        cutoff=event.cutoff,
        fingerprint=event.fingerprint,
        joins_at=event.joins_at,
        kept_at=known.tick,
        account=event.account if isinstance(event, GenerationAppended2) else {},
    )
    return replace(known, all=(*known.all, further))


def _costs(shares: dict[str, list[str]]) -> dict[str, tuple[Fraction, Fraction]]:
    """Return the exact epsilon and delta of each share."""
    return {name: (exact(one), exact(two)) for name, (one, two) in shares.items()}


def _inherits(opened: ReleaseOpened, number: int) -> bool:
    """Return whether a generation has labels by a draw in which its rows have no part."""
    drawing = {INHERIT: 1, COHORT: cohort_of(opened)}.get(opened.parameters.get(LABELLING, ""))
    return drawing is not None and number > drawing


def _check_shares(opened: ReleaseOpened, event: GenerationAppended) -> None:
    """Check a generation's budget: within the release's, its shares, and what its T takes."""
    epsilon, delta = exact(event.epsilon), exact(event.delta)
    within = epsilon <= exact(opened.epsilon) and delta <= exact(opened.delta)
    allow(within, "promises its records more than the release does")
    costs = _costs(event.shares)
    allow(
        costs.keys() <= {RELABEL, ANSWERS, CLASSIFIER},
        "charges a mechanism that generations do not have",
    )
    allow(
        sum(cost for cost, _ in costs.values()) <= epsilon
        and sum(cost for _, cost in costs.values()) <= delta,
        "takes the shares above the budget of the generation",
    )
    inherits = _inherits(opened, event.number)
    allow(not (inherits and RELABEL in costs), "charges a labelling that it inherits")
    table_epsilon, table_delta, cutoff = table_of(opened)
    most = hits_max_of(opened) if isinstance(event, GenerationAppended2) else cutoff
    allow(event.cutoff <= most, "has a cutoff above what its share pays for")
    if isinstance(event, GenerationAppended2):
        allow(_is_paid(account_of(event)), "has a cutoff above what its account pays for")
        return
    allow(
        costs.get(ANSWERS) == (table_epsilon, table_delta),
        "pays another share for answers than the release's table was made for",
    )


def account_of(bought: GenerationAppended2 | Generation) -> ProfileAccount:
    """Return the privacy account of a batch of rows whose budget differs from the default.

    Raises:
        IllegalError: the recorded numbers do not make a valid privacy account.

    """
    epsilon, delta = bought.shares.get(ANSWERS, ("0", "0"))
    plain = {**bought.account, "epsilon": epsilon, "delta": delta, "cutoff": str(bought.cutoff)}
    try:
        return ProfileAccount.from_plain(plain)
    except InvariantError:
        raise IllegalError("has an account that is none") from None


def _is_paid(account: ProfileAccount) -> bool:
    """Return whether an account pays for its hits, as far as entries show.

    That its price is that of the release's table is decided where the table is at hand.
    """
    within = account.delta_release + account.delta_svt <= account.delta
    return (
        within
        and account.delta_release > 0 < account.delta_svt
        and account.epsilon > 0 < account.ln_ratio
        and account.alpha > 1
        and hits_hold(
            epsilon=account.epsilon,
            delta_svt=account.delta_svt,
            alpha=account.alpha,
            ln_ratio=account.ln_ratio,
            cutoff=account.cutoff,
        )
    )


def labelled(known: Generations, opened: ReleaseOpened, event: LabellingDrawn) -> Generations:
    """Return the state of all batches of rows after one that does not vote yet got its labels."""
    allow(event.number <= len(known.all), "labels a generation that is not there")
    generation = known.all[event.number - 1]
    allow(generation.standing == "waiting", "labels a generation that has joined")
    allow(generation.labelled_by is None, "draws a labelling a second time")
    cohort = cohort_of(opened)
    allow(len(known.all) >= cohort, "draws a labelling before its cohort is whole")
    earlier = known.all[: event.number - 1] if cohort else ()
    in_order = all(each.labelled_by is not None for each in earlier)
    allow(in_order, "comes before the labels of an earlier generation of its cohort")
    source = 1 if cohort or _inherits(opened, event.number) else event.number
    allow(event.of == source, f"takes the labels of generation {event.of} in place of {source}")
    draws = RELABEL in generation.shares and source == event.number
    names = [labelling_name(event.number)] if draws else []
    allow(list(event.private_digests) == names, "binds another labelling than its share draws")
    changed = known.with_one(replace(generation, labelled_by=event.of))
    return replace(changed, is_drawing=True)


def published(known: Generations, event: ClassifierPublished2) -> Generations:
    """Return the state of all batches of rows after one has improved the published classifier.

    Each batch starts with the classifier of the previous batch, so these events must follow in the
    order of the batches.
    """
    allow(event.number <= len(known.all), "is of a generation that is not there")
    generation = known.all[event.number - 1]
    allow(generation.standing == "waiting", "publishes of a generation that has joined")
    allow(CLASSIFIER in generation.shares, "is charged to no generation")
    allow(not generation.is_published, "publishes of a generation a second time")
    allow(generation.labelled_by is not None, "comes before the labels of its generation")
    earlier = known.all[: event.number - 1]
    allow(
        not any(each.owes_classifier for each in earlier),
        "comes before the classifier of an earlier generation",
    )
    return known.with_one(replace(generation, is_published=True))


def ticked(known: Generations, opened: ReleaseOpened, event: SlotsChanged) -> Generations:
    """Return the state of all batches of rows after a scheduled update, at which some may join."""
    allow(event.tick == known.tick + 1, f"is tick {event.tick} where {known.tick + 1} is next")
    allow(event.period >= known.period, "comes after a tick of a later time")
    counts = counts_erasures(opened)
    allow(isinstance(event, SlotsChanged2) == counts, "counts erasures otherwise than was opened")
    names = [slots_name(each.number, event.tick) for each in known.kept]
    allow(sorted(event.private_digests) == sorted(names), "does not bind every generation's slots")
    cohort = cohort_of(opened)
    are_labelled = {each.labelled_by is not None for each in known.all[:cohort]}
    allow(len(are_labelled) <= 1, "comes before all of a cohort have the labels that one has")
    due = known.due(event.period, cohort)
    for each in due:
        allow(each.labelled_by is not None, f"comes before the labelling of {each.number}")
        allow(not each.owes_classifier, f"comes before the classifier of {each.number}")
    maximum = opened.parameters[ACTIVE_MAX]
    room = len(due) if maximum == "null" else max(0, int(maximum) - len(known.active))
    return replace(
        known,
        all=tuple(
            each if each.standing == "retired" else replace(each, kept_at=event.tick)
            for each in known.all
        ),
        tick=event.tick,
        period=event.period,
        erased=known.erased + (event.erased if isinstance(event, SlotsChanged2) else 0),
        active_set=known.active_set + 1,
        joining=tuple(each.number for each in due[:room]),
        is_drawing=False,
    )


def joined(known: Generations, event: GenerationsJoined) -> Generations:
    """Return the state of all batches of rows after those that are due have joined the vote."""
    allow(bool(known.joining), "joins generations where none is due, or otherwise than at a tick")
    allow(tuple(event.numbers) == known.joining, "joins other generations than are due")
    _check_set(known, event.active)
    return replace(
        known,
        all=tuple(
            replace(each, standing="active") if each.number in known.joining else each
            for each in known.all
        ),
        active_set=event.active,
        joining=(),
    )


def retired(known: Generations, event: GenerationRetired) -> Generations:
    """Return the state of all batches of rows after one with no budget left has stopped voting."""
    spent = [each.number for each in known.spent]
    allow(event.number in spent, "retires a generation that can pay for an unstable answer")
    _check_set(known, event.active)
    generation = replace(known.all[event.number - 1], standing="retired")
    return replace(known.with_one(generation), active_set=event.active)


def _check_set(known: Generations, active: int) -> None:
    following = known.active_set + 1
    allow(active == following, f"begins set {active} where {following} is next")


def charged(
    known: Generations, opened: ReleaseOpened, event: AnswersReleased | ScoresReleased
) -> Generations:
    """Return the state of all batches of rows after new answers, with the unstable ones charged."""
    if not isinstance(event, AnswersReleased2):
        raise IllegalError("does not say which generations voted")
    allow(event.active == known.active_set, f"is of set {event.active}, not of {known.active_set}")
    allow(may_vote(opened, known), "answers where fewer generations vote than the quorum")
    hits = event.stable.count(False)
    left = min(each.left for each in known.active)
    allow(
        hits < left or (hits == left and not event.stable[-1]),
        "goes on past the unstable answer with which a generation retires",
    )
    return replace(
        known,
        all=tuple(
            replace(each, unstable=each.unstable + hits) if each.is_active else each
            for each in known.all
        ),
    )


def forgotten(
    before: Generations, after: Generations, opened: ReleaseOpened, digests: dict[str, str]
) -> frozenset[str]:
    """Return the names of private values that are no longer needed after a ledger entry.

    After a tick (scheduled update), the rows as stored before it are not needed. After the
    retirement of a generation, its stored rows are not needed, and neither is its labelling if no
    other generation uses it or can use it later.

    Args:
        before: the generations before the entry.
        after: the generations after the entry.
        opened: the release's first entry.
        digests: the keyed digests of the private values that entries mention, by name.

    """
    slots = {each.slots_piece for each in before.kept} - {each.slots_piece for each in after.kept}
    gone = {each.number for each in before.kept} - {each.number for each in after.kept}
    used = {each.labelled_by or each.number for each in after.kept}
    labelling = opened.parameters.get(LABELLING)
    if labelling in {INHERIT, COHORT}:
        used.add(1)
    if labelling == POOLED:  # every sum rests on the counts of all, of the retired too
        used |= gone
    labellings = {labelling_name(each) for each in gone - used}
    return frozenset((slots | labellings) & digests.keys())
