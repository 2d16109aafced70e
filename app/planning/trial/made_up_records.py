"""Made-up records, drawn by public frequencies, on which models' agreement is measured.

**Records.** No private row is used. The features of a made-up person are drawn independently, each
by its public frequencies, or are those of a public point. The random seeds are fixed, so that every
trial uses the same people.

**Labelling rules.** The rule that will relabel the rows depends on their private labels. So labels
are made up: every feature has a random effect on them, a few effects much larger than the others,
and the rest is chance. From these labels a rule is drawn in the same way as the release draws it.
The seeds of the rules are fixed, like those of the people.

The module also reads the public frequencies of features from the schema.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.schema import NumericFeature
from app.learning.learner_seeds import generator
from app.learning.registry import row_of
from app.noise.scripted import ScriptedNoise, seeded_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.hypothesis import Hypothesis, HypothesisClass
    from app.learning.learner_seeds import LearnerGenerator

    Numbers = NDArray[np.float64]
    from app.data.schema import CategoricalFeature, Schema


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnLaw:
    """The distribution of one feature, as far as it is publicly known.

    Attributes:
        edges: for a numeric feature, the increasing bounds of intervals, one more than ``shares``;
            values are uniformly distributed in each interval. None for a categorical feature.
        shares: the fraction of people in each interval; for a categorical feature, the fraction
            with each category of the schema, and last the fraction with any other text. Not all
            fractions are zero.

    """

    edges: tuple[float, ...] | None
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Population:
    """The distribution of records, as far as it is publicly known.

    Attributes:
        laws: the distribution of each feature.
        points: encoded public points, shape ``(m, d)`` for m points of d features; records are then
            drawn from these points and not by ``laws``. None without public points.

    """

    laws: Sequence[ColumnLaw]
    points: NDArray[np.float64] | None = None

    def resampled(self, seed: bytes) -> Population:
        """Return a population with resampled public points (a bootstrap sample of these points).

        Without public points the population is returned unchanged.
        """
        if self.points is None:
            return self
        places = generator(seed).integers(0, len(self.points), len(self.points))
        return Population(self.laws, self.points[places])

    def distinct(self, row_count: int, seed: bytes) -> NDArray[np.float64]:
        """Return made-up records that serve as queries, each different from the others.

        The server would answer a repeated query with the recorded answer.

        Args:
            row_count: the largest number of records.
            seed: the public seed of the pseudo-random generator.

        """
        people = self.rows(row_count, seed) if self.points is None else self.points
        _, places = np.unique(np.nan_to_num(people), axis=0, return_index=True)
        picked = generator(seed).permutation(len(places))[:row_count]
        found: NDArray[np.float64] = people[places[picked]]
        return found

    def rows(self, row_count: int, seed: bytes) -> NDArray[np.float64]:
        """Return independent made-up records, as encoded values.

        Args:
            row_count: the number n of records.
            seed: the public seed of the pseudo-random generator.

        Returns:
            The encoded values of n records of d features, shape ``(n, d)``.

        """
        drawn = generator(seed)
        if self.points is not None:
            places = drawn.integers(0, len(self.points), row_count)
            people: NDArray[np.float64] = self.points[places]
            return people
        values = np.empty((row_count, len(self.laws)))
        for index, law in enumerate(self.laws):
            values[:, index] = _column(law, row_count, drawn)
        return values


def _column(law: ColumnLaw, row_count: int, drawn: LearnerGenerator) -> NDArray[np.float64]:
    """Draw the values of one feature, shape ``(n,)``."""
    ends = np.cumsum(law.shares)
    pieces = np.searchsorted(ends, drawn.random(row_count) * ends[-1], side="right")
    # Rounding may carry a draw onto the total; the last piece stands for it.
    pieces = np.minimum(pieces, len(ends) - 1)
    if law.edges is None:
        codes: NDArray[np.float64] = pieces.astype(np.float64)
        return codes
    edges, parts = np.array(law.edges), drawn.random(row_count)
    # Parts of each end: the distance of two bounds may be no double.
    within: NDArray[np.float64] = edges[pieces] * (1.0 - parts) + edges[pieces + 1] * parts
    return within


# Made-up people that a rule is drawn for, and the fewest; a list takes rows times hypotheses.
PEOPLE: Final = 1 << 14
PEOPLE_MIN: Final = 1 << 9
LISTED_PEOPLE_MAX: Final = 20_000_000
# Labels after which a constant rule is taken: the class may have no other.
ATTEMPTS_MAX: Final = 32
# Heavy tails: of ten values of a feature, one or two may count for more than all others.
DEGREES_OF_FREEDOM: Final = 2
# How far what is not chance moves a label's log-odds, one standard deviation, from and to.
STRENGTHS: Final = (1.5, 4.0)
# Share of the second of two labels, or one less it.
SHARES: Final = (0.1, 0.5)
BINARY: Final = 2
_SEED: Final = b"conclave made-up rule %d %d "


@dataclass(frozen=True, slots=True, eq=False)
class MadeUpRules:
    """Made-up labelling rules that stand for the unknown rule that will relabel the rows.

    Attributes:
        searched: the public class of rules.
        population: the distribution of records.
        epsilon: the epsilon of the release's draw of a rule.
        row_count: the number of rows of the release, on which its draw depends.

    """

    searched: HypothesisClass
    population: Population
    epsilon: float
    row_count: int
    _drawn: dict[int, Hypothesis] = field(default_factory=dict)
    _worths: dict[int, tuple[float, float]] = field(default_factory=dict)

    def labels(self, index: int, values: Numbers) -> NDArray[np.int64]:
        """Return the labels that one made-up rule gives to n records, shape ``(n,)``.

        Args:
            index: the number of the made-up rule, from 0.
            values: the encoded records, shape ``(n, d)`` for d features.

        """
        if index not in self._drawn:
            self._drawn[index] = self._rule(index)
        return self._drawn[index].predict(self.searched.encode(values))

    def worth(self, rule_count: int) -> tuple[float, float]:
        """Return the rules' accuracy on made-up labels, and that of one constant label.

        The constant label is the most frequent of the made-up labels.

        Args:
            rule_count: the number of rules to draw, one or more, if none was drawn before.

        """
        if not self._drawn:
            self._drawn.update((index, self._rule(index)) for index in range(rule_count))
        right, likeliest = zip(*self._worths.values(), strict=True)
        return fmean(right), fmean(likeliest)

    def _rule(self, index: int) -> Hypothesis:
        """Draw a rule; one that labels people alike only where so many labels gave no other."""
        count = min(self.row_count, _people_count(self.searched))
        # Errors of fewer people weigh as those of all rows.
        epsilon = self.epsilon * self.row_count / count
        for attempt in range(ATTEMPTS_MAX):
            seed = _SEED % (index, attempt)
            values = self.population.rows(count, seed + b"people")
            labels = made_up_labels(
                np.nan_to_num(values),
                [law.edges is None for law in self.population.laws],
                self.searched.class_count,
                generator(seed + b"labels"),
            )
            noise = ScriptedNoise(seeded_words(index * ATTEMPTS_MAX + attempt))
            encoded = self.searched.encode(values)
            rule = self.searched.draw(encoded, labels, epsilon, noise)
            found = rule.predict(encoded)
            likeliest = float(np.bincount(labels).max()) / len(labels)
            self._worths[index] = float((found == labels).mean()), likeliest
            if (found != found[0]).any():
                break
        return rule


def made_up_labels(
    values: Numbers, are_codes: list[bool], class_count: int, drawn: LearnerGenerator
) -> NDArray[np.int64]:
    """Return made-up labels whose log-odds are sums of one effect per feature.

    Args:
        values: encoded features of n made-up people, shape ``(n, d)``; no value is missing.
        are_codes: whether each feature is categorical.
        class_count: the number L of labels, at least 2.
        drawn: the source of random effects and random labels.

    Returns:
        The indices of the labels, shape ``(n,)``.

    """
    odds = np.zeros((len(values), class_count))
    for label in range(1, class_count):
        for column, is_code in zip(values.T, are_codes, strict=True):
            effect = _of_codes(column, drawn) if is_code else _of_number(column, drawn)
            odds[:, label] += np.exp(drawn.standard_normal()) * (effect - effect.mean())
    told = odds[:, 1:]
    scale = drawn.uniform(*STRENGTHS) / (told.std(axis=0) + 1e-9)
    odds[:, 1:] = (told - told.mean(axis=0)) * scale
    if class_count == BINARY:
        share = drawn.uniform(*SHARES)
        share = share if drawn.random() < SHARES[1] else 1 - share
        odds[:, 1] -= np.quantile(odds[:, 1], 1 - share)
    else:
        odds[:, 1:] += drawn.standard_normal(class_count - 1)
    labels: NDArray[np.int64] = (odds + drawn.gumbel(size=odds.shape)).argmax(axis=1)
    return labels.astype(np.int64)


def _of_codes(column: Numbers, drawn: LearnerGenerator) -> Numbers:
    """Return an effect of each code, heavy-tailed."""
    codes = column.astype(np.int64)
    effects: Numbers = drawn.standard_t(DEGREES_OF_FREEDOM, int(codes.max()) + 1)[codes]
    return effects


def _of_number(column: Numbers, drawn: LearnerGenerator) -> Numbers:
    """Return a rise over ranks and a step at a value of the column, which few may exceed."""
    ranks = np.searchsorted(np.sort(column), column, side="right") / len(column)
    known = np.unique(ranks)
    edge = known[drawn.integers(len(known))]
    rise = 3 * drawn.standard_normal() * (ranks - 0.5)
    effect: Numbers = rise + drawn.standard_t(DEGREES_OF_FREEDOM) * (ranks >= edge)
    return effect


def _people_count(searched: HypothesisClass) -> int:
    if row_of(searched).listed is None:
        return PEOPLE
    return max(PEOPLE_MIN, min(PEOPLE, LISTED_PEOPLE_MAX // searched.size))


def column_laws(schema: Schema) -> tuple[ColumnLaw, ...]:
    """Return one distribution per feature: by public frequencies, or uniform.

    Frequencies that do not add up to 1 are scaled. Made-up records have no missing values.
    """
    return tuple(
        _number(feature) if isinstance(feature, NumericFeature) else _category(feature)
        for feature in schema.features
    )


def _number(feature: NumericFeature) -> ColumnLaw:
    """Return a number's law: uniform between cuts, as many people there as the shares say."""
    cuts, above = feature.thresholds, feature.threshold_shares
    if not cuts or not above:
        return ColumnLaw(edges=(feature.lower, feature.upper), shares=(1.0,))
    steps = (1.0, *above, 0.0)
    shares = [max(0.0, more - less) for more, less in pairwise(steps)]
    return ColumnLaw(edges=(feature.lower, *cuts, feature.upper), shares=tuple(shares))


def _category(feature: CategoricalFeature) -> ColumnLaw:
    """Return the law of a category's codes, of which the last counts any other string."""
    listed = feature.category_shares
    if not listed or not sum(listed):
        return ColumnLaw(edges=None, shares=(1.0,) * (len(feature.categories) + 1))
    return ColumnLaw(edges=None, shares=(*listed, max(0.0, 1.0 - sum(listed))))
