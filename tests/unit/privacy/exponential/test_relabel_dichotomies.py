"""Relabelling by the rows' own dichotomies: its law, and what Lemma L says it costs."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import InvariantError
from app.learning.encoding.public_columns import PublicColumn
from app.learning.hypothesis import ClassAsked
from app.learning.registry import dichotomy_class, dichotomy_count_bound
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.exponential.relabel import DichotomyParameters, Relabelled, draw_from_dichotomies

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.enumerated.enumerated_class import EnumeratedClass

COLUMNS = (PublicColumn(bounds=(0.0, 10.0)),)
GRID = 2000
Labelling = tuple[int, ...]


def points(*values: float) -> NDArray[np.float64]:
    """Rows of one numeric feature."""
    return np.array(values, dtype=np.float64)[:, None]


def dichotomies(kind: str, values: NDArray[np.float64], class_count: int = 2) -> EnumeratedClass:
    """One hypothesis for every labelling of these rows."""
    return dichotomy_class(
        ClassAsked(kind=kind, columns=COLUMNS, depth=1, class_count=class_count), values
    )


def parameters(row_count: int, epsilon: str = "2", *, class_count: int = 2) -> DichotomyParameters:
    """What a draw may cost, half of what everything does."""
    kind = "intervals" if class_count == 2 else "stumps"
    return DichotomyParameters(
        epsilon=Fraction(epsilon),
        composed_epsilon=2 * Fraction(epsilon),
        delta_truncation=Fraction(1, 10**12),
        row_count=row_count,
        class_count=class_count,
        dichotomy_count_max=dichotomy_count_bound(
            ClassAsked(kind=kind, columns=COLUMNS, depth=1, class_count=class_count), row_count
        ),
    )


class EvenNoise(ScriptedNoise):
    """Takes every grid point of the unit interval once, so that frequencies are the law."""

    def __init__(self) -> None:
        """Start at the first."""
        super().__init__(())
        self.place = 0

    def below(self, bound: int) -> int:
        """Return the next of evenly spaced integers."""
        self.place += 1
        return (2 * self.place - 1) * bound // (2 * GRID)


def exact_law(
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    *,
    class_count: int,
    epsilon: float,
) -> dict[Labelling, float]:
    """The exponential mechanism over all labellings by one cut, from its definition."""
    cuts = [-1.0, *sorted(set(values[:, 0].tolist())), 99.0]
    labellings = {
        tuple(np.where(values[:, 0] >= cut, above, below).tolist())
        for cut in cuts
        for below, above in product(range(class_count), repeat=2)
    }
    weights = {
        labelling: math.exp(-epsilon * sum(map(int.__ne__, labelling, labels.tolist())) / 2)
        for labelling in labellings
    }
    total = sum(weights.values())
    return {labelling: weight / total for labelling, weight in weights.items()}


@pytest.mark.parametrize("class_count", [2, 3])
def test_every_dichotomy_is_drawn_with_its_exact_probability(class_count: int) -> None:
    """Over evenly spaced draws the frequencies are those of the definition."""
    values = points(1, 3, 3, 4, 8)
    labels = np.array([0, 1, 0, 1, class_count - 1])
    public = parameters(5, class_count=class_count, epsilon="3")
    private_class = dichotomies("stumps", values, class_count)
    noise, drawn = EvenNoise(), Counter[Labelling]()
    private_value = (private_class.encode(values), labels)
    for _ in range(GRID):
        relabelled = draw_from_dichotomies(public, private_class, private_value, noise)
        drawn[tuple(relabelled.private_labels.tolist())] += 1
    law = exact_law(values, labels, class_count=class_count, epsilon=public.mechanism_epsilon)
    assert set(drawn) <= set(law)
    for labelling, probability in law.items():
        # Every labelling is a range of the integers drawn from: one grid step at each end.
        assert drawn[labelling] / GRID == pytest.approx(probability, abs=2 / GRID)


@pytest.mark.parametrize("class_count", [2, 3])
def test_lemma_l_bounds_what_one_record_moves(class_count: int) -> None:
    """Labellings of the common rows change by e to the cost at most, over all neighbours."""
    common, epsilon = points(2, 4, 6), 1.0
    limit = 2 * math.log(class_count - 1 + math.exp(epsilon / 2))
    worst = 0.0
    for given in product(range(class_count), repeat=3):
        laws = []
        for place, label in product((1.0, 4.0, 5.0, 9.0), range(class_count)):
            values = np.concatenate([common, points(place)])
            labels = np.array([*given, label])
            law = exact_law(values, labels, class_count=class_count, epsilon=epsilon)
            pooled: dict[Labelling, float] = defaultdict(float)
            for labelling, probability in law.items():
                pooled[labelling[:3]] += probability
            laws.append(pooled)
        for first, second in product(laws, repeat=2):
            assert set(first) == set(second)
            ratios = [first[labelling] / second[labelling] for labelling in first]
            worst = max(worst, math.log(max(ratios)))
    assert 0.25 * limit < worst <= limit


@pytest.mark.parametrize("class_count", [2, 3, 10])
def test_the_parameter_is_what_lemma_l_leaves(class_count: int) -> None:
    """It runs at 2 ln(e^(cost/2) - (L-1)) less the numerical error, never above."""
    public = parameters(1000, epsilon="5", class_count=class_count)
    exact = 2 * math.log(math.exp(2.5) - (class_count - 1))
    assert exact - 1e-9 < public.mechanism_epsilon < exact


def test_it_labels_by_the_drawn_hypothesis() -> None:
    """Labels are realisable: a heavy parameter finds the interval behind noisy labels."""
    values = points(*range(1, 9))
    labels = np.array([0, 0, 1, 1, 1, 1, 0, 0])
    private_class = dichotomies("intervals", values)
    public = parameters(8, epsilon="40")
    relabelled = draw_from_dichotomies(
        public,
        private_class,
        (private_class.encode(values), labels),
        ScriptedNoise(seeded_words(1)),
    )
    assert isinstance(relabelled, Relabelled)
    assert relabelled.private_labels.tolist() == labels.tolist()
    predicted = relabelled.private_hypothesis.predict(private_class.encode(values))
    assert predicted.tolist() == labels.tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": Fraction(138, 100)},  # below 2 ln 2
        {"epsilon": Fraction(0)},
        {"epsilon": Fraction(1, 10**30)},
        {"epsilon": Fraction(5)},  # more than everything together
        {"composed_epsilon": Fraction(701)},
        {"row_count": 0},
        {"delta_truncation": Fraction(1, 10**60)},
        {"dichotomy_count_max": 1 << 170},
    ],
)
def test_what_does_not_hold_is_refused(change: dict[str, object]) -> None:
    """Costs, error and truncation are checked from public numbers, before a row is read."""
    with pytest.raises(InvariantError):
        replace(parameters(8), **change)  # type: ignore[arg-type]  # the test names real fields


def test_truncation_is_paid_at_the_composed_epsilon() -> None:
    """What suffices for the draw alone does not for the draw with what follows it."""
    alone = replace(
        parameters(8), composed_epsilon=Fraction(2), delta_truncation=Fraction(1, 10**50)
    )
    with pytest.raises(InvariantError):
        replace(alone, composed_epsilon=Fraction(40))


def test_another_number_of_rows_or_too_many_dichotomies_is_found_out() -> None:
    """The draw is for the public number of rows and within the public bound."""
    values, labels = points(1, 2, 3), np.array([0, 1, 1])
    private_class = dichotomies("intervals", values)
    private_value = (private_class.encode(values), labels)
    with pytest.raises(InvariantError):
        draw_from_dichotomies(parameters(4), private_class, private_value, EvenNoise())
    tight = replace(parameters(3), dichotomy_count_max=private_class.size - 1)
    with pytest.raises(InvariantError):
        draw_from_dichotomies(tight, private_class, private_value, EvenNoise())
