"""The kinds of ledger entry: past events, frozen and versioned, with public fields only.

The meaning of a kind never changes and a kind is never removed. If fields change, a new version of
the kind is added, so that every ledger ever written can always be read. Costs and other real
numbers are exact decimal or rational strings. In place of a private value an entry contains its
digest, a keyed hash (HMAC).

A stability test decides, with noise, whether the models agree clearly enough for a stable answer.
Some of these tests compare each query's distance with a threshold, to which secret noise is added.
Releases with scores stop after a number of failed tests, the cutoff.

Some releases accept rows in batches, called generations. At a tick (scheduled update) generations
join the vote, and erased records are removed. A period is the time between two ticks on the clock;
periods are counted since 1970.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

PUBLIC_DIGEST_CHARS: Final = 32
"""Length of a query's keyed digest in an entry, in hexadecimal characters."""

PRIVATE_DIGEST_CHARS: Final = 64
"""Length of the digest of a piece of private state, in hexadecimal characters."""

PublicDigest = Annotated[str, Meta(min_length=PUBLIC_DIGEST_CHARS, max_length=PUBLIC_DIGEST_CHARS)]
PrivateDigest = Annotated[
    str, Meta(min_length=PRIVATE_DIGEST_CHARS, max_length=PRIVATE_DIGEST_CHARS)
]
ClassIndex = Annotated[int, Meta(ge=0)]
PositiveCount = Annotated[int, Meta(ge=1)]
BinIndex = Annotated[int, Meta(ge=0)]
BinCount = Annotated[int, Meta(ge=2, le=1000)]
UnitCount = Annotated[int, Meta(ge=0, le=2)]


def threshold_noise_name(unstable_count: int) -> str:
    """Return the storage name of the threshold's noise after a number of unstable answers."""
    return f"threshold-noise-{unstable_count}"


ASKED_PREFIX: Final = "asked-vectors-"


def asked_vectors_name(first_number: int) -> str:
    """Return the storage name of a list of queried vectors, by its first vector's number."""
    return f"{ASKED_PREFIX}{first_number}"


def slots_name(generation: int, tick: int) -> str:
    """Return the storage name of a batch's records after a scheduled update (tick)."""
    return f"slots-{generation}-{tick}"


def labelling_name(generation: int) -> str:
    """Return the storage name of the labelling rule drawn for one batch of rows."""
    return f"labelling-{generation}"


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The common fields of every kind of ledger entry: a name and a version."""

    KIND: ClassVar[str]
    VERSION: ClassVar[int] = 1


class ReleaseOpened(Event, frozen=True):
    """The first ledger entry: the permanent public parameters and the promise of a release.

    Attributes:
        release_id: the random id of the release, hexadecimal.
        name: the operator's name for the release.
        epsilon: the total epsilon, an exact decimal or rational.
        delta: the total delta, an exact decimal or rational.
        queries: the largest number of new answers by the models' vote; None if there is no limit or
            no vote.
        cutoff: the number of unstable answers (with scores, of failed stability tests) after which
            the models stop; None if the mechanism has no cutoff.
        parameters: every other public parameter and the schema, as canonical strings by name; at a
            restart the settings are compared with them.
        fingerprint: a keyed hash of all private rows, hexadecimal.
        private_digests: the keyed digest of each private value that is written in the same
            transaction, by its name.

    """

    KIND = "ReleaseOpened"

    release_id: str
    name: str
    epsilon: str
    delta: str
    queries: PositiveCount | None
    cutoff: PositiveCount | None
    parameters: dict[str, str]
    fingerprint: str
    private_digests: dict[str, PrivateDigest] = {}


class ShareReserved(Event, frozen=True):
    """The ledger entry for a share of epsilon that is reserved for a mechanism to run later."""

    KIND = "ShareReserved"

    mechanism: str
    epsilon: str
    delta: str


class ShareCharged(Event, frozen=True):
    """The ledger entry for a share of epsilon that is spent, before private rows are read."""

    KIND = "ShareCharged"

    mechanism: str
    epsilon: str
    delta: str


class EnsembleFitted(Event, frozen=True):
    """The ledger entry for the models, once they are trained.

    Attributes:
        size: the number of models.
        private_digests: the keyed digest of each private value that is written in the same
            transaction (for example the models, and noise), by its name.

    """

    KIND = "EnsembleFitted"

    size: PositiveCount
    private_digests: dict[str, PrivateDigest]


class AnswersReleased(Event, frozen=True):
    """The ledger entry for a range of new answers, one or many.

    Attributes:
        first_query_id: the number of the first answer; the others follow without gaps.
        digests: the keyed digest of each vector, shortened.
        labels: the class index of each answer's label, None for no label.
        stable: whether each answer is stable.

    """

    KIND = "AnswersReleased"

    first_query_id: PositiveCount
    digests: Annotated[list[PublicDigest], Meta(min_length=1)]
    labels: list[ClassIndex | None]
    stable: list[bool]


class AnswersReleased2(AnswersReleased, frozen=True):
    """The ledger entry for a range of new answers in a release that accepts further rows.

    Attributes:
        active: a number that identifies the set of generations (batches of rows) that voted on the
            queries.

    """

    KIND = "AnswersReleased"
    VERSION = 2

    active: PositiveCount


class ScoresReleased(Event, frozen=True):
    """The ledger entry for a range of new answers with scores, one or many.

    A score is recorded as a bin of one of two histograms of the models' scores; the edges of the
    shifted histogram lie half a bin lower. Each failed stability test of an answer uses one unit of
    the cutoff.

    Attributes:
        first_query_id: the number of the first answer; the others follow without gaps.
        digests: the keyed digest of each vector with its precision, shortened.
        labels: the class index that follows from the bin of each stable answer; for an unstable
            answer None, or a random label.
        stable: whether each answer is stable.
        precisions: the number of bins of the histogram for each query, as the query asked for.
        bins: the index of the bin of each stable answer, None for unstable answers.
        shifted: whether the bin of each answer belongs to the shifted histogram.
        units: the number of units of the cutoff that each answer used.

    """

    KIND = "ScoresReleased"

    first_query_id: PositiveCount
    digests: Annotated[list[PublicDigest], Meta(min_length=1)]
    labels: list[ClassIndex | None]
    stable: list[bool]
    precisions: list[BinCount]
    bins: list[BinIndex | None]
    shifted: list[bool]
    units: list[UnitCount]


class ThresholdRefreshed(Event, frozen=True):
    """The ledger entry for new threshold noise, drawn after an unstable answer.

    It follows the entry for answers of which at least one was unstable, in the same transaction. If
    several answers were unstable, only the noise after the last one is stored. With scores the
    noise is drawn again after every failed stability test, even if the second test of the same
    answer succeeds.

    Attributes:
        private_digests: the keyed digest of the new noise, by the name that
            :func:`threshold_noise_name` gives.

    """

    KIND = "ThresholdRefreshed"

    private_digests: dict[str, PrivateDigest]


class GenerationAppended(Event, frozen=True):
    """The ledger entry for a further batch of rows with its own budget (a generation).

    Attributes:
        number: the number of the generation, from 1 without gaps.
        slots: n_g, the number of its records or persons.
        chunks: k_g, the number of its models, each with one vote.
        epsilon: the whole epsilon for each of its records, an exact decimal or rational.
        delta: the whole delta for each of its records, an exact decimal or rational.
        shares: the epsilon and delta of each mechanism that is charged, by the mechanism's name.
        cutoff: T_g, the number of unstable answers after which the generation stops voting.
        joins_at: the number of the period at whose tick (scheduled update) the generation joins the
            vote, if the set of voting generations is not full.
        fingerprint: a keyed hash of all its rows, hexadecimal; the key is a secret of this
            generation.
        private_digests: the keyed digest of its stored rows, by the stored name.

    """

    KIND = "GenerationAppended"

    number: PositiveCount
    slots: PositiveCount
    chunks: PositiveCount
    epsilon: str
    delta: str
    shares: dict[str, Annotated[list[str], Meta(min_length=2, max_length=2)]]
    cutoff: PositiveCount
    joins_at: PositiveCount
    fingerprint: str
    private_digests: dict[str, PrivateDigest]


class GenerationAppended2(GenerationAppended, frozen=True, kw_only=True):
    """The ledger entry (version 2) for a batch of rows whose budget differs from the default.

    All batches use one table with the probabilities of unstable answers. The default budget is the
    one for which this table was computed.

    Attributes:
        account: the numbers from which the generation's cutoff is computed, as exact rationals by
            name; ``app/privacy/generations/accounts_proof.md`` (Theorem G) explains them.

    """

    KIND = "GenerationAppended"
    VERSION = 2

    account: dict[str, str]


class LabellingDrawn(Event, frozen=True):
    """The ledger entry by which a generation's rows get the labels on which models are trained.

    A labelling is the rule that gives the rows these labels.

    Attributes:
        number: the number of the generation whose rows get the labels.
        of: the number of the generation from whose rows the labelling was drawn; equal to
            ``number`` if it was drawn from the same generation, or if rows keep their labels.
        private_digests: the keyed digest of what was drawn, by its stored name: the labelling, or
            the generation's noisy counts of labels, whose sums over all generations give the
            labels; empty if nothing was drawn.

    """

    KIND = "LabellingDrawn"

    number: PositiveCount
    of: PositiveCount
    private_digests: dict[str, PrivateDigest] = {}


class SlotsChanged(Event, frozen=True):
    """The ledger entry for a scheduled update of stored rows, written even if none changes.

    The entry does not reveal whether a row changed: at every tick (scheduled update) it has one
    keyed digest of the same length for each batch of stored rows.

    Attributes:
        tick: the number of the tick, from 1 without gaps.
        period: the number of whole periods since 1970; the setting ``generations.tick`` is the
            length of a period.
        private_digests: the keyed digest of the stored rows of every generation that votes or waits
            to vote, by the name that :func:`slots_name` gives.

    """

    KIND = "SlotsChanged"

    tick: PositiveCount
    period: PositiveCount
    private_digests: dict[str, PrivateDigest]


class SlotsChanged2(SlotsChanged, frozen=True, kw_only=True):
    """The ledger entry (version 2) for a scheduled update, with the number of erased records.

    Attributes:
        erased: the number of records that are erased at this update.

    """

    KIND = "SlotsChanged"
    VERSION = 2

    erased: Annotated[int, Meta(ge=0)]


class GenerationsJoined(Event, frozen=True):
    """The ledger entry by which batches of rows join the vote after a scheduled update.

    Attributes:
        numbers: the numbers of the generations that join, ascending.
        active: a number that identifies the set of generations that votes from now on.

    """

    KIND = "GenerationsJoined"

    numbers: Annotated[list[PositiveCount], Meta(min_length=1)]
    active: PositiveCount


class GenerationRetired(Event, frozen=True):
    """The ledger entry by which a batch of rows whose budget is used up leaves the vote.

    Attributes:
        number: the number of the generation that leaves the vote.
        reason: ``cutoff``, since the generation was charged its last unstable answer.
        active: a number that identifies the set of generations that votes from now on.

    """

    KIND = "GenerationRetired"

    number: PositiveCount
    reason: Literal["cutoff"]
    active: PositiveCount


class VectorsAsked(Event, frozen=True):
    """The ledger entry for newly queried vectors that got the recorded answer of their cell.

    It follows the entry for new answers in the same transaction, if there is one. Each vector is
    recorded once, in the order of the queries; nothing is charged or counted for it.

    Attributes:
        first_number: the number of the first vector; the others follow without gaps.
        digests: the keyed digest of each vector as the client posted it, shortened.
        query_ids: the number of the answer that each vector got, which is the answer of its cell.
        private_digests: the keyed digest of the stored vectors, by the name that
            :func:`asked_vectors_name` gives.

    """

    KIND = "VectorsAsked"

    first_number: PositiveCount
    digests: Annotated[list[PublicDigest], Meta(min_length=1)]
    query_ids: list[PositiveCount]
    private_digests: dict[str, PrivateDigest]


class ClassifierPublished(Event, frozen=True):
    """The ledger entry for the published classifier, which is drawn once and then public.

    Attributes:
        classifier: the classifier's document, byte for byte the text that ``GET /classifier``
            gives; it is a string, so that its numbers are never printed in another way.
        private_digests: the keyed digest of each private value that is written in the same
            transaction, by its name.

    """

    KIND = "ClassifierPublished"

    classifier: str
    private_digests: dict[str, PrivateDigest] = {}


class ClassifierPublished2(ClassifierPublished, frozen=True, kw_only=True):
    """The ledger entry (version 2) for the classifier as improved by one batch of rows.

    It follows the entry for the labels of this generation (batch of rows), before the tick
    (scheduled update) at which the generation joins the vote.

    Attributes:
        number: the number of the generation on whose rows the classifier was improved.
        weights: the classifier's weights in multiples of 2^-20; the training on the next generation
            starts with them. The classifier chooses a label by linear scores, weighted sums of
            numbers that it computes from the features. There is one list for each of these numbers,
            with its weight in each score.

    """

    KIND = "ClassifierPublished"
    VERSION = 2

    number: PositiveCount
    weights: list[list[int]]


class StudentPublished(Event, frozen=True):
    """The ledger entry for a published student, a classifier trained on the released answers.

    Attributes:
        classifier: the student's document as a string; if the student is a scikit-learn
            estimator, it contains the estimator's name and parameters, and not the fitted model.
        private_digests: the keyed digest of the fitted estimator, by its stored name; empty if
            there is none.

    """

    KIND = "StudentPublished"

    classifier: str
    private_digests: dict[str, PrivateDigest] = {}


class StatisticsReleased(Event, frozen=True):
    """The ledger entry for the noisy statistics table, which is drawn once and then public.

    A hypothesis is here a rule that gives each row one of two outcomes. The table has, for each
    hypothesis of a public class, the noisy number of rows to which it gives the second outcome.

    Attributes:
        statistics: the table's document as JSON; it is a string, so that its numbers are never
            printed in another way.
        private_digests: the keyed digest of the public points (feature vectors), by their storage
            name. The points are stored privately, because they may be clients' queries.

    """

    KIND = "StatisticsReleased"

    statistics: str
    private_digests: dict[str, PrivateDigest]


class ReleaseHalted(Event, frozen=True):
    """The ledger entry that ends the new answers of a release, whatever budget is left.

    Attributes:
        reason: one of a few fixed texts, which never depends on private rows.

    """

    KIND = "ReleaseHalted"

    reason: str


class ReleaseClosed(Event, frozen=True):
    """The ledger entry that closes a release; only :class:`ReleaseReopened` may follow.

    Attributes:
        reason: ``backup`` in every copy of a ledger, and ``retired`` in a ledger that its operator
            ended.
        transfer: the keyed digest of the code with which a copy of a retired ledger can continue;
            None if no copy may continue.

    """

    KIND = "ReleaseClosed"

    reason: Literal["backup", "retired"]
    transfer: PrivateDigest | None = None


class ReleaseMoved(Event, frozen=True):
    """The ledger entry that moves a release to a new database, which alone may continue it.

    Attributes:
        place: the location of the new database as shown to operators, without user and password.
        transfer: the keyed digest of a secret that only the new database has.

    """

    KIND = "ReleaseMoved"

    place: str
    transfer: PrivateDigest


class ReleaseReopened(Event, frozen=True):
    """The ledger entry by which a closed copy continues in place of the original ledger.

    Attributes:
        reason: ``moved`` if the operator gave the code that was printed when the original was
            retired; ``newest`` if the operator gave the hash of the newest entry that was ever
            noted.

    """

    KIND = "ReleaseReopened"

    reason: Literal["moved", "newest"]


LedgerEvent: TypeAlias = (
    ReleaseOpened
    | ShareReserved
    | ShareCharged
    | EnsembleFitted
    | AnswersReleased
    | ScoresReleased
    | ThresholdRefreshed
    | VectorsAsked
    | ClassifierPublished
    | ClassifierPublished2
    | StudentPublished
    | ReleaseHalted
    | StatisticsReleased
    | ReleaseClosed
    | ReleaseReopened
    | ReleaseMoved
    | GenerationAppended
    | GenerationAppended2
    | LabellingDrawn
    | SlotsChanged
    | SlotsChanged2
    | GenerationsJoined
    | GenerationRetired
)

EVENT_TYPES: Final[tuple[type[LedgerEvent], ...]] = (
    ReleaseOpened,
    ShareReserved,
    ShareCharged,
    EnsembleFitted,
    AnswersReleased,
    ClassifierPublished,
    ReleaseHalted,
    ThresholdRefreshed,
    ScoresReleased,
    StudentPublished,
    StatisticsReleased,
    ReleaseClosed,
    ReleaseReopened,
    ReleaseMoved,
    VectorsAsked,
    AnswersReleased2,
    GenerationAppended,
    LabellingDrawn,
    SlotsChanged,
    GenerationsJoined,
    GenerationRetired,
    ClassifierPublished2,
    SlotsChanged2,
    GenerationAppended2,
)
"""Every kind and version that was ever written, newest last."""
