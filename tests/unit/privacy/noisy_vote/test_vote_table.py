"""The table of two labels: its words, their check, and the leads that it needs."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import pytest

from app.errors import ConfigurationError, InvariantError
from app.privacy.noisy_vote.bit_vote import Parameters
from app.privacy.noisy_vote.vote_table import VoteTable, calibrate, check, quick
from app.privacy.stability.table_inequality import (
    MARGIN,
    WORD_RANGE,
    precise_context,
    to_decimal,
)

ONE, MILLIONTH = Fraction(1), Fraction(1, 10**6)
HALF = Fraction(1, 2)
# Of a study of the same theorem: leads at which the other label wins once in 100 and in 10,000.
LEADS = [
    (ONE, 10, 53, 79),
    (ONE, 100, 147, 187),
    (ONE, 1000, 415, 499),
    (HALF, 1000, 801, 951),
    (Fraction(2), 1000, 219, 263),
]


def table(epsilon: Fraction = ONE, answer_limit: int = 10) -> VoteTable:
    """Return the table of a budget."""
    return calibrate(epsilon=epsilon, delta=MILLIONTH, answer_limit=answer_limit)


def moment(served: VoteTable, one: int, other: int) -> Decimal:
    """Return the larger moment of both orders of two words, over the price, by its definition."""
    with localcontext(precise_context()):
        alpha, price = to_decimal(served.alpha), to_decimal(served.ln_ratio).exp()
        p, q = (Decimal(word) / WORD_RANGE for word in (one, other))
        return max(
            (a**alpha * b ** (1 - alpha) + (1 - a) ** alpha * (1 - b) ** (1 - alpha)) / price
            for a, b in ((p, q), (q, p))
        )


@pytest.mark.parametrize(("epsilon", "answer_limit", "seldom", "rare"), LEADS)
def test_the_lead_is_that_of_the_study(
    epsilon: Fraction, answer_limit: int, seldom: int, rare: int
) -> None:
    """A lead is no longer than was found before, but for two votes."""
    served = table(epsilon, answer_limit)
    check(served)
    assert 0.95 * seldom < served.lead_at(1e-2) <= seldom + 2
    assert 0.95 * rare < served.lead_at(1e-4) <= rare + 2


@pytest.mark.parametrize("answer_limit", [1, 7, 300])
@pytest.mark.parametrize("size", [40, 41])
def test_neighbours_stay_within_the_price_and_barely(answer_limit: int, size: int) -> None:
    """On all votes both orders hold, and with a word less than the next they would not."""
    served = table(answer_limit=answer_limit)
    given = Parameters(half=served.half(size), ensemble_size=size, answer_limit=served.answer_limit)
    words = [given.words_of_one(votes) for votes in range(size + 1)]
    assert all(a + b == WORD_RANGE for a, b in zip(words, words[::-1], strict=True))
    assert words == sorted(words)
    assert max(moment(served, *pair) for pair in pairwise(words)) <= 1 - MARGIN
    half = served.half(size)
    for previous, following in pairwise(half[:-1]):
        assert moment(served, previous, following - 1) > 1 - MARGIN
    if size % 2:
        closer = half[0] - 1
        assert moment(served, closer, WORD_RANGE - closer) > 1 - MARGIN


@pytest.mark.parametrize("probability", [0.3, 1e-2, 1e-4])
@pytest.mark.parametrize("answer_limit", [1, 50])
def test_a_lead_is_the_smallest_that_does(answer_limit: int, probability: float) -> None:
    """From the lead on either parity loses no more often, and a vote less does more often."""
    served = table(answer_limit=answer_limit)
    lead = served.lead_at(probability)

    def lost(votes: int) -> float:
        size = 1000 + votes % 2
        given = Parameters(half=served.half(size), ensemble_size=size, answer_limit=1)
        return given.words_of_one((size - votes) // 2) / WORD_RANGE

    assert max(map(lost, range(lead, lead + 40))) <= probability < lost(lead - 1)


@pytest.mark.parametrize("answer_limit", [3, 100, 5000])
def test_the_quick_table_is_the_one_that_serves(answer_limit: int) -> None:
    """In doubles leads are within two votes of the words'."""
    served = table(answer_limit=answer_limit)
    near = quick(epsilon=ONE, delta=MILLIONTH, answer_limit=answer_limit)
    for probability in (1e-2, 1e-4):
        assert abs(near.lead_at(probability) - served.lead_at(probability)) <= 2


def test_a_lead_says_how_many_answers_it_outweighs() -> None:
    """With the answers of a lead the table's lead is that one, within a vote or so."""
    found = table().answers_within(300)
    assert abs(table(answer_limit=found).lead_at(1e-2) - 300) <= 2
    assert table().answers_within(0) == 0


def test_plain_form_is_lossless() -> None:
    """A table survives its plain form, JSON included."""
    served = table()
    assert VoteTable.from_plain(json.loads(json.dumps(served.to_plain()))) == served


@pytest.mark.parametrize("spoiled", [{"even": ["x"]}, {"alpha": "1/0"}, {}])
def test_plain_form_refuses_what_is_no_table(spoiled: dict[str, str | list[str]]) -> None:
    """A missing or senseless value is refused."""
    plain = table().to_plain()
    with pytest.raises(InvariantError, match="persisted"):
        VoteTable.from_plain({**plain, **spoiled} if spoiled else {})


def one_order_alone(served: VoteTable) -> VoteTable:
    """Return a table whose next words are the smallest for the order from the middle out only."""

    def forward(one: int, other: int) -> Decimal:
        with localcontext(precise_context()):
            alpha, price = to_decimal(served.alpha), to_decimal(served.ln_ratio).exp()
            p, q = (Decimal(word) / WORD_RANGE for word in (one, other))
            return (q**alpha * p ** (1 - alpha)) / price + (
                (1 - q) ** alpha * (1 - p) ** (1 - alpha) / price
            )

    words = [served.even[0]]
    for _ in range(3):
        low, high = 1, words[-1]
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (low, middle) if forward(words[-1], middle) <= 1 - MARGIN else (middle, high)
            )
        words.append(high)
    return replace(served, even=tuple(words))


def test_check_refuses_every_tampered_table() -> None:
    """A table off in one thing that the claim needs does not open a release."""
    good = table()
    check(good)
    for tampered in (
        replace(good, epsilon=Fraction(0)),
        replace(good, epsilon=good.epsilon * Fraction(99, 100)),
        replace(good, delta=ONE),
        replace(good, delta=good.delta * Fraction(9, 10)),
        replace(good, answer_limit=0),
        replace(good, answer_limit=11),
        replace(good, alpha=ONE),
        replace(good, alpha=good.alpha * 2),
        replace(good, ln_ratio=good.ln_ratio + Fraction(1, 1 << 40)),
        replace(good, even=good.even[1:]),
        replace(good, even=()),
        replace(good, odd=(good.odd[0] - 1, *good.odd[1:])),
        replace(good, odd=(*good.odd, good.odd[-1] - 1, 0)),
        replace(table(answer_limit=5), answer_limit=10),
        one_order_alone(good),
    ):
        with pytest.raises(InvariantError):
            check(tampered)


@pytest.mark.parametrize(
    ("epsilon", "delta", "answer_limit", "key"),
    [
        (Fraction(0), MILLIONTH, 1, "privacy.epsilon"),
        (ONE, Fraction(0), 1, "privacy.delta"),
        (ONE, MILLIONTH, 0, "answers.queries"),
        (Fraction(1, 10**5), MILLIONTH, 1000, "answers.queries"),
    ],
)
def test_budgets_without_a_table_are_refused(
    epsilon: Fraction, delta: Fraction, answer_limit: int, key: str
) -> None:
    """A line names the setting, before any work is done."""
    with pytest.raises(ConfigurationError, match=key):
        calibrate(epsilon=epsilon, delta=delta, answer_limit=answer_limit)
