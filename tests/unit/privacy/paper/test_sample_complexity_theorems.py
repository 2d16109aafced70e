"""The theorems on sample complexity, worked by hand.

The hand-worked values are of two settings, with natural logarithms throughout:

* A: epsilon 1, delta 1e-6, alpha 1/10, beta 1/20;
* B: epsilon 1/2, delta 1e-5, alpha 1/20, beta 1/100.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from app.privacy.paper import sample_complexity_theorems
from app.privacy.paper.sample_complexity_theorems import (
    Bound,
    Constant,
    Setting,
    Targets,
    sample_complexity,
)

NAMES = (
    "NB 7",
    "NB 11",
    "BTT 4.3",
    "BTT 4.4",
    "BTT 4.5",
    "BTT 4.6",
    "BTT 4.7",
    "PAP 10",
    "LN",
)


def case_a(*, query_count: int = 1000, best_error: float = 0.0) -> Targets:
    """Setting A with a class of VC dimension 10."""
    return Targets(
        epsilon=Fraction(1),
        delta=Fraction(1, 10**6),
        alpha=0.1,
        beta=0.05,
        query_count=query_count,
        dimension=10,
        best_error=best_error,
    )


def case_b(*, query_count: int = 1, best_error: float = 0.0, beta: float = 0.01) -> Targets:
    """Setting B with a class of VC dimension 3."""
    return Targets(
        epsilon=Fraction(1, 2),
        delta=Fraction(1, 10**5),
        alpha=0.05,
        beta=beta,
        query_count=query_count,
        dimension=3,
        best_error=best_error,
    )


def found(name: str, targets: Targets) -> Bound:
    """The bound of one theorem."""
    (theorem,) = (one for one in sample_complexity(targets) if one.name == name)
    assert theorem.bound is not None
    return theorem.bound


def numbers(bound: Bound) -> tuple[int | None, ...]:
    """What was worked by hand: both row counts, m, T and k."""
    return (
        bound.rows,
        bound.rows_explicit,
        bound.query_count,
        bound.cutoff,
        bound.ensemble_size,
    )


def test_the_theorems_are_all_there() -> None:
    """Nine statements in the papers' order, each with its setting and its promise."""
    theorems = sample_complexity(case_a())
    assert tuple(theorem.name for theorem in theorems) == NAMES
    realizable = {one.name for one in theorems if one.setting is Setting.REALIZABLE}
    assert realizable == {"BTT 4.3", "BTT 4.6"}
    proved = {one.name for one in theorems if one.bound and one.bound.constant is Constant.PROVED}
    assert proved == {"NB 7", "NB 11", "LN"}


# -- NB Theorems 7 and 11 ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        # d ln 10 + ln 20000 = 32.9293385; ln(2e6)^1.5 = 55.2638139; ln(100/1e-6) =
        # 18.4206807; sqrt(1000) .1^1.5 = 1; so 448000 * 32.9293385 * 55.2638139 *
        # 18.4206807 / .01 = 1.501784264637e12.
        # Chunks: 8*10 log2(3120)/(1/240) = 222860.7, above 4 log2(40 * 16 k)/(1/240) =
        # 29434; k = 2652566 of them are more than the drift's 2.85e8; times 56.
        (
            case_a(),
            (1_501_784_264_637, 56 * 2_652_566 * 222_861, 1000, 27, 2_652_566),
        ),
        # 3 ln 20 + ln 2e6 = 23.4958546; ln(2e5)^1.5 = 42.6445883; ln(1000/1e-5) =
        # 18.4206807; sqrt(20000) .05^1.5 = 1.58113883; 448000 times these / (.5 * .0025).
        # Chunks: 24 log2(6240)/(1/480) = 145236.4; 112 = 56/epsilon.
        (
            case_b(query_count=20_000),
            (10_459_209_251_916, 112 * 5_772_612 * 145_237, 20_000, 178, 5_772_612),
        ),
        # One query is planned as the 8 ln(200)/.1 = 423.9 that the theorem asks for.
        (
            case_a(query_count=1),
            (1_394_523_780_452, 56 * 2_724_221 * 222_861, 424, 14, 2_724_221),
        ),
    ],
)
def test_nandi_bassily_seven_by_hand(targets: Targets, expected: tuple[int | None, ...]) -> None:
    """Theorem 7's bracket, times 8000 and 56, and its chunks' rows are those worked out."""
    bound = found("NB 7", targets)
    assert numbers(bound) == pytest.approx(expected, rel=1e-12)
    assert (bound.error, bound.failure) == (targets.alpha, targets.beta)


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        # m_o = 320 (10 ln 10 + ln 20) = 8326.9; then Theorem 7 at epsilon 1/2:
        # 35.0488417 * 55.2638139 * 20.540184 * 2.88565417 * 448000 / (.5 * .01).
        (
            case_a(),
            (10_286_583_254_817, 112 * 7_007_325 * 222_861, 8327, 148, 7_007_325),
        ),
        # m_o = 640 (3 ln 20 + ln 100) = 8699.1; Theorem 7 at epsilon 1/4:
        # 22.6634453 * 42.6445883 * 17.5882715 * 1.04283268 * 448000 / (.25 * .0025).
        (
            case_b(),
            (12_706_491_437_709, 224 * 3_865_011 * 145_237, 8700, 88, 3_865_011),
        ),
    ],
)
def test_nandi_bassily_eleven_by_hand(targets: Targets, expected: tuple[int | None, ...]) -> None:
    """Theorem 11 is Theorem 7 for m_o queries and half of epsilon, whatever m is."""
    assert numbers(found("NB 11", targets)) == pytest.approx(expected, rel=1e-12)
    assert found("NB 11", replace(targets, query_count=10**9)) == found("NB 11", targets)


# -- BTT Theorems 4.3 to 4.7 -------------------------------------------------------------


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        # T = 3 (1000 + sqrt(5000 ln 200000)) = 3741.13; 10 ln 10 + ln 200000 = 35.2319236;
        # ln(1e4 T/1e-6) = 31.2529938; sqrt(T ln 1e6) = 227.34471; product / .1.
        # Chunks: 80 log2(130)/.1 = 5617.9, above 40 log2(40 k) = 1012.
        (
            case_a(query_count=10_000),
            (2_503_300, 1_034_304 * 5618, 10_000, 3742, 1_034_304),
        ),
        # m = 1600 ln 2000 = 12161.4; T = 3 (608.1 + sqrt(6081 ln 1216200)) = 2699.98;
        # 22.9984386 * 28.8199979 * 176.308555 / (.5 * .05).
        (case_b(best_error=0.3), (4_674_398, 1_491_545 * 3851, 12_162, 2700, 1_491_545)),
    ],
)
def test_bassily_thakkar_thakurta_three_by_hand(
    targets: Targets, expected: tuple[int | None, ...]
) -> None:
    """Theorem 4.3 is realizable: T and rows know of no error of the class."""
    bound = found("BTT 4.3", targets)
    assert numbers(bound) == expected
    assert bound.error == expected[3] / expected[2]  # type: ignore[operator]  # No None here.
    assert bound.failure == 2 * targets.beta


@pytest.mark.parametrize("name", ["BTT 4.4", "BTT 4.5"])
@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        # T = 3 (.12 * 10000 + sqrt(5000 ln 200000)) = 4341.13; 10 + ln 200000 =
        # 22.2060726; ln(1e4 T/1e-6) = 31.4017408; sqrt(T ln 1e6) = 244.897782; / .01.
        # Chunks: 6400 (20 ln 120 + ln(80 k)) = 729984.03.
        (
            case_a(query_count=10_000, best_error=0.02),
            (17_076_952, 1_119_221 * 729_985, 10_000, 4342, 1_119_221),
        ),
        # T = 3 (.07 * 12162 + ...) = 3429.70; 17.0112418 * 29.0592261 * 198.71064 /
        # (.5 * .0025); chunks of 25600 (6 ln 240 + ln(400 k)) = 1362385.07.
        (
            case_b(best_error=0.02),
            (78_583_465, 1_694_450 * 1_362_386, 12_162, 3430, 1_694_450),
        ),
    ],
)
def test_bassily_thakkar_thakurta_four_and_five_by_hand(
    name: str, targets: Targets, expected: tuple[int | None, ...]
) -> None:
    """Theorem 4.4 and Claim 4.5 take the same rows, which gamma raises through T."""
    assert numbers(found(name, targets)) == expected


def test_the_claim_is_on_one_answer() -> None:
    """Claim 4.5 promises 7/10 + 6/100 at alpha .1 and gamma .02, and 35/100 at .05 and 0."""
    assert found("BTT 4.5", case_a(best_error=0.02)).error == pytest.approx(0.76)
    assert found("BTT 4.5", case_b()).error == pytest.approx(0.35)
    assert found("BTT 4.5", case_b()).failure == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("targets", "expected", "error"),
    [
        # Printed m = (10 + ln 20)/.01 = 1299.6, below the 400 ln 200 = 2119.3 of Theorem
        # 4.3: T = 954.82; 33.6807546 * 28.3362074 * 114.853647 / .1.  Explicit m =
        # 6400 (20 ln 120 + ln 80) = 640843.9, T = 199123.2.
        (case_a(), (1_096_146, 9_425_361 * 5618, 640_844, 199_124, 9_425_361), 1.5),
        # Printed m = (3 + ln 100)/.0025 = 3042.1, below 12162, so as in Theorem 4.3.
        # Explicit m = 25600 (6 ln 240 + ln 400) = 995207.1.
        (case_b(), (4_674_398, 14_628_476 * 3851, 995_208, 158_363, 14_628_476), 0.75),
    ],
)
def test_bassily_thakkar_thakurta_six_by_hand(
    targets: Targets, expected: tuple[int | None, ...], error: float
) -> None:
    """Theorem 4.6 is Theorem 4.3 for as many answers as the student needs."""
    bound = found("BTT 4.6", targets)
    assert numbers(bound) == expected
    assert bound.error == pytest.approx(error)
    assert bound.failure == pytest.approx(3 * targets.beta)


@pytest.mark.parametrize(
    ("targets", "expected", "error"),
    [
        # m as above; T = 3 (.12 * 2120 + ...) = 1082.02: 20.6549036 * 28.4612692 *
        # 122.264848 / .01.  Explicit T = 237573.8, chunks of 744213.6.
        (
            case_a(best_error=0.02),
            (7_187_520, 10_339_798 * 744_214, 640_844, 237_574, 10_339_798),
            1.64,
        ),
        # 17.0112418 * 28.8199979 * 176.308555 / (.5 * .0025); chunks of 1417568.7.
        (case_b(), (69_150_184, 14_628_476 * 1_417_569, 995_208, 158_363, 14_628_476), 0.75),
    ],
)
def test_bassily_thakkar_thakurta_seven_by_hand(
    targets: Targets, expected: tuple[int | None, ...], error: float
) -> None:
    """Theorem 4.7 is Theorem 4.4 for as many answers as the student needs."""
    bound = found("BTT 4.7", targets)
    assert numbers(bound) == expected
    assert bound.error == pytest.approx(error)


def test_beta_counts_as_alpha_at_most_where_the_papers_say_so() -> None:
    """Section 4.2 takes beta at most alpha; a larger one is planned as alpha."""
    for name in ("BTT 4.5", "BTT 4.6", "BTT 4.7"):
        assert found(name, case_b(beta=0.9)) == found(name, case_b(beta=0.05))
    assert found("BTT 4.4", case_b(beta=0.9)) != found("BTT 4.4", case_b(beta=0.05))


# -- PAP Theorem 10 and LN ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        # 26.0215832^1.5 sqrt(2047 ln 1e6) / .01, for p = 2^11 - 1.  At alpha/4 = 1/40
        # m = 160 (log2 80 + 20 log2 960) = 32713.6; ln|H~| = 10 ln(e m/10) = 90.9297331;
        # ln|X| = 2047 (91.9297331 - ln 2047) = 172573.568; ln(128 * 172573.568 * 1600 * 40)
        # = 27.9772475; 200 sqrt(172573.568 ln 2e6) (90.9297331 + 27.9772475) * 1600.
        (case_a(), (2_232_251, 60_208_538_732, 32_714)),
        # 13.592367^1.5 sqrt(3 ln 1e5) / (.5 * .0025), for a dual dimension of 3.  At 1/80
        # m = 320 (log2 400 + 6 log2 1920) = 23707.3; ln|H~| = 29.9248666; ln|X| =
        # 3 (30.9248666 - ln 3) = 89.4787629; ln(128 * 89.4787629 * 6400 * 200) =
        # 23.4084022; 200 sqrt(89.4787629 ln 2e5) (29.9248666 + 23.4084022) * 6400 / .5.
        (replace(case_b(), dual_dimension=3), (235_606, 4_512_177_013, 23_708)),
    ],
)
def test_query_release_by_hand(targets: Targets, expected: tuple[int, ...]) -> None:
    """Theorem 10's brackets, and Lemma 7 at alpha/4 and beta/2, are those worked out."""
    bound = found("PAP 10", targets)
    assert (bound.rows, bound.rows_explicit, bound.query_count) == pytest.approx(
        expected, rel=1e-10
    )


def test_more_dual_dimensions_than_queries_change_nothing() -> None:
    """|H~| queries tell apart no more points than |H~| dual dimensions do."""
    few = replace(case_b(), dimension=1, dual_dimension=10**9)
    more = replace(few, dual_dimension=10**10)
    assert found("PAP 10", few).rows_explicit == found("PAP 10", more).rows_explicit


@pytest.mark.parametrize(
    ("targets", "rows"),
    [
        # ln 1e6 = 13.8155106: 27/.01 * (ln 2e6 + ln 40) = 49133.35, above 60 (ln 1e6 + ln 40).
        (replace(case_a(), hypothesis_count=Fraction(10**6)), 49_134),
        # 2 (ln 432 + ln 200) * 60 / .01 = 136400.9, above 10800 (ln 864 + ln 200) = 130246.8.
        (
            replace(case_b(), epsilon=Fraction(1, 100), hypothesis_count=Fraction(432)),
            136_401,
        ),
        # Without a size: 10 ln(8327 e/10) = 77.2467343; 2700 (ln 2 + 77.2467343 + ln 40).
        (case_a(), 220_398),
    ],
)
def test_private_learner_by_hand(targets: Targets, rows: int) -> None:
    """The lecture notes' two conditions at alpha/3 and beta/2 are those worked out."""
    bound = found("LN", targets)
    assert (bound.rows, bound.rows_explicit) == (rows, rows)


def test_more_dimensions_than_public_points_count_as_their_number() -> None:
    """With alpha near one m_o is below d, and m_o points have e^m_o labellings at most."""
    targets = replace(case_a(), alpha=0.999, beta=0.999, dimension=10**6)
    public = math.ceil(32 * (10**6 + 1) * -math.log(0.999) / 0.999)
    assert public < 10**6
    expected = 27 * (math.log(2) + public + math.log(2 / 0.999)) / 0.999**2
    assert found("LN", targets).rows == math.ceil(expected)


# -- textbook constants ------------------------------------------------------------------


def textbook(alpha: float, beta: float, dimension: int) -> tuple[float, ...]:
    """Realizable, agnostic, disagreement and cover rows."""
    return (
        sample_complexity_theorems.realizable_rows(alpha=alpha, beta=beta, dimension=dimension),
        sample_complexity_theorems.agnostic_rows(alpha=alpha, beta=beta, dimension=dimension),
        sample_complexity_theorems.disagreement_rows(alpha=alpha, beta=beta, dimension=dimension),
        sample_complexity_theorems.cover_rows(alpha=alpha, beta=beta, dimension=dimension),
    )


def test_textbook_rows_by_hand() -> None:
    """The four results at (.1, .05, 10) and at (.5, 1e-12, 1) are those worked out."""
    # 80 log2(130)/.1, above 4 log2(40)/.1 = 212.88; 6400 (20 ln 120 + ln 80);
    # 1600 (40 ln 80 + ln 80); 40 (log2 40 + 20 log2 240).
    assert textbook(0.1, 0.05, 10) == pytest.approx(
        (5617.89425, 640843.9135, 1600 * 41 * math.log(80), 6538.389600)
    )
    # 8 log2(2e12), above 16 log2(26) = 75.2; 256 (2 ln 24 + ln 4e12);
    # 64 (4 ln 16 + ln 4e12); 8 (log2 2e12 + 2 log2 48).
    assert textbook(0.5, 1e-12, 1) == pytest.approx(
        (326.905097, 9055.596323, 2566.890903, 416.2644971)
    )


@pytest.mark.parametrize("epsilon", ["1/2", "1", "5"])
def test_rows_are_inverse_in_epsilon_where_the_theorems_say_so(epsilon: str) -> None:
    """NB 7, BTT 4.3 and PAP 10 are proportional to 1/epsilon, but for rounding up."""
    for name in ("NB 7", "BTT 4.3", "PAP 10"):
        rows = found(name, replace(case_a(), epsilon=Fraction(epsilon))).rows
        assert rows is not None
        assert rows * float(Fraction(epsilon)) == pytest.approx(
            found(name, case_a()).rows, rel=1e-5
        )


# -- extremes ----------------------------------------------------------------------------


def test_numbers_past_counting_are_none() -> None:
    """Rows beyond 10^18, and theorems whose numbers no double holds, are None."""
    vast = replace(case_a(), alpha=1e-100, beta=1e-100, dimension=10**17)
    theorems = sample_complexity(vast)
    assert all(one.bound is None or one.bound.rows is None for one in theorems)
    assert any(one.bound is None for one in theorems)
    assert any(one.bound is not None for one in theorems)
