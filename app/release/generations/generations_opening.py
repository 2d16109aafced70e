"""Opening, or continuing, of a release that accepts further batches of rows (generations).

A new release is opened on its source, whose rows become the first generation. Its budget is charged
and its rows are stored in one transaction. The labels and models enter the ledger at the first tick
(scheduled update), which is made during the opening. A later start does not read the source, since
the rows are stored in the database; it draws only what is not drawn yet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from msgspec import structs

from app.data.rows import fingerprint
from app.errors import InvariantError, LedgerUnavailableError
from app.ledger.entries.entry_kinds import ReleaseOpened
from app.ledger.entries.generations import TABLE, generations_of
from app.ledger.ledger import RELEASE_SECRET
from app.privacy.mechanism_registration import own
from app.privacy.mechanisms import row_of
from app.privacy.stability import mechanism as stability
from app.privacy.voting.query_decision import Parameters, Sequel
from app.release.composed_budget import Beside
from app.release.drawing import refuse_dead_features
from app.release.generations.appending import account_for, known_by, put_generation
from app.release.generations.generations_release import LivingRelease
from app.release.generations.labelling import refuse_labelling
from app.release.generations.score_inputs import PUBLIC_MAP, known_inputs, opened_descent
from app.release.generations.tick import Ticker, wait_for_fits
from app.release.opening import (
    OVERTAKEN,
    READING,
    RELEASE_ID_BYTES,
    ROW_BY_ROW,
    SECRET_BYTES,
    check_configuration,
)
from app.release.private_state import put_pieces
from app.release.terms.answer_terms import (
    answering_parameters,
    answers_asked,
    calibration_piece,
    check_accounts,
    checked_piece,
    is_as_checked,
    read_calibration,
    release_budget,
)
from app.release.terms.answer_time import measure_answer_time
from app.release.terms.draw_parameters import ensemble_parameters
from app.release.terms.hopeless_release import hopeless_parameter, refuse_hopeless
from app.release.terms.privacy_unit import count_parameter

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.data.rows import PrivateRows
    from app.ledger.ledger import Ledger
    from app.noise.source import NoiseSource
    from app.release.classifier.kernel import KernelDraw
    from app.release.classifier.linear import LinearDraw
    from app.release.progress import Progress
    from app.release.terms.configuration import Configuration
    from app.release.terms.draw_parameters import EnsembleParameters

ENDLESS: Final = 10**12
"""Answers of a release that no number of answers ends."""


def _ignore(line: str) -> None:
    del line


@dataclass(frozen=True, slots=True)
class Begun:
    """The public values with which a new release begins.

    Attributes:
        parameters: the public parameters of its models.
        is_hopeless: whether the release would answer almost nothing and is opened nevertheless.
        descent: the gradient descent for the first version of its published classifier; None if the
            classifier has no share of epsilon.

    """

    parameters: EnsembleParameters
    is_hopeless: bool
    descent: LinearDraw | KernelDraw | None


def open_living(
    configuration: Configuration,
    *,
    ledger: Ledger,
    rows: Callable[[], PrivateRows],
    noise: NoiseSource,
    progress: Progress,
    ticker: Ticker,
    warn: Callable[[str], None] = _ignore,
) -> LivingRelease:
    """Return a release that accepts further rows, newly opened or continued.

    Args:
        configuration: the release's public parameters.
        ledger: the release's ledger, or an empty one for a new release.
        rows: a function that reads the source; called for a new release only.
        noise: the source of randomness.
        progress: the display of the stages of the opening.
        ticker: the object that trains generations and makes ticks.
        warn: a function that is given a text on how many public points equal a private row, for the
            operator's terminal only.

    Raises:
        ConfigurationError: a draw is impossible, or the release would answer almost nothing;
            nothing is charged.
        DataError: a feature says nothing about any row (for example, it is missing in every row);
            nothing is charged.
        ReleaseMismatchError: the schema or parameters differ from those of the ledger's release.
        LedgerCorruptError: a private value is missing or altered.
        LedgerUnavailableError: the ledger refused a commit; start again.

    """
    opened = ledger.read_state().release
    if opened is None:
        begun = refuse_living(configuration, first := rows(), progress, warn)
        _begin(configuration, begun, ledger, first, noise=noise, joins_at=ticker.period)
    else:
        check_configuration(configuration, opened)
    release = _release(configuration, ledger)
    ticker.waiting = release.waiting
    wait_for_fits(ticker, progress)
    due = generations_of(release.state.generations).waiting
    if ticker.is_due(release.state) and not (due and ticker.awaits_fit(release.state)):
        ticker.tick(release)
    return release


def refuse_living(
    configuration: Configuration,
    rows: PrivateRows,
    progress: Progress,
    warn: Callable[[str], None] = _ignore,
) -> Begun:
    """Return the public parameters with which a new release would begin; refuse one that cannot.

    Raises:
        ConfigurationError: a draw is impossible, or the release would answer almost nothing.
        DataError: a feature says nothing about any row (for example, it is missing in every row).

    """
    refuse_labelling(configuration)
    settings = configuration.settings
    parameters = ensemble_parameters(configuration, row_count=rows.count, progress=progress)
    if parameters is None or settings.generations is None:
        raise LedgerUnavailableError(OVERTAKEN)
    quorum = settings.generations.quorum
    common = replace(
        parameters,
        size=parameters.size * quorum,
        sampled_row_count=parameters.sampled_row_count * quorum,
    )
    is_hopeless = refuse_hopeless(configuration, common, row_count=rows.count)
    refuse_dead_features(settings, rows)
    descent = opened_descent(configuration, rows, warn)
    measured = measure_answer_time(
        settings,
        configuration.learner,
        row_count=common.sampled_row_count,
        ensemble_size=common.size,
    )
    measured.refuse_above(settings.answers.query_seconds_max)
    return Begun(parameters, is_hopeless, descent)


def _begin(
    configuration: Configuration,
    begun: Begun,
    ledger: Ledger,
    rows: PrivateRows,
    *,
    noise: NoiseSource,
    joins_at: int,
) -> None:
    """Commit the promise, and the first generation with its charges."""
    release_number = ledger.release_number
    opened = ReleaseOpened(
        release_id=noise.secret(RELEASE_ID_BYTES).hex(),
        name=configuration.name,
        epsilon=str(configuration.epsilon),
        delta=str(configuration.delta),
        queries=None,
        cutoff=None,
        parameters={
            **configuration.bound,
            **count_parameter(configuration.settings, rows.count),
            READING: ROW_BY_ROW,
            TABLE: _table(configuration),
            **hopeless_parameter(is_hopeless=begun.is_hopeless),
        },
        fingerprint=fingerprint(rows, ledger.digests.fingerprint_key(release_number)),
    )
    with ledger.transaction() as transaction:
        if transaction.state.release is not None:
            return  # another process was first
        Beside(transaction.openings, ledger.digests, rows, ledger.is_backup()).check(configuration)
        if transaction.release_number != release_number:
            raise LedgerUnavailableError(OVERTAKEN)
        pieces = {RELEASE_SECRET: noise.secret(SECRET_BYTES)}
        pieces |= calibration_piece(begun.parameters.calibration)
        pieces |= checked_piece(begun.parameters.calibration)
        if begun.descent is not None:
            pieces[PUBLIC_MAP] = known_inputs(begun.descent, noise).to_bytes()
        digests = put_pieces(transaction, pieces)
        transaction.append(structs.replace(opened, private_digests=digests))
        put_generation(
            configuration,
            transaction,
            rows=rows,
            known_by=known_by(ledger, transaction, rows),
            noise=noise,
            size=begun.parameters.size,
            joins_at=joins_at,
            account=account_for(configuration, begun.parameters.calibration),
        )


def _table(configuration: Configuration) -> str:
    """Return what the one table of all generations was made for, as the first entry has it."""
    settings = configuration.settings
    asked = answers_asked(settings)
    if asked.answers is None:
        raise InvariantError("generations answer")
    made_for = f"{asked.answers.epsilon} {asked.answers.delta} {asked.cutoff}"
    return made_for if asked.hits_max is None else f"{made_for} {asked.hits_max}"


def _release(configuration: Configuration, ledger: Ledger) -> LivingRelease:
    """Return the open release, with everything that it keeps checked."""
    settings = configuration.settings
    calibration = read_calibration(settings, ledger)
    served = answering_parameters(
        settings,
        release_budget(settings),
        calibration,
        ensemble_size=0,
        is_checked=is_as_checked(settings, ledger),
    )
    check_accounts(ledger.read_state(), calibration)
    answering, table = served.answering, settings.privacy.table
    if table is not None and row_of(answering).open_account is not None:
        answering = replace(own(answering, stability.Parameters), cutoff=table.hits_max)
    mechanism = Parameters(
        answering=answering,
        class_count=served.class_count,
        answer_limit=ENDLESS,
        after=Sequel.HALT,
        on_cutoff=Sequel.HALT,
        unstable_gets_coin=served.unstable_gets_coin,
    )
    return LivingRelease(
        configuration=configuration,
        ledger=ledger,
        digests=ledger.digests,
        mechanism=mechanism,
        state=ledger.read_state(),
        private_ensemble=None,
        private_rows=None,
    )
