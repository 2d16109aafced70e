"""The stability test's entries in the table of answering mechanisms."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from app.privacy.budget.ensemble_size import (
    ApproximateDecisions,
    ApproximateProfile,
    hits_alike,
    size_of_test,
)
from app.privacy.generations.accounts import open_account
from app.privacy.mechanism_registration import Explained, HitState, MechanismRegistration, State
from app.privacy.stability import cell_table, hit_table
from app.privacy.stability import mechanism as stability

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from app.noise.source import NoiseSource
    from app.privacy.mechanism_registration import AnswersAsked
    from app.privacy.voting.votes import Tally

WORD: Final = 1 << 64
HIT_SELDOM: Final = 0.01
_hits = lru_cache(maxsize=256)(stability.State)
_hit_state = lru_cache(maxsize=256)(HitState)


def _calibrate(
    asked: AnswersAsked, *, epsilon: Fraction, delta: Fraction
) -> hit_table.ProfileTable:
    return hit_table.calibrate(
        epsilon=epsilon,
        delta=delta,
        cutoff=asked.cutoff,
        draws=asked.draws_at(epsilon),
        is_by_cutoff=asked.is_by_cutoff,
        hits_max=asked.hits_max,
    )


def _step(
    parameters: stability.HitProfile, state: State, private_value: Tally, noise: NoiseSource
) -> tuple[State, int | None]:
    """Do what ``step_of(_test)`` does, in a third of its time: every answer takes a step."""
    after, hit = stability.step(
        parameters, _hits(state.unstable_count), private_value.distance, noise
    )
    following = State(state.answered_count + 1, after.hit_count)
    return following, None if hit else private_value.plurality


def _test(
    parameters: stability.HitProfile, state: HitState, distance: int, noise: NoiseSource
) -> tuple[HitState, bool]:
    after, hit = stability.step(parameters, _hits(state.hit_count), distance, noise)
    return _hit_state(after.hit_count), hit


def _tests(
    parameters: stability.HitProfile,
    state: HitState,
    distances: NDArray[np.int64],
    noise: NoiseSource,
) -> tuple[HitState, NDArray[np.bool_]]:
    after, hits = stability.steps(parameters, _hits(state.hit_count), distances, noise)
    return _hit_state(after.hit_count), hits


def _explain(test: stability.HitProfile) -> Explained:
    needed = next(
        (d for d, threshold in enumerate(test.thresholds) if threshold < HIT_SELDOM * WORD), None
    )
    lead = "" if needed is None else f"a lead of {2 * needed + 1:,} votes"
    return Explained(
        "stability test",
        lead or "calibrated",
        "A query whose leading label is this far ahead of the second gets its label 99 times in "
        "100. The closer the vote, the likelier the answer is unstable: a close vote might turn "
        "on one record.",
        f"unstable if a random 64-bit word < P(d); P(0) / 2^64 = {test.thresholds[0] / WORD:.9f}, "
        "d = max(0, ceil(lead / 2) - 1)",
    )


PROFILE: Final = MechanismRegistration(
    mechanism="stability",
    calibration="profile",
    theorem="Theorem A: a table of hits over the distance, by Renyi divergence of one order",
    proof="app/privacy/stability/proof.md",
    parameters=stability.Parameters,
    calibrations=(hit_table.ProfileTable, ApproximateProfile),
    piece="profile-table",
    calibrate=_calibrate,
    check=hit_table.check,
    read=hit_table.ProfileTable.from_plain,
    is_of=lambda table, asked: (
        (table.cutoff, table.draws) == (asked.cutoff, asked.draws_at(table.epsilon))
    ),
    serve=lambda table, _: stability.Parameters(table.thresholds, table.cutoff),
    size_wanted=size_of_test,
    unstable_alike=hits_alike,
    explain=_explain,
    step=_step,
    test=_test,
    tests=_tests,
    decides_cells=True,
    may_share_account=True,
    open_account=open_account,
    orders_by_cutoff=True,
)


PROFILE_OF_CELLS: Final = replace(
    PROFILE,
    entry="profile-of-cells",
    rule="decisions",
    theorem="a table of hits over the distance for the two decisions that a record moves, each "
    "public cell being decided once, by Renyi divergence of one order (Counted decisions)",
    parameters=stability.HitProfile,
    calibrations=(cell_table.DecisionTable, ApproximateDecisions),
    piece="decision-table",
    calibrate=lambda asked, *, epsilon, delta: cell_table.calibrate(
        epsilon=epsilon, delta=delta, draws=asked.draws_at(epsilon)
    ),
    check=cell_table.check,
    read=cell_table.DecisionTable.from_plain,
    is_of=lambda table, asked: (
        (table.decisions, table.draws)
        == (cell_table.DECISIONS_MOVED, asked.draws_at(table.epsilon))
    ),
    serve=lambda table, _: stability.HitProfile(table.thresholds),
    orders_by_cutoff=False,
    counts_decisions=True,
    open_account=None,
)
