"""The table of Theorem C: its figures, what is refused, and what is kept."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest

from app.errors import ConfigurationError, InvariantError
from app.privacy.stability import hit_table as profile
from app.privacy.stability.certified import certified_table
from app.privacy.stability.certified.certificate import NODE_ONE, SLOPE_ONE
from app.privacy.stability.certified.certificate_search import (
    Chance,
    Searched,
    search_certificate,
    search_pairs,
)
from app.privacy.stability.certified.certified_table import (
    CertifiedTable,
    approximate,
    calibrate,
    check,
    factor_below,
    factor_holds,
    within_polygon,
)
from app.privacy.stability.table_inequality import WORD_RANGE

Step = tuple[Chance, Chance]

MILLIONTH = Fraction(1, 10**6)
FIGURES = {
    (Fraction(1), 1): (82, 135),
    (Fraction(1), 5): (122, 199),
    (Fraction(1, 2), 1): (151, 247),
    (Fraction(2), 1): (45, 74),
}
"""Distances at which hits have probability 1e-2 and 1e-4; one vote is left to other doubles."""


@pytest.mark.parametrize(("epsilon", "cutoff"), FIGURES)
def test_a_table_needs_as_few_votes_as_the_page_says(epsilon: Fraction, cutoff: int) -> None:
    """It passes the exact check, has the figures of the proof, and fewer votes than profile."""
    table = calibrate(epsilon=epsilon, delta=MILLIONTH, cutoff=cutoff)
    check(table)
    found = table.distance_at(1e-2), table.distance_at(1e-4)
    assert all(
        abs(one - other) <= 1 for one, other in zip(found, FIGURES[epsilon, cutoff], strict=True)
    )
    before = profile.calibrate(epsilon=epsilon, delta=MILLIONTH, cutoff=cutoff)
    assert found < (before.distance_at(1e-2), before.distance_at(1e-4))


@pytest.mark.parametrize(
    ("epsilon", "delta", "cutoff"),
    [
        (Fraction(50), MILLIONTH, 5),
        (Fraction(1), Fraction(1, 10**12), 5),
        (Fraction(5), Fraction(1, 2), 3),
        (Fraction(1, 100), MILLIONTH, 1),
    ],
)
def test_the_ends_of_the_range_are_served(epsilon: Fraction, delta: Fraction, cutoff: int) -> None:
    """Where doubles are at their limits the exact check accepts the table still."""
    check(calibrate(epsilon=epsilon, delta=delta, cutoff=cutoff))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"cutoff": 6},
            'answers.cutoff: must be 1 to 5 with privacy.calibration = "certified"',
        ),
        ({"cutoff": 0}, "answers.cutoff"),
        ({"epsilon": Fraction(51)}, "privacy.epsilon: must leave the answers"),
        ({"epsilon": Fraction(1, 10**4)}, "privacy.epsilon: needs a table of about"),
        ({"delta": Fraction(1, 10**13)}, "privacy.delta: must leave the answers 1e-12"),
    ],
)
def test_what_has_no_table_is_refused_in_one_line(
    changes: dict[str, Fraction], message: str
) -> None:
    """The line names the setting, and no table is made."""
    epsilon = Fraction(changes.get("epsilon", 1))
    delta = Fraction(changes.get("delta", MILLIONTH))
    cutoff = int(changes.get("cutoff", 2))
    for make in (calibrate, approximate):
        with pytest.raises(ConfigurationError) as refused:
            make(epsilon=epsilon, delta=delta, cutoff=cutoff)
        assert message in str(refused.value)
        assert "\n" not in str(refused.value)


def test_a_quick_look_has_a_few_votes_more() -> None:
    """In doubles and with fewer nodes a table needs up to 5 % more votes, and no fewer."""
    exact = calibrate(epsilon=Fraction(1), delta=MILLIONTH, cutoff=2)
    quick = approximate(epsilon=Fraction(1), delta=MILLIONTH, cutoff=2)
    for probability in (1e-2, 1e-4):
        served, seen = exact.distance_at(probability), quick.distance_at(probability)
        assert served <= seen <= 1.05 * served


def test_c_is_rounded_down() -> None:
    """One unit of 2^-40 more is above e^epsilon, and refused; rounded down it holds."""
    for epsilon in (Fraction(1, 1000), Fraction(1), Fraction(9, 10), Fraction(50)):
        factor = factor_below(epsilon)
        assert factor / NODE_ONE == pytest.approx(math.exp(epsilon))
        assert factor_holds(factor, epsilon)
        assert not factor_holds(factor + 1, epsilon)


def test_the_polygon_bounds_every_pair() -> None:
    """A neighbour one word below the polygon is outside, and so is one above the diagonal."""
    table = calibrate(epsilon=Fraction(4), delta=Fraction(1, 1000), cutoff=2)
    assert within_polygon(table.vertices, pairwise(table.thresholds))
    for one, other in pairwise(table.thresholds):
        assert not within_polygon(table.vertices, [(one, other - 1)])
        assert not within_polygon(table.vertices, [(other, other + 1)])
    assert within_polygon(table.vertices, [(5, 5)])
    assert not within_polygon(table.vertices, [(WORD_RANGE - 1, WORD_RANGE - 1)])


@pytest.mark.parametrize(
    "plain",
    [
        {},
        {"vertices": ["1 2 3"]},
        {"slopes": ["1 x"]},
        {"epsilon": "1/0"},
    ],
)
def test_what_is_no_table_is_not_read(plain: dict[str, str | list[str]]) -> None:
    """A key that is absent, or a value that is no number, is refused."""
    table = calibrate(epsilon=Fraction(4), delta=Fraction(1, 1000), cutoff=2)
    given = {**table.to_plain(), **plain} if plain else plain
    with pytest.raises(InvariantError, match="is not one"):
        CertifiedTable.from_plain(given)


def test_a_table_of_many_entries_keeps_its_claim() -> None:
    """A table may be cut short or held longer: neighbours that are equal are always accepted."""
    table = calibrate(epsilon=Fraction(4), delta=Fraction(1, 1000), cutoff=2)
    check(replace(table, thresholds=table.thresholds[:-1]))
    check(replace(table, thresholds=(*table.thresholds, table.thresholds[-1])))


def test_where_doubles_err_the_exact_check_moves_the_neighbour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neighbours guessed a little too far are drawn nearer until (d) accepts them."""
    found = calibrate(epsilon=Fraction(3), delta=Fraction(1, 999), cutoff=1)

    def too_far(searched: Searched, label_loss: float, *, quickly: bool) -> list[Step]:
        pairs = search_pairs(searched, label_loss, quickly=quickly)
        return [(one, replace(other, hit=other.hit * (1 - 1e-6))) for one, other in pairs]

    monkeypatch.setattr(certified_table, "search_pairs", too_far)
    table = calibrate(epsilon=Fraction(3), delta=Fraction(1, 1000), cutoff=1)
    check(table)
    assert len(table.thresholds) == pytest.approx(len(found.thresholds), rel=0.01)


def test_functions_that_pay_for_nothing_have_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no neighbour is accepted no table is made, exactly or in a quick look."""

    def worthless(**asked: object) -> Searched:
        """Pay for a differing label now and then, and nothing for a hit."""
        searched = search_certificate(**asked)  # type: ignore[arg-type]  # as it is asked
        start = searched.certificate.slopes[0]
        slopes = (start, tuple(slope + (SLOPE_ONE >> 60) for slope in start))
        return replace(searched, certificate=replace(searched.certificate, slopes=slopes))

    monkeypatch.setattr(certified_table, "search_certificate", worthless)
    for make in (calibrate, approximate):
        with pytest.raises(ConfigurationError, match="has no table"):
            make(epsilon=Fraction(3), delta=Fraction(1, 1001), cutoff=1)
