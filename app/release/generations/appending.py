"""Adding a batch of rows (generation) to a release: its budget is spent, its rows stored.

The times and sizes of generations are public, whatever the rows are.  The permutation of the
slots is drawn after the decision to append; labels and learners are, by whoever serves, before
the tick at which the generation joins.  That tick is the second after the append, so that one
whole period is left for the fit, however long the fit takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.data.rows import fingerprint
from app.errors import ReleaseMismatchError, VerificationError
from app.ledger.entries.entry_kinds import GenerationAppended, slots_name
from app.ledger.entries.generations import ANSWERS, RELABEL, generations_of
from app.privacy.budget.composition import Mechanism
from app.release.generations.requests import refuse_known
from app.release.generations.slots import drawn_slots
from app.release.private_state import put_pieces
from app.release.release import HALTED, refuse_closed
from app.release.terms.answer_terms import read_calibration
from app.release.terms.draw_parameters import ensemble_size
from app.release.terms.work_limits import refuse_long_fit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.data.rows import PrivateRows
    from app.ledger.entries.fold import LedgerState
    from app.ledger.ledger import Ledger, Transaction
    from app.noise.source import NoiseSource
    from app.release.terms.configuration import Configuration

PERIODS_TO_FIT: Final = 2
"""Ticks from an append to the join: the first may be a moment away."""
FIXED: Final = "generations"
NOT_OPEN: Final = "the ledger has no release yet; start the server, which opens it"
IS_FIXED: Final = (
    "the ledger's release is fixed, and takes no further rows; a release takes them that was "
    "opened with [generations]"
)
SAME_ROWS: Final = "holds the very rows of generation {number}; nothing is appended"


def append_generation(
    configuration: Configuration,
    *,
    ledger: Ledger,
    rows: PrivateRows,
    noise: NoiseSource,
    period: int,
) -> int:
    """Add a batch of rows to an open release in one transaction; return its number.

    Args:
        configuration: the release's.
        ledger: with the release, which a server may be serving.
        rows: of the generation, each a unit of its own.
        noise: where the permutation of the slots comes from.
        period: of the clock, now.

    Raises:
        ConfigurationError: the learners cannot be fitted on so many rows.
        ReleaseMismatchError: these are the rows of an earlier generation.
        VerificationError: the release has ended.

    """
    settings = configuration.settings
    refuse_append(ledger.read_state())
    size = ensemble_size(
        configuration,
        row_count=rows.count,
        sampled_row_count=rows.count,
        calibration=read_calibration(settings, ledger),
    )
    refuse_long_fit(settings, configuration.hypotheses, row_count=rows.count, chunk_count=size)
    _refuse_same_rows(ledger, rows)
    with ledger.transaction() as transaction:
        refuse_append(transaction.state)
        refuse_known(ledger, transaction, rows)
        known = generations_of(transaction.state.generations)
        return put_generation(
            configuration,
            transaction,
            ledger=ledger,
            rows=rows,
            noise=noise,
            size=size,
            joins_at=max(period, known.period) + PERIODS_TO_FIT,
        )


def refuse_append(state: LedgerState) -> None:
    """Refuse further rows if the release was not opened to accept them.

    Raises:
        ReleaseMismatchError: it has no release, or a fixed one.
        VerificationError: it has ended.

    """
    if state.release is None:
        raise ReleaseMismatchError("ledger.url", NOT_OPEN)
    if state.generations is None:
        raise ReleaseMismatchError(FIXED, IS_FIXED)
    refuse_closed(state)
    if state.halted is not None:
        raise VerificationError(f"{HALTED}: nothing is appended")


def put_generation(
    configuration: Configuration,
    transaction: Transaction,
    *,
    ledger: Ledger,
    rows: PrivateRows,
    noise: NoiseSource,
    size: int,
    joins_at: int,
) -> int:
    """Add a batch of rows within a transaction; return its number.

    Args:
        configuration: the release's.
        transaction: of a release that takes generations.
        ledger: the transaction's.
        rows: of the generation.
        noise: where the permutation of the slots comes from.
        size: k_g.
        joins_at: the period at whose tick it joins.

    """
    known = generations_of(transaction.state.generations)
    number, release_number = len(known.all) + 1, transaction.release_number
    name = slots_name(number, known.tick)
    digests = put_pieces(transaction, {name: drawn_slots(rows, noise).to_bytes()})
    transaction.append(
        GenerationAppended(
            number=number,
            slots=rows.count,
            chunks=size,
            epsilon=str(configuration.epsilon),
            delta=str(configuration.delta),
            shares=shares_of(configuration, number),
            cutoff=configuration.settings.answers.cutoff,
            joins_at=joins_at,
            fingerprint=fingerprint(rows, ledger.digests.generation_key(release_number, number)),
            private_digests=digests,
        )
    )
    return number


def shares_of(configuration: Configuration, number: int) -> dict[str, list[str]]:
    """Return the epsilon and delta that each mechanism costs a batch of rows, by name."""
    rules, charges = configuration.settings.generations, configuration.charges
    inherits = rules is not None and rules.labelling == "inherit" and number > 1
    charged: Mapping[str, Mechanism] = {ANSWERS: Mechanism.ANSWERS}
    if Mechanism.RELABEL in charges and not inherits:
        charged = {RELABEL: Mechanism.RELABEL, **charged}
    return {
        name: [str(charges[mechanism].epsilon), str(charges[mechanism].delta)]
        for name, mechanism in charged.items()
    }


def _refuse_same_rows(ledger: Ledger, rows: PrivateRows) -> None:
    """Refuse rows that were appended before, on the operator's terminal."""
    for each in generations_of(ledger.read_state().generations).all:
        key = ledger.digests.generation_key(ledger.release_number, each.number)
        if fingerprint(rows, key) == each.fingerprint:
            raise ReleaseMismatchError("SOURCE", SAME_ROWS.format(number=each.number))
