"""The table of learners that publish a classifier.

Some learners publish scores: weighted sums of inputs, which are results of feature tests and values
of features. There are three public rules. One chooses the learner if the configured learner is
``auto``. One selects the inputs of scores. One divides epsilon between the draw of a tree and the
noisy counts in its leaves. A later version of the program may change these rules, so each has a
version number. The first ledger entry contains these numbers, so that a release keeps the rules
with which it was opened.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from app.data.schema import NumericFeature
from app.errors import ReleaseMismatchError
from app.privacy.budget.composition import Mechanism
from app.privacy.exponential.scored_tree import DIVISIONS, NEWEST_DIVISION
from app.privacy.learner_properties import (
    AUTO,
    FIRST_AUTO_RULE,
    NEWEST_AUTO_RULE,
    RANKING,
    SCORED_TREE,
    PublicNumbers,
    learner_of,
    may_rank,
)
from app.release.classifier.exponential import DRAWN_FROM_CLASS, SCORED_BY_LEAVES
from app.release.classifier.grid import COUNTED
from app.release.classifier.kernel import WAVED
from app.release.classifier.learner_registration import FIRST_INPUTS, NEWEST_INPUTS, ClassifierAsked
from app.release.classifier.linear import DESCENDED
from app.release.terms.configuration import no_points

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from app.ledger.entries.entry_kinds import ReleaseOpened
    from app.privacy.budget.composition import Charge
    from app.release.classifier.learner_registration import ClassifierDraw, LearnerRegistration
    from app.release.terms.configuration import Configuration
    from app.release.terms.privacy_unit import Unit
    from app.settings.settings import Settings

PUBLISHING: dict[str, LearnerRegistration] = {
    row.learner.name: row for row in (DRAWN_FROM_CLASS, DESCENDED, WAVED, COUNTED, SCORED_BY_LEAVES)
}


AUTO_RULE_KEY: Final = "classifier.auto"
"""Parameter of the first entry: the version of the rule behind ``auto``; absent, the first."""
INPUTS_KEY: Final = "classifier.inputs"
"""Parameter of the first entry: the version of the rule of a score's inputs; absent, the first."""
DIVISION_KEY: Final = "classifier.division"
"""Parameter of the first entry: the version of the rule that divides a scored tree's epsilon."""
CHOICE: Final = (
    '"auto" takes "{learner}" by its rule {rule}: {rows} at epsilon {epsilon:g}; numbers: '
    "{numbers}, other features: {others}{wanted}"
)


@dataclass(frozen=True, slots=True)
class ChosenLearner:
    """The learner that a release uses for its classifier, and the reason for this choice.

    Attributes:
        row: the learner's entry in the table of learners.
        reason: a text on the public facts (such as the number of rows and epsilon) from which
            ``auto`` chose the learner; empty if the learner is configured.

    """

    row: LearnerRegistration
    reason: str


RARE: Final = (
    "A label of fewer than about {count} {unit}s ({share:.2g} of all) may be given to nobody: the "
    "noise of the published classifier hides it."
)
ALL_RARE: Final = (
    "On so few {unit}s the noise of the published classifier may hide any label: it may be given "
    "to nobody."
)


def rare_in_words(share: float, *, count: int, unit: Unit) -> str:
    """Return a text on how rare a label may be so that the classifier still gives it."""
    if share >= 1:
        return ALL_RARE.format(unit=unit)
    return RARE.format(count=f"{math.ceil(share * count):,}", unit=unit, share=share)


def smallest_share(
    settings: Settings, row: LearnerRegistration, charge: Charge, row_count: int
) -> float:
    """Return the fraction of rows that must have a label so that it is learned despite noise.

    The public points are not known here, so the result may be an upper bound on this fraction.

    Args:
        settings: the whole configuration.
        row: the learner's entry in the table of learners.
        charge: the classifier's share of epsilon and delta.
        row_count: the public number n of rows, or of persons.

    """
    return row.smallest_share(ClassifierAsked(settings, charge, no_points(settings), row_count))


def auto_rule(opened: ReleaseOpened | None) -> int:
    """Return the version of the rule by which ``auto`` chooses a learner.

    Raises:
        ReleaseMismatchError: a later version of this program opened the release by a rule that this
            version does not know.

    """
    return _rule(opened, AUTO_RULE_KEY, range(FIRST_AUTO_RULE, NEWEST_AUTO_RULE + 1))


def inputs_rule(opened: ReleaseOpened | None) -> int:
    """Return the version of the rule that selects a score's inputs.

    Raises:
        ReleaseMismatchError: a later version of this program opened the release by a rule that this
            version does not know.

    """
    return _rule(opened, INPUTS_KEY, range(FIRST_INPUTS, NEWEST_INPUTS + 1))


def division_rule(opened: ReleaseOpened | None) -> int:
    """Return the version of the rule that divides a tree's epsilon between its draw and leaves.

    Raises:
        ReleaseMismatchError: a later version of this program opened the release by a rule that this
            version does not know.

    """
    return _rule(opened, DIVISION_KEY, range(min(DIVISIONS), NEWEST_DIVISION + 1))


def _rule(opened: ReleaseOpened | None, key: str, known: range) -> int:
    """Return the version that a first entry has of a rule; without one, the oldest."""
    if opened is None:
        return known[-1]
    version = opened.parameters.get(key, str(known[0]))
    if version not in map(str, known):
        problem = f"the ledger's release goes by rule {version}, which this version does not know"
        raise ReleaseMismatchError(key, problem)
    return int(version)


def rule_parameters(configuration: Configuration) -> dict[str, str]:
    """Return the parameters in the first ledger entry that fix the classifier's rules.

    There is one parameter for the rule of ``auto`` if ``auto`` chooses the learner, one for the
    selection of inputs if the classifier may consist of linear or kernel scores, and one for the
    division of epsilon if the classifier is a tree with scores.
    """
    learner = configuration.settings.classifier.learner
    if not configuration.has(Mechanism.CLASSIFIER) or not may_rank(learner):
        return {}
    if learner == SCORED_TREE.name:
        return {DIVISION_KEY: str(NEWEST_DIVISION)}
    chosen = {AUTO_RULE_KEY: str(NEWEST_AUTO_RULE)} if learner == AUTO else {}
    return {**chosen, INPUTS_KEY: str(NEWEST_INPUTS)}


def chosen_learner(
    settings: Settings, *, row_count: int | None, opened: ReleaseOpened | None
) -> ChosenLearner:
    """Return the configured learner, or the one that ``auto`` chooses from public facts.

    Args:
        settings: the whole configuration.
        row_count: the public number n of rows; None if it is unknown.
        opened: the release's first ledger entry, which fixes the rule of ``auto``; None before the
            release is opened.

    Raises:
        ReleaseMismatchError: a later version of this program opened the release by a rule that this
            version does not know.

    """
    given, rule = settings.classifier.learner, auto_rule(opened)
    numbers = public_numbers(settings, row_count=row_count)
    name = learner_of(given, numbers, rule=rule)
    unit = settings.data.unit
    reason = _reason(name, numbers, rule=rule, unit=unit) if given == AUTO else ""
    return ChosenLearner(PUBLISHING[name], reason)


def public_numbers(
    settings: Settings, *, row_count: int | None, epsilon: Fraction | None = None
) -> PublicNumbers:
    """Return the public facts from which ``auto`` chooses a learner.

    They are the number of rows, epsilon, the numbers of numeric and of other features, and whether
    the classifier is for ranking.

    Args:
        settings: the whole configuration.
        row_count: the public number n of rows; None if it is unknown.
        epsilon: the classifier's epsilon; None for its share in the configuration.

    """
    listed = settings.published.tests
    features = settings.data.public_schema().features
    left_out = [listed.get(feature.name) == () for feature in features]
    are_numbers = [isinstance(feature, NumericFeature) for feature in features]
    share = settings.privacy.epsilon_of(Mechanism.CLASSIFIER.value)
    return PublicNumbers(
        row_count=row_count,
        epsilon=share if epsilon is None else epsilon,
        number_count=sum(are_numbers),
        # Waves take in every number, so one that is left out speaks against them.
        other_count=sum(map(operator.eq, left_out, are_numbers)),
        wants_ranking=settings.classifier.wanted == RANKING,
    )


def _reason(name: str, numbers: PublicNumbers, *, rule: int, unit: Unit) -> str:
    """Say what ``auto`` goes by, in public numbers."""
    count = numbers.row_count
    return CHOICE.format(
        learner=name,
        rule=rule,
        rows=f"an unknown number of {unit}s" if count is None else f"{count:,} {unit}s",
        epsilon=float(numbers.epsilon),
        numbers=numbers.number_count,
        others=numbers.other_count,
        wanted="; for ranking" if numbers.wants_ranking else "",
    )


def classifier_draw(
    configuration: Configuration,
    public_values: NDArray[np.float64],
    *,
    row_count: int,
    is_first: bool = False,
    opened: ReleaseOpened | None = None,
) -> ClassifierDraw:
    """Return the parameters to draw a release's classifier, which depend on public points.

    Args:
        configuration: the release's public parameters.
        public_values: m public feature vectors (public points), encoded, shape (m, d); m may be 0.
        row_count: the public number n of rows, or of persons.
        is_first: whether nothing is charged yet; then a draw that would take hours is refused.
        opened: the release's first ledger entry; None before the release is opened.

    Raises:
        ConfigurationError: the draw is impossible, or would take too long; the message names what
            to change.
        ReleaseMismatchError: a later version of this program opened the release by a rule that this
            version does not know.

    """
    settings, charge = configuration.settings, configuration.charges[Mechanism.CLASSIFIER]
    asked = ClassifierAsked(
        settings,
        charge,
        public_values,
        row_count,
        is_first,
        inputs_rule(opened),
        division_rule(opened),
    )
    return chosen_learner(settings, row_count=row_count, opened=opened).row.prepare(asked)


def check_classifier_draw(
    configuration: Configuration,
    public_values: NDArray[np.float64] | None,
    *,
    row_count: int,
    opened: ReleaseOpened | None = None,
) -> None:
    """Raise an error for a configuration whose classifier could not be drawn later.

    Args:
        configuration: the release's public parameters.
        public_values: the public points, encoded, shape (m, d); None if they are not known yet, and
            then the largest possible hypothesis class is checked.
        row_count: the public number n of rows, or of persons.
        opened: the release's first ledger entry; None before the release is opened.

    Raises:
        ConfigurationError: the draw is impossible; the message names what to change.
        ReleaseMismatchError: a later version of this program opened the release by a rule that this
            version does not know.

    """
    if configuration.has(Mechanism.CLASSIFIER):
        points = no_points(configuration.settings) if public_values is None else public_values
        classifier_draw(configuration, points, row_count=row_count, is_first=True, opened=opened)
