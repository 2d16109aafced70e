"""The learners of the published classifier: the table of what is public of each.

A learner is a row here, a row of ``app.release.classifier.learner_table`` under the same name,
which prepares its draw, and one of ``app.auditing.draws``, which bounds what it shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from app.privacy.noisy_gradient.descent import descends

if TYPE_CHECKING:
    from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLearner:
    """What is public of a learner, whatever the release.

    Attributes:
        name: in ``classifier.learner``.
        uses_delta: whether its noise needs a share of delta.
        meaning: how it learns, in plain words.
        formula: the law behind; ``{drawn}`` stands for a hypothesis of the published class.
        theorem: what makes it private, in a line.
        proof: the file that proves it.

    """

    name: str
    uses_delta: bool
    meaning: str
    formula: str
    theorem: str
    proof: str


EXPONENTIAL: Final = PublishedLearner(
    name="exponential",
    uses_delta=False,
    meaning="Pays for the published classifier, drawn once.",
    formula="{drawn} is drawn with weight exp(-epsilon_share * errors / 2)",
    theorem="the exponential mechanism over a class fixed by public points",
    proof="app/privacy/exponential/semi_private_proof.md",
)
LINEAR: Final = PublishedLearner(
    name="linear",
    uses_delta=True,
    meaning="Pays for the published classifier, a linear score that is learned once.",
    formula="every step descends by a sum over all records + discrete Gaussian noise",
    theorem="noisy gradient descent in integers, by the exact curve of normal noise",
    proof="app/privacy/noisy_gradient/proof.md",
)
KERNEL: Final = PublishedLearner(
    name="kernel",
    uses_delta=True,
    meaning="Pays for the published classifier, a score of random waves of the numbers and of "
    "tests that is learned once.",
    formula="every step descends by a sum over all records + discrete Gaussian noise",
    theorem="noisy gradient descent in integers, by the exact curve of normal noise",
    proof="app/privacy/noisy_gradient/proof.md",
)
GRID: Final = PublishedLearner(
    name="grid",
    uses_delta=False,
    meaning="Pays for the published classifier, a label for each cell of a public grid.",
    formula="every cell of every level: a count of records + discrete Laplace noise",
    theorem="discrete Laplace noise on the counts of every cell of public grids",
    proof="app/privacy/noisy_grid/proof.md",
)
AUTO: Final = "auto"

LEARNERS: dict[str, PublishedLearner] = {
    row.name: row for row in (EXPONENTIAL, LINEAR, KERNEL, GRID)
}


def uses_delta(learner: str) -> bool:
    """Return whether ``classifier.learner`` needs a share of delta; ``auto`` may."""
    return learner == AUTO or LEARNERS[learner].uses_delta


def learner_of(learner: str, *, row_count: int | None, epsilon: Fraction) -> str:
    """Return the name of the learner: as configured, or by public numbers where that is ``auto``.

    Args:
        learner: as configured.
        row_count: the public n; where it is not known, ``auto`` counts as the descent.
        epsilon: of the classifier.

    """
    if learner != AUTO:
        return learner
    is_descent = row_count is None or descends(row_count=row_count, epsilon=epsilon)
    return (LINEAR if is_descent else EXPONENTIAL).name
