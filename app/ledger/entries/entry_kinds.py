"""The kinds of ledger entry: past events, frozen and versioned, with public fields only.

A kind's meaning never changes and a kind is never removed: a change of shape
is a new version beside the old one, so that every ledger ever written reads
the same for ever.  Costs and other real numbers are exact decimal or rational
strings.  Private pieces enter only as an HMAC with the release's secret.
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
        release_id: random name of this release, hexadecimal.
        name: the operator's name for it.
        epsilon: total, exact decimal or rational.
        delta: total, exact decimal or rational.
        queries: most fresh answers of the ensemble; None where it has none.
        cutoff: the unstable answer at which the ensemble stops, with scores
            the unit; None where the mechanism has no such count.
        parameters: every other public parameter and the schema, flat, as
            canonical strings; what a restart is compared with.
        fingerprint: keyed fingerprint of the private rows, hexadecimal.
        private_digests: name to keyed digest of the private state written
            in the same transaction.

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
    """The ledger entry for a trained ensemble: its size, and hashes of stored private values."""

    KIND = "EnsembleFitted"

    size: PositiveCount
    private_digests: dict[str, PrivateDigest]


class AnswersReleased(Event, frozen=True):
    """The ledger entry for a range of new answers, one or many.

    Attributes:
        first_query_id: number of the first; the others follow without gaps.
        digests: keyed digest of each vector, shortened.
        labels: class index of each, None for an abstention.
        stable: False for each unstable answer.

    """

    KIND = "AnswersReleased"

    first_query_id: PositiveCount
    digests: Annotated[list[PublicDigest], Meta(min_length=1)]
    labels: list[ClassIndex | None]
    stable: list[bool]


class AnswersReleased2(AnswersReleased, frozen=True):
    """The ledger entry for a range of new answers in a release that accepts further rows.

    Attributes:
        active: number of the set of generations that voted on each of them.

    """

    KIND = "AnswersReleased"
    VERSION = 2

    active: PositiveCount


class ScoresReleased(Event, frozen=True):
    """The ledger entry for a range of new answers with scores, one or many.

    Attributes:
        first_query_id: as in :class:`AnswersReleased`, and so the following three.
        digests: of the vector with its precision.
        labels: the class that the bin stands for where an answer is stable.
        stable: False for each unstable answer.
        precisions: bins of the plain histogram, as each query asked for.
        bins: index of the bin of each stable answer, None for the others.
        shifted: True where that is a bin of the shifted histogram.
        units: how many of the cutoff's units each answer used.

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

    It follows the answers of which at least one was unstable, in their
    transaction; where several were, only the noise after the last one is kept.
    With scores every unit ends an epoch, a stable answer's one too.

    Attributes:
        private_digests: as in :class:`EnsembleFitted`, of one piece, whose name
            :func:`threshold_noise_name` gives.

    """

    KIND = "ThresholdRefreshed"

    private_digests: dict[str, PrivateDigest]


class GenerationAppended(Event, frozen=True):
    """The ledger entry for a further batch of rows with its own budget (a generation).

    Attributes:
        number: of the generation, from 1 without gaps.
        slots: n_g, the number of its records.
        chunks: k_g, the number of its votes.
        epsilon: whole epsilon of each of its records, exact decimal or rational.
        delta: the same of delta.
        shares: epsilon and delta of each mechanism that is charged, by its name.
        cutoff: T_g, the unstable answer with which it retires.
        joins_at: the period of the clock at whose tick it joins, where there is room.
        fingerprint: keyed fingerprint of its rows, hexadecimal; the key is the generation's own.
        private_digests: as in :class:`EnsembleFitted`, of one piece with its slots.

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

    Attributes:
        account: order, price of a hit and parts of delta by which its cutoff is paid for
            (Theorem G), exact rationals by their names.

    """

    KIND = "GenerationAppended"
    VERSION = 2

    account: dict[str, str]


class LabellingDrawn(Event, frozen=True):
    """The ledger entry for the labels of a batch of rows, drawn from it or an earlier batch.

    Attributes:
        number: of the generation.
        of: the generation from whose rows they were drawn; its own number where the draw
            was made of its rows, or where rows keep their labels.
        private_digests: as in :class:`EnsembleFitted`, of the drawn labelling, or of the noisy
            counts that labellings are made of, where there is one.

    """

    KIND = "LabellingDrawn"

    number: PositiveCount
    of: PositiveCount
    private_digests: dict[str, PrivateDigest] = {}


class SlotsChanged(Event, frozen=True):
    """The ledger entry for a scheduled update of stored rows, written even if none changes.

    Nothing in it tells of a change: it has the same names at every tick, but for the tick's
    number, and digests of one length.

    Attributes:
        tick: number of the tick, from 1 without gaps.
        period: whole periods of the setting ``generations.tick`` since 1970 by the clock.
        private_digests: as in :class:`EnsembleFitted`, of one piece for every generation that
            has not retired, whose name :func:`slots_name` gives.

    """

    KIND = "SlotsChanged"

    tick: PositiveCount
    period: PositiveCount
    private_digests: dict[str, PrivateDigest]


class SlotsChanged2(SlotsChanged, frozen=True, kw_only=True):
    """The ledger entry (version 2) for a scheduled update, with the number of erased records.

    Attributes:
        erased: how many records are forgotten with it.

    """

    KIND = "SlotsChanged"
    VERSION = 2

    erased: Annotated[int, Meta(ge=0)]


class GenerationsJoined(Event, frozen=True):
    """The ledger entry by which batches of rows join the vote after a scheduled update.

    Attributes:
        numbers: of the generations, ascending.
        active: number of the set of generations that votes from here on.

    """

    KIND = "GenerationsJoined"

    numbers: Annotated[list[PositiveCount], Meta(min_length=1)]
    active: PositiveCount


class GenerationRetired(Event, frozen=True):
    """The ledger entry by which a batch of rows whose budget is used up leaves the vote.

    Attributes:
        number: of the generation.
        reason: ``cutoff``: it was charged its last unstable answer.
        active: number of the set of generations that votes from here on.

    """

    KIND = "GenerationRetired"

    number: PositiveCount
    reason: Literal["cutoff"]
    active: PositiveCount


class VectorsAsked(Event, frozen=True):
    """The ledger entry for newly queried vectors that got the recorded answer of their cell.

    It follows the answers that its transaction gives afresh, where it gives any.  Each
    vector stands here once, in the order of asking; nothing is charged or counted for it.

    Attributes:
        first_number: number of the first vector; the others follow without gaps.
        digests: keyed digest of each vector as posted, shortened.
        query_ids: number of the answer that each got, which is that of its cell.
        private_digests: as in :class:`EnsembleFitted`, of one piece with the vectors,
            whose name :func:`asked_vectors_name` gives.

    """

    KIND = "VectorsAsked"

    first_number: PositiveCount
    digests: Annotated[list[PublicDigest], Meta(min_length=1)]
    query_ids: list[PositiveCount]
    private_digests: dict[str, PrivateDigest]


class ClassifierPublished(Event, frozen=True):
    """The ledger entry for the published classifier, which is drawn once and then public.

    Attributes:
        classifier: its document, byte for byte the text that
            ``GET /classifier`` gives; a string, so that the numbers in it
            are never printed anew.
        private_digests: as in :class:`EnsembleFitted`.

    """

    KIND = "ClassifierPublished"

    classifier: str
    private_digests: dict[str, PrivateDigest] = {}


class ClassifierPublished2(ClassifierPublished, frozen=True, kw_only=True):
    """The ledger entry (version 2) for the classifier as improved by one batch of rows.

    It follows the labelling of the generation, before the tick that takes both up.

    Attributes:
        number: of the generation from whose rows steps were taken.
        weights: of every public coordinate, in whole steps of 2^-20, one list a coordinate, one
            weight a score; where the next generation starts.

    """

    KIND = "ClassifierPublished"
    VERSION = 2

    number: PositiveCount
    weights: list[list[int]]


class StudentPublished(Event, frozen=True):
    """The ledger entry for a published student, a classifier trained on the released answers.

    Attributes:
        classifier: as in :class:`ClassifierPublished`; of an estimator it says
            which, and not what was fitted.
        private_digests: as in :class:`EnsembleFitted`, of the fitted estimator,
            where there is one.

    """

    KIND = "StudentPublished"

    classifier: str
    private_digests: dict[str, PrivateDigest] = {}


class StatisticsReleased(Event, frozen=True):
    """The ledger entry for the noisy statistics table, which is drawn once and then public.

    Attributes:
        statistics: its document as JSON; a string, so that the numbers in it
            are never printed anew.
        private_digests: as in :class:`EnsembleFitted`, of the public points that
            hypotheses are compared on: queries leave as digests only.

    """

    KIND = "StatisticsReleased"

    statistics: str
    private_digests: dict[str, PrivateDigest]


class ReleaseHalted(Event, frozen=True):
    """The ledger entry that ends the new answers of a release, whatever budget is left.

    Attributes:
        reason: one of a few fixed texts; never anything drawn from rows.

    """

    KIND = "ReleaseHalted"

    reason: str


class ReleaseClosed(Event, frozen=True):
    """The ledger entry that closes a release; only :class:`ReleaseReopened` may follow.

    Attributes:
        reason: ``backup`` ends every copy that is made of a ledger, and
            ``retired`` a ledger that its operator ended.
        transfer: keyed digest of the code that reopens a copy of a retired ledger;
            None where nothing does.

    """

    KIND = "ReleaseClosed"

    reason: Literal["backup", "retired"]
    transfer: PrivateDigest | None = None


class ReleaseMoved(Event, frozen=True):
    """The ledger entry that moves a release to the one database that may continue it.

    Attributes:
        place: that database as an operator is told of it, without user and password.
        transfer: keyed digest of what that database alone holds.

    """

    KIND = "ReleaseMoved"

    place: str
    transfer: PrivateDigest


class ReleaseReopened(Event, frozen=True):
    """The ledger entry by which a closed copy continues in place of the original ledger.

    Attributes:
        reason: ``moved`` where the other ledger was retired and its code was given;
            ``newest`` where the operator gave the newest head that anybody noted.

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
