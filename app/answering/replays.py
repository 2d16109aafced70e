"""Look-up of recorded answers: the newest in memory, all of them in the ledger.

The answers in memory are copies of committed rows, which never change. An answer is added to memory
after its commit, so that readers on another thread see the complete answer or none. An answer that
is not in memory is looked up in the ledger, which also contains the answers that other processes
recorded.

The module also contains the one rule for the source of the answer to a query, which the server and
the scikit-learn estimator (``app/estimator/``) share.
"""

from __future__ import annotations

from enum import StrEnum
from threading import Lock
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from app.errors import IdempotencyConflictError, LedgerCorruptError
from app.privacy.soft_labels.mechanism import ScoreBin
from app.privacy.voting.query_decision import Phase

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from app.ledger.ledger import RecordedAnswer

CONFLICT = (
    "this Idempotency-Key was used with another feature vector or precision; send a new key, "
    "or the same ones"
)
KEY_WITHOUT_ANSWER = "an idempotency key is kept for a vector that has no answer"


class ReplayIndex:
    """An index of committed answers by vector digest, and of vectors by idempotency key.

    A vector's digest is its keyed hash. In a release with scores, the digest is a hash of the
    vector and the number of score bins; in a release that answers each cell only once, an answer's
    digest is a hash of the cell.
    """

    def __init__(
        self,
        by_vector: dict[bytes, RecordedAnswer] | None = None,
        vector_by_key: dict[bytes, bytes] | None = None,
    ) -> None:
        """Start with the given answers and keys, or with none."""
        self._by_vector = {} if by_vector is None else by_vector
        self._vector_by_key = {} if vector_by_key is None else vector_by_key

    def add(self, vector_digest: bytes, recorded: RecordedAnswer) -> None:
        """Add a committed answer to the index."""
        self._by_vector[vector_digest] = recorded

    def add_keys(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        """Add committed pairs of hashes, (idempotency key, vector), to the index."""
        self._vector_by_key.update(pairs)

    def has_any(self, vector_digests: Iterable[bytes]) -> bool:
        """Return whether at least one of the vectors has a recorded answer."""
        return bool(self._by_vector) and not self._by_vector.keys().isdisjoint(vector_digests)

    def find_by_key(
        self, key_digest: bytes | None, posted_digest: bytes, vector_digest: bytes
    ) -> RecordedAnswer | None:
        """Return the answer recorded for an idempotency key, or None for a new key.

        Args:
            key_digest: the keyed hash of the idempotency key; None without a key.
            posted_digest: the keyed hash of the vector as posted, which must equal the one that is
                recorded for the key.
            vector_digest: the keyed hash by which the vector's answer is found.

        Raises:
            IdempotencyConflictError: the key was used with another vector.
            LedgerCorruptError: the key is recorded without an answer.

        """
        known = None if key_digest is None else self._vector_by_key.get(key_digest)
        if known is None:
            return None
        check_same_vector(known, posted_digest)
        recorded = self._by_vector.get(vector_digest)
        if recorded is None:
            raise LedgerCorruptError(KEY_WITHOUT_ANSWER)
        return recorded

    def find_by_vector(self, vector_digest: bytes) -> RecordedAnswer | None:
        """Return the answer recorded for a vector, or None for a new vector."""
        return self._by_vector.get(vector_digest)

    def lacks(self, vector_digest: bytes) -> bool:
        """Return whether the vector has no recorded answer."""
        return vector_digest not in self._by_vector


def check_same_vector(known: bytes, given: bytes) -> None:
    """Raise :class:`IdempotencyConflictError` unless both keyed hashes are of one vector."""
    if known != given:
        raise IdempotencyConflictError(CONFLICT)


RECENT_MAX: Final = 100_000
"""Answers, and likewise keys, that are kept in memory: some 25 MB of each."""

ValueT = TypeVar("ValueT")


class Records(Protocol):
    """The interface to all committed answers and idempotency keys that a ledger contains."""

    def known_answers(self, vector_digests: Sequence[bytes]) -> list[tuple[bytes, RecordedAnswer]]:
        """Return the recorded answers to the given vectors, each with the vector's keyed hash."""

    def known_keys(self, key_digests: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        """Return the recorded pairs of hashes, (idempotency key, vector), of the given keys."""


class _Newest(Generic[ValueT]):
    """The newest values by keyed hash, in an older and a newer part of equal size.

    Once the newer part is full, the older one is forgotten as a whole. To forget the oldest value
    for each new one would take longer than everything else that is done with a value here.
    """

    __slots__ = ("_newer", "_older", "_part_max")

    def __init__(self, count_max: int) -> None:
        self._newer: dict[bytes, ValueT] = {}
        self._older: dict[bytes, ValueT] = {}
        self._part_max = (count_max + 1) // 2

    def get(self, digest: bytes) -> ValueT | None:
        """Return the value of a keyed hash, if it is there."""
        value = self._newer.get(digest)  # first: what leaves this part is in the other by then
        return self._older.get(digest) if value is None else value

    def have_none(self, digests: Collection[bytes | None]) -> bool:
        """Return whether none of some keyed hashes has a value."""
        newer, older = self._newer.keys(), self._older.keys()
        return newer.isdisjoint(digests) and older.isdisjoint(digests)

    def may_forget(self, count: int) -> bool:
        """Return whether values may be forgotten if ``count`` values are added."""
        return bool(self._older) and len(self._newer) + count >= self._part_max

    def add(self, pairs: Mapping[bytes, ValueT] | Iterable[tuple[bytes, ValueT]]) -> None:
        """Add values as the newest."""
        self._newer.update(pairs)
        if len(self._newer) >= self._part_max:
            self._older = self._newer
            self._newer = {}


class RecentReplays:
    """The newest committed answers and idempotency keys of one release, up to a maximum number.

    At least half as many are kept, and at most one batch more. One thread of this process at a time
    changes the object; any thread may read it.
    """

    def __init__(self, *, recent_max: int = RECENT_MAX) -> None:
        """Start empty, which is complete unless the release has given answers before."""
        self._by_vector: _Newest[RecordedAnswer] = _Newest(recent_max)
        self._vector_by_key: _Newest[bytes] = _Newest(recent_max)
        self._changing = Lock()
        self._lacks_answers = False

    def add(self, vector_digest: bytes, recorded: RecordedAnswer) -> None:
        """Add a committed answer to the answers in memory."""
        self.add_all({vector_digest: recorded})

    def add_all(self, answers: Mapping[bytes, RecordedAnswer]) -> None:
        """Add committed answers to those in memory, by the keyed hash of their vector."""
        with self._changing:
            # Said before the oldest answer goes: a reader beside must look it up from then on.
            if self._by_vector.may_forget(len(answers)):
                self._lacks_answers = True
            self._by_vector.add(answers)

    def add_keys(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        """Add committed pairs of hashes, (idempotency key, vector), to those in memory."""
        with self._changing:
            self._vector_by_key.add(pairs)

    def leave_out_answers(self) -> None:
        """Note that answers are missing in memory, so that the ledger must be searched too."""
        self._lacks_answers = True

    @property
    def lacks_answers(self) -> bool:
        """Whether recorded answers are missing in memory, so that the ledger must be searched."""
        return self._lacks_answers

    def know_any(
        self, key_digests: Collection[bytes | None], vector_digests: Collection[bytes]
    ) -> bool:
        """Return whether any of these idempotency keys or vectors has an answer in memory."""
        keys, vectors = self._vector_by_key, self._by_vector
        return not (keys.have_none(key_digests) and vectors.have_none(vector_digests))

    def find_by_key(
        self, key_digest: bytes | None, posted_digest: bytes, vector_digest: bytes
    ) -> RecordedAnswer | None:
        """Return the answer recorded for an idempotency key if both are in memory.

        Raises:
            IdempotencyConflictError: the key was used with another vector.

        """
        known = None if key_digest is None else self._vector_by_key.get(key_digest)
        if known is None:
            return None
        check_same_vector(known, posted_digest)
        return self._by_vector.get(vector_digest)

    def find_by_vector(self, vector_digest: bytes) -> RecordedAnswer | None:
        """Return the answer recorded for a vector if it is in memory."""
        return self._by_vector.get(vector_digest)

    def among(
        self,
        *,
        vector_digests: Collection[bytes],
        key_digests: Collection[bytes],
        records: Records,
    ) -> ReplayIndex:
        """Return all recorded answers to these vectors and idempotency keys.

        Args:
            vector_digests: the keyed hashes of the queried vectors.
            key_digests: the keyed hashes of the queries' idempotency keys.
            records: the ledger or transaction in which hashes are looked up that are not in memory.
                Keys are looked up before vectors, so that the answer of each key that is found is
                also found.

        Raises:
            LedgerUnavailableError: the ledger cannot be read.
            LedgerCorruptError: a recorded answer cannot be decoded.

        """
        keys = self._keys_among(key_digests, records) if key_digests else {}
        if not self._lacks_answers and self._by_vector.have_none(vector_digests):  # as most are
            return ReplayIndex({}, keys)
        answers, other_vectors = _split(self._by_vector, vector_digests)
        if other_vectors and self._lacks_answers:
            newly = dict(records.known_answers(other_vectors))
            if newly:
                self.add_all(newly)
                answers.update(newly)
        return ReplayIndex(answers, keys)

    def _keys_among(self, key_digests: Collection[bytes], records: Records) -> dict[bytes, bytes]:
        keys, other_keys = _split(self._vector_by_key, key_digests)
        if other_keys:
            looked_up = records.known_keys(other_keys)
            self.add_keys(looked_up)
            keys.update(looked_up)
        return keys


def released_bin(answer: RecordedAnswer) -> ScoreBin | None:
    """Return the interval of scores (bin) that an answer carries, if it has one."""
    if answer.precision is None or answer.bin_index is None:
        return None
    return ScoreBin(answer.precision, answer.bin_index, shifted=bool(answer.bin_shifted))


def _split(
    memory: _Newest[ValueT], digests: Collection[bytes]
) -> tuple[dict[bytes, ValueT], list[bytes]]:
    """Return what is in memory of ``digests``, and the rest of them, each once."""
    if memory.have_none(digests):  # as most are, of a new question
        return {}, list(dict.fromkeys(digests))
    found: dict[bytes, ValueT] = {}
    others: dict[bytes, None] = {}
    for digest in digests:
        value = memory.get(digest)
        if value is None:
            others[digest] = None
        else:
            found[digest] = value
    return found, list(others)


RecordedT = TypeVar("RecordedT")


class AnswerSource(StrEnum):
    """The possible sources of a new answer.

    They are the models' votes, the classifier, no source yet (the query must wait), or a refusal.
    """

    ENSEMBLE = "ensemble"
    CLASSIFIER = "classifier"
    WAITING = "waiting"
    REFUSED = "refused"


def answer_source(
    phase: Phase, *, by_key: RecordedT | None, by_vector: RecordedT | None
) -> RecordedT | AnswerSource:
    """Return the source that answers a query in this phase, or the query's recorded answer.

    Args:
        phase: the release's phase.
        by_key: the answer recorded for the query's idempotency key, which is given in every phase.
        by_vector: the answer recorded for the query's vector, which is given until the release
            switches to the classifier.

    """
    if by_key is not None:
        return by_key
    if phase is Phase.CLASSIFIER:
        return AnswerSource.CLASSIFIER
    if by_vector is not None:
        return by_vector
    if phase is Phase.WAITING:
        return AnswerSource.WAITING
    return AnswerSource.REFUSED if phase is Phase.HALTED else AnswerSource.ENSEMBLE
