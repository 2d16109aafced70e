"""Open a release, or continue the one that the ledger holds.

A new release is opened in two transactions.  The first charges the shares of
relabelling and answers and reserves the classifier's, before any mechanism
reads a row; the second persists everything that was drawn.  A crash between
the two left no trace outside, and the next start draws again under the same
charge.  A later start draws nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import structs

from app.accounting.composition import Mechanism
from app.data.fingerprint import fingerprint
from app.errors import ReleaseMismatchError, invariant
from app.ledger.events import EnsembleFitted, ReleaseOpened, ShareCharged, ShareReserved
from app.ledger.store import RELEASE_SECRET
from app.service.binding import check_bound
from app.service.draw_ensemble import draw_ensemble, read_ensemble
from app.service.private_state import put_pieces, read_piece
from app.service.published_classifier import read_published
from app.service.release import Release

if TYPE_CHECKING:
    from app.accounting.composition import Charge
    from app.data.rows import PrivateRows
    from app.ledger.fold import LedgerState
    from app.ledger.store import Ledger, Transaction
    from app.noise.source import NoiseSource
    from app.service.configure import Configuration
    from app.service.draw_ensemble import AnsweringParts
    from app.service.progress import Progress

ShareEvent = TypeVar("ShareEvent", ShareCharged, ShareReserved)
CHARGED_AT_OPENING: Final = (Mechanism.RELABEL, Mechanism.ANSWERS)
SECRET_BYTES: Final = 32
RELEASE_ID_BYTES: Final = 16


def open_release(
    configuration: Configuration,
    *,
    ledger: Ledger,
    rows: PrivateRows,
    noise: NoiseSource,
    progress: Progress,
) -> Release:
    """Open or continue the release of ``ledger`` on ``rows``.

    Raises:
        ReleaseMismatchError: data, schema or parameters differ from the
            ledger's release; names the first that does.
        LedgerCorruptError: a private piece is missing or altered.
        LedgerUnavailableError: the ledger took no commit; start again.

    """
    state = ledger.read_state()
    if state.release is None:
        _begin(configuration, ledger=ledger, rows=rows, noise=noise)
        state = ledger.read_state()
    _check_same(configuration, ledger=ledger, state=state, rows=rows)
    parts = _answering_parts(configuration, ledger, rows=rows, noise=noise, progress=progress)
    state = ledger.read_state()
    published = state.classifier
    return Release(
        configuration=configuration,
        ledger=ledger,
        digests=ledger.digests,
        mechanism=parts.mechanism,
        state=state,
        private_ensemble=parts.private_ensemble,
        private_rows=rows,
        classifier=None if published is None else read_published(published),
    )


def public_parameters(configuration: Configuration, *, row_count: int) -> dict[str, str]:
    """Return what the first entry binds: every bound setting and the public n."""
    return {**configuration.bound, "data.rows": str(row_count)}


def _begin(
    configuration: Configuration, *, ledger: Ledger, rows: PrivateRows, noise: NoiseSource
) -> None:
    """Commit the promise and its charges, before any mechanism reads a row."""
    secret = noise.secret(SECRET_BYTES)
    settings = configuration.settings
    answers_served = configuration.has(Mechanism.ANSWERS)
    opened = ReleaseOpened(
        release_id=noise.secret(RELEASE_ID_BYTES).hex(),
        name=configuration.name,
        epsilon=str(configuration.epsilon),
        delta=str(configuration.delta),
        queries=settings.answers.queries if answers_served else None,
        cutoff=settings.answers.cutoff if answers_served else None,
        parameters=public_parameters(configuration, row_count=rows.count),
        fingerprint=fingerprint(rows, ledger.digests.fingerprint_key()),
    )
    with ledger.transaction() as transaction:
        digests = put_pieces(transaction, {RELEASE_SECRET: secret})
        transaction.append(structs.replace(opened, private_digests=digests))
        _append_shares(configuration, transaction)


def _append_shares(configuration: Configuration, transaction: Transaction) -> None:
    for mechanism, charge in configuration.charges.items():
        if mechanism in CHARGED_AT_OPENING:
            transaction.append(share_event(ShareCharged, charge))
        else:
            transaction.append(share_event(ShareReserved, charge))


def share_event(kind: type[ShareEvent], charge: Charge) -> ShareEvent:
    """Return the event that charges or reserves a share, in exact rationals."""
    return kind(
        mechanism=charge.mechanism.value, epsilon=str(charge.epsilon), delta=str(charge.delta)
    )


def _check_same(
    configuration: Configuration, *, ledger: Ledger, state: LedgerState, rows: PrivateRows
) -> None:
    invariant(state.release is not None, "a release is open")
    opened = state.release
    if opened is None:
        return
    check_bound(
        {"release.name": opened.name, **opened.parameters},
        public_parameters(configuration, row_count=rows.count),
    )
    if fingerprint(rows, ledger.digests.fingerprint_key()) != opened.fingerprint:
        problem = (
            "these are not the rows that the ledger's release was opened on; restore them, "
            "or give the new release a ledger of its own"
        )
        raise ReleaseMismatchError("data.source", problem)


def _answering_parts(
    configuration: Configuration,
    ledger: Ledger,
    *,
    rows: PrivateRows,
    noise: NoiseSource,
    progress: Progress,
) -> AnsweringParts:
    """Read what a finished opening persisted, or draw it under the charge."""
    state = ledger.read_state()
    secret = read_piece(ledger, RELEASE_SECRET)
    if state.ensemble is not None or not configuration.has(Mechanism.ANSWERS):
        return read_ensemble(configuration, ledger)
    drawn = draw_ensemble(configuration, rows=rows, secret=secret, noise=noise, progress=progress)
    with ledger.transaction() as transaction:
        digests = put_pieces(transaction, drawn.pieces)
        transaction.append(EnsembleFitted(size=drawn.size, private_digests=digests))
    return drawn.parts
