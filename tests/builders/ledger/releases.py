"""A small release in a ledger, for every test that needs one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ledger.entries.entry_kinds import (
    ClassifierPublished,
    EnsembleFitted,
    LedgerEvent,
    ReleaseOpened,
    ShareCharged,
    ShareReserved,
    ThresholdRefreshed,
    threshold_noise_name,
)
from app.ledger.ledger import RELEASE_SECRET, AnswerRow, Ledger, RecordedAnswer, open_ledger
from app.noise.scripted import ScriptedNoise, seeded_words
from tests.builders.ledger.databases import DATABASES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SECRET = bytes(range(32))
DOCUMENT = '{"cut":0.47,"label":">50K é"}'


def url_of(path: Path) -> str:
    """Return the address of a ledger in a file, or in what stands for it in this test."""
    return DATABASES.url_of(path)


def create(path: Path, name: str | None = None) -> Ledger:
    """Open a ledger in a file, created where it is missing, with the same secret each time."""
    noise = ScriptedNoise(seeded_words(1))
    return open_ledger(url_of(path), create=True, name=name, noise=noise)


def opened(
    *,
    name: str = "test",
    release_id: str = "0f" * 16,
    queries: int | None = 1000,
    cutoff: int | None = 3,
    private_digests: dict[str, str] | None = None,
    parameters: Mapping[str, str] | None = None,
) -> ReleaseOpened:
    """Return the first event of a release of epsilon 1 and delta 10^-6."""
    return ReleaseOpened(
        release_id=release_id,
        name=name,
        epsilon="1",
        delta="1/1000000",
        queries=queries,
        cutoff=cutoff,
        parameters={
            "privacy.epsilon": "1.0",
            "hypotheses.class": "trees",
            **(parameters or {}),
        },
        fingerprint="ab" * 32,
        private_digests=private_digests or {},
    )


def shares() -> list[LedgerEvent]:
    """Return the events that follow: two shares spent, one set aside."""
    return [
        ShareCharged(mechanism="relabel", epsilon="1/10", delta="0"),
        ShareCharged(mechanism="answers", epsilon="3/5", delta="1/1000000"),
        ShareReserved(mechanism="classifier", epsilon="3/10", delta="0"),
    ]


def open_release(
    ledger: Ledger,
    *,
    name: str = "test",
    release_id: str = "0f" * 16,
    queries: int | None = 1000,
    cutoff: int | None = 3,
    further: Mapping[str, bytes] | None = None,
    parameters: Mapping[str, str] | None = None,
) -> None:
    """Open a release in an empty ledger, up to its fitted ensemble: entries 1 to 5."""
    drawn = {"permutation": b"\x01\x02", "ensemble": b"trees" * 100, **(further or {})}
    with ledger.transaction() as transaction:
        digest = transaction.put_private(RELEASE_SECRET, SECRET)
        digests = {RELEASE_SECRET: digest}
        transaction.append(
            opened(
                name=name,
                release_id=release_id,
                queries=queries,
                cutoff=cutoff,
                private_digests=digests,
                parameters=parameters,
            )
        )
        for event in shares():
            transaction.append(event)
    with ledger.transaction() as transaction:
        digests = {name: transaction.put_private(name, body) for name, body in drawn.items()}
        transaction.append(EnsembleFitted(size=8, private_digests=digests))


def answer(
    ledger: Ledger, query_id: int, *, label: int | None = 0, stable: bool = True
) -> AnswerRow:
    """Return an answer whose vector is made of its number."""
    vector = b"vector %d" % query_id
    return AnswerRow(
        ledger.digests.of_vector(vector), vector, RecordedAnswer(query_id, label, stable)
    )


def scored(
    ledger: Ledger,
    query_id: int,
    *,
    precision: int = 10,
    released: int | None = 3,
    shifted: bool = False,
    units: int = 0,
) -> AnswerRow:
    """Return an answer with a score in the lower half, or one that is unstable."""
    vector = b"vector %d" % query_id
    given = RecordedAnswer(
        query_id,
        None if released is None else 0,
        released is not None,
        precision,
        released,
        shifted,
        units,
    )
    return AnswerRow(ledger.digests.of_question(vector, precision), vector, given)


def scores_of_every_kind(path: Path) -> Ledger:
    """Create a ledger with scores of both histograms, an unstable one, and the cutoff's last."""
    ledger = create(path)
    open_release(ledger, cutoff=4, parameters={"answers.output": '"score"'})
    record(ledger, [scored(ledger, 1), scored(ledger, 2, shifted=True, units=1)])
    record(ledger, [scored(ledger, 3, released=None, units=2, precision=1000)])
    record(ledger, [scored(ledger, 4), scored(ledger, 5, released=None, units=1)])
    return ledger


def record(ledger: Ledger, rows: Sequence[AnswerRow]) -> None:
    """Commit one entry of answers."""
    with ledger.transaction() as transaction:
        transaction.record_answers(rows)


def answer_many(ledger: Ledger, *, batches: int, batch_size: int) -> None:
    """Commit stable answers after those that are there."""
    for _ in range(batches):
        first = ledger.read_state().answered + 1
        record(ledger, [answer(ledger, first + index) for index in range(batch_size)])


def publish(ledger: Ledger, document: str = DOCUMENT) -> None:
    """Charge and publish a classifier, in two transactions."""
    with ledger.transaction() as transaction:
        transaction.append(ShareCharged(mechanism="classifier", epsilon="3/10", delta="0"))
    with ledger.transaction() as transaction:
        digest = transaction.put_private("classifier-draw", b"word")
        transaction.append(
            ClassifierPublished(classifier=document, private_digests={"classifier-draw": digest})
        )


def middle_of_life(path: Path) -> Ledger:
    """Create a ledger with answers of every kind and one further key."""
    ledger = create(path)
    open_release(ledger)
    answer_many(ledger, batches=2, batch_size=3)
    with ledger.transaction() as transaction:
        row = answer(ledger, 7, label=None, stable=False)
        transaction.record_answers([row])
        transaction.record_key(ledger.digests.of_key("key"), row.vector_digest)
    record(ledger, [answer(ledger, 8, label=1), answer(ledger, 9, label=1, stable=False)])
    return ledger


def refresh(ledger: Ledger, rows: Sequence[AnswerRow]) -> None:
    """Commit answers with hits, and the threshold's noise after them."""
    with ledger.transaction() as transaction:
        transaction.record_answers(rows)
        name = threshold_noise_name(transaction.state.unstable)
        digest = transaction.put_private(name, b"noise")
        transaction.append(ThresholdRefreshed(private_digests={name: digest}))


def refreshed_epochs(path: Path) -> Ledger:
    """Create a ledger with three hits in two entries, each followed by the next noise."""
    ledger = create(path)
    open_release(ledger, further={threshold_noise_name(0): b"noise"})
    refresh(ledger, [answer(ledger, 1), answer(ledger, 2, label=None, stable=False)])
    refresh(ledger, [answer(ledger, number, label=None, stable=False) for number in (3, 4)])
    return ledger


def tamper(path: Path, *statements: str) -> None:
    """Change a database behind the ledger's back, its triggers dropped."""
    DATABASES.tamper(path, *statements)
