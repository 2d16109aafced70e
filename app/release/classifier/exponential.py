"""The learners that draw a rule (hypothesis) from a public class by the exponential mechanism.

The learner ``exponential`` publishes the drawn rule, and ``scored-tree`` a drawn tree with noisy
counts in its leaves. Public points make the class smaller. The privacy cost of numerical error in a
draw is paid from the classifier's share of the budget.

The scores in a tree's leaf are integers computed from noisy counts; the largest, or the sign of a
single one, decides the leaf's label.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from app.data.persons import WEIGHT_UNITS
from app.data.streaming.part_counts import LabelCounts, draw_counting
from app.data.streaming.streamed_rows import StreamedRows
from app.errors import ConfigurationError
from app.learning.encoding.encoded_rows import RowsByPart
from app.learning.registry import row_of
from app.learning.trees.tree_class import TreeClass, telling
from app.learning.trees.upper_level_weights import tell_nobody
from app.privacy.exponential import scored_tree, semi_private
from app.privacy.exponential.mechanism import excess_error, rows_for_excess_error
from app.privacy.learner_properties import EXPONENTIAL, SCORED_TREE
from app.release.classifier.learner_registration import ClassifierAsked, LearnerRegistration
from app.release.classifier.written_hypotheses import Written, scored_tree_document, written
from app.release.terms.accounting import account
from app.release.terms.configuration import published_class
from app.release.terms.draw_parameters import naming_share
from app.release.terms.work_limits import PUBLISHED, naming_section, refuse_long_draw

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.data.schema import Schema
    from app.data.streaming.streamed_rows import AnyRows
    from app.learning.encoding.encoded_rows import Tally
    from app.learning.hypothesis import HypothesisClass
    from app.learning.trees.cell_counts import CountedRows
    from app.learning.trees.upper_level_weights import Told
    from app.noise.source import NoiseSource
    from app.release.terms.privacy_unit import Unit
    from app.settings.settings import Settings

SIZES_SHOWN_WHOLE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ExponentialDraw:
    """A draw by the exponential mechanism, whose parameters follow from public values only.

    Attributes:
        parameters: the public parameters of the exponential mechanism.
        alpha: the wanted bound on how far the drawn rule's error rate is above the best rule's.
        beta: the probability with which a bound on accuracy may fail.
        unit: the unit of privacy, a row or a person.

    """

    parameters: semi_private.Parameters
    alpha: float
    beta: float
    unit: Unit = "row"

    def worth(self, source: str) -> str:
        """Return a text on how far the drawn rule's error rate may be above the best rule's."""
        parameters = self.parameters
        size, epsilon = parameters.hypotheses.size, float(parameters.epsilon)
        bound = excess_error(
            hypothesis_count=size, beta=self.beta, row_count=parameters.row_count, epsilon=epsilon
        )
        wanted = rows_for_excess_error(
            self.alpha, hypothesis_count=size, beta=self.beta, epsilon=epsilon
        )
        return (
            f"drawing from {_count(size)} hypotheses {source}, at epsilon {epsilon:g} on "
            f"{parameters.row_count} {self.unit}s: except with probability {self.beta:g} the "
            f"error rate is within {bound:.3g} of their best; {self.alpha:g} would take {wanted} "
            f"{self.unit}s"
        )

    def written(
        self, schema: Schema, rows: AnyRows, noise: NoiseSource, told: Told = tell_nobody
    ) -> Written:
        """Return a drawn rule in its published form; the budget for the draw was charged before."""
        hypotheses = telling(self.parameters.hypotheses, told)
        parameters = replace(self.parameters, hypotheses=hypotheses)
        counts = _counted(hypotheses, rows) if isinstance(rows, StreamedRows) else None
        if counts is not None:
            drawn = semi_private.draw_counted(parameters, counts, noise)
            return written(schema, hypotheses, drawn)
        held = rows.in_memory()
        private_value = (RowsByPart(hypotheses.encode, held.values), held.labels)
        drawn = semi_private.draw(parameters, private_value, noise, held.weights)
        return written(schema, hypotheses, drawn)


def _counted(hypotheses: HypothesisClass, rows: StreamedRows) -> CountedRows | Tally | None:
    """Return the rows by what the class counts of them; None where it reads rows."""
    coding = row_of(hypotheses).codes(hypotheses)
    counting = None if coding is None else draw_counting(hypotheses, coding, rows.unit_count)
    if coding is None or counting is None:
        return None
    if isinstance(counting, LabelCounts):
        return rows.counted(counting, coding)
    return rows.counted(counting, coding)


def exponential_draw(asked: ClassifierAsked) -> ExponentialDraw:
    """Return the parameters of a draw of a rule from the class that ``[classifier]`` configures.

    Raises:
        ConfigurationError: numerical error would cost more than the share of the budget; or the
            draw would take hours, which is refused only before the budget is charged. The message
            names what to change.

    """
    settings = asked.settings
    hypotheses = published_class(settings, asked.public_values)
    if asked.is_first:
        refuse_long_draw(PUBLISHED, hypotheses, row_count=asked.row_count, unit=settings.data.unit)
    joint = account(settings)
    with naming_share(asked.charge.mechanism):
        parameters = semi_private.Parameters(
            epsilon=asked.charge.epsilon,
            delta_truncation=asked.charge.delta,
            row_count=asked.row_count,
            hypotheses=hypotheses,
            account_epsilon=None if joint is None else joint.epsilon,
        )
    alpha, beta = settings.answers.alpha, settings.answers.beta
    return ExponentialDraw(parameters, alpha, beta, settings.data.unit)


def exponential_share(asked: ClassifierAsked) -> float:
    """Return a bound on how far a drawn rule's error rate is above the best rule's.

    A label whose fraction of the rows is below this bound may never be predicted.
    """
    answers = asked.settings.answers
    return excess_error(
        hypothesis_count=published_class(asked.settings, asked.public_values).size,
        beta=answers.beta,
        row_count=asked.row_count,
        epsilon=float(asked.charge.epsilon),
    )


def _count(size: int) -> str:
    """Write a size that may have thousands of digits."""
    return str(size) if size < SIZES_SHOWN_WHOLE else f"about 10^{math.log10(size):.1f}"


DRAWN_FROM_CLASS: Final = LearnerRegistration(
    learner=EXPONENTIAL,
    prepare=exponential_draw,
    smallest_share=exponential_share,
    drawn_class=published_class,
)


@dataclass(frozen=True, slots=True)
class ScoredTreeDraw:
    """The draw of a tree with noisy counts in its leaves, prepared from public values only.

    Attributes:
        parameters: the public parameters of the mechanism.
        beta: the probability with which a bound on accuracy may fail.
        unit: the unit of privacy, a row or a person.

    """

    parameters: scored_tree.Parameters
    beta: float
    unit: Unit = "row"

    def worth(self, source: str) -> str:
        """Return a text on the accuracy to expect, computed without the private rows."""
        parameters = self.parameters
        size, epsilon = parameters.hypotheses.size, float(parameters.tree.epsilon)
        bound = excess_error(
            hypothesis_count=size, beta=self.beta, row_count=parameters.row_count, epsilon=epsilon
        )
        scale = float(parameters.leaf_scale / parameters.unit_count)
        return (
            f"drawing from {_count(size)} trees {source}, at epsilon {epsilon:g} on "
            f"{parameters.row_count} {self.unit}s: except with probability {self.beta:g} the "
            f"balanced error rate is within {bound:.3g} of their best; then counting labels in "
            f"{1 << parameters.hypotheses.depth} leaves, with noise of scale {scale:.3g}"
        )

    def written(
        self, schema: Schema, rows: AnyRows, noise: NoiseSource, told: Told = tell_nobody
    ) -> Written:
        """Return a drawn tree with scores; the budget was charged before."""
        hypotheses = replace(self.parameters.hypotheses, told=told)
        parameters, held = replace(self.parameters, hypotheses=hypotheses), rows.in_memory()
        private_value = (RowsByPart(parameters.hypotheses.encode, held.values), held.labels)
        drawn = scored_tree.draw(parameters, private_value, noise, held.weights)
        scores = scored_tree.leaf_scores(drawn.counts, parameters.leaf_scale)
        return scored_tree_document(schema, parameters.hypotheses.tests, drawn.tree, scores)


def scored_tree_draw(asked: ClassifierAsked) -> ScoredTreeDraw:
    """Return the parameters of a draw of a tree with noisy counts in its leaves.

    Raises:
        ConfigurationError: the hypothesis class does not consist of trees; or numerical error
            would cost more than the share of the budget; or the draw would take hours, which is
            refused only before the budget is charged. The message names what to change.

    """
    settings = asked.settings
    hypotheses = trees_to_score(settings, asked.public_values)
    if asked.is_first:
        with naming_section(PUBLISHED):
            hypotheses.refuse_rows(asked.row_count, is_weighed=True)
    joint = account(settings)
    with naming_share(asked.charge.mechanism):
        parameters = scored_tree.Parameters(
            epsilon=asked.charge.epsilon,
            delta_truncation=asked.charge.delta,
            row_count=asked.row_count,
            hypotheses=hypotheses,
            division=scored_tree.DIVISIONS[asked.division],
            unit_count=1 if settings.data.unit == "row" else WEIGHT_UNITS,
            account_epsilon=None if joint is None else joint.epsilon,
        )
    return ScoredTreeDraw(parameters, settings.answers.beta, settings.data.unit)


def trees_to_score(settings: Settings, public_values: NDArray[np.float64]) -> TreeClass:
    """Return the class of trees that ``[classifier]`` configures, made smaller by public points.

    The class keeps only one feature test for each way in which a test divides the points.

    Raises:
        ConfigurationError: the class in ``[classifier]`` does not consist of trees.

    """
    hypotheses = published_class(settings, public_values)
    if not isinstance(hypotheses, TreeClass):
        kind = settings.published.kind
        problem = f'is "{kind}", and "{SCORED_TREE.name}" takes trees or stumps'
        raise ConfigurationError("classifier.class", problem)
    return hypotheses


def scored_tree_share(asked: ClassifierAsked) -> float:
    """Return the fraction of rows that must have a label so that it is learned despite noise.

    All rows with the label are assumed to be in one leaf.
    """
    parameters = scored_tree_draw(asked).parameters
    lead = scored_tree.SCALES_ADDED * parameters.leaf_scale / parameters.unit_count
    return float(lead) / asked.row_count


SCORED_BY_LEAVES: Final = LearnerRegistration(
    learner=SCORED_TREE,
    prepare=scored_tree_draw,
    smallest_share=scored_tree_share,
    drawn_class=trees_to_score,
)
