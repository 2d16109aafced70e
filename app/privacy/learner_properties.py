"""The table of public facts about each learner that can publish a classifier.

A learner has an entry here and two further entries under the same name: in
``app.release.classifier.learner_table``, which prepares its draw, and in
``app.auditing.hypothesis_draws``, with which an audit bounds the privacy that the draw loses.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from app.privacy.noisy_gradient.descent_choices import descends, waves_pay

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLearner:
    """The public facts about a learner of the published classifier.

    Attributes:
        name: the learner's name in the setting ``classifier.learner``.
        uses_delta: whether the learner's noise needs a share of delta.
        has_bounded_range: whether the learner is one draw of the exponential mechanism.
        has_scores: whether the published classifier adds up a score for each label, by which
            queries can be ranked.
        meaning: how the learner works, in plain words.
        formula: the probability distribution of the draw; ``{drawn}`` is replaced by the kind of
            hypothesis that is drawn.
        theorem: why the learner is private, in one line.
        proof: the path of the file with the proof.

    """

    name: str
    uses_delta: bool
    has_bounded_range: bool = False
    has_scores: bool
    meaning: str
    formula: str
    theorem: str
    proof: str


EXPONENTIAL: Final = PublishedLearner(
    name="exponential",
    uses_delta=False,
    has_bounded_range=True,
    has_scores=False,
    meaning="Pays for the published classifier, drawn once.",
    formula="{drawn} is drawn with weight exp(-epsilon_share * errors / 2)",
    theorem="the exponential mechanism over a class fixed by public points",
    proof="app/privacy/exponential/semi_private_proof.md",
)
LINEAR: Final = PublishedLearner(
    name="linear",
    uses_delta=True,
    has_scores=True,
    meaning="Pays for the published classifier, a linear score that is learned once.",
    formula="every step descends by a sum over all records + discrete Gaussian noise",
    theorem="noisy gradient descent in integers, by the exact curve of normal noise",
    proof="app/privacy/noisy_gradient/proof.md",
)
KERNEL: Final = PublishedLearner(
    name="kernel",
    uses_delta=True,
    has_scores=True,
    meaning="Pays for the published classifier, a score of random waves of the numbers and of "
    "tests that is learned once.",
    formula="every step descends by a sum over all records + discrete Gaussian noise",
    theorem="noisy gradient descent in integers, by the exact curve of normal noise",
    proof="app/privacy/noisy_gradient/proof.md",
)
GRID: Final = PublishedLearner(
    name="grid",
    uses_delta=False,
    has_scores=False,
    meaning="Pays for the published classifier, a label for each cell of a public grid.",
    formula="every cell of every level: a count of records + discrete Laplace noise",
    theorem="discrete Laplace noise on the counts of every cell of public grids",
    proof="app/privacy/noisy_grid/proof.md",
)
SCORED_TREE: Final = PublishedLearner(
    name="scored-tree",
    uses_delta=False,
    has_scores=True,
    meaning="Pays for the published classifier, a tree that is drawn once, and for the counts of "
    "labels in its leaves.",
    formula="a tree is drawn by balanced errors; every leaf: counts of labels + discrete Laplace "
    "noise",
    theorem="the exponential mechanism over trees, and discrete Laplace noise on counts of labels",
    proof="app/privacy/exponential/scored_tree_proof.md",
)
AUTO: Final = "auto"
RANKING: Final = "ranking"
"""What ``classifier.wanted`` is where scores matter more than labels."""

LEARNERS: dict[str, PublishedLearner] = {
    row.name: row for row in (EXPONENTIAL, LINEAR, KERNEL, GRID, SCORED_TREE)
}


def uses_delta(learner: str) -> bool:
    """Return whether the learner, or one that ``auto`` may choose, needs a share of delta."""
    return learner == AUTO or LEARNERS[learner].uses_delta


def may_rank(learner: str) -> bool:
    """Return whether a classifier's learner can publish scores, by which rows can be ranked."""
    return learner == AUTO or LEARNERS[learner].has_scores


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicNumbers:
    """The public numbers by which ``auto`` chooses a learner; none depends on private rows.

    Attributes:
        row_count: the public number n of rows; None if it is unknown, which counts as large.
        epsilon: the classifier's epsilon.
        number_count: the number of numeric features.
        other_count: the number of categorical features with feature tests, plus the number of
            numeric features without. The configuration leaves a feature without feature tests by an
            empty list.
        wants_ranking: whether the classifier is to rank queries.

    """

    row_count: int | None
    epsilon: Fraction
    number_count: int = 0
    other_count: int = 0
    wants_ranking: bool = False


def _first_rule(numbers: PublicNumbers) -> PublishedLearner:
    """Return the linear score where rows times epsilon are many, and the exact draw below."""
    row_count, epsilon = numbers.row_count, numbers.epsilon
    is_descent = row_count is None or descends(row_count=row_count, epsilon=epsilon)
    return LINEAR if is_descent else EXPONENTIAL


def _second_rule(numbers: PublicNumbers) -> PublishedLearner:
    """Return the kernel score of a few numbers alone; for ranking, always a score.

    A grid is never ahead of the kernel score: docs/utility.md, "Which learner".
    """
    row_count, epsilon = numbers.row_count, numbers.epsilon
    if not numbers.other_count and waves_pay(
        row_count=row_count, epsilon=epsilon, number_count=numbers.number_count
    ):
        return KERNEL
    return LINEAR if numbers.wants_ranking else _first_rule(numbers)


AUTO_RULES: Final[Mapping[int, Callable[[PublicNumbers], PublishedLearner]]] = MappingProxyType(
    {1: _first_rule, 2: _second_rule}
)
"""The rules behind ``auto``, by version: a release keeps the one that it was opened by."""

FIRST_AUTO_RULE: Final = 1
NEWEST_AUTO_RULE: Final = 2


def learner_of(learner: str, numbers: PublicNumbers, *, rule: int = NEWEST_AUTO_RULE) -> str:
    """Return the name of a classifier's learner, as configured or as ``auto`` chooses.

    Args:
        learner: the setting ``classifier.learner``.
        numbers: the public numbers by which ``auto`` chooses.
        rule: the version of the rule by which ``auto`` chooses.

    """
    return AUTO_RULES[rule](numbers).name if learner == AUTO else learner
