"""The mechanism of a release's answers; ``serve`` and ``simulate`` build the same.

From settings to the budget of relabelling and answers; all of it is public.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

import msgspec

from app.errors import invariant
from app.noise.discrete_gaussian import DiscreteGaussian
from app.noise.discrete_laplace import DiscreteLaplace
from app.privacy.budget.calibration import check
from app.privacy.budget.composition import Mechanism
from app.privacy.budget.pipeline import pipeline_budget
from app.privacy.noisy_vote import calibration as noisy_vote_accounting
from app.privacy.noisy_vote import mechanism as noisy_vote
from app.privacy.noisy_vote.calibration import NoisyVoteCalibration
from app.privacy.paper import paper
from app.privacy.paper.paper_pipeline import (
    PaperTargets,
    paper_budget,
    paper_calibration,
    pipeline_epsilon,
    printed,
)
from app.privacy.sparse_vector import calibration as svt
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.sparse_vector.calibration import SvtCalibration, Variant
from app.privacy.stability import hit_table as profile
from app.privacy.stability import mechanism as stability
from app.privacy.stability.hit_table import ProfileTable
from app.privacy.voting.universal import Parameters, Sequel
from app.release.private_state import read_piece
from app.release.terms.configuration import charges_by_mechanism

if TYPE_CHECKING:
    from app.ledger.ledger import Ledger
    from app.privacy.budget.calibration import Calibration
    from app.privacy.budget.pipeline import PipelineBudget
    from app.privacy.voting.universal import Answering
    from app.settings.settings import Settings


def release_budget(settings: Settings) -> PipelineBudget | None:
    """Return what relabelling and answers may cost; None where answers have no share.

    Raises:
        ConfigurationError: the calibration does not cover the shares, or Lemma L's
            least cost exceeds what relabelling may cost.

    """
    charges = charges_by_mechanism(settings)
    relabel, answers = charges.get(Mechanism.RELABEL), charges.get(Mechanism.ANSWERS)
    private_grid = settings.hypotheses.grid == "private"
    class_count = len(settings.data.classes)
    if settings.privacy.calibration == "paper":
        return paper_budget(
            paper_targets(settings),
            relabel=relabel,
            answers=answers,
            private_grid=private_grid,
            class_count=class_count,
        )
    return pipeline_budget(
        relabel=relabel,
        answers=answers,
        sampling_rate=Fraction(settings.privacy.sampling),
        private_grid=private_grid,
        class_count=class_count,
    )


def calibrate_paper(settings: Settings) -> SvtCalibration:
    """Return the sparse vector of calibration ``paper``, where answers have a share.

    Raises:
        ConfigurationError: the printed parameters do not keep what they claim.

    """
    charges = charges_by_mechanism(settings)
    return paper_calibration(
        paper_targets(settings),
        relabel=charges.get(Mechanism.RELABEL),
        answers=charges[Mechanism.ANSWERS],
    )


def printed_ensemble_size(settings: Settings) -> int:
    """Return k as NB Algorithm 5 prints it, where answers have a share."""
    charges = charges_by_mechanism(settings)
    return printed(
        paper_targets(settings),
        relabel=charges.get(Mechanism.RELABEL),
        answers=charges[Mechanism.ANSWERS],
    ).ensemble_size


def rows_needed(settings: Settings, ensemble_size: int) -> int:
    """Return the smallest n whose sample in calibration ``paper`` has a row a chunk."""
    charges = charges_by_mechanism(settings)
    epsilon = pipeline_epsilon(charges.get(Mechanism.RELABEL), charges[Mechanism.ANSWERS])
    return paper.rows_needed(epsilon=epsilon, ensemble_size=ensemble_size)


def paper_targets(settings: Settings) -> PaperTargets:
    """Return the accuracy that calibration ``paper`` is made for."""
    answers = settings.answers
    return PaperTargets(alpha=answers.alpha, beta=answers.beta, query_count=answers.queries)


NOISY_VOTE: Final = "noisy-vote"
PAPER: Final = "paper"
PIECE_NAMES: Final[dict[type[Calibration], str]] = {
    ProfileTable: "profile-table",
    SvtCalibration: "svt-calibration",
    NoisyVoteCalibration: "noisy-vote-calibration",
}


def calibrate_answers(settings: Settings, budget: PipelineBudget | None) -> Calibration | None:
    """Return what the answers' budget gives; None where they have none.

    Raises:
        ConfigurationError: where there are no parameters for the budget.

    """
    if budget is None:
        return None
    epsilon, delta, answers = budget.answers_epsilon, budget.answers_delta, settings.answers
    kind = _kind(settings)
    if kind is NoisyVoteCalibration:
        return noisy_vote_accounting.calibrate(
            epsilon=epsilon,
            delta=delta,
            answer_limit=answers.queries,
            class_count=len(settings.data.classes),
        )
    if settings.privacy.calibration == PAPER:
        return calibrate_paper(settings)
    if kind is SvtCalibration:
        return svt.calibrate(epsilon=epsilon, delta=delta, cutoff=answers.cutoff)
    return profile.calibrate(epsilon=epsilon, delta=delta, cutoff=answers.cutoff)


def answering_parameters(
    settings: Settings,
    budget: PipelineBudget | None,
    calibration: Calibration | None,
    *,
    ensemble_size: int,
) -> Parameters:
    """Return the mechanism's parameters, once the calibration was verified anew.

    Args:
        settings: the whole configuration.
        budget: what the answers may cost; None where they have no share.
        calibration: what was made for that budget; None beside None.
        ensemble_size: k, votes on every query.

    Raises:
        InvariantError: the calibration does not hold, or is another budget's.

    """
    answering = None
    if budget is not None and calibration is not None:
        check_calibration(settings, budget, calibration)
        answering = _answering(calibration, ensemble_size)
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
    """Assert that a calibration is the answers' own, and everything that its claim needs.

    Raises:
        InvariantError: at the first thing that does not hold.

    """
    same = _is_of(calibration, settings, budget)
    invariant(same, "the calibration is the one of the answers' share")
    check(calibration)


def check_pieces(settings: Settings, ledger: Ledger) -> None:
    """Refuse to go on where a start of the server would, though no piece is used.

    Raises:
        LedgerCorruptError: a private piece of the release is missing or altered.
        InvariantError: the calibration that it keeps does not hold.

    """
    state, budget = ledger.read_state(), release_budget(settings)
    for name in state.private_digests:
        read_piece(ledger, name)
    if budget is not None and state.ensemble is not None:
        check_calibration(settings, budget, read_calibration(settings, ledger))


def calibration_piece(calibration: Calibration) -> dict[str, bytes]:
    """Return a calibration as the private piece by which a release keeps it."""
    return {PIECE_NAMES[type(calibration)]: msgspec.json.encode(calibration.to_plain())}


def read_calibration(settings: Settings, ledger: Ledger) -> Calibration:
    """Return the calibration that a release was opened with.

    Raises:
        LedgerCorruptError: it is missing or altered.
        InvariantError: it is no calibration.

    """
    kind = _kind(settings)
    body = read_piece(ledger, PIECE_NAMES[kind])
    if kind is ProfileTable:
        return ProfileTable.from_plain(msgspec.json.decode(body, type=dict[str, str | list[str]]))
    plain = msgspec.json.decode(body, type=dict[str, str])
    if kind is SvtCalibration:
        return SvtCalibration.from_plain(plain)
    return NoisyVoteCalibration.from_plain(plain)


def _kind(settings: Settings) -> type[Calibration]:
    """Return which calibration the settings ask for, which a release is bound to."""
    if settings.answers.mechanism == NOISY_VOTE:
        return NoisyVoteCalibration
    return ProfileTable if settings.privacy.calibration == "profile" else SvtCalibration


def _is_of(calibration: Calibration, settings: Settings, budget: PipelineBudget) -> bool:
    """Whether a calibration is of the kind, the budget and the limits of the settings."""
    if isinstance(calibration, NoisyVoteCalibration):
        limits = (calibration.answer_limit, calibration.class_count)
        same = limits == (settings.answers.queries, len(settings.data.classes))
    else:  # calibration "paper" has a cutoff of its own
        own = settings.privacy.calibration == PAPER
        same = own or calibration.cutoff == settings.answers.cutoff
    share = (calibration.epsilon, calibration.delta)
    same = same and share == (budget.answers_epsilon, budget.answers_delta)
    return same and type(calibration) is _kind(settings)


def _answering(calibration: Calibration, ensemble_size: int) -> Answering:
    """Return the parameters of the mechanism that a calibration is for."""
    if isinstance(calibration, ProfileTable):
        return stability.Parameters(calibration.thresholds, calibration.cutoff)
    if isinstance(calibration, SvtCalibration):
        return sparse_vector.Parameters(
            threshold=calibration.threshold,
            threshold_noise=DiscreteLaplace(calibration.threshold_scale),
            query_noise=DiscreteLaplace(calibration.query_scale),
            cutoff=calibration.cutoff,
            refreshed=calibration.variant is Variant.REFRESHED,
        )
    return noisy_vote.Parameters(
        vote_noise=DiscreteGaussian(calibration.variance),
        class_count=calibration.class_count,
        ensemble_size=ensemble_size,
        answer_limit=calibration.answer_limit,
    )


def _after(settings: Settings, answering: Answering | None) -> Sequel:
    """Return what follows query m; of a release of statistics alone, nothing."""
    if answering is None and settings.privacy.shares.classifier == 0:
        return Sequel.HALT
    return Sequel(settings.answers.after)
