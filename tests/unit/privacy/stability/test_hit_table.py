"""The table of Theorem A: the vectors, the exact check, and what it refuses."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from app.errors import ConfigurationError, InvariantError
from app.privacy.stability import (
    hit_table as profile,
)
from app.privacy.stability import hit_table as profile_search
from app.privacy.stability import probability_curve as profile_curve
from app.privacy.stability.hit_table import ProfileTable, calibrate, check
from app.privacy.stability.probability_curve import (
    CurveInequality,
    curve_points,
    estimated_count,
    logit_of,
    point,
)
from app.privacy.stability.table_inequality import WORD_RANGE, Entry, Excess, Inequality

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "privacy-vectors.json").read_text())
CASES = VECTORS["profile_without_safety_factor"]
FOUR, MILLIONTH = Fraction(4), Fraction(1, 10**6)
EXAMPLES = [
    (Fraction(1), Fraction(1, 10**6), 20),
    (Fraction(3, 5), Fraction(1, 10**6) * (1 - Fraction(1, 1 << 20)), 20),
    (Fraction(8), Fraction(1, 1000), 1),
    (Fraction(50), Fraction(1, 10**6), 3),
]


@pytest.fixture(scope="module")
def small() -> ProfileTable:
    """A short table, built once."""
    return calibrate(epsilon=FOUR, delta=MILLIONTH, cutoff=2)


def served(case: dict[str, dict[str, float]]) -> ProfileTable:
    """The table that serves for a case of the vectors."""
    given = case["in"]
    return calibrate(
        epsilon=Fraction(str(given["epsilon"])),
        delta=Fraction(str(given["delta"])),
        cutoff=int(given["T"]),
    )


@pytest.mark.parametrize("case", CASES)
def test_served_table_agrees_with_the_vectors(case: dict[str, dict[str, float]]) -> None:
    """Every number of the vectors is met within 5e-6 by the table that serves."""
    table, expected = served(case), case["out"]
    complement = [(WORD_RANGE - table.threshold(distance)) / WORD_RANGE for distance in (0, 1, 10)]
    found = {
        "alpha": float(table.alpha),
        "lnR": float(table.ln_ratio),
        "one_minus_p0": complement[0],
        "one_minus_p1": complement[1],
        "one_minus_p10": complement[2],
        "p50": table.hit_probability(50),
        "p100": table.hit_probability(100),
        "p200": table.hit_probability(200),
        "d_at_1e-2": table.distance_at(1e-2),
        "d_at_1e-4": table.distance_at(1e-4),
    }
    assert found == pytest.approx(expected, rel=5e-6)


@pytest.mark.parametrize("case", CASES)
def test_real_valued_function_agrees_with_the_vectors(case: dict[str, dict[str, float]]) -> None:
    """The real table of the vectors' own parameters is met within 1e-6."""
    given, expected = case["in"], case["out"]
    table = profile.real_valued_hit_probability(
        epsilon=given["epsilon"], delta=given["delta"], cutoff=int(given["T"])
    )
    assert table[0].answer == pytest.approx(expected["one_minus_p0"], rel=1e-6)
    assert table[1].answer == pytest.approx(expected["one_minus_p1"], rel=1e-6)
    assert table[10].answer == pytest.approx(expected["one_minus_p10"], rel=1e-6)
    for distance in (50, 100, 200):
        assert table[distance].hit == pytest.approx(expected[f"p{distance}"], rel=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "cutoff", "at_hundredth", "at_ten_thousandth"),
    [("0.5", 1, 230, 374), ("1", 100, 361, 614), ("2", 1, 61, 99), ("2", 50, 149, 251)],
)
def test_distances_of_rare_hits_are_the_designs(
    epsilon: str, cutoff: int, at_hundredth: int, at_ten_thousandth: int
) -> None:
    """The distances at which hits are rare are those of the design's table."""
    table = calibrate(epsilon=Fraction(epsilon), delta=Fraction(1, 10**6), cutoff=cutoff)
    assert table.distance_at(1e-2) == at_hundredth
    assert table.distance_at(1e-4) == at_ten_thousandth


def left_sides(table: ProfileTable, hit: int, following: int) -> list[Decimal]:
    """Both orders of the inequality from its definition, at 90 digits."""
    with localcontext(Context(prec=90)):
        order = Decimal(table.alpha.numerator) / table.alpha.denominator
        ratio = (Decimal(table.ln_ratio.numerator) / table.ln_ratio.denominator).exp()
        p, q = Decimal(hit) / WORD_RANGE, Decimal(following) / WORD_RANGE
        return [
            a**order * b ** (1 - order) / ratio + (1 - a) ** order * (1 - b) ** (1 - order)
            for a, b in ((p, q), (q, p))
        ]


@pytest.mark.parametrize(("epsilon", "delta", "cutoff"), EXAMPLES)
def test_every_entry_is_the_smallest_that_holds(
    epsilon: Fraction, delta: Fraction, cutoff: int
) -> None:
    """An entry meets the inequality in both orders and the integer below it does not."""
    table = calibrate(epsilon=epsilon, delta=delta, cutoff=cutoff)
    pairs = list(pairwise(table.thresholds))
    for hit, following in pairs[:20] + pairs[20:-20:29] + pairs[-20:]:
        assert max(left_sides(table, hit, following)) <= 1 - Decimal("1e-30")
        if following > 1:
            assert max(left_sides(table, hit, following - 1)) > 1 - Decimal("1e-30")


def test_an_entry_takes_two_looks_at_the_inequality(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the tangent of the first, no integer below the second is accepted: it is not looked at."""
    looks, excess = [], Inequality.excess

    def counted(self: Inequality, previous: Entry, following: Entry) -> Excess:
        looks.append(following.hit)
        return excess(self, previous, following)

    monkeypatch.setattr(Inequality, "excess", counted)
    table = profile.find_thresholds(alpha=Fraction(30), ln_ratio=Fraction(1, 100), first=1 << 63)
    assert len(table) > 100
    assert len(looks) < 2.2 * len(table)


@pytest.mark.parametrize("known", [2, 3 * 10**7, 1 << 50, 1 << 63, WORD_RANGE - 10**9])
@pytest.mark.parametrize("share", ["1", "0.99999999999", "0.997", "0.98", "0.5"])
def test_logarithms_near_known_ones_are_the_same(known: int, share: str) -> None:
    """To the last digits, whether the series serves or the integers are too far apart."""
    hit = max(1, int(known * Fraction(share)))
    exact, near = Inequality.entry(hit), Inequality.entry_near(hit, Inequality.entry(known))
    assert (near.hit, near.answer) == (exact.hit, exact.answer)
    assert abs(near.ln_hit - exact.ln_hit) < Decimal("1e-57")
    assert abs(near.ln_answer - exact.ln_answer) < Decimal("1e-57")


@pytest.mark.parametrize(("epsilon", "delta", "cutoff"), EXAMPLES)
def test_first_entry_is_the_smallest_that_holds(
    epsilon: Fraction, delta: Fraction, cutoff: int
) -> None:
    """P_0 keeps the chance of a differing label within a tenth of delta, barely."""
    table = calibrate(epsilon=epsilon, delta=delta, cutoff=cutoff)
    first = table.thresholds[0]
    assert 1 - Fraction(first, WORD_RANGE) ** cutoff <= delta / 10
    assert 1 - Fraction(first - 1, WORD_RANGE) ** cutoff > delta / 10


@pytest.mark.parametrize(("epsilon", "delta", "cutoff"), EXAMPLES)
def test_table_passes_its_own_check(epsilon: Fraction, delta: Fraction, cutoff: int) -> None:
    """What calibration builds is what an opening accepts."""
    check(calibrate(epsilon=epsilon, delta=delta, cutoff=cutoff))


@pytest.mark.parametrize("index", [0, 1, 17, 40, -3])
def test_search_finds_the_same_entry_from_anywhere(small: ProfileTable, index: int) -> None:
    """The next threshold does not depend on where its search starts."""
    inequality = Inequality(alpha=small.alpha, ln_ratio=small.ln_ratio)
    previous, expected = small.thresholds[index], small.thresholds[index + 1]
    for guess in (0, 1, expected // 2, expected + 1, previous - 1, WORD_RANGE):
        found = profile_search._following_entry(inequality, inequality.entry(previous), guess=guess)
        assert found.hit == expected


def test_curve_root_settles_for_an_accepted_point() -> None:
    """Where false position creeps, the upper end, which is accepted, is returned."""
    creeping = profile_curve._falling_root(
        lambda value: 1e-300 if value < 0 else -1.0, low=-1.0, high=1.0
    )
    assert creeping == 1.0


def test_table_ends_at_the_first_entry_below_the_floor(small: ProfileTable) -> None:
    """The last entry is the only one below 1e-12, and it holds beyond the end."""
    floor = Fraction(WORD_RANGE, 10**12)
    assert small.thresholds[-1] < floor <= small.thresholds[-2]
    assert small.threshold(10**9) == small.thresholds[-1]


def test_distance_at_is_the_smallest(small: ProfileTable) -> None:
    """The distance found is within the probability and the one before is not."""
    found = small.distance_at(1e-3)
    assert small.hit_probability(found) <= 1e-3 < small.hit_probability(found - 1)


def test_distance_at_stops_at_the_tail(small: ProfileTable) -> None:
    """A probability below the held tail gives the last distance."""
    assert small.distance_at(1e-30) == len(small.thresholds) - 1


def test_parameters_are_exact_doubles_and_short_decimals() -> None:
    """What is printed of alpha and ln R is what serves, in binary and in decimal."""
    table = calibrate(epsilon=Fraction(1, 3), delta=Fraction(1, 10**6), cutoff=3)
    for value in (table.alpha, table.ln_ratio):
        assert Fraction(float(value)) == value
        assert (10**40 * value).denominator == 1


def test_plain_form_is_lossless(small: ProfileTable) -> None:
    """A table survives its plain form, JSON included."""
    assert ProfileTable.from_plain(json.loads(json.dumps(small.to_plain()))) == small


@pytest.mark.parametrize(
    "spoiled",
    [
        {},
        {"alpha": "two"},
        {"alpha": "1/0"},
        {"thresholds": ["x"]},
    ],
)
def test_plain_form_refuses_what_is_no_table(
    small: ProfileTable, spoiled: dict[str, str | list[str]]
) -> None:
    """A persisted table with a missing or senseless value is refused."""
    plain = {**small.to_plain(), **spoiled} if spoiled else {}
    with pytest.raises(InvariantError):
        ProfileTable.from_plain(plain)


def tampered(table: ProfileTable) -> list[ProfileTable]:
    """Tables that differ from a good one in a single thing that matters."""
    thresholds = table.thresholds
    middle = len(thresholds) // 2
    lowered = (*thresholds[:middle], thresholds[middle] - 1, *thresholds[middle + 1 :])
    raised = (*thresholds[:middle], thresholds[middle - 1] + 1, *thresholds[middle + 1 :])
    return [
        replace(table, cutoff=0),
        replace(table, cutoff=table.cutoff + 1),
        replace(table, epsilon=Fraction(0)),
        replace(table, epsilon=table.epsilon - Fraction(1, 10**6)),
        replace(table, alpha=Fraction(1)),
        replace(table, ln_ratio=Fraction(0)),
        replace(table, ln_ratio=table.ln_ratio * Fraction(99, 100)),
        replace(table, ln_ratio=table.ln_ratio + Fraction(1, 1 << 40)),
        replace(table, delta=table.delta - Fraction(1, 10**12)),
        replace(table, delta_svt=table.delta_svt * Fraction(999, 1000)),
        replace(table, delta_release=table.delta_release * Fraction(999, 1000)),
        replace(table, thresholds=()),
        replace(table, thresholds=(WORD_RANGE,)),
        replace(table, thresholds=(*thresholds, 0)),
        replace(table, thresholds=lowered),
        replace(table, thresholds=raised),
        replace(table, thresholds=thresholds[1:]),
        replace(table, thresholds=(*thresholds[:5], *thresholds[6:])),
    ]


def test_check_refuses_every_tampered_table(small: ProfileTable) -> None:
    """A table off by one unit in one place does not open a release."""
    check(small)
    for table in tampered(small):
        with pytest.raises(InvariantError):
            check(table)


@pytest.mark.parametrize(
    ("epsilon", "delta", "cutoff", "key"),
    [
        (Fraction(0), MILLIONTH, 2, "privacy.epsilon"),
        (Fraction(-1), MILLIONTH, 2, "privacy.epsilon"),
        (Fraction(1, 10**7), MILLIONTH, 2, "privacy.epsilon"),
        (Fraction(1, 1000), MILLIONTH, 2, "privacy.epsilon"),
        (FOUR, Fraction(0), 2, "privacy.delta"),
        (FOUR, Fraction(1), 2, "privacy.delta"),
        (FOUR, Fraction(1, 10**18), 2, "privacy.delta"),
        (FOUR, Fraction(10 * 2 - 1, 1 << 60), 2, "privacy.delta"),
        (FOUR, MILLIONTH, 0, "answers.cutoff"),
        (FOUR, MILLIONTH, 10**8, "privacy.epsilon"),
    ],
)
def test_budgets_without_a_table_are_refused(
    epsilon: Fraction, delta: Fraction, cutoff: int, key: str
) -> None:
    """A budget out of range is refused quickly, by the key that has to change."""
    with pytest.raises(ConfigurationError) as refusal:
        calibrate(epsilon=epsilon, delta=delta, cutoff=cutoff)
    assert refusal.value.key == key


def test_smallest_delta_is_accepted() -> None:
    """A tenth of delta over the cutoff may be exactly 2^-60."""
    check(calibrate(epsilon=Fraction(20), delta=Fraction(10 * 2, 1 << 60), cutoff=2))


def test_a_cutoff_beyond_the_grid_is_refused() -> None:
    """Where ln R would round down to zero there is no table."""
    with pytest.raises(ConfigurationError, match=r"answers\.cutoff"):
        calibrate(epsilon=Fraction(1), delta=Fraction(999, 1000), cutoff=10**15)


def test_long_cutoffs_are_checked_outward() -> None:
    """A power too long to be exact is rounded against us and still suffices."""
    table = calibrate(epsilon=Fraction(100), delta=Fraction(1, 1000), cutoff=1000)
    check(table)
    with pytest.raises(InvariantError):
        check(replace(table, thresholds=(table.thresholds[0] - 10**4, *table.thresholds[1:])))


def test_estimated_length_is_near_the_length() -> None:
    """The estimate by which long tables are refused is within a tenth."""
    for case in CASES:
        table = served(case)
        answer = (WORD_RANGE - table.thresholds[0]) / WORD_RANGE
        logits = curve_points(
            alpha=float(table.alpha),
            ln_ratio=float(table.ln_ratio),
            first_logit=-logit_of(answer),
            count_max=10**5,
        )
        inequality = CurveInequality(float(table.alpha), float(table.ln_ratio))
        estimate = estimated_count(inequality, first_logit=logits[0])
        assert len(logits) == len(table.thresholds)
        assert estimate == pytest.approx(len(logits), rel=0.1)
        assert point(logits[-1]).hit < 1e-12 <= point(logits[-2]).hit


def test_curve_gives_up_at_its_limit() -> None:
    """The real table stops at the number of entries asked for."""
    assert len(curve_points(alpha=16.3, ln_ratio=0.25, first_logit=19.0, count_max=7)) == 7


def test_calibration_is_quick() -> None:
    """The table of T = 20 at epsilon 1 takes well below two seconds."""
    started = time.process_time()
    calibrate(epsilon=Fraction(1), delta=Fraction(1, 10**6), cutoff=20)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("epsilon", "cutoff", "expected"),
    [("1", 1, (100, 163)), ("1", 5, (134, 219)), ("1", 20, (197, 327)), ("2", 100, (190, 322))],
)
def test_a_new_release_has_the_order_for_its_cutoff(
    epsilon: str, cutoff: int, expected: tuple[int, int]
) -> None:
    """Another order and a twentieth of delta for labels: fewer votes, by the same check."""
    made = partial(calibrate, epsilon=Fraction(epsilon), delta=Fraction(1, 10**6), cutoff=cutoff)
    table = made(is_by_cutoff=True)
    check(table)
    assert table.delta_release == Fraction(1, 20 * 10**6)
    assert (table.distance_at(1e-2), table.distance_at(1e-4)) == expected
    assert table.distance_at(1e-4) <= made().distance_at(1e-4)


def test_a_delta_too_small_to_halve_keeps_the_tenth() -> None:
    """``2^-60`` a hit is the least: below that a new release splits delta as before."""
    delta = Fraction(10 * 2, 1 << 60)
    table = calibrate(epsilon=Fraction(20), delta=delta, cutoff=2, is_by_cutoff=True)
    check(table)
    assert table.delta_release == delta / 10


def test_log_odds_beyond_the_range_of_exp_have_a_probability() -> None:
    """The curve of a very large epsilon leaps to odds that no double holds."""
    certain = point(-800.0)
    assert 0.0 < certain.hit < 1e-300
    assert certain.answer == 1.0
    assert point(800.0).hit == 1.0
