"""The choice of the mechanism that answers queries, for serving and simulation.

The module computes the budget of relabelling and answers, the noise and the mechanism's parameters
from the settings. Everything here is public. A mechanism may have several rules by which it
decides; the first ledger entry names a release's rule, so that the release keeps it.

The stability table has the probability of an unstable answer for each distance of a query. Its
privacy proof uses a Renyi order, and splits delta into two parts: one for the Renyi divergence, and
one for the event that a query at distance 0 gets a stable answer.

A stability test decides by this table, or by noise, whether an answer is stable. An answer with a
score has up to two such tests, and each failed test counts towards the cutoff.
"""

from __future__ import annotations

import hmac
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from app.data.vectors import encode_keys
from app.errors import (
    LedgerCorruptError,
    ReleaseMismatchError,
    VerificationError,
    invariant,
)
from app.learning.ensemble import cells_of, votes_by_cell
from app.learning.registry import class_registration
from app.ledger.entries.digests import cell_key
from app.ledger.entries.fold import CELL, REPLAYED_BY
from app.ledger.entries.generations import account_of
from app.privacy.budget.composition import Mechanism
from app.privacy.generations.accounts import check as check_account
from app.privacy.mechanism_registration import BY_CUTOFF, ORDER_KEY, RULE_KEY, AnswersAsked, own
from app.privacy.mechanisms import MECHANISMS, calibrated_row, opened_row, row_of, serving_row
from app.privacy.paper.paper_pipeline import PaperTargets
from app.privacy.stability.hit_table import ProfileTable
from app.privacy.voting.query_decision import Parameters, Sequel
from app.release.private_state import read_piece
from app.release.terms.accounting import account
from app.release.terms.configuration import charges_by_mechanism

if TYPE_CHECKING:
    from app.ledger.entries.entry_kinds import ReleaseOpened
    from app.ledger.entries.fold import LedgerState
    from app.ledger.ledger import Ledger
    from app.privacy.budget.sampled_budget import PipelineBudget
    from app.privacy.mechanism_registration import Answering, Calibration, MechanismRegistration
    from app.release.terms.configuration import Configuration
    from app.settings.settings import Settings

CHECKED: Final = "calibration-checked"
"""Name of the stored digest of the calibration that an opening checked exactly."""
CHECK_RULE: Final = b"conclave exact check 1 "
"""Begins what that digest is of; a stricter check gets another number and is made once more."""


def answering_registration(
    settings: Settings, opened: ReleaseOpened | None = None
) -> MechanismRegistration:
    """Return the entry of the release's answering mechanism in the table of all mechanisms.

    Args:
        settings: the whole configuration.
        opened: the release's first ledger entry, which fixes the mechanism's rule; None for a new
            release.

    Raises:
        InvariantError: this version does not know the release's rule, or the rule is only for
            releases that answer each cell once, and this release does not.

    """
    named = settings.answers.mechanism, settings.privacy.calibration
    if opened is None:
        return serving_row(
            *named,
            class_count=len(settings.data.classes),
            counts_decisions=counts_decisions(settings),
        )
    row = opened_row(*named, rule=opened.parameters.get(RULE_KEY))
    by_cell = opened.parameters.get(REPLAYED_BY) == CELL
    invariant(by_cell or not row.counts_decisions, "decisions are counted where cells are decided")
    return row


def counts_decisions(settings: Settings) -> bool:
    """Return whether replacing one record can change at most two answers of the whole release.

    This is so if the models vote by public cells and each cell is answered once, with a label. It
    is not so with scores (an answer has up to two stability tests), with sampling (the sampled rows
    are drawn at random), with persons (a person's rows may lie in many cells), and with generations
    that join later (they answer cells again). In these cases each unstable answer is paid for.
    """
    by_cell = class_registration(settings.hypotheses.kind).splits is not None
    by_cell = by_cell and settings.data.unit == "row" and settings.generations is None
    is_whole = settings.answers.output == "label" and settings.privacy.sampling == 1
    return by_cell and settings.learner.estimator is None and is_whole


def _row_of(settings: Settings, calibration: Calibration) -> MechanismRegistration:
    named = settings.answers.mechanism, settings.privacy.calibration
    return calibrated_row(*named, calibration)


def rule_parameter(row: MechanismRegistration) -> dict[str, str]:
    """Return the first ledger entry's parameter that names the mechanism's rule.

    The result is empty if the rule has no name.
    """
    return {} if row.rule is None else {RULE_KEY: row.rule}


def order_parameter(settings: Settings) -> dict[str, str]:
    """Return the first ledger entry's parameter for a Renyi order that depends on the cutoff.

    If a new release does not choose its Renyi order by the cutoff, the result is empty.
    """
    is_ordered = answering_registration(settings).orders_by_cutoff and settings.generations is None
    return {ORDER_KEY: BY_CUTOFF} if is_ordered and account(settings) is None else {}


def opened_by_cutoff(settings: Settings, opened: ReleaseOpened | None) -> bool:
    """Return whether the Renyi order for a release's stability table depends on the cutoff.

    Args:
        settings: the whole configuration.
        opened: the release's first ledger entry, which says so; None for a new release.

    Raises:
        ReleaseMismatchError: the first entry names a rule that this version does not know.

    """
    if opened is None:
        return settings.generations is None
    found = opened.parameters.get(ORDER_KEY)
    if found not in (None, BY_CUTOFF):
        problem = f"the ledger's release has {found}, which this version does not know"
        raise ReleaseMismatchError(ORDER_KEY, problem)
    return found == BY_CUTOFF


def decides_cells(configuration: Configuration) -> bool:
    """Return whether a new release gives all vectors in a public cell the same answer.

    This is so if its models vote by public cells, unless one of the following is true: the
    calibration is ``svt`` or ``paper``; answers are scores; the unit of privacy is a person; or
    rows are added later. Then each vector is answered separately.
    """
    settings = configuration.settings
    by_cell = votes_by_cell(configuration.hypotheses, settings.learner.estimator)
    by_cell = by_cell and settings.data.unit == "row" and settings.generations is None
    return (
        by_cell
        and answering_registration(settings).decides_cells
        and settings.answers.output == "label"
    )


def replay_parameter(configuration: Configuration) -> dict[str, str]:
    """Return the first ledger entry's parameter that says that each public cell has one answer.

    The result is empty if each vector is answered separately.
    """
    return {REPLAYED_BY: CELL} if decides_cells(configuration) else {}


def check_cells(configuration: Configuration, ledger: Ledger) -> None:
    """Check that every recorded vector lies in the cell whose answer it got.

    Raises:
        VerificationError: a vector got the answer of another cell.

    """
    if not ledger.read_state().decides_cells:
        return
    splits, schema = cells_of(configuration.hypotheses), configuration.schema
    kept = {row.answer.query_id: row.vector for row in ledger.answers_after(0)}
    asked = ledger.asked_after(0)
    cells = splits.places(encode_keys(schema, [each.vector for each in asked]))
    for number, (each, cell) in enumerate(zip(asked, cells.tolist(), strict=True), start=1):
        if kept.get(each.query_id) != cell_key(cell):
            problem = f"vector {number} got answer {each.query_id}, which is another cell's"
            raise VerificationError(problem)


def answers_asked(settings: Settings, opened: ReleaseOpened | None = None) -> AnswersAsked:
    """Return the configured values on which the answering mechanism depends.

    Examples are the answers' share of epsilon, the cutoff T, and the number of labels.

    Args:
        settings: the whole configuration.
        opened: the release's first ledger entry, which fixes the rules; None for a new release.

    Raises:
        ReleaseMismatchError: the first entry names a rule that this version does not know.

    """
    charges, answers = charges_by_mechanism(settings), settings.answers
    share, table = charges.get(Mechanism.ANSWERS), settings.privacy.table
    if share is not None and table is not None:  # the class that the table is made for
        part = Fraction(table.epsilon) / Fraction(settings.privacy.epsilon)
        share = replace(share, epsilon=share.epsilon * part)
    return AnswersAsked(
        relabel=charges.get(Mechanism.RELABEL),
        answers=share,
        targets=PaperTargets(alpha=answers.alpha, beta=answers.beta, query_count=answers.queries),
        sampling_rate=Fraction(settings.privacy.sampling),
        private_grid=settings.hypotheses.grid == "private",
        class_count=len(settings.data.classes),
        cutoff=answers.cutoff,
        account=account(settings),
        hits_max=None if table is None else table.hits_max,
        is_by_cutoff=opened_by_cutoff(settings, opened),
    )


def release_budget(settings: Settings) -> PipelineBudget | None:
    """Return the budget of relabelling and answers; None if answers have none.

    Relabelling gives each private row the label that a privately drawn rule predicts, before the
    models are trained.

    Raises:
        ConfigurationError: the answering mechanism needs a larger share, or the least cost of
            relabelling (Lemma L in ``app/privacy/exponential/relabel_proof.md``) exceeds its share.

    """
    return answering_registration(settings).budget(answers_asked(settings))


def calibrate_answers(
    settings: Settings, budget: PipelineBudget | None, opened: ReleaseOpened | None = None
) -> Calibration | None:
    """Return the noise parameters of the answers; None if answers have no budget.

    Args:
        settings: the whole configuration.
        budget: the budget of relabelling and answers.
        opened: the release's first ledger entry, which fixes the mechanism's rule; None for a new
            release.

    Raises:
        ConfigurationError: no noise parameters exist for the budget.

    """
    if budget is None:
        return None
    epsilon, delta = budget.answers_epsilon, budget.answers_delta
    row, asked = answering_registration(settings, opened), answers_asked(settings, opened)
    return row.calibrate(asked, epsilon=epsilon, delta=delta)


def answering_parameters(
    settings: Settings,
    budget: PipelineBudget | None,
    calibration: Calibration | None,
    *,
    ensemble_size: int,
    is_checked: bool = False,
) -> Parameters:
    """Return the answering mechanism's parameters, after checking its noise parameters again.

    Args:
        settings: the whole configuration.
        budget: the budget of relabelling and answers; None if answers have no share.
        calibration: the noise parameters for this budget; None if ``budget`` is None.
        ensemble_size: the number k of votes on every query.
        is_checked: whether :func:`is_as_checked` returned true for ``calibration``; then these
            noise parameters are not checked again.

    Raises:
        InvariantError: the noise parameters do not satisfy the privacy claim, or belong to another
            budget.

    """
    answering = None
    if budget is not None and calibration is not None:
        _check_share(settings, budget, calibration)
        if not is_checked:
            _row_of(settings, calibration).check(calibration)
        answering = _row_of(settings, calibration).serve(calibration, ensemble_size)
    return Parameters(
        answering=answering,
        class_count=len(settings.data.classes),
        answer_limit=settings.answers.queries if answering is not None else 0,
        after=_after(settings, answering),
        on_cutoff=Sequel(settings.answers.on_cutoff),
        unstable_gets_coin=settings.answers.unstable == "coin",
        with_scores=settings.answers.output == "score",
    )


def check_calibration(settings: Settings, budget: PipelineBudget, calibration: Calibration) -> None:
    """Raise an error unless noise parameters keep every condition of the privacy claim.

    Raises:
        InvariantError: a condition of the privacy claim does not hold.

    """
    _check_share(settings, budget, calibration)
    _row_of(settings, calibration).check(calibration)


def _check_share(settings: Settings, budget: PipelineBudget, calibration: Calibration) -> None:
    """Raise an error unless a calibration is for the answers' limits and budget."""
    row, asked = _row_of(settings, calibration), answers_asked(settings)
    same = row.is_of(calibration, asked)
    share = (calibration.epsilon, calibration.delta)
    same = same and share == (budget.answers_epsilon, budget.answers_delta)
    invariant(same, "the calibration is the one of the answers' share")


def check_pieces(settings: Settings, ledger: Ledger) -> None:
    """Raise an error if stored private values are damaged, even if they are not used.

    Raises:
        LedgerCorruptError: a private value of the release is missing or altered, or the noise
            parameters are not those that its opening checked.
        InvariantError: the stored noise parameters do not satisfy the privacy claim.

    """
    state, budget = ledger.read_state(), release_budget(settings)
    for name in state.private_digests:
        read_piece(ledger, name)
    is_kept = state.ensemble is not None or state.generations is not None
    if budget is not None and is_kept:
        calibration = read_calibration(settings, ledger)
        check_calibration(settings, budget, calibration)
        check_accounts(state, calibration)
        is_as_checked(settings, ledger)


def check_accounts(state: LedgerState, calibration: Calibration) -> None:
    """Check that each batch's budget suffices for its unstable answers with the noise in use.

    Raises:
        InvariantError: the budget of a batch is too small for its number of unstable answers with
            this stability table.

    """
    known = state.generations
    for each in () if known is None else known.all:
        if each.account:
            check_account(account_of(each), own(calibration, ProfileTable).thresholds)


def calibration_piece(calibration: Calibration) -> dict[str, bytes]:
    """Return the noise parameters as bytes, for the private state."""
    return {row_of(calibration).piece: msgspec.json.encode(calibration.to_plain())}


def keeps_calibration(state: LedgerState) -> bool:
    """Return whether ledger entries refer to stored noise parameters of the answers."""
    return any(row.piece in state.private_digests for row in MECHANISMS.values())


def checked_piece(calibration: Calibration) -> dict[str, bytes]:
    """Return a digest of checked noise parameters; stored, it records that they were checked."""
    (body,) = calibration_piece(calibration).values()
    return {CHECKED: CHECK_RULE + sha256(body).digest()}


def is_as_checked(settings: Settings, ledger: Ledger) -> bool:
    """Return whether the opening recorded a check of the stored noise parameters.

    The result is False if an earlier version of the program recorded no check, or made a check that
    is not as strict as this version's.

    Raises:
        LedgerCorruptError: a private value is missing or altered, or the noise parameters are not
            those that were checked.

    """
    state = ledger.read_state()
    if CHECKED not in state.private_digests:
        return False
    recorded = read_piece(ledger, CHECKED, state)
    if not recorded.startswith(CHECK_RULE):
        return False
    name = answering_registration(settings, state.release).piece
    found = CHECK_RULE + sha256(read_piece(ledger, name, state)).digest()
    if not hmac.compare_digest(found, recorded):
        problem = "holds another calibration than the one that the opening checked"
        raise LedgerCorruptError(f"the private state {problem}: {name}")
    return True


def read_calibration(settings: Settings, ledger: Ledger) -> Calibration:
    """Return the noise parameters with which a release was opened.

    Raises:
        LedgerCorruptError: the stored noise parameters are missing or altered.
        InvariantError: the stored text does not describe noise parameters.

    """
    row = answering_registration(settings, ledger.read_state().release)
    body = read_piece(ledger, row.piece)
    return row.read(msgspec.json.decode(body, type=dict[str, str | list[str]]))


def _after(settings: Settings, answering: Answering | None) -> Sequel:
    """Return what follows query m; of a release of statistics alone, nothing."""
    if answering is None and settings.privacy.shares.classifier == 0:
        return Sequel.HALT
    return Sequel(settings.answers.after)
