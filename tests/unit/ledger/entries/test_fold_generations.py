"""The fold of generations: what entries establish, and a table of what does not follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from msgspec.structs import replace

from app.errors import LedgerCorruptError
from app.ledger.entries.chain import next_entry
from app.ledger.entries.entry_kinds import (
    AnswersReleased,
    AnswersReleased2,
    ClassifierPublished,
    ClassifierPublished2,
    EnsembleFitted,
    GenerationAppended,
    GenerationAppended2,
    GenerationRetired,
    GenerationsJoined,
    LabellingDrawn,
    LedgerEvent,
    ReleaseHalted,
    ScoresReleased,
    ShareCharged,
    SlotsChanged,
    SlotsChanged2,
    labelling_name,
    slots_name,
)
from app.ledger.entries.fold import EMPTY, LedgerState, fold
from app.ledger.entries.generations import generations_of
from tests.builders.ledger.releases import opened

if TYPE_CHECKING:
    from collections.abc import Sequence

DIGEST: Final = "ab" * 32
RULES: Final = {
    "generations.quorum": "1",
    "generations.active_max": "null",
    "generations.labelling": '"own"',
    "generations.table": "9/10 1/2000000 2",
}


def counting() -> LedgerEvent:
    """Return the first entry of a release whose ticks say how many records they forget."""
    return opened(queries=None, cutoff=None, parameters={**RULES, "erasure.count": '"public"'})


def forgetting(tick: int, numbers: Sequence[int], *, erased: int) -> SlotsChanged2:
    """Return such a tick."""
    event = ticked(tick, numbers)
    return SlotsChanged2(
        tick=tick, period=event.period, private_digests=event.private_digests, erased=erased
    )


def grows(**changes: str) -> LedgerEvent:
    """Return the first entry of a release that takes generations."""
    rules = {**RULES, **{f"generations.{name}": text for name, text in changes.items()}}
    return opened(queries=None, cutoff=None, parameters=rules)


def appended(
    number: int, *, tick: int = 0, joins_at: int = 1, labels: str = "1/10", classifier: str = ""
) -> GenerationAppended:
    """Return a generation of 30 slots in 3 chunks, whose T is 2."""
    shares = {"answers": ["9/10", "1/2000000"]}
    if labels:
        shares["relabel"] = [labels, "0"]
    if classifier:
        shares["classifier"] = [classifier, "1/2000000"]
    return GenerationAppended(
        number=number,
        slots=30,
        chunks=3,
        epsilon="1",
        delta="1/1000000",
        shares=shares,
        cutoff=2,
        joins_at=joins_at,
        fingerprint=DIGEST,
        private_digests={slots_name(number, tick): DIGEST},
    )


def bought(**changes: object) -> GenerationAppended2:
    """Return a generation that pays for one unstable answer from an account of its own."""
    first = appended(1)
    account = {
        "alpha": "20",
        "ln_ratio": "1/10",
        "delta_release": "1/20000000",
        "delta_svt": "1/3000000",
    }
    event = GenerationAppended2(
        number=1,
        slots=first.slots,
        chunks=first.chunks,
        epsilon="1",
        delta=first.delta,
        shares={"answers": ["9/10", "1/2000000"]},
        cutoff=1,
        joins_at=1,
        fingerprint=DIGEST,
        private_digests=first.private_digests,
        account=account,
    )
    return replace(event, **changes)


def drawn(number: int, *, of: int = 0) -> LabellingDrawn:
    """Return the labels of a generation, of its own rows or of another's."""
    names = {} if of else {labelling_name(number): DIGEST}
    return LabellingDrawn(number=number, of=of or number, private_digests=names)


def published(number: int) -> ClassifierPublished2:
    """Return a generation's part in the classifier."""
    return ClassifierPublished2(number=number, weights=[[number]], classifier="{}")


def charged(number: int, *, tick: int = 0, joins_at: int = 1) -> GenerationAppended:
    """Return a generation that is charged for its part in the classifier."""
    return appended(number, tick=tick, joins_at=joins_at, labels="", classifier="1/10")


def kept(number: int) -> LabellingDrawn:
    """Return the labels of a generation whose rows keep their own."""
    return LabellingDrawn(number=number, of=number)


def ticked(tick: int, numbers: Sequence[int], *, period: int | None = None) -> SlotsChanged:
    """Return a tick with the slots of these generations."""
    pieces = {slots_name(number, tick): DIGEST for number in numbers}
    return SlotsChanged(tick=tick, period=period or tick, private_digests=pieces)


def joined(*numbers: int, active: int) -> GenerationsJoined:
    """Return a join that begins a set."""
    return GenerationsJoined(numbers=list(numbers), active=active)


def retired(number: int, *, active: int) -> GenerationRetired:
    """Return a retirement that begins a set."""
    return GenerationRetired(number=number, reason="cutoff", active=active)


def answers(first: int, stable: Sequence[bool], *, active: int) -> AnswersReleased2:
    """Return answers of a set that are stable or not as said."""
    return AnswersReleased2(
        first_query_id=first,
        digests=[f"{first + place:032x}" for place in range(len(stable))],
        labels=[0 if each else None for each in stable],
        stable=list(stable),
        active=active,
    )


def fold_all(events: Sequence[LedgerEvent]) -> LedgerState:
    """Fold events from nothing."""
    state = EMPTY
    for event in events:
        state = fold(state, next_entry(state.head, event))
    return state


ONE: Final[list[LedgerEvent]] = [
    grows(),
    appended(1),
    drawn(1),
    ticked(1, [1]),
    joined(1, active=2),
]
COHORT: Final[list[LedgerEvent]] = [
    grows(labelling='"cohort"', quorum="2"),
    appended(1),
    appended(2, joins_at=2),
]

WAITING: Final[list[LedgerEvent]] = [*ONE, appended(2, tick=1, joins_at=3)]
HIT_ONCE: Final[list[LedgerEvent]] = [*ONE, answers(1, [False], active=2)]
TWO: Final[list[LedgerEvent]] = [
    *HIT_ONCE,
    appended(2, tick=1, joins_at=2),
    drawn(2),
    ticked(2, [1, 2]),
    joined(2, active=4),
]
SPENT: Final[list[LedgerEvent]] = [*TWO, answers(2, [True, False], active=4)]


def test_a_life_of_two_generations_follows() -> None:
    """Each is charged from its join on, and what a retired one left is bound no more."""
    state = fold_all([*SPENT, retired(1, active=5), answers(4, [False], active=5)])
    assert not state.is_finished
    state = fold(state, next_entry(state.head, retired(2, active=6)))
    assert state.is_finished
    known = generations_of(state.generations)
    assert [(each.standing, each.unstable) for each in known.all] == [("retired", 2)] * 2
    assert state.private_digests == {}
    assert (state.answered, state.unstable) == (4, 3)


def test_only_the_newest_slots_are_bound() -> None:
    """A tick replaces every piece with slots, and leaves the labellings."""
    state = fold_all(TWO)
    assert set(state.private_digests) == {"slots-1-2", "slots-2-2", "labelling-1", "labelling-2"}


def test_a_cohort_joins_together_and_later_ones_inherit() -> None:
    """The first waits for the second beyond its own tick; one draw is kept for all."""
    events = [
        *COHORT[:2],
        ticked(1, [1]),
        appended(2, tick=1, joins_at=3),
        ticked(2, [1, 2], period=2),
        drawn(1),
        drawn(2, of=1),
        ticked(3, [1, 2], period=3),
        joined(1, 2, active=4),
        answers(1, [False, False], active=4),
        retired(1, active=5),
        retired(2, active=6),
        appended(3, tick=3, joins_at=4, labels=""),
        drawn(3, of=1),
        ticked(4, [3], period=4),
        joined(3, active=8),
    ]
    state = fold_all(events)
    assert set(state.private_digests) == {"labelling-1", "slots-3-4"}


def test_a_labelling_stays_while_others_rest_on_it() -> None:
    """The first generation's labels outlive it where later ones inherit them."""
    events = [
        grows(labelling='"inherit"'),
        appended(1),
        drawn(1),
        ticked(1, [1]),
        joined(1, active=2),
        answers(1, [False, False], active=2),
        retired(1, active=3),
        appended(2, tick=1, joins_at=2, labels=""),
        drawn(2, of=1),
        ticked(2, [2]),
        joined(2, active=5),
    ]
    assert set(fold_all(events).private_digests) == {"labelling-1", "slots-2-2"}


PART: Final[list[LedgerEvent]] = [
    grows(),
    charged(1),
    kept(1),
    published(1),
    ticked(1, [1]),
    joined(1, active=2),
]


def test_the_newest_classifier_is_the_release_s() -> None:
    """Each generation's part replaces the one before, and both came before their joins."""
    further: list[LedgerEvent] = [
        charged(2, tick=1, joins_at=2),
        kept(2),
        published(2),
        ticked(2, [1, 2]),
    ]
    state = fold_all([*PART, *further])
    assert state.classifier == published(2)
    assert all(each.is_published for each in generations_of(state.generations).all)


def test_a_public_count_of_erasures_adds_up() -> None:
    """Every tick says how many, of none too."""
    events = [counting(), appended(1), drawn(1), forgetting(1, [1], erased=0), joined(1, active=2)]
    state = fold_all([*events, forgetting(2, [1], erased=2), forgetting(3, [1], erased=1)])
    assert generations_of(state.generations).erased == 3


def test_an_account_that_pays_is_taken() -> None:
    """Its T is below the table's, and what it was paid by is kept."""
    (only,) = generations_of(fold_all([grows(), bought()]).generations).all
    assert (only.cutoff, only.account["alpha"]) == (1, "20")


CASES: Final[dict[str, tuple[list[LedgerEvent], LedgerEvent, str]]] = {
    "a kind of a release that takes generations, in a fixed one": (
        [opened()],
        appended(1),
        "takes no generations",
    ),
    "a table that is no numbers": ([], grows(table="x 1 2"), "no exact number"),
    "a T for the whole release": (
        [],
        replace(grows(), cutoff=2),
        "ends what generations go on with",
    ),
    "a share of the whole release": (
        [grows()],
        ShareCharged(mechanism="answers", epsilon="0.1", delta="0"),
        "beside those of generations",
    ),
    "an ensemble of the whole release": (
        ONE,
        EnsembleFitted(size=3, private_digests={}),
        "beside generations",
    ),
    "a generation with a gap in the numbers": ([grows()], appended(2), "where 1 is next"),
    "a generation without its slots": (
        [grows()],
        replace(appended(1), private_digests={}),
        "does not bind the slots",
    ),
    "more chunks than slots": ([grows()], replace(appended(1), chunks=31), "more chunks"),
    "a join at a tick of the past": (
        ONE,
        appended(2, tick=1, joins_at=1),
        "joins at a tick that has been",
    ),
    "a budget above the release's": (
        [grows()],
        replace(appended(1), epsilon="2"),
        "more than the release does",
    ),
    "a mechanism that generations do not have": (
        [grows()],
        replace(appended(1), shares={"statistics": ["0", "0"]}),
        "do not have",
    ),
    "charges over its own budget": (
        [grows()],
        appended(1, labels="2/10"),
        "above the budget of the generation",
    ),
    "another share for answers": (
        [grows()],
        replace(appended(1), shares={"answers": ["1/2", "1/2000000"]}),
        "another share for answers",
    ),
    "a T above what it pays for": (
        [grows()],
        replace(appended(1), cutoff=3),
        "a cutoff above what its share pays for",
    ),
    "a T above the table's": ([grows()], bought(cutoff=3), "above what its share pays for"),
    "a T above what its account pays for": (
        [grows()],
        bought(account={**bought().account, "ln_ratio": "7"}),
        "above what its account pays for",
    ),
    "an account that takes more delta than the share": (
        [grows()],
        bought(account={**bought().account, "delta_release": "1/2000000"}),
        "above what its account pays for",
    ),
    "an account that is none": ([grows()], bought(account={}), "an account that is none"),
    "an account without a share": (
        [grows()],
        bought(shares={"relabel": ["1/10", "0"]}),
        "above what its account pays for",
    ),
    "a labelling that is inherited and charged": (
        [grows(labelling='"inherit"'), appended(1), drawn(1), ticked(1, [1]), joined(1, active=2)],
        appended(2, tick=1, joins_at=3),
        "that it inherits",
    ),
    "a cohort that is not whole": (COHORT[:2], drawn(1), "before its cohort is whole"),
    "a record in two draws": (
        [*COHORT, drawn(1)],
        LabellingDrawn(number=2, of=2, private_digests={labelling_name(2): DIGEST}),
        "of generation 2 in place of 1",
    ),
    "a second draw for a cohort": (
        [*COHORT, drawn(1)],
        LabellingDrawn(number=2, of=1, private_digests={labelling_name(2): DIGEST}),
        "another labelling than its share",
    ),
    "labels out of the order of a cohort": (COHORT, drawn(2, of=1), "of an earlier generation"),
    "a part of a cohort": ([*COHORT, drawn(1)], ticked(1, [1, 2], period=1), "all of a cohort"),
    "a cohort whose draw one does not pay for": (
        COHORT[:2],
        appended(2, labels=""),
        "charged otherwise",
    ),
    "a charge for the labelling of a cohort": (
        COHORT,
        appended(3, joins_at=3),
        "that it inherits",
    ),
    "a cohort that is due without labels": (
        COHORT,
        ticked(1, [1, 2], period=2),
        "before the labelling of 1",
    ),
    "labels of a generation that is not there": ([grows()], drawn(1), "is not there"),
    "labels drawn twice": ([grows(), appended(1), drawn(1)], drawn(1), "a second time"),
    "labels after the join": (ONE, drawn(1), "that has joined"),
    "labels of another generation": (WAITING, drawn(2, of=1), "in place of 2"),
    "a labelling that nothing is charged for": (
        [grows(), appended(1, labels="")],
        drawn(1),
        "another labelling than its share",
    ),
    "anything between a labelling and its tick": (
        [grows(), appended(1), drawn(1)],
        appended(2),
        "between a labelling and the tick",
    ),
    "a classifier in the form of a fixed release": (
        [grows(), charged(1), kept(1)],
        ClassifierPublished(classifier="{}"),
        "between a labelling and the tick",
    ),
    "the same after a tick": (
        PART,
        ClassifierPublished(classifier="{}"),
        "publishes a classifier a second time",
    ),
    "a generation's classifier in a fixed release": (
        [opened()],
        published(1),
        "takes no generations",
    ),
    "the classifier of one that is not there": ([grows()], published(1), "is not there"),
    "the classifier of one that has joined": (PART, published(1), "that has joined"),
    "a classifier that is charged to nobody": (
        [grows(), appended(1), drawn(1)],
        published(1),
        "charged to no generation",
    ),
    "a classifier published twice": (
        [grows(), charged(1), kept(1), published(1)],
        published(1),
        "a second time",
    ),
    "a classifier before the labels, as soon as it is drawn": (
        [grows(), charged(1)],
        published(1),
        "before the labels of its generation",
    ),
    "a classifier that goes on from one that is not public": (
        [grows(), charged(1), charged(2), kept(1), kept(2)],
        published(2),
        "the classifier of an earlier generation",
    ),
    "a tick without the classifier of one that is due": (
        [grows(), charged(1), kept(1)],
        ticked(1, [1]),
        "before the classifier of 1",
    ),
    "a count of erasures that is secret": (
        ONE,
        forgetting(2, [1], erased=1),
        "counts erasures otherwise",
    ),
    "a tick that does not count where counts are public": (
        [counting(), appended(1), drawn(1)],
        ticked(1, [1]),
        "counts erasures otherwise",
    ),
    "a tick left out": (ONE, ticked(3, [1]), "where 2 is next"),
    "a tick without somebody's slots": (WAITING, ticked(2, [1]), "every generation's slots"),
    "a tick at which an unlabelled one is due": (
        WAITING,
        ticked(2, [1, 2], period=3),
        "before the labelling of 2",
    ),
    "a join without a tick": (WAITING, joined(2, active=3), "otherwise than at a tick"),
    "a join before its tick, as soon as the fit is ready": (
        [*WAITING, drawn(2), ticked(2, [1, 2])],
        joined(2, active=4),
        "where none is due",
    ),
    "a join twice": (ONE, joined(1, active=3), "where none is due"),
    "a join of another": (
        [grows(), appended(1), appended(2, joins_at=9), drawn(1), ticked(1, [1, 2])],
        joined(2, active=2),
        "joins other generations than are due",
    ),
    "a join that is due left out": (
        [grows(), appended(1), drawn(1), ticked(1, [1])],
        answers(1, [True], active=1),
        "before generations join",
    ),
    "a join that begins another set": (
        [grows(), appended(1), drawn(1), ticked(1, [1])],
        joined(1, active=7),
        "begins set 7 where 2 is next",
    ),
    "a join after retirement": ([*SPENT, retired(1, active=5)], joined(1, active=6), "none is due"),
    "answers that do not say who voted": (
        ONE,
        AnswersReleased(first_query_id=1, digests=["0" * 32], labels=[0], stable=[True]),
        "does not say which generations voted",
    ),
    "answers of generations in a fixed release": (
        [
            opened(),
            ShareCharged(mechanism="answers", epsilon="0.6", delta="0"),
            EnsembleFitted(size=3, private_digests={}),
        ],
        answers(1, [True], active=1),
        "takes no generations",
    ),
    "scores": (
        ONE,
        ScoresReleased(
            first_query_id=1,
            digests=["0" * 32],
            labels=[0],
            stable=[True],
            precisions=[2],
            bins=[0],
            shifted=[False],
            units=[0],
        ),
        "does not say which generations voted",
    ),
    "answers of another set": (ONE, answers(1, [True], active=1), "is of set 1, not of 2"),
    "answers below the quorum": (
        [grows(quorum="2"), *ONE[1:]],
        answers(1, [True], active=2),
        "fewer generations vote than the quorum",
    ),
    "answers past the hit that retires one": (
        TWO,
        answers(2, [False, True], active=4),
        "past the unstable answer",
    ),
    "more hits than one can pay for": (
        TWO,
        answers(2, [False, False], active=4),
        "past the unstable answer",
    ),
    "answers where a retirement is due": (
        SPENT,
        answers(4, [True], active=4),
        "before the retirement of generation 1",
    ),
    "a tick where a retirement is due": (
        SPENT,
        ticked(3, [1, 2]),
        "before the retirement of generation 1",
    ),
    "the retirement of another": (SPENT, retired(2, active=5), "retirement of generation 1"),
    "a retirement with something left": (TWO, retired(1, active=5), "can pay for"),
    "a halt before a retirement": (SPENT, ReleaseHalted(reason="x"), "retirement of generation 1"),
    "an append after a halt": (
        [*ONE, ReleaseHalted(reason="x")],
        appended(2, tick=1, joins_at=3),
        "after ReleaseHalted",
    ),
}


@pytest.mark.parametrize(("before", "event", "problem"), CASES.values(), ids=CASES)
def test_what_does_not_follow_is_refused(
    before: list[LedgerEvent], event: LedgerEvent, problem: str
) -> None:
    """Each kind of entry out of its place, or that says what it may not, is refused by name."""
    state = fold_all(before)
    with pytest.raises(LedgerCorruptError, match=problem):
        fold(state, next_entry(state.head, event))


def test_a_tick_of_an_earlier_period_is_refused() -> None:
    """The clock that was put back makes no tick."""
    state = fold_all([*ONE[:3], ticked(1, [1], period=5), *ONE[4:]])
    with pytest.raises(LedgerCorruptError, match="a tick of a later time"):
        fold(state, next_entry(state.head, ticked(2, [1], period=4)))


def test_beyond_the_most_that_vote_a_generation_waits() -> None:
    """The tick has room for one of two that are due, the older."""
    events = [grows(active_max="1"), appended(1), appended(2), drawn(1), drawn(2)]
    state = fold_all([*events, ticked(1, [1, 2]), joined(1, active=2)])
    known = generations_of(state.generations)
    assert [each.standing for each in known.all] == ["active", "waiting"]
