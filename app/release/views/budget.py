"""The body of ``GET /budget``: public figures that follow from ledger entries.

A stability test decides with noise whether an answer is stable. An answer with a score has up to
two such tests, and each failed test counts towards the cutoff.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, Field

from app.ledger.entries.entry_kinds import StudentPublished
from app.ledger.entries.generations import cohort_of, counts_erasures, quorum_of
from app.privacy.budget.composition import Mechanism
from app.privacy.voting.query_decision import Phase, Sequel
from app.release.composed_budget import composed_view
from app.release.terms.hopeless_release import is_hopeless

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.ledger.entries.entry_kinds import ShareCharged, ShareReserved
    from app.ledger.entries.fold import LedgerState
    from app.ledger.entries.generations import Generation
    from app.release.release import Release
    from app.settings.settings import Settings


Count = Annotated[int, Field(ge=0)]
Limit = Annotated[int | None, Field(ge=0, description="null where unlimited")]


class Shown(BaseModel, strict=True, frozen=True, extra="forbid"):
    """The base class of the parts of the reply to ``GET /budget``."""


class ReleaseName(Shown):
    """The name of the release."""

    name: str


class Cost(Shown):
    """A privacy cost or budget: an epsilon and a delta."""

    epsilon: float
    delta: float


class Share(Shown):
    """The share of the budget of one mechanism."""

    mechanism: Mechanism
    epsilon: float
    delta: float


class Composed(Cost):
    """The joint privacy promise of all releases in the database."""

    releases: Annotated[int, Field(ge=1)]


class Follows(Shown):
    """What follows the models' last answer: after the limit of answers, and after the cutoff."""

    limit: Sequel
    cutoff: Sequel


class Queries(Shown):
    """The number of new answers by the models' votes, stable and unstable."""

    answered: Count
    limit: Limit
    left: Limit

    @classmethod
    def of(cls, answered: int, limit: int | None) -> Queries:
        """Return the number of answers so far, and the number left before the limit."""
        return cls(answered=answered, limit=limit, left=_left_of(limit, answered))


class Unstable(Shown):
    """The number of unstable answers (with scores, of failed stability tests)."""

    count: Count
    cutoff: Limit
    left: Limit

    @classmethod
    def of(cls, count: int, cutoff: int | None) -> Unstable:
        """Return the number of unstable answers so far, and how many are left up to the cutoff."""
        return cls(count=count, cutoff=cutoff, left=_left_of(cutoff, count))


class Ensemble(Shown):
    """The number of models that vote."""

    size: Count


class GenerationShown(Shown):
    """A batch of rows (generation): its remaining budget, and whether it votes."""

    number: Annotated[int, Field(ge=1)]
    size: Annotated[int, Field(ge=1, description="records, each a slot")]
    ensemble: Annotated[int, Field(ge=1, description="votes")]
    epsilon: float
    delta: float
    unstable: Annotated[Unstable, Field(description="of the answers on which it voted")]
    state: Literal["waiting", "active", "retired"]
    joins_at: Annotated[
        int | None,
        Field(
            ge=0,
            description="seconds since 1970 of its tick; null unless it waits, or while others "
            "of its cohort are still to be appended",
        ),
    ]
    published: Annotated[
        bool, Field(description="whether its part in the published classifier is public")
    ]

    @classmethod
    def of(cls, generation: Generation, joins: int | None) -> GenerationShown:
        """Return the public view of a batch of rows, with the time at which it joins the vote."""
        waits = generation.standing == "waiting"
        return cls(
            number=generation.number,
            size=generation.slots,
            ensemble=generation.chunks,
            epsilon=float(Fraction(generation.epsilon)),
            delta=float(Fraction(generation.delta)),
            unstable=Unstable.of(generation.unstable, generation.cutoff),
            state=generation.standing,
            joins_at=joins if waits else None,
            published=generation.is_published,
        )


class Ledger(Shown):
    """The number and hash of the ledger's newest entry."""

    sequence: Count
    head: str


class Budget(
    Shown,
    json_schema_extra={
        "examples": [
            {
                "release": {"name": "adult-income"},
                "unit": "row",
                "phase": "ensemble",
                "student": False,
                "switching": False,
                "closed": None,
                "epsilon": 1.0,
                "delta": 1e-06,
                "composed": None,
                "charged": [
                    {"mechanism": "relabel", "epsilon": 0.1, "delta": 0.0},
                    {"mechanism": "answers", "epsilon": 0.6, "delta": 1e-06},
                ],
                "reserved": [{"mechanism": "classifier", "epsilon": 0.3, "delta": 0.0}],
                "left": {"epsilon": 0.0, "delta": 0.0},
                "accounting": "sum",
                "queries": {"answered": 17, "limit": 1000, "left": 983},
                "with_scores": False,
                "follows": {"limit": "classifier", "cutoff": "halt"},
                "unstable": {"count": 1, "cutoff": 5, "left": 4},
                "ensemble": {"size": 800},
                "hopeless": False,
                "generations": [],
                "erased": None,
                "quorum": None,
                "tick": None,
                "ledger": {"sequence": 12, "head": "9f2c" * 16},
            }
        ]
    },
):
    """The privacy promise of a release, with its spent part and its remainder."""

    release: ReleaseName
    unit: Annotated[
        Literal["row", "person"],
        Field(description="what neighbours replace: a row, or all rows of a person"),
    ]
    phase: Phase
    student: Annotated[
        bool, Field(description="the classifier of this phase is a student of the answers")
    ]
    switching: Annotated[bool, Field(description="the classifier of this phase is being made")]
    closed: Annotated[
        Literal["backup", "retired"] | None,
        Field(description="why this copy of the ledger goes on no more; null where it does"),
    ]
    epsilon: float
    delta: float
    composed: Annotated[Composed | None, Field(description="null for a release that is alone")]
    charged: Annotated[list[Share], Field(description="committed, by mechanism")]
    reserved: Annotated[list[Share], Field(description="set aside for what is not drawn yet")]
    left: Annotated[Cost, Field(description="neither charged nor set aside")]
    accounting: Annotated[
        Literal["joint", "sum"],
        Field(description="relabelling, answers and classifier as one account, or added up"),
    ]
    queries: Queries
    with_scores: Annotated[
        bool, Field(description="answers have scores, and the cutoff counts units")
    ]
    follows: Follows
    unstable: Unstable
    ensemble: Ensemble
    hopeless: Annotated[
        bool, Field(description="it was opened though few of its answers will be stable")
    ]
    generations: Annotated[
        list[GenerationShown], Field(description="of a release that takes them, by their numbers")
    ]
    erased: Annotated[
        int | None,
        Field(ge=0, description="records forgotten so far; null unless erasure.count is public"),
    ]
    quorum: Annotated[
        int | None, Field(ge=1, description="least generations that vote; null for a fixed release")
    ]
    tick: Annotated[
        int | None, Field(ge=1, description="seconds from tick to tick; null for a fixed release")
    ]
    ledger: Ledger


def budget_view(release: Release, at: LedgerState | None = None) -> Budget:
    """Return the body of ``GET /budget``; epsilon and delta are JSON numbers.

    Args:
        release: the open release.
        at: a state of its ledger; None for the newest state that this server knows.

    """
    state = at or release.state  # one moment: the writer may commit meanwhile
    phase, mechanism = release.phase_at(state), release.mechanism
    is_living = state.generations is not None
    composed = composed_view(release.ledger.openings)
    return Budget(
        release=ReleaseName(name=release.name),
        unit=release.configuration.settings.data.unit,
        phase=phase,
        student=_is_student(release, state),
        switching=phase is Phase.CLASSIFIER and state.classifier is None,
        closed=None if state.closed is None else state.closed.reason,
        epsilon=float(release.configuration.epsilon),
        delta=float(release.configuration.delta),
        composed=None if composed is None else Composed.model_validate(composed),
        charged=_charged(state),
        reserved=_shares(state.reserved),
        left=_left(release, state),
        accounting=release.configuration.settings.accounting,
        queries=Queries.of(state.answered, None if is_living else mechanism.answer_limit),
        with_scores=mechanism.with_scores,
        follows=Follows(limit=mechanism.after, cutoff=mechanism.on_cutoff),
        unstable=Unstable.of(state.unstable, None if is_living else mechanism.cutoff),
        ensemble=Ensemble(size=state.votes),
        hopeless=is_hopeless(state.release),
        generations=generations_view(release.configuration.settings, state),
        erased=_erased(state),
        quorum=quorum_of(state.release) if is_living and state.release else None,
        tick=_tick_seconds(release.configuration.settings) if is_living else None,
        ledger=Ledger(sequence=state.head.sequence, head=state.head.hash),
    )


def generations_view(settings: Settings, state: LedgerState) -> list[GenerationShown]:
    """Return the public view of every batch of rows; empty if the release accepts none."""
    known, opened = state.generations, state.release
    if known is None or opened is None:
        return []
    periods = [known.join_period(each, cohort_of(opened)) for each in known.all]
    seconds = [None if each is None else each * _tick_seconds(settings) for each in periods]
    return list(map(GenerationShown.of, known.all, seconds))


def _tick_seconds(settings: Settings) -> int:
    return 1 if settings.generations is None else settings.generations.tick_seconds


def _erased(state: LedgerState) -> int | None:
    """Return how many records were forgotten, where ticks say so; None where that is secret."""
    known, opened = state.generations, state.release
    return known.erased if known and opened and counts_erasures(opened) else None


def _charged(state: LedgerState) -> list[Share]:
    """Return what is charged: of generations, the most that a record of any is charged."""
    if state.generations is None:
        return _shares(state.charged)
    return [
        Share(mechanism=Mechanism(name), epsilon=float(epsilon), delta=float(delta))
        for name, (epsilon, delta) in state.generations.dearest_shares().items()
    ]


def _is_student(release: Release, state: LedgerState) -> bool:
    """Tell whether a student answers, or will once it is trained."""
    if state.classifier is not None:
        follows = isinstance(state.classifier, StudentPublished)
        return follows and release.phase_at(state) is Phase.CLASSIFIER
    return release.sequel_at(state) is Sequel.STUDENT


def _left_of(limit: int | None, count: int) -> int | None:
    return None if limit is None else max(0, limit - count)


def _left(release: Release, state: LedgerState) -> Cost:
    """Return what is neither charged nor reserved, computed exactly."""
    epsilon, delta = release.configuration.epsilon, release.configuration.delta
    if state.generations is not None:
        spent = state.generations.dearest()
        return Cost(epsilon=float(epsilon - spent[0]), delta=float(delta - spent[1]))
    for shares in (state.charged, state.reserved):
        for share in shares:
            epsilon, delta = epsilon - Fraction(share.epsilon), delta - Fraction(share.delta)
    return Cost(epsilon=float(epsilon), delta=float(delta))


def _shares(shares: Iterable[ShareCharged | ShareReserved]) -> list[Share]:
    return [
        Share(
            mechanism=Mechanism(share.mechanism),
            epsilon=float(Fraction(share.epsilon)),
            delta=float(Fraction(share.delta)),
        )
        for share in shares
    ]
