"""What a server answers: frozen objects of what is asked often, typed tables of the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

from conclave_client.errors import NO_CONCLAVE, NotConclaveError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Bin:
    """The scores from ``lower`` up to ``upper``, which is outside unless it is 1."""

    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to one vector.

    Attributes:
        query_id: number of the fresh answer, from 1; None from the published classifier.
        label: one of the schema's classes; None where the votes did not agree far enough.
        stable: whether they did.
        phase: what answered.
        replayed: whether it is a recorded answer given again.
        score: mid-point of the bin; None where unstable, from the classifier, and in a release
            of labels.
        bin: the bin of the score, None as the score is.
        precision: number of bins that were asked for, None in a release of labels.

    """

    query_id: int | None
    label: str | None
    stable: bool
    phase: Literal["ensemble", "classifier", "halted"]
    replayed: bool
    score: float | None = None
    bin: Bin | None = None
    precision: int | None = None

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Answer:
        """Return the answer that a reply holds; members of later servers are passed over.

        Raises:
            NotConclaveError: it holds none.

        """
        try:
            edges = document.get("bin")
            return cls(
                query_id=document["query_id"],
                label=document["label"],
                stable=document["stable"],
                phase=document["phase"],
                replayed=document["replayed"],
                score=document.get("score"),
                bin=None if edges is None else Bin(edges["lower"], edges["upper"]),
                precision=document.get("precision"),
            )
        except (KeyError, TypeError):
            raise NotConclaveError(NO_CONCLAVE) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Means of hypotheses over the rows, in their order.

    Attributes:
        values: from -1, the first class for every row, to 1, the second.
        fractions: shares of the rows that each labels as the second class.
        alpha: the largest error of a value.
        beta: the probability with which alpha may fail.

    """

    values: tuple[float, ...]
    fractions: tuple[float, ...]
    alpha: float
    beta: float

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Statistics:
        """Return the statistics that a reply holds.

        Raises:
            NotConclaveError: it holds none.

        """
        try:
            return cls(
                values=tuple(document["values"]),
                fractions=tuple(document["fractions"]),
                alpha=document["alpha"],
                beta=document["beta"],
            )
        except (KeyError, TypeError):
            raise NotConclaveError(NO_CONCLAVE) from None


class Feature(TypedDict):
    """A feature of the schema: bounds of a numeric one, categories of a categorical one."""

    name: str
    kind: Literal["numeric", "categorical"]
    bounds: NotRequired[list[float]]
    categories: NotRequired[list[str]]


class Schema(TypedDict):
    """The body of ``GET /schema``."""

    release: str
    features: list[Feature]
    label: str
    classes: list[str]
    missing: list[str]
    precision: NotRequired[int]


class ReleaseName(TypedDict):
    """The release by its name."""

    name: str


class Cost(TypedDict):
    """An epsilon and a delta."""

    epsilon: float
    delta: float


class Share(Cost):
    """What one mechanism is charged, or has reserved."""

    mechanism: str


class Composed(Cost):
    """What all releases of the database promise together."""

    releases: int


class Queries(TypedDict):
    """Fresh answers of the ensemble; None where they are unlimited."""

    answered: int
    limit: int | None
    left: int | None


class Unstable(TypedDict):
    """Unstable answers, or units in a release of scores; None where no number of them ends it."""

    count: int
    cutoff: int | None
    left: int | None


class Follows(TypedDict):
    """What follows the last answer, by what runs out."""

    limit: str
    cutoff: str


class Ensemble(TypedDict):
    """How many learners vote."""

    size: int


class Ledger(TypedDict):
    """The newest entry of the ledger."""

    sequence: int
    head: str


class Generation(TypedDict):
    """A generation of rows, in a release that takes them."""

    number: int
    size: int
    ensemble: int
    epsilon: float
    delta: float
    unstable: Unstable
    state: Literal["waiting", "active", "retired"]
    published: bool


class Budget(TypedDict):
    """The body of ``GET /budget``."""

    release: ReleaseName
    unit: Literal["row", "person"]
    phase: Literal["ensemble", "waiting", "classifier", "halted"]
    student: bool
    switching: bool
    closed: Literal["backup", "retired"] | None
    epsilon: float
    delta: float
    composed: Composed | None
    charged: list[Share]
    reserved: list[Share]
    left: Cost
    accounting: Literal["joint", "sum"]
    queries: Queries
    with_scores: bool
    follows: Follows
    unstable: Unstable
    ensemble: Ensemble
    hopeless: bool
    generations: list[Generation]
    erased: int | None
    quorum: int | None
    tick: int | None
    ledger: Ledger
