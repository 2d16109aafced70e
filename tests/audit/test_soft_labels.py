"""Soft labels: what one record moves, the end of a run, and a lower bound on epsilon.

Nothing is sampled.  Replacements of one score are enumerated over all edges and
mid-points; every script of hits is played to the code; and the bound is the one of
``app.auditing.bounds.threshold_bound``, with both histograms of real scores in place of votes: many
queries are stable, which shows that the threshold's noise is low, and then as many
tests are hits as the code allows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from app.errors import InvariantError
from app.noise.scripted import ScriptedNoise
from app.privacy.soft_labels import mechanism as soft_labels
from app.privacy.soft_labels.mechanism import PrivateBins, ScoreBin, State, bin_scores, histogram
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.sparse_vector.calibration import Variant, calibrate_variant
from app.privacy.stability import mechanism as stability
from tests.builders.mechanisms.prescribed import NOTHING, PrescribedLaplace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from app.noise.source import NoiseSource

    Step = Callable[[Any, Any, PrivateBins, NoiseSource], tuple[Any, soft_labels.Outcome]]
    Count = Callable[[NDArray[np.float64], ScoreBin], int]
    Binned = Callable[[NDArray[np.float64], Sequence[int]], list[PrivateBins]]

pytestmark = pytest.mark.audit

DELTA = Fraction(1, 10**6)
HALF_OF_VOTES = 500
RELEASE_COUNTS = (1, 10**3, 10**7)
NOISE_MAX = 1 << 13
SCALES_SUMMED = 60
ROUNDING = 1e-9
CUTOFFS = (1, 2, 3)


def real_count(scores: NDArray[np.float64], counted: ScoreBin) -> int:
    """Count the scores in one bin as the code does: no fault."""
    return int(histogram(scores, counted.bin_count, shifted=counted.shifted)[counted.index])


def closed_count(scores: NDArray[np.float64], counted: ScoreBin) -> int:
    """Count in a bin that is closed on both sides, as printed: bins overlap at the edges."""
    lower, upper = float(counted.lower), float(counted.upper)
    return int(((scores >= lower) & (scores <= upper)).sum())


def printed_bins(scores: NDArray[np.float64], bin_counts: Sequence[int]) -> list[PrivateBins]:
    """Take max(0, gap - 1) for the distance, as Algorithm 8 prints it."""

    def largest(counts: NDArray[np.int64]) -> tuple[int, int]:
        ordered = np.sort(counts)
        return int(counts.argmax()), max(0, int(ordered[-1] - ordered[-2]) - 1)

    return [
        PrivateBins(
            bin_count,
            plain=largest(histogram(row, bin_count, shifted=False)),
            shifted=largest(histogram(row, bin_count, shifted=True)),
        )
        for row, bin_count in zip(scores, bin_counts, strict=True)
    ]


def step_once_more(
    parameters: stability.Parameters, state: State, value: PrivateBins, noise: NoiseSource
) -> tuple[State, soft_labels.Outcome]:
    """Loop while c <= T: one unit too many."""
    longer = replace(parameters, cutoff=parameters.cutoff + 1)
    return soft_labels.step(longer, state, value, noise)


@dataclass(frozen=True)
class TwoCounters:
    """The counts of two histograms that do not know of each other."""

    plain: State
    shifted: State


def step_with_two_counters(
    parameters: stability.Parameters,
    state: State | TwoCounters,
    value: PrivateBins,
    noise: NoiseSource,
) -> tuple[TwoCounters, soft_labels.Outcome]:
    """Give each histogram T units of its own; the run ends when either has used them."""
    both = state if isinstance(state, TwoCounters) else TwoCounters(state, state)
    longer = replace(parameters, cutoff=2 * parameters.cutoff)
    if max(both.plain.hit_count, both.shifted.hit_count) >= parameters.cutoff:
        message = "no step after the cutoff"
        raise InvariantError(message)
    _, outcome = soft_labels.step(
        longer, State(0, both.plain.private_threshold_noise), value, noise
    )
    used = outcome.hit_count
    plain = replace(both.plain, hit_count=both.plain.hit_count + (used > 0))
    shifted = replace(
        both.shifted, hit_count=both.shifted.hit_count + (outcome.released_bin is None)
    )
    return TwoCounters(plain, shifted), outcome


# --- One record --------------------------------------------------------------------


def places(bin_count: int) -> list[float]:
    """Return every edge of both histograms and a score in every bin between them."""
    return [index / (4 * bin_count) for index in range(4 * bin_count + 1)]


def moves_by_one(binned: Binned, bin_count: int, score_count: int) -> bool:
    """Replace each score by every other: distances move by at most 1, and are 0 at a flip."""
    scores = places(bin_count)
    for rest in product(scores, repeat=score_count - 1):
        values = binned(np.array([[*rest, one] for one in scores]), [bin_count] * len(scores))
        for pair in (
            list({value.plain for value in values}),
            list({value.shifted for value in values}),
        ):
            for (a, distance), (b, other) in product(pair, pair):
                if abs(distance - other) > 1 or (a != b and (distance, other) != (0, 0)):
                    return False
    return True


def is_a_partition(count: Count) -> bool:
    """Ask whether every score counts once in each histogram."""
    return all(
        sum(
            count(np.array([score]), ScoreBin(bin_count, index, shifted=shifted))
            for index in range(bin_count + shifted)
        )
        == 1
        for bin_count in (2, 3, 4, 10)
        for shifted in (False, True)
        for score in places(bin_count)
    )


@pytest.mark.parametrize(("bin_count", "score_count"), [(2, 4), (2, 5), (3, 4)])
def test_one_record_moves_both_distances_by_at_most_one(bin_count: int, score_count: int) -> None:
    """Over all scores on edges and between, and all replacements of one: Lemma S, twice."""
    assert moves_by_one(bin_scores, bin_count, score_count)


def test_the_printed_distance_is_caught() -> None:
    """A gap less one moves by two, and is one where a vote changes the largest bin."""
    assert not moves_by_one(printed_bins, 2, 4)


def test_every_score_is_one_vote_in_each_histogram() -> None:
    """On every edge and between them, a score counts in exactly one bin."""
    assert is_a_partition(real_count)


def test_closed_bins_are_caught() -> None:
    """Bins that overlap count a score on an edge twice, and are seen to."""
    assert not is_a_partition(closed_count)
    halves = [ScoreBin(2, index, shifted=False) for index in range(2)]
    assert [closed_count(np.full(9, 0.5), half) for half in halves] == [9, 9]


# --- The end of a run --------------------------------------------------------------

PROFILE = (3 << 62, 1 << 62)
HIT, STABLE = 0, (1 << 64) - 1
BOTH_AT_ZERO = PrivateBins(2, plain=(0, 0), shifted=(1, 0))


def hits_of_a_run(step: Step, cutoff: int, hits: Sequence[bool]) -> int:
    """Play a script of tests until the run ends or the script does; return its hits."""
    noise = ScriptedNoise([HIT if hit else STABLE for hit in hits] + [STABLE] * 2)
    parameters = stability.Parameters(PROFILE, cutoff)
    state: Any = State()
    while noise.drawn_count < len(hits):
        try:
            state, _ = step(parameters, state, BOTH_AT_ZERO, noise)
        except InvariantError:
            break
    return sum(hits[: noise.drawn_count])


def ends_at_the_last_unit(step: Step) -> bool:
    """Play all scripts of eight tests: as many hits as there are, up to T."""
    return all(
        hits_of_a_run(step, cutoff, hits) == min(sum(hits), cutoff)
        for cutoff in CUTOFFS
        for hits in product((False, True), repeat=8)
    )


def test_both_histograms_use_the_units_of_one_counter() -> None:
    """On all 256 scripts and three cutoffs a run has T hits and never one more."""
    assert ends_at_the_last_unit(soft_labels.step)


@pytest.mark.parametrize("fault", [step_once_more, step_with_two_counters])
def test_more_units_than_were_paid_for_are_caught(fault: Step) -> None:
    """A loop while c <= T, and a counter for each histogram, allow more hits."""
    assert not ends_at_the_last_unit(fault)


# --- A lower bound on epsilon ------------------------------------------------------


@dataclass(frozen=True)
class Audited:
    """A soft-label run of one threshold at epsilon 1, faithful or with a planted fault.

    Attributes:
        cutoff: what the noise was calibrated for.
        step: answers one query.
        binned: turns scores into what is tested.

    """

    cutoff: int
    step: Step = soft_labels.step
    binned: Binned = bin_scores

    def value(self, lead: int) -> PrivateBins:
        """Return the tests of a query with ``lead`` scores beyond half in one bin."""
        scores = [0.1] * (HALF_OF_VOTES + lead) + [0.9] * (HALF_OF_VOTES - lead)
        return self.binned(np.array([scores]), [2])[0]

    def tests_at_the_end(self) -> list[bool]:
        """Play hits until the code ends the run; say of each whether it was a shifted test."""
        far = [-(10**9)] * 4 * self.cutoff
        parameters, state = self._parameters(far), State(0, 0)
        tests: list[bool] = []
        running: Any = state
        try:
            for _ in range(2 * self.cutoff):
                running, outcome = self.step(parameters, running, self.value(1), NOTHING)
                tests += [False, True][: outcome.hit_count]
        except InvariantError:
            return tests
        return tests

    def largest_noise_of_a_hit(self, value: PrivateBins, rho: int, *, shifted: bool) -> int:
        """Ask the code, by bisection, for the largest noise with which a test is a hit."""
        low, high = -NOISE_MAX, NOISE_MAX
        while high - low > 1:
            middle = (low + high) // 2
            drawn = [-(10**9), middle] if shifted else [middle, 10**9]
            _, outcome = soft_labels.step(
                replace(self._parameters(drawn), cutoff=3), State(0, rho), value, NOTHING
            )
            hit = outcome.hit_count > shifted
            low, high = (middle, high) if hit else (low, middle)
        return low

    def _parameters(self, query_noise: list[int]) -> sparse_vector.Parameters:
        return sparse_vector.Parameters(
            threshold=calibration(self.cutoff).threshold,
            threshold_noise=PrescribedLaplace(),
            query_noise=PrescribedLaplace(query_noise),
            cutoff=self.cutoff,
            refreshed=False,
        )


def calibration(cutoff: int) -> Any:
    """Return the noise that serves with one threshold."""
    return calibrate_variant(Variant.ONE_THRESHOLD, epsilon=Fraction(1), delta=DELTA, cutoff=cutoff)


def ratio(scale: Fraction) -> Decimal:
    """Return ``e^(-1/scale)`` in the current decimal context."""
    return (-Decimal(scale.denominator) / scale.numerator).exp()


def at_most(top: int, base: Decimal) -> Decimal:
    """Return the probability that discrete Laplace noise is at most ``top``."""
    return base**-top / (1 + base) if top < 0 else 1 - base ** (top + 1) / (1 + base)


def lower_bound(audited: Audited) -> float:
    """Return the largest log-ratio of an event, whichever neighbour it is likelier on."""
    served, tests = calibration(audited.cutoff), audited.tests_at_the_end()
    with localcontext(Context(prec=50, Emin=MIN_EMIN)):
        base, query_base = ratio(served.threshold_scale), ratio(served.query_scale)
        end = math.ceil(SCALES_SUMMED * served.threshold_scale)
        law = {x: (1 - base) / (1 + base) * base ** abs(x) for x in range(-end, end + 1)}
        lead = max(1, served.threshold // 4)
        values = {each: audited.value(each) for each in (lead, lead + 1)}

        def hit(each: int, *, shifted: bool) -> list[Decimal]:
            # The edge moves with the threshold's noise, one for one.
            edge = audited.largest_noise_of_a_hit(values[each], 0, shifted=shifted)
            return [at_most(edge + rho, query_base) for rho in law]

        hits = {(each, kind): hit(each, shifted=kind) for each in values for kind in (False, True)}
        largest = 0.0
        for count in RELEASE_COUNTS:
            one, other = (
                sum(
                    weight
                    * (1 - hits[stable, False][place]) ** count
                    * math.prod((hits[unstable, kind][place] for kind in tests), start=Decimal(1))
                    for place, weight in enumerate(law.values())
                )
                for stable, unstable in ((lead + 1, lead), (lead, lead + 1))
            )
            largest = max(largest, abs(float(Decimal(one).ln() - Decimal(other).ln())))
    return largest


@pytest.mark.parametrize("cutoff", CUTOFFS)
def test_the_claim_survives_and_is_nearly_used(cutoff: int) -> None:
    """Over both histograms the bound is at most epsilon and at least 95 % of it."""
    assert 0.95 < lower_bound(Audited(cutoff)) <= 1 + ROUNDING


@pytest.mark.parametrize("cutoff", CUTOFFS)
def test_a_counter_for_each_histogram_exceeds_the_claim(cutoff: int) -> None:
    """Units counted twice over read far more than the claim of 1."""
    assert lower_bound(Audited(cutoff, step=step_with_two_counters)) > 1.2


@pytest.mark.parametrize("cutoff", CUTOFFS)
def test_a_unit_beyond_the_last_exceeds_the_claim(cutoff: int) -> None:
    """``c <= T`` reads a hit more than was paid for."""
    assert lower_bound(Audited(cutoff, step=step_once_more)) > 1.2


@pytest.mark.parametrize("cutoff", CUTOFFS)
def test_the_printed_distance_exceeds_the_claim(cutoff: int) -> None:
    """A value that moves by two reads about twice the claim."""
    assert 1.9 < lower_bound(Audited(cutoff, binned=printed_bins)) <= 2 + ROUNDING
