"""Sample, relabel by the sample's own dichotomies, answer: the exact law of the whole.

Data sets of three records over three points and two labels are few enough to add up
every ordered sample of two, every labelling and every answer.  The largest change of
the answers' law over all neighbours is compared with what is charged for it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from itertools import permutations, product
from typing import TYPE_CHECKING, Final

import numpy as np

from app.learning.encoding.public_columns import PublicColumn
from app.learning.hypothesis import ClassAsked
from app.learning.registry import dichotomy_class
from app.privacy.exponential.amplification import relabelled_epsilon, sampled_epsilon

if TYPE_CHECKING:
    from collections.abc import Callable

POINTS: Final = (0.0, 1.0, 2.0)
RECORDS: Final = tuple(product(POINTS, (0, 1)))
COLUMNS: Final = (PublicColumn(bounds=(0.0, 2.0)),)
SAMPLE: Final = 2
ROWS: Final = 3
RELABEL_EPSILON: Final = 1.0
ANSWERS_EPSILON: Final = 0.5

Record = tuple[float, int]
Sample = tuple[Record, ...]
Law = dict[object, float]


def labellings(points: tuple[float, ...]) -> list[tuple[int, ...]]:
    """Every labelling of these points by stumps, each once, as the service lists them."""
    values = np.array(points)[:, None]
    found = dichotomy_class(
        ClassAsked(kind="stumps", columns=COLUMNS, depth=1, class_count=2), values
    )
    return [tuple(row) for row in found.hypotheses.predict(found.encode(values)).tolist()]


LABELLINGS: Final = {points: labellings(points) for points in product(POINTS, repeat=SAMPLE)}


def released_labels(relabelled: Sample) -> Law:
    """The label of the sample's first row, by randomised response."""
    law: Law = defaultdict(float)
    truthful = math.exp(ANSWERS_EPSILON) / (1 + math.exp(ANSWERS_EPSILON))
    for answer in (0, 1):
        law[answer] += truthful if relabelled[0][1] == answer else 1 - truthful
    return law


def released_count(relabelled: Sample) -> Law:
    """How many rows are labelled 1, by the exponential mechanism over the counts."""
    count = sum(label for _, label in relabelled)
    weights = {value: math.exp(-ANSWERS_EPSILON * abs(value - count) / 2) for value in range(3)}
    total = sum(weights.values())
    return {value: weight / total for value, weight in weights.items()}


def law_of(rows: Sample, answer: Callable[[Sample], Law], *, leak: bool = False) -> Law:
    """Add up samples, labellings and answers; with ``leak`` the labels themselves leave."""
    law: Law = defaultdict(float)
    samples = list(permutations(rows, SAMPLE))
    for sample in samples:
        points, labels = tuple(zip(*sample, strict=True))
        weights = {
            given: math.exp(-RELABEL_EPSILON * sum(map(int.__ne__, given, labels)) / 2)
            for given in LABELLINGS[points]
        }
        for given, weight in weights.items():
            chance = weight / sum(weights.values()) / len(samples)
            relabelled = tuple(zip(points, given, strict=True))
            if leak:
                law[relabelled] += chance
                continue
            for value, probability in answer(relabelled).items():
                law[value] += chance * probability
    return law


def worst_ratio(answer: Callable[[Sample], Law], *, leak: bool = False) -> float:
    """Return the largest log ratio of any output's probability over all neighbours."""
    worst = 0.0
    for common in product(RECORDS, repeat=ROWS - 1):
        laws = [law_of((*common, record), answer, leak=leak) for record in RECORDS]
        for first, second in permutations(laws, 2):
            for output, probability in first.items():
                other = second.get(output, 0.0)
                worst = max(worst, math.log(probability / other) if other else math.inf)
    return worst


def charged() -> float:
    """What Lemma L and sampling say that the pipeline costs."""
    inner = relabelled_epsilon(
        relabel_epsilon=Fraction(RELABEL_EPSILON),
        inner_epsilon=Fraction(ANSWERS_EPSILON),
        class_count=2,
    )
    return float(sampled_epsilon(inner_epsilon=inner, rate=Fraction(SAMPLE, ROWS)))


def test_the_pipeline_costs_no_more_than_is_charged() -> None:
    """Whichever of two answers is given, no output's probability moves beyond the charge."""
    for answer in (released_labels, released_count):
        assert 0 < worst_ratio(answer) <= charged()


def test_releasing_the_relabelled_rows_would_be_found_out() -> None:
    """Planted: rows that leave as they are have outputs that a neighbour never gives."""
    assert worst_ratio(released_labels, leak=True) == math.inf
