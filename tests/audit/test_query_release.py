"""Query release: what one record moves, and an exact lower bound on epsilon.

The code is played a transcript: many tests pass, which shows that the threshold's
noise is low, and U others fail, each with an answer far below its count.  On one of two
neighbours the former have a row less of error and the latter a row more.  What the
code tests is recorded on both; the transcript's probabilities are then sums over the
threshold's noise, and the logarithm of their ratio bounds epsilon from below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.privacy.multiplicative_weights.calibration import (
    QueryReleaseBudget,
    QueryReleaseCalibration,
    calibrate,
)
from app.privacy.multiplicative_weights.mechanism import Parameters, Table, draw
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.sparse_vector.calibration import Variant
from tests.builders.mechanisms.prescribed import NOTHING
from tests.builders.mechanisms.releasing import counts_of, prescribed, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.noise.source import NoiseSource

pytestmark = pytest.mark.audit

ROUNDING = 1e-9
UPDATES = (1, 2, 3)

# --- One record --------------------------------------------------------------------

SMALL_ROW_COUNT = 4
ALL_QUERIES = list(product((0, 1), repeat=3))


def slack(cells: Sequence[int], labels: Sequence[int], *, weight: int = 1) -> int:
    """Ask the code, by bisection on the noise, what it tests of one query against 2 rows."""
    low, high = -100, 100
    while high - low > 1:
        middle = (low + high) // 2
        given = prescribed(
            labels=[labels],
            row_count=weight * SMALL_ROW_COUNT,
            thresholds=(2,),
            query_noise=[middle],
            answer_noise=[0],
        )
        hit = draw(given, weight * counts_of(cells), NOTHING).update_count == 1
        low, high = (middle, high) if hit else (low, middle)
    return -low


def moves_by_one(weight: int) -> bool:
    """Replace each record of each small data set by every other, for every query."""
    data = [cells for cells in product(range(5), repeat=3) if sum(cells) == SMALL_ROW_COUNT]
    for labels in ALL_QUERIES:
        slacks = {cells: slack(cells, labels, weight=weight) for cells in data}
        for one, other in product(data, data):
            neighbors = sum(abs(a - b) for a, b in zip(one, other, strict=True)) == 2
            if neighbors and abs(slacks[one] - slacks[other]) > 1:
                return False
    return True


def test_one_record_moves_what_is_tested_by_at_most_one() -> None:
    """Over all data sets of four rows in three cells, and all eight queries."""
    assert moves_by_one(weight=1)


def test_queries_of_minus_one_and_one_are_caught() -> None:
    """Summed as printed, a query moves by two when a record is replaced."""
    assert not moves_by_one(weight=2)


def all_pass(labels: NDArray[np.uint8], cells: NDArray[np.int64]) -> Table:
    """Return the table of a run in which every test passes: it knows nothing of the rows."""
    given = prescribed(
        labels=labels.tolist(), row_count=int(cells.sum()), query_noise=[10**6] * len(labels)
    )
    return draw(given, cells, NOTHING)


def test_a_domain_of_the_occupied_cells_is_caught() -> None:
    """Without a failed test neighbours give one table; over their own cells they do not."""
    labels, one, other = table_of(), counts_of((25, 9, 6, 0)), counts_of((25, 8, 6, 1))
    assert all_pass(labels, one) == all_pass(labels, other)
    occupied = [all_pass(labels[:, cells > 0], cells[cells > 0]) for cells in (one, other)]
    assert occupied[0] != occupied[1]


# --- A lower bound on epsilon ------------------------------------------------------

ROW_COUNT = 10**6
PASSING_COUNT = 200
# Rows of error beyond the threshold in tests that pass all the same.
MISSING = 3_000
BELOW = -5_000


@dataclass(frozen=True)
class Audited:
    """A release as it is run: faithfully, or with a planted fault.

    Attributes:
        calibration: of the noise.
        update_count: failed tests that the run allows.
        weight: what one row adds to a count; 1, or 2 for values of -1 and +1.

    """

    calibration: QueryReleaseCalibration
    update_count: int
    weight: int = 1

    def cells(self, moved: int) -> NDArray[np.int64]:
        """Return rows in eight cells; ``moved`` of them went from the first to the second."""
        even, last = ROW_COUNT // 8, 7
        cells = np.full(8, even - 3, dtype=np.int64)
        cells[0] = even - self.calibration.threshold - MISSING - moved
        cells[1] += moved
        cells[last] += ROW_COUNT - cells.sum()
        return self.weight * cells

    def labels(self) -> NDArray[np.uint8]:
        """Return queries for the first cell, and one more than U for the second and another."""
        first = np.eye(8, dtype=np.uint8)[[0] * PASSING_COUNT]
        pairs = np.eye(8, dtype=np.uint8)[1] + np.eye(8, dtype=np.uint8)[2:6]
        return np.concatenate([first, pairs[: self.update_count + 1]])

    def parameters(self, answers: Sequence[int]) -> Parameters:
        """Return the parameters of a run whose law hardly moves."""
        threshold = self.calibration.threshold
        given = prescribed(
            labels=self.labels().tolist(),
            row_count=self.weight * ROW_COUNT,
            thresholds=(threshold,),
            updates=self.update_count,
            threshold_noise=[0] * (self.update_count + 1),
            answer_noise=answers,
            test_deviation=threshold - 1,
            answer_deviation=10 * ROW_COUNT,
        )
        refreshed = self.calibration.variant is Variant.REFRESHED
        return replace(given, test=replace(given.test, refreshed=refreshed))


def recorded(
    audited: Audited, moved: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[tuple[int, bool]], list[int], Table]:
    """Play the transcript: tests below 0 pass, others fail; return the tests and the noise."""
    tests: list[tuple[int, bool]] = []

    def step(
        parameters: sparse_vector.Parameters,
        state: sparse_vector.State,
        value: int,
        noise: NoiseSource,
    ) -> tuple[sparse_vector.State, sparse_vector.Outcome]:
        del parameters, noise
        tests.append((value, value >= 0))
        following = sparse_vector.State(state.hit_count + (value >= 0), 0)
        return following, sparse_vector.Outcome(hit=value >= 0)

    # The same answers on both sides: where a count is a row higher, the noise is lower.
    answers = [BELOW - audited.weight * moved] * audited.update_count
    monkeypatch.setattr("app.privacy.multiplicative_weights.mechanism.sparse_vector.step", step)
    table = draw(audited.parameters(answers), audited.cells(moved), NOTHING)
    monkeypatch.undo()
    return tests, answers, table


def log_likelihood(
    calibration: QueryReleaseCalibration, tests: Sequence[tuple[int, bool]], answers: Sequence[int]
) -> float:
    """Return the logarithm of a transcript's probability, up to what neighbours share."""
    first = float(calibration.threshold_scale)
    furthest = max(abs(value) for value, _ in tests)
    end = int(furthest + 60 * first + 60 * float(calibration.query_scale))
    rho = np.arange(-end, end + 1)
    log_weight = -np.abs(rho) / first
    for value, hit in tests:
        at_most = log_at_most(rho - value, float(calibration.query_scale))
        log_weight = log_weight + (at_most if hit else log_above(rho - value, calibration))
    largest = float(log_weight.max())
    total = largest + math.log(float(np.exp(log_weight - largest).sum()))
    return total - sum(abs(answer) for answer in answers) / float(calibration.answer_scale)


def log_at_most(top: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    """Return the log-probability that discrete Laplace noise is at most ``top``."""
    log_mass = -math.log1p(math.exp(-1 / scale))
    low = np.minimum(top, -1) / scale + log_mass
    high = np.log1p(-np.exp(-(np.maximum(top, 0) + 1) / scale + log_mass))
    return np.where(top < 0, low, high)


def log_above(top: NDArray[np.int64], calibration: QueryReleaseCalibration) -> NDArray[np.float64]:
    """Return the log-probability that a test's noise is above ``top``."""
    return log_at_most(-top - 1, float(calibration.query_scale))


def lower_bound(audited: Audited, monkeypatch: pytest.MonkeyPatch) -> float:
    """Return the log-ratio of the transcript's probabilities on the two neighbours."""
    one, other = (recorded(audited, moved, monkeypatch) for moved in (0, 1))
    assert one[2] == other[2]  # one transcript
    assert [hit for _, hit in one[0]] == [hit for _, hit in other[0]]
    assert one[2].update_count == audited.update_count
    scores = [log_likelihood(audited.calibration, *each[:2]) for each in (one, other)]
    return abs(scores[0] - scores[1])


def calibrated(updates: int, *, query_count: int = 10) -> QueryReleaseCalibration:
    """Return the noise of so many updates at epsilon 1."""
    budget = QueryReleaseBudget(
        epsilon=Fraction(1),
        delta=Fraction(1, 10**6),
        row_count=ROW_COUNT,
        query_count=query_count,
        cell_count=8,
        failure=Fraction(1, 20),
    )
    return calibrate(budget, update_count=updates)


@pytest.mark.parametrize("updates", UPDATES)
def test_the_claim_survives_and_is_nearly_used(
    updates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is at most epsilon and more than 99 % of it: the audit has power."""
    audited = Audited(calibrated(updates), updates)
    assert audited.calibration.variant is Variant.ONE_THRESHOLD
    assert 0.99 < lower_bound(audited, monkeypatch) <= 1 + ROUNDING


def test_an_epoch_uses_its_claim_and_stays_within(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refreshed epoch costs at most 1/b1 + 2/b2 + 1/s, and nearly that."""
    calibration = calibrated(90, query_count=500)
    assert calibration.variant is Variant.REFRESHED
    claim = float(
        1 / calibration.threshold_scale + 2 / calibration.query_scale + 1 / calibration.answer_scale
    )
    bound = lower_bound(Audited(calibration, 1), monkeypatch)
    assert 0.99 * claim < bound <= claim + ROUNDING


@pytest.mark.parametrize("updates", UPDATES)
def test_the_printed_range_reads_twice_the_claim(
    updates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of -1 and +1 with noise for counts cost double."""
    audited = Audited(calibrated(updates), updates, weight=2)
    assert 1.95 < lower_bound(audited, monkeypatch) <= 2 + ROUNDING


@pytest.mark.parametrize("updates", UPDATES)
def test_an_update_beyond_the_last_is_caught(updates: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One failed test more than was paid for reads more than the claim of 1."""
    assert lower_bound(Audited(calibrated(updates), updates + 1), monkeypatch) > 1.2


@pytest.mark.parametrize("updates", UPDATES)
def test_answers_that_are_not_paid_for_are_caught(
    updates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that take all of epsilon leave nothing for the noisy counts."""
    served = calibrated(updates)
    tests = 1 / served.threshold_scale + updates * 2 / served.query_scale
    greedy = replace(
        served,
        threshold_scale=served.threshold_scale * tests,
        query_scale=served.query_scale * tests,
    )
    assert lower_bound(Audited(greedy, updates), monkeypatch) > 1.15


def test_noise_that_is_not_scaled_by_the_updates_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise of one update, run for three, reads more than twice the claim."""
    assert lower_bound(Audited(calibrated(1), 3), monkeypatch) > 2


def test_answers_without_noise_are_caught() -> None:
    """A released count that is exact tells neighbours apart with certainty."""
    tables = [
        draw(prescribed(query_noise=[-99, 99, 99, 99], answer_noise=[0]), counts_of(cells), NOTHING)
        for cells in ((25, 9, 6, 0), (24, 10, 6, 0))
    ]
    assert tables[0].counts[0] != tables[1].counts[0]
