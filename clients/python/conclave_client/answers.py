"""Replies of a server as Python objects: answers, statistics, schema and budget.

In a release with scores, an answer is one of the equal intervals (bins) into which the scores are
divided, and a query takes up to two stability tests (noisy tests of whether enough models agree).

A hypothesis is a rule that gives each row one of two labels. Its mean outcome over the rows counts
the first label as -1 and the second as 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

from conclave_client.errors import NO_CONCLAVE, NotConclaveError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Bin:
    """An interval of scores from ``lower`` up to ``upper``, which is excluded unless it is 1."""

    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A server's answer to one feature vector.

    Attributes:
        query_id: the number of the answer among the release's answers by vote, counted from 1; None
            for an answer of the published classifier.
        label: a label of the schema; None if the models' votes did not agree clearly enough.
        stable: whether the votes agreed clearly enough; True for an answer of the classifier.
        phase: the release's phase in which the answer was given.
        replayed: whether this is a recorded answer that is given again.
        score: the mid-point of the score's bin; None for an unstable answer, for an answer of the
            classifier, and in a release that answers labels.
        bin: the interval that contains the score; None if the score is None.
        precision: the number of score bins that the query asked for; None in a release that answers
            labels.

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
        """Return the answer in a server's reply; unknown members are ignored.

        Raises:
            NotConclaveError: the reply contains no answer.

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
    """Mean outcomes of hypotheses over the private rows, in the order of the hypotheses.

    Attributes:
        values: the mean outcome of each hypothesis, from -1 (the first label for every row) to 1
            (the second label for every row).
        fractions: the fraction of the rows to which each hypothesis gives the second label.
        alpha: the largest error of the values, except with probability beta.
        beta: the probability that the error of some value exceeds alpha.

    """

    values: tuple[float, ...]
    fractions: tuple[float, ...]
    alpha: float
    beta: float

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Statistics:
        """Return the statistics in a server's reply.

        Raises:
            NotConclaveError: the reply contains no statistics.

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
    """A feature of the schema: bounds of a numeric feature, categories of a categorical one."""

    name: str
    kind: Literal["numeric", "categorical"]
    bounds: NotRequired[list[float]]
    categories: NotRequired[list[str]]


class Schema(TypedDict):
    """The public schema: the body of ``GET /schema``."""

    release: str
    features: list[Feature]
    label: str
    classes: list[str]
    missing: list[str]
    precision: NotRequired[int]


class ReleaseName(TypedDict):
    """The name of a release."""

    name: str


class Cost(TypedDict):
    """A privacy cost or budget: an epsilon and a delta."""

    epsilon: float
    delta: float


class Share(Cost):
    """The epsilon and delta that are charged to one mechanism or reserved for it."""

    mechanism: str


class Composed(Cost):
    """The joint privacy promise of all releases whose entries are in one database."""

    releases: int


class Queries(TypedDict):
    """The number of new answers by vote, and its limit; None if there is no limit."""

    answered: int
    limit: int | None
    left: int | None


class Unstable(TypedDict):
    """The number of unstable answers; with scores, of failed stability tests."""

    count: int
    cutoff: int | None
    left: int | None


class Follows(TypedDict):
    """What follows when the models reach the limit of answers, or the limit of unstable answers.

    A classifier answers, a student (a model trained on answers) answers, or the release halts.
    """

    limit: str
    cutoff: str


class Ensemble(TypedDict):
    """The number of models that vote."""

    size: int


class Ledger(TypedDict):
    """The number and hash of the ledger's newest entry."""

    sequence: int
    head: str


class Generation(TypedDict):
    """A batch of rows (generation), in a release to which rows are added."""

    number: int
    size: int
    ensemble: int
    epsilon: float
    delta: float
    unstable: Unstable
    state: Literal["waiting", "active", "retired"]
    published: bool


class Budget(TypedDict):
    """A release's privacy budget: the body of ``GET /budget``."""

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
