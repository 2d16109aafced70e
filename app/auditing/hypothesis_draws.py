"""The audit of the hypotheses (rules) that a configuration would draw at random, once each.

**The exponential mechanism.** All records have the same features, and all but one have the same
label. On one data set the last record has the other label. The event is that the drawn hypothesis
gives the records this other label. Its probability is computed by the functions with which the
draw itself adds up the weights of all hypotheses, so that the audit finds errors in these sums.

**Noisy gradient descent.** Two neighbouring data sets differ in the label of one record, whose
feature vector has the largest allowed length. The mechanism's own functions compute by how much
this label changes the sum of gradients. The lower bound is the epsilon between two normal
distributions that are as far apart as the noisy sums of all steps together; the noise is discrete,
but so wide that the difference is far below the rounding of epsilon.

**Counts.** Two kinds of published classifiers are made from noisy counts of labels: a grid, from
the counts in its cells, and a tree, from the counts in its leaves.

If the unit of privacy is a person, the person who differs has :data:`ROWS_OF_A_PERSON` rows, all of
which are replaced, and every other person has one row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from app.auditing.event_bounds import ROUNDING, Bound, epsilon_shown, strongest
from app.data.persons import IDENTITY_BYTES, Persons
from app.data.schema import NumericFeature
from app.learning.linear.integer_vectors import score_count
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.budget.composition import Mechanism
from app.privacy.exponential.mechanism import Parameters
from app.privacy.exponential.scored_tree import DIVISIONS, NEWEST_DIVISION, histogram
from app.privacy.learner_properties import EXPONENTIAL, GRID, KERNEL, LINEAR, SCORED_TREE
from app.privacy.noisy_gradient.mechanism import gradient_sum, whole_weights
from app.privacy.noisy_grid.mechanism import level_counts
from app.release.classifier.exponential import exponential_draw, scored_tree_draw
from app.release.classifier.grid import grid_draw
from app.release.classifier.kernel import kernel_draw
from app.release.classifier.learner_registration import ClassifierAsked
from app.release.classifier.learner_table import chosen_learner
from app.release.classifier.linear import linear_draw
from app.release.terms.answer_terms import release_budget
from app.release.terms.configuration import charges_by_mechanism, no_points, public_class

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from app.privacy.budget.composition import Charge
    from app.privacy.exponential.scored_tree import Parameters as ScoredTreeParameters
    from app.privacy.noisy_gradient.mechanism import Parameters as GradientParameters
    from app.privacy.noisy_grid.mechanism import Parameters as GridParameters
    from app.settings.settings import Settings

LOG_ODDS: Final = 18.0
"""So rare is the event that its complement hardly moves, and still far above any delta."""
ROWS_MAX: Final = 20_000
ROWS_OF_A_PERSON: Final = 50
"""Rows of the person who is replaced, where persons are the unit."""
# Waves whose lengths are audited: the claim holds for every choice of them.
COINS: Final = 1


def rows_wanted(epsilon: float) -> int:
    """Return a number of identical records with which the audited event is rare.

    The event is still far likelier than any delta.

    Args:
        epsilon: the claimed epsilon of the draw.

    """
    return min(ROWS_MAX, math.ceil(LOG_ODDS / epsilon) + 1)


def draw_bound(
    parameters: Parameters, point: NDArray[np.float64], rows_each: int | None = None
) -> Bound:
    """Return the largest lower bound on epsilon from one draw of a hypothesis.

    All records have the same features, and one record alone has a certain label on one of two
    neighbouring data sets. The event is that the drawn hypothesis gives all records this label.

    Args:
        parameters: the parameters of the drawing mechanism, including the number of records.
        point: the encoded features of all records, shape (d,) for d features; a public choice.
        rows_each: the number of rows of the person who differs; None if the unit of privacy is a
            row.

    """
    records, rows = parameters.row_count, rows_each or 1
    count = records - 1 + rows
    encoded = parameters.hypotheses.encode(np.repeat(point[None, :], count, axis=0))
    epsilon = parameters.mechanism_epsilon
    weights = None if rows_each is None else _first_with(rows, others=records - 1).weights
    # What the record that differs counts for: 1, or a little less.
    own = 1.0 if weights is None else float(weights[:rows].sum())

    def log_sum(first: int, others: int) -> float:
        labels = np.full(count, others, dtype=np.int64)
        labels[:rows] = first
        return parameters.hypotheses.log_normaliser(encoded, labels, epsilon, weights)

    found = []
    for label, other in ((0, 1), (1, 0)):
        log_count = _log_count(parameters, log_sum(label, label), epsilon, records - 1 + own)
        log_chances = (
            log_count - epsilon * (records - 1 + own - with_label) / 2 - log_sum(first, other)
            for with_label, first in ((own, label), (0.0, other))
        )
        likely, unlikely = (np.exp(np.array([chance])) for chance in log_chances)
        shown = epsilon_shown(likely, unlikely, float(parameters.delta_truncation))
        text = f"{records} equal records, one of which alone has label {label}: its label is drawn"
        found.append(Bound(float(shown[0]), text))
    return strongest(found)


def _first_with(rows: int, *, others: int) -> Persons:
    """Return persons of whom the first has so many rows, and others one each."""
    numbers = np.concatenate([np.zeros(rows, dtype=np.int64), np.arange(1, others + 1)])
    return Persons(numbers, np.zeros((others + 1, IDENTITY_BYTES), dtype=np.uint8))


def _log_count(parameters: Parameters, log_sum: float, epsilon: float, counted: float) -> float:
    """Return the log of how many hypotheses give all records the label that they have.

    Of the others each weighs ``e^(-epsilon counted / 2)``, all records counting for so many.
    """
    log_weight = -epsilon * counted / 2
    others = math.exp(math.log(parameters.hypotheses.size) + log_weight - log_sum)
    if others >= 1.0:
        return -math.inf
    return log_sum + math.log1p(-others) - math.log1p(-math.exp(log_weight))


BISECTIONS: Final = 100
EPSILON_MAX: Final = 2000.0


def gradient_bound(
    parameters: GradientParameters, *, delta: float, rows_each: int | None = None
) -> Bound:
    """Return a lower bound on epsilon, at delta, from all noisy gradient steps, if a label changes.

    Args:
        parameters: the parameters of the noisy gradient descent.
        delta: the delta that the release charges for the descent.
        rows_each: the number of rows, all with the same label, of the person who is replaced; None
            if the unit of privacy is a row.

    """
    features, rows = parameters.features, rows_each or 1
    vectors = np.zeros((rows, features.width), dtype=np.int16)
    vectors[:, 0] = features.norm_bound
    weights = whole_weights(np.zeros((features.width, score_count(parameters.class_count))))
    counts = None if rows_each is None else np.full(rows, rows)
    sums = [
        gradient_sum(features, vectors, np.full(rows, label, dtype=np.int64), weights, counts)
        for label in (0, 1)
    ]
    moved = float(np.sqrt(((sums[0] - sums[1]).astype(np.float64) ** 2).sum()))
    steps = parameters.step_count
    # Steps that move alike add up: squares of what each moves, in deviations of its noise.
    separation = sum(moved**2 / float(parameters.step_variance(step)) for step in range(steps))
    shown = shown_epsilon(math.sqrt(separation), delta)
    return Bound(shown, f"the label of one record at full length is replaced, in {steps} steps")


def shown_epsilon(separation: float, delta: float) -> float:
    """Return the epsilon, at delta, of two normal distributions with variance 1.

    Args:
        separation: the difference of the two means.
        delta: the delta at which epsilon is computed.

    """
    if _delta_at(0.0, separation) <= delta:
        return 0.0
    low, high = 0.0, EPSILON_MAX
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _delta_at(middle, separation) > delta else (low, middle)
    return low


def _delta_at(epsilon: float, separation: float) -> float:
    """Return the delta of two normal laws at an epsilon."""
    first = _above(epsilon / separation - separation / 2)
    second = _above(epsilon / separation + separation / 2)
    return first - math.exp(min(epsilon, 700.0)) * second


def _above(deviations: float) -> float:
    """Return the chance of a standard normal beyond so many deviations."""
    return math.erfc(deviations / math.sqrt(2)) / 2


def grid_bound(parameters: GridParameters, *, rows_each: int | None = None) -> Bound:
    """Return a lower bound on epsilon from the noisy counts of a grid, if one label changes.

    The learner counts labels in several nested grids, and the record whose label changes is in one
    cell of each. The event is that the noisy counts of all these cells are larger than the number
    of records. The ratio of its probabilities on the two data sets is known exactly.

    Args:
        parameters: the parameters of the noisy counts.
        rows_each: the number of rows, all with the same label, of the person who is replaced; None
            if the unit of privacy is a row.

    """
    grid, records, rows = parameters.grid, parameters.row_count, rows_each or 1
    one = replace(parameters, row_count=1)
    ranks = np.zeros((rows, len(grid.features)), dtype=np.uint8)
    weights = None if rows_each is None else _first_with(rows, others=0).weights
    first, second = (
        level_counts(one, ranks, np.full(rows, label, dtype=np.int64), weights) for label in (0, 1)
    )
    moved = [np.abs(ours - theirs).sum() for ours, theirs in zip(first, second, strict=True)]
    shown = sum(
        Fraction(int(by)) / scale for by, scale in zip(moved, parameters.scales, strict=True)
    )
    text = f"the label of one of {records} records is replaced: its cells' numbers are all large"
    return Bound(float(shown), text)


def scored_tree_bound(
    parameters: ScoredTreeParameters, point: NDArray[np.float64], rows_each: int | None = None
) -> Bound:
    """Return a lower bound on epsilon from a tree and its noisy counts, if one label changes.

    On one of two neighbouring data sets, one record has another label than all other records, which
    have the same features. The event has three parts: the noisy numbers of rows of both labels are
    equal; the drawn tree gives all records the one record's label; and the noisy count of this
    label in the tree's leaf is far above the true count. All three parts are likelier on the same
    data set, so their lower bounds add up. The truncation of the noise is neglected.

    Args:
        parameters: the parameters of the drawing mechanism, including the number of records.
        point: the encoded features of all records, shape (d,) for d features; a public choice.
        rows_each: the number of rows, all with the same label, of the person who is replaced; None
            if the unit of privacy is a row.

    """
    rows = rows_each or 1
    weights = None if rows_each is None else _first_with(rows, others=0).weights
    cells = np.zeros(rows, dtype=np.int64)
    first, second = (
        histogram(parameters, cells, np.full(rows, label), weights, cell_count=1)
        for label in (0, 1)
    )
    moved = int(np.abs(first - second).sum())
    counts = float(moved / parameters.label_scale + moved / parameters.leaf_scale)
    of_tree = draw_bound(parameters.tree, point, rows_each)
    text = f"{of_tree.adversary}, and its noisy counts are as large as the others'"
    return Bound(of_tree.epsilon + counts, text)


@dataclass(frozen=True, slots=True)
class DrawReport:
    """The lower bound on epsilon from one random draw, with its claimed epsilon.

    Attributes:
        mechanism: the name of the mechanism that draws.
        epsilon: the claimed epsilon of the draw.
        delta: the claimed delta of the draw; a draw without noise needs it for rounding errors
            only.
        exact: the largest lower bound on epsilon.

    """

    mechanism: str
    epsilon: float
    delta: float
    exact: Bound

    @property
    def holds(self) -> bool:
        """Whether the lower bound on epsilon stays within the claim."""
        return self.exact.epsilon <= self.epsilon + ROUNDING


def audit_draws(settings: Settings) -> tuple[DrawReport, ...]:
    """Return a lower bound on epsilon for each hypothesis that the configuration would draw.

    A hypothesis class that is itself made from the rows (all labellings of the rows) is left out,
    because no public choice determines it.
    """
    budget, charges = release_budget(settings), charges_by_mechanism(settings)
    reports = []
    if budget is not None and budget.relabel_epsilon and not budget.relabel_is_private:
        epsilon, delta = budget.relabel_epsilon, budget.relabel_delta
        parameters = Parameters(
            epsilon=epsilon,
            delta_truncation=delta,
            row_count=rows_wanted(float(epsilon)),
            hypotheses=public_class(settings),
            account_epsilon=None if budget.account is None else budget.account.epsilon,
        )
        bound = draw_bound(parameters, _point(settings), _rows_each(settings))
        reports.append(DrawReport("relabelling", float(epsilon), float(delta), bound))
    charge = charges.get(Mechanism.CLASSIFIER)
    if charge is not None:
        name = chosen_learner(
            settings, row_count=settings.data.unit_count, opened=None
        ).row.learner.name
        bound = AUDITED_LEARNERS[name](settings, charge)
        claimed = (float(charge.epsilon), float(charge.delta))
        reports.append(DrawReport("published classifier", *claimed, bound))
    return tuple(reports)


def _of_class(settings: Settings, charge: Charge) -> Bound:
    """Bound what a draw from the published class shows."""
    rows = rows_wanted(float(charge.epsilon))
    asked = ClassifierAsked(settings, charge, no_points(settings), rows)
    return draw_bound(exponential_draw(asked).parameters, _point(settings), _rows_each(settings))


def _of_descent(settings: Settings, charge: Charge) -> Bound:
    """Bound what all steps of a descent show."""
    asked = ClassifierAsked(settings, charge, no_points(settings), settings.data.unit_count or 1)
    parameters, delta = linear_draw(asked).parameters, float(charge.delta)
    return gradient_bound(parameters, delta=delta, rows_each=_rows_each(settings))


def _of_waves(settings: Settings, charge: Charge) -> Bound:
    """Bound what all steps of a descent over waves show, for coins that are as good as any."""
    asked = ClassifierAsked(settings, charge, no_points(settings), settings.data.unit_count or 1)
    draw = kernel_draw(asked)
    parameters = draw.parameters(draw.inputs(ScriptedNoise(seeded_words(COINS))))
    delta = float(charge.delta)
    return gradient_bound(parameters, delta=delta, rows_each=_rows_each(settings))


def _of_grid(settings: Settings, charge: Charge) -> Bound:
    """Bound what all levels of a grid show."""
    asked = ClassifierAsked(settings, charge, no_points(settings), settings.data.unit_count or 1)
    return grid_bound(grid_draw(asked).parameters, rows_each=_rows_each(settings))


def _of_scored_tree(settings: Settings, charge: Charge) -> Bound:
    """Bound what the three parts of a scored tree show."""
    rows = rows_wanted(float(charge.epsilon * DIVISIONS[NEWEST_DIVISION].tree))
    asked = ClassifierAsked(settings, charge, no_points(settings), rows)
    parameters = scored_tree_draw(asked).parameters
    return scored_tree_bound(parameters, _point(settings), _rows_each(settings))


def _rows_each(settings: Settings) -> int | None:
    """Return how many rows the record that differs has; None where records are rows."""
    return None if settings.data.unit == "row" else ROWS_OF_A_PERSON


AUDITED_LEARNERS: dict[str, Callable[[Settings, Charge], Bound]] = {
    EXPONENTIAL.name: _of_class,
    LINEAR.name: _of_descent,
    KERNEL.name: _of_waves,
    GRID.name: _of_grid,
    SCORED_TREE.name: _of_scored_tree,
}
"""The table of audited learners, under the names of ``app.privacy.learner_properties``."""


def _point(settings: Settings) -> NDArray[np.float64]:
    """Return the middle of every feature's bounds, and the first of its categories."""
    return np.array(
        [
            (feature.lower + feature.upper) / 2 if isinstance(feature, NumericFeature) else 0.0
            for feature in settings.data.public_schema().features
        ]
    )
