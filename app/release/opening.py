"""Opening of a release, or continuing of a release that its ledger already contains.

A new release is opened in two transactions. The first charges the shares of relabelling and answers
and reserves the other shares, before any mechanism reads a row. The second stores everything that
was drawn. After a crash between the two nothing about the rows is public, and the next start draws
again under the same charge. A later start draws nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog
from msgspec import structs

from app.data.streaming.streamed_rows import SORTED, StreamedRows, fingerprint_by
from app.errors import (
    LedgerUnavailableError,
    ReleaseMismatchError,
    UnknownRowsError,
    invariant,
)
from app.ledger.entries.entry_kinds import (
    EnsembleFitted,
    ReleaseOpened,
    ShareCharged,
    ShareReserved,
)
from app.ledger.entries.fold import ACCOUNTING, REPLAYED_BY
from app.ledger.entries.generations import TABLE
from app.ledger.ledger import RELEASE_SECRET
from app.privacy.budget.composition import Mechanism
from app.privacy.mechanism_registration import ORDER_KEY, RULE_KEY
from app.release.charged_draw import Publication, share_event
from app.release.classifier.learner_table import (
    AUTO_RULE_KEY,
    DIVISION_KEY,
    INPUTS_KEY,
    auto_rule,
    check_classifier_draw,
    chosen_learner,
    division_rule,
    inputs_rule,
    rule_parameters,
)
from app.release.classifier.published_classifier import read_classifier
from app.release.composed_budget import Beside
from app.release.drawing import draw_ensemble, read_ensemble, refuse_dead_features
from app.release.private_state import put_pieces, read_piece
from app.release.release import DRAWS_NOTHING, SOURCE, UNKNOWN_ROWS, Release, refuse_closed
from app.release.statistics.statistics_table import check_statistics_draw
from app.release.streaming import (
    FINGERPRINT,
    fingerprint_parameter,
    fingerprint_rule,
    parts_piece,
)
from app.release.terms.accounting import accounting_parameter, as_opened, check_accounting
from app.release.terms.answer_terms import (
    answering_registration,
    opened_by_cutoff,
    order_parameter,
    replay_parameter,
    rule_parameter,
)
from app.release.terms.answer_time import measure_answer_time
from app.release.terms.bound_settings import RESTORE, check_bound
from app.release.terms.draw_parameters import ensemble_parameters
from app.release.terms.hopeless_release import HOPELESS_KEY, hopeless_parameter, refuse_hopeless
from app.release.terms.privacy_unit import COUNTS, count_parameter, opened_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from app.data.rows import PrivateRows
    from app.ledger.entries.fold import LedgerState
    from app.ledger.ledger import Ledger, Transaction
    from app.noise.source import NoiseSource
    from app.release.drawing import AnsweringParts, DrawnEnsemble
    from app.release.progress import Progress
    from app.release.terms.answer_time import AnswerTime
    from app.release.terms.configuration import Configuration
    from app.release.terms.draw_parameters import EnsembleParameters

CHARGED_AT_OPENING: Final = (Mechanism.RELABEL, Mechanism.ANSWERS)
SECRET_BYTES: Final = 32
RELEASE_ID_BYTES: Final = 16
log = structlog.get_logger("conclave.service")
READING: Final = "data.reading"
ROW_BY_ROW: Final = "row by row"
FURTHER: Final = frozenset(
    {
        *COUNTS.values(),
        READING,
        FINGERPRINT,
        HOPELESS_KEY,
        REPLAYED_BY,
        AUTO_RULE_KEY,
        INPUTS_KEY,
        DIVISION_KEY,
        RULE_KEY,
        ORDER_KEY,
        ACCOUNTING,
        TABLE,
    }
)
"""Parameters of the first entry that are no bound setting."""
OVERTAKEN: Final = "another release was opened in the ledger meanwhile; start again"


def _ignore(line: str) -> None:
    del line


def open_release(
    configuration: Configuration,
    *,
    ledger: Ledger,
    rows: PrivateRows | StreamedRows,
    noise: NoiseSource,
    progress: Progress,
) -> Release:
    """Return the release of ``ledger`` on ``rows``, newly opened or continued.

    Raises:
        ConfigurationError: with these settings and this number of rows a draw is impossible, or the
            release would answer almost nothing; nothing is charged.
        DataError: a feature says nothing about any row (for example, it is missing in every row);
            nothing is charged.
        ReleaseMismatchError: data, schema or parameters differ from those of the ledger's release;
            the message names the first difference. There is one exception: an earlier version of
            this program may have read the same source in another way, so that its rows are not
            recognised. The release then continues, but does nothing that needs a row.
        LedgerCorruptError: a private value is missing or altered.
        LedgerUnavailableError: the ledger refused a commit; start again.

    """
    configuration = as_opened(configuration, ledger.read_state().release)
    try:
        parameters = begin_release(
            configuration,
            ledger=ledger,
            rows=rows,
            noise=noise,
            progress=progress,
            tell=lambda line: log.info("answer_time_measured", answer_time=line),
        )
    except UnknownRowsError:
        if not _serves_without_rows(configuration, ledger):
            raise
        parts = read_ensemble(configuration, ledger)
        return _release(configuration, parts, ledger=ledger, rows=None)
    _log_learner(configuration, ledger, row_count=rows.count)
    secret, drawn = read_piece(ledger, RELEASE_SECRET), None
    if parameters is not None:
        drawn = _ensemble_of(ledger).draw_once(
            lambda: draw_ensemble(
                configuration, parameters, rows=rows, secret=secret, noise=noise, progress=progress
            )
        )
    if isinstance(rows, StreamedRows):
        rows.close()
    # Where another process was first, its draw is the release's and ours is forgotten.
    parts = read_ensemble(configuration, ledger) if drawn is None else drawn.parts
    return _release(configuration, parts, ledger=ledger, rows=rows)


def _ensemble_of(ledger: Ledger) -> Publication[DrawnEnsemble]:
    """Return what an opening draws under its charge, persisted before anything uses it."""

    def append(transaction: Transaction, drawn: DrawnEnsemble) -> None:
        digests = put_pieces(transaction, drawn.pieces)
        transaction.append(EnsembleFitted(size=drawn.size, private_digests=digests))

    return Publication(
        ledger=ledger, is_published=lambda state: state.ensemble is not None, append=append
    )


def begin_release(
    configuration: Configuration,
    *,
    ledger: Ledger,
    rows: PrivateRows | StreamedRows,
    noise: NoiseSource,
    progress: Progress,
    public_values: NDArray[np.float64] | None = None,
    tell: Callable[[str], None] = _ignore,
) -> EnsembleParameters | None:
    """Charge a new release's budget, or compare the settings with an open release's; draw nothing.

    Args:
        configuration: the release's public parameters.
        ledger: the release's ledger, or an empty one for a new release.
        rows: the private rows.
        noise: the source of randomness.
        progress: the display of the stages of the opening.
        public_values: the public points, encoded, shape (m, d), if the classifier is drawn at once
            on them; None if the queries will be its public points.
        tell: a function that is given a text on the time that an answer will take, if this call
            charges a new release.

    Returns:
        The parameters for drawing the models; None if they are drawn already, or if answers have no
        share of epsilon.

    Raises:
        ConfigurationError: with these settings and this number of rows a draw is impossible, or the
            release would answer almost nothing.
        ReleaseMismatchError: data, schema or parameters differ from those of the ledger's release;
            or the database has other releases and the configuration does not state the joint budget
            of all.
        LedgerUnavailableError: the ledger refused a commit; start again.
        VerificationError: the ledger was closed before the models were drawn.

    """
    is_named = configuration.settings.data.unit == "person"
    invariant(is_named == rows.is_of_persons, "rows are of the configured unit")
    found = ledger.read_state()
    configuration = as_opened(configuration, found.release)
    if found.release is None:
        Beside(ledger.openings, ledger.digests, rows, ledger.is_backup()).check(configuration)
    parameters = None
    if found.ensemble is None and configuration.has(Mechanism.ANSWERS):
        refuse_closed(found)
    if found.ensemble is None:
        parameters = ensemble_parameters(
            configuration, row_count=rows.count, progress=progress, opened=found.release
        )
    serves_at_once = found.classifier is None and not configuration.has(Mechanism.ANSWERS)
    if found.release is None or serves_at_once:
        points = public_values if serves_at_once else None
        check_classifier_draw(configuration, points, row_count=rows.count, opened=found.release)
    if found.release is None:
        hopeless, answer_time = _refuse_new(configuration, parameters, rows)
        cutoff = None if parameters is None else parameters.calibration.cutoff
        further = {
            **count_parameter(configuration.settings, rows.count),
            READING: ROW_BY_ROW,
            **fingerprint_parameter(rows),
            **rule_parameters(configuration),
            **hopeless_parameter(is_hopeless=hopeless),
            **({} if parameters is None else replay_parameter(configuration)),
        }
        if configuration.has(Mechanism.ANSWERS):
            further |= rule_parameter(answering_registration(configuration.settings))
            further |= order_parameter(configuration.settings)
            further |= accounting_parameter(configuration.settings)
        _begin(configuration, further, cutoff=cutoff, ledger=ledger, rows=rows, noise=noise)
        if answer_time is not None:
            tell(str(answer_time))
    _check_same(configuration, ledger=ledger, rows=rows)
    if parameters is not None:
        _check_cutoff(parameters.calibration.cutoff, ledger)
    return parameters


def _refuse_new(
    configuration: Configuration,
    parameters: EnsembleParameters | None,
    rows: PrivateRows | StreamedRows,
) -> tuple[bool, AnswerTime | None]:
    """Refuse a release that may not begin; return whether it is hopeless, and its answer's time."""
    hopeless = refuse_hopeless(configuration, parameters, row_count=rows.count)
    check_statistics_draw(configuration.settings, row_count=rows.count)
    refuse_dead_features(configuration.settings, rows)
    return hopeless, _answer_time(configuration, parameters)


def refuse_before_ledger(
    configuration: Configuration, rows: PrivateRows | StreamedRows, progress: Progress
) -> None:
    """Raise an error for an invalid new release, before a ledger is created.

    Raises:
        ConfigurationError: with these settings and this number of rows a draw is impossible, or the
            release would answer almost nothing.

    """
    configuration = as_opened(configuration, None)
    parameters = ensemble_parameters(
        configuration, row_count=rows.count, progress=progress, opened=None
    )
    check_classifier_draw(configuration, None, row_count=rows.count, opened=None)
    _refuse_new(configuration, parameters, rows)


def _log_learner(configuration: Configuration, ledger: Ledger, *, row_count: int) -> None:
    """Log the learner that ``auto`` takes for a classifier that is not published yet."""
    state, settings = ledger.read_state(), configuration.settings
    if configuration.has(Mechanism.CLASSIFIER) and state.classifier is None:
        chosen = chosen_learner(settings, row_count=row_count, opened=state.release)
        if chosen.reason:
            log.info("learner_chosen", learner=chosen.row.learner.name)


def _serves_without_rows(configuration: Configuration, ledger: Ledger) -> bool:
    """Return whether there is an ensemble, or a classifier that takes its place."""
    state = ledger.read_state()
    if configuration.has(Mechanism.ANSWERS):
        return state.ensemble is not None
    return state.classifier is not None


def _answer_time(
    configuration: Configuration, parameters: EnsembleParameters | None
) -> AnswerTime | None:
    """Measure an answer by public choices alone, and refuse a release that would be too slow."""
    if parameters is None:
        return None
    measured = measure_answer_time(
        configuration.settings,
        configuration.learner,
        row_count=parameters.sampled_row_count,
        ensemble_size=parameters.size,
    )
    measured.refuse_above(configuration.settings.answers.query_seconds_max)
    return measured


def _release(
    configuration: Configuration,
    parts: AnsweringParts,
    *,
    ledger: Ledger,
    rows: PrivateRows | StreamedRows | None,
) -> Release:
    _check_cutoff(parts.mechanism.cutoff, ledger)
    state = ledger.read_state()
    _check_rule(configuration, state.release)
    published = state.classifier
    return Release(
        configuration=configuration,
        ledger=ledger,
        digests=ledger.digests,
        mechanism=parts.mechanism,
        state=state,
        private_ensemble=parts.private_ensemble,
        private_rows=rows,
        has_unknown_rows=rows is None,
        classifier=(
            None if published is None else read_classifier(configuration, ledger, published)
        ),
    )


def _begin(
    configuration: Configuration,
    further: Mapping[str, str],
    *,
    cutoff: int | None,
    ledger: Ledger,
    rows: PrivateRows | StreamedRows,
    noise: NoiseSource,
) -> None:
    """Commit the promise and its charges, before any mechanism reads a row.

    Args:
        configuration: the release's public parameters.
        further: parameters of the first entry besides the bound settings.
        cutoff: T as the mechanism has it.
        ledger: an empty one.
        rows: the private rows.
        noise: where secrets come from.

    """
    secret = noise.secret(SECRET_BYTES)
    settings, release_number = configuration.settings, ledger.release_number
    answers_served = configuration.has(Mechanism.ANSWERS)
    opened = ReleaseOpened(
        release_id=noise.secret(RELEASE_ID_BYTES).hex(),
        name=configuration.name,
        epsilon=str(configuration.epsilon),
        delta=str(configuration.delta),
        queries=settings.answers.queries if answers_served else None,
        cutoff=cutoff,
        parameters={**configuration.bound, **further},
        fingerprint=fingerprint_by(
            further.get(FINGERPRINT, SORTED), rows, ledger.digests.fingerprint_key(release_number)
        ),
    )
    _check_rule(configuration, opened)
    with ledger.transaction() as transaction:
        if transaction.state.release is not None:
            return  # another process was first; what it opened is compared next
        # Under the lock: what another process has opened or retired meanwhile counts as well.
        Beside(transaction.openings, ledger.digests, rows, ledger.is_backup()).check(configuration)
        if transaction.release_number != release_number:
            raise LedgerUnavailableError(OVERTAKEN)
        digests = put_pieces(transaction, {RELEASE_SECRET: secret, **parts_piece(rows)})
        transaction.append(structs.replace(opened, private_digests=digests))
        _append_shares(configuration, transaction)


def _append_shares(configuration: Configuration, transaction: Transaction) -> None:
    for mechanism, charge in configuration.charges.items():
        if mechanism in CHARGED_AT_OPENING:
            transaction.append(share_event(ShareCharged, charge))
        else:
            transaction.append(share_event(ShareReserved, charge))


def found_state(configuration: Configuration, ledger: Ledger) -> LedgerState:
    """Return the state of a ledger, whose release must have been opened with these settings.

    Raises:
        ReleaseMismatchError: a setting differs; the message names the first one.

    """
    found = ledger.read_state()
    if found.release is not None:
        check_configuration(configuration, found.release)
    return found


def check_configuration(configuration: Configuration, opened: ReleaseOpened) -> None:
    """Compare every permanent setting with the first ledger entry, before any row is read.

    Raises:
        ReleaseMismatchError: a setting differs; the message names the first one.

    """
    bound = {key: text for key, text in opened.parameters.items() if key not in FURTHER}
    check_bound(bound, configuration.bound)
    check_accounting(configuration.settings, opened)
    opened_by_cutoff(configuration.settings, opened)
    auto_rule(opened)
    inputs_rule(opened)
    division_rule(opened)


def _check_same(
    configuration: Configuration, *, ledger: Ledger, rows: PrivateRows | StreamedRows
) -> None:
    """Compare what the first entry binds: every bound setting, then the rows."""
    opened = ledger.read_state().release
    invariant(opened is not None, "a release is open")
    if opened is None:
        return
    check_configuration(configuration, opened)
    count, unit = opened_count(opened), configuration.settings.data.unit
    if count != rows.count:
        problem = f"has {rows.count} {unit}s, and the ledger's release was opened on {count}"
        raise ReleaseMismatchError(SOURCE, f"{problem}; {RESTORE}")
    key = ledger.digests.fingerprint_key(ledger.release_number)
    if fingerprint_by(fingerprint_rule(opened), rows, key) == opened.fingerprint:
        return
    if opened.parameters.get(READING) != ROW_BY_ROW:
        raise UnknownRowsError(SOURCE, f"{UNKNOWN_ROWS}: {DRAWS_NOTHING}; {RESTORE}")
    problem = "holds other rows than those that the ledger's release was opened on"
    raise ReleaseMismatchError(SOURCE, f"{problem}; {RESTORE}")


def _check_rule(configuration: Configuration, opened: ReleaseOpened | None) -> None:
    """Assert, before an entry is written and after it is read, that its rule may answer."""
    if configuration.has(Mechanism.ANSWERS):
        answering_registration(configuration.settings, opened)


def _check_cutoff(cutoff: int | None, ledger: Ledger) -> None:
    """Compare the cutoff that would serve with the one that the first entry promises.

    Calibration ``paper`` has one of its own, worked out anew by every opening.
    """
    opened = ledger.read_state().release
    if opened is not None and opened.cutoff != cutoff:
        problem = f"comes to {cutoff}, and the ledger's release was opened with {opened.cutoff}"
        raise ReleaseMismatchError("answers.cutoff", f"{problem}; {RESTORE}")
