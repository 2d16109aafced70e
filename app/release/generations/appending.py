"""Adding a batch of rows (generation) to a release: it is charged, and its rows stored.

The times and sizes of generations are public, whatever the rows contain. The order of the rows is
drawn when the generation is appended. Its labels are drawn and its models trained later, by the
server, before the tick (scheduled update) at which the generation joins the vote. This is the
second tick after the append, whatever the duration of training is, so that one whole period is left
for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from app.data.rows import fingerprint
from app.errors import (
    ConfigurationError,
    ReleaseMismatchError,
    VerificationError,
    invariant,
)
from app.ledger.entries.entry_kinds import GenerationAppended, GenerationAppended2, slots_name
from app.ledger.entries.generations import ANSWERS, CLASSIFIER, RELABEL, generations_of
from app.privacy.budget.composition import Mechanism
from app.privacy.mechanism_registration import own
from app.privacy.mechanisms import row_of
from app.privacy.stability.hit_table import ProfileTable
from app.release.generations.first_labelling import refuse_cohort
from app.release.generations.person_batches import put_owners, sorted_out
from app.release.generations.slots import drawn_slots
from app.release.generations.waiting_requests import put_request, refuse_known
from app.release.private_state import put_pieces
from app.release.release import HALTED, refuse_closed
from app.release.terms.answer_terms import read_calibration
from app.release.terms.draw_parameters import ensemble_size
from app.release.terms.work_limits import refuse_long_fit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from app.data.rows import PrivateRows
    from app.ledger.entries.fold import LedgerState
    from app.ledger.entries.generations import Generations
    from app.ledger.ledger import Ledger, Transaction
    from app.noise.source import NoiseSource
    from app.privacy.generations.accounts import ProfileAccount
    from app.privacy.mechanism_registration import Calibration
    from app.release.terms.configuration import Configuration

PERIODS_TO_FIT: Final = 2
"""Ticks from an append to the join: the first may be a moment away."""
FIXED: Final = "generations"
EPSILON: Final = "--epsilon"
DELTA: Final = "--delta"
ABOVE: Final = "must be above 0, and at most what the release promises every record"
ONE_CLASS: Final = 'is for privacy.calibration = "profile": a certificate is of one class'
ACCOUNT: Final = ("alpha", "ln_ratio", "delta_release", "delta_svt")
"""Numbers of an account that the entry has beside those of its share."""
NOT_OPEN: Final = "the ledger has no release yet; start the server, which opens it"
IS_FIXED: Final = (
    "the ledger's release is fixed, and takes no further rows; a release takes them that was "
    "opened with [generations]"
)
TOO_FEW: Final = (
    "has {count} {new}, and answers.ensemble makes {size} learners of a generation; nothing is "
    "appended: wait for more"
)
SAME_ROWS: Final = "holds the very rows of generation {number}; nothing is appended"


class Appended(NamedTuple):
    """The result of adding a batch of rows; only the batch's number is public.

    Attributes:
        number: the number of the new generation; None if the batch had no new person and so made no
            generation.
        further_count: the number of known persons whose rows will be added to their earlier rows at
            the next tick.
        unused_count: the number of persons whose generation has retired, so that their rows are not
            used.

    """

    number: int | None
    further_count: int = 0
    unused_count: int = 0


def append_generation(
    configuration: Configuration,
    *,
    ledger: Ledger,
    rows: PrivateRows,
    noise: NoiseSource,
    period: int,
    budget: tuple[Fraction, Fraction] | None = None,
) -> Appended:
    """Add a batch of rows (a generation) to an open release, in one transaction.

    Args:
        configuration: the release's public parameters.
        ledger: the ledger of the release, which a server may be serving.
        rows: the private rows of the batch.
        noise: the source of randomness.
        period: the number of the current period between ticks.
        budget: epsilon and delta for the records of the batch; None for the release's.

    Raises:
        ConfigurationError: there are too few rows to train the models, a record or person is
            already known or was erased, or the budget is above the release's or pays for no
            unstable answer.
        ReleaseMismatchError: the rows are those of an earlier generation.
        VerificationError: the release has ended.

    """
    is_named = configuration.settings.data.unit == "person"
    invariant(is_named == (rows.persons is not None), "rows are of the configured unit")
    refuse_append(ledger.read_state())
    calibration = read_calibration(configuration.settings, ledger)
    if budget is not None:
        _refuse_budget(configuration, *budget)
        configuration = configuration.with_budget(*budget)
    account = account_for(configuration, calibration)
    _refuse_same_rows(ledger, rows)
    with ledger.transaction() as transaction:
        refuse_append(transaction.state)
        refuse_known(ledger, transaction, rows)
        batch = sorted_out(transaction, rows)
        put_request(transaction, batch.further)
        further = len(batch.further), batch.unused_count
        if batch.new is None:
            return Appended(None, *further)
        known = generations_of(transaction.state.generations)
        refuse_cohort(configuration, known.all, batch.new.count)
        number = put_generation(
            configuration,
            transaction,
            rows=batch.new,
            known_by=known_by(ledger, transaction, rows),
            noise=noise,
            size=_size(configuration, calibration, unit_count=batch.new.count),
            joins_at=_next_join(known, period),
            account=account,
        )
        return Appended(number, *further)


def _size(configuration: Configuration, calibration: Calibration, *, unit_count: int) -> int:
    """Return k_g, of the public number of new rows or persons alone."""
    settings = configuration.settings
    size = ensemble_size(
        configuration,
        row_count=unit_count,
        sampled_row_count=unit_count,
        calibration=calibration,
    )
    if size > unit_count:
        new = "rows" if settings.data.unit == "row" else "new persons"
        raise ConfigurationError("SOURCE", TOO_FEW.format(count=unit_count, new=new, size=size))
    refuse_long_fit(settings, configuration.hypotheses, row_count=unit_count, chunk_count=size)
    return size


def _refuse_budget(configuration: Configuration, epsilon: Fraction, delta: Fraction) -> None:
    """Refuse a budget above the one that the release promises every record."""
    for option, given, most in (
        (EPSILON, epsilon, configuration.epsilon),
        (DELTA, delta, configuration.delta),
    ):
        if not 0 < given <= most:
            raise ConfigurationError(option, ABOVE)


def account_for(configuration: Configuration, calibration: Calibration) -> ProfileAccount | None:
    """Return how a batch's own budget pays for unstable answers; None for the default budget.

    Args:
        configuration: the release's public parameters, with the generation's budget.
        calibration: the release's noise parameters.

    Raises:
        ConfigurationError: the budget pays for no unstable answer.

    """
    charge = configuration.charges[Mechanism.ANSWERS]
    if (charge.epsilon, charge.delta) == (calibration.epsilon, calibration.delta):
        return None
    open_account = row_of(calibration).open_account
    if open_account is None:
        raise ConfigurationError(EPSILON, ONE_CLASS)
    own_table, table = own(calibration, ProfileTable), configuration.settings.privacy.table
    try:
        account = open_account(own_table, epsilon=charge.epsilon, delta=charge.delta)
    except ConfigurationError as error:
        raise ConfigurationError(EPSILON, error.problem) from None
    most = own_table.cutoff if table is None else table.hits_max
    return replace(account, cutoff=min(account.cutoff, most))


def _next_join(known: Generations, period: int) -> int:
    """Return the period of a new generation's join, never before an earlier one's."""
    newest = known.all[-1].joins_at if known.all else 0
    return max(max(period, known.period) + PERIODS_TO_FIT, newest)


def refuse_append(state: LedgerState) -> None:
    """Raise an error if the release was not opened to accept further rows.

    Raises:
        ReleaseMismatchError: the ledger has no release, or one that accepts no further rows.
        VerificationError: the release has ended.

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
    rows: PrivateRows,
    known_by: str,
    noise: NoiseSource,
    size: int,
    joins_at: int,
    account: ProfileAccount | None = None,
) -> int:
    """Add a batch of rows within a transaction, and return its number.

    Args:
        configuration: the release's public parameters.
        transaction: an open transaction on the ledger of a release that accepts rows.
        rows: the private rows of the generation.
        known_by: the keyed fingerprint of the whole batch.
        noise: the source of randomness.
        size: k_g, the number of the generation's models.
        joins_at: the number of the period between ticks; at its first tick the generation joins the
            vote.
        account: how the generation's own budget pays for unstable answers; None if it has the
            release's budget.

    """
    known = generations_of(transaction.state.generations)
    number = len(known.all) + 1
    name = slots_name(number, known.tick)
    put_owners(transaction, number, rows)
    digests = put_pieces(transaction, {name: drawn_slots(rows, noise).to_bytes()})
    event = GenerationAppended(
        number=number,
        slots=rows.count,
        chunks=size,
        epsilon=str(configuration.epsilon),
        delta=str(configuration.delta),
        shares=shares_of(configuration, number),
        cutoff=configuration.settings.answers.cutoff if account is None else account.cutoff,
        joins_at=joins_at,
        fingerprint=known_by,
        private_digests=digests,
    )
    if account is not None:
        plain = account.to_plain()
        paid = {name: plain[name] for name in ACCOUNT}
        event = GenerationAppended2(account=paid, **structs.asdict(event))
    transaction.append(event)
    return number


def known_by(ledger: Ledger, transaction: Transaction, rows: PrivateRows) -> str:
    """Return a batch's keyed fingerprint, by which the same rows are recognised later.

    Args:
        ledger: the ledger to which the transaction belongs.
        transaction: an open transaction on the ledger of a release that accepts rows.
        rows: the rows of the whole batch, including rows of known persons.

    """
    number = len(generations_of(transaction.state.generations).all) + 1
    return fingerprint(rows, ledger.digests.generation_key(transaction.release_number, number))


def shares_of(configuration: Configuration, number: int) -> dict[str, list[str]]:
    """Return the epsilon and delta that a batch of rows pays for each mechanism, by name."""
    rules, charges = configuration.settings.generations, configuration.charges
    inherits = rules is not None and (
        (rules.labelling == "inherit" and number > 1)
        or (rules.labelling == "cohort" and number > rules.quorum)
    )
    charged: Mapping[str, Mechanism] = {ANSWERS: Mechanism.ANSWERS}
    if Mechanism.RELABEL in charges and not inherits:
        charged = {RELABEL: Mechanism.RELABEL, **charged}
    if Mechanism.CLASSIFIER in charges:
        charged = {**charged, CLASSIFIER: Mechanism.CLASSIFIER}
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
