"""Relabelling: each row keeps its features and gets its label from a drawn hypothesis.

**Algorithm.** A_Relabel (Nandi and Bassily 2020, Algorithm 2). The hypothesis is drawn from a
finite class that is fixed without the data (:func:`draw`), or from one hypothesis for each
labelling that the class allows on the private rows themselves, the rows' dichotomies
(:func:`draw_from_dichotomies`).

**Claim.** Let an algorithm, which may answer an adaptive client, be (epsilon_inner,
delta_inner)-private in the relabelled rows. Then the algorithm on rows relabelled here is (epsilon
+ epsilon_inner, delta + delta_inner)-private in the original rows. With a public class, (epsilon,
delta) is the charge of the exponential mechanism, and the hypothesis could be released. With the
rows' own dichotomies, epsilon and delta are those of Lemma L in the proof, and include the cost of
rounding the weights to integers (truncation). In this case only functions of the relabelled rows
are covered, so the hypothesis is never released.

**Proof.** Adaptive composition and Lemma L: ``app/privacy/exponential/relabel_proof.md``.

**Inputs and outputs.** ``private_value``: encoded rows, in the form from which the hypotheses of
the class compute labels (for trees, the outcomes of feature tests), all at once or part by part, n
along the first axis, and labels int64 (n,), secret. With a public class there may be
``private_weights``, the weight of each row in the count of errors, if a column names persons; the
weights of one person's rows add up to at most 1, exactly. Out: ``Relabelled``, secret: the
hypothesis and labels int64 (n,).

**Utility.** The class contains a hypothesis without error on every relabelled chunk, so models of
different chunks agree more often.

**Deviations.** A public class is an addition to the paper, at the charge of the exponential
mechanism. The bound that the paper prints is loose and is replaced by the exact bound. The costs of
numerical error and truncation are charged, by bounds that are public.

**Raises.** ``InvariantError``: the share does not exceed the cost of Lemma L or of numerical error,
or there are so many dichotomies that truncation exceeds ``delta_truncation``; also the errors of
``app.privacy.exponential.mechanism``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from app.errors import InvariantError, invariant
from app.learning.encoding.encoded_rows import predicted
from app.learning.enumerated.enumerated_class import log_weight_error
from app.noise.exact_choice import truncation_variation
from app.privacy.budget.composition import NUMERICAL_FACTOR, float_below
from app.privacy.exponential import mechanism as exponential
from app.privacy.exponential.amplification import relabel_parameter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.enumerated.enumerated_class import EnumeratedClass
    from app.learning.hypothesis import Hypothesis
    from app.noise.source import NoiseSource

Parameters = exponential.Parameters


@dataclass(frozen=True, slots=True)
class Relabelled:
    """A drawn hypothesis with the labels that it gives to the rows; secret."""

    private_hypothesis: Hypothesis
    private_labels: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class DichotomyParameters:
    """The public parameters of a draw among all labellings that a class allows on the private rows.

    Attributes:
        epsilon: the epsilon that the draw may cost by Lemma L, with the cost of numerical error.
        composed_epsilon: the joint epsilon of the draw and of the algorithm on the relabelled rows.
        delta_truncation: the delta that is withheld for the use of integer weights.
        row_count: the public number of rows.
        class_count: the number L of labels.
        dichotomy_count_max: a public upper bound on the number of labellings; the exact number is
            private.

    """

    epsilon: Fraction
    composed_epsilon: Fraction
    delta_truncation: Fraction
    row_count: int
    class_count: int
    dichotomy_count_max: int

    def __post_init__(self) -> None:
        """Check that the costs of Lemma L, numerical error and truncation are covered."""
        invariant(0 < self.epsilon <= self.composed_epsilon, "a draw costs, and is a part")
        invariant(
            self.composed_epsilon <= exponential.EPSILON_MAX,
            "its weights stay within the range of doubles",
        )
        invariant(self.row_count >= 1, "there is at least one row")
        invariant(self.mechanism_epsilon > 0.0, "the cost exceeds Lemma L's least")
        invariant(
            self._truncation_cost() <= self.delta_truncation,
            "truncation costs no more than the delta withheld for it",
        )

    @property
    def mechanism_epsilon(self) -> float:
        """The epsilon of the exponential mechanism as a double; 0 if the budget is too small.

        The bound on numerical error grows with this epsilon, so it is computed at the largest
        possible epsilon.
        """
        largest = self._parameter(self.epsilon)
        eta = Fraction(log_weight_error(self.row_count, float(largest)))
        return float_below(self._parameter(self.epsilon - NUMERICAL_FACTOR * eta))

    def _parameter(self, cost: Fraction) -> Fraction:
        if cost <= 0:
            return Fraction(0)
        return relabel_parameter(cost=cost, class_count=self.class_count) or Fraction(0)

    def _truncation_cost(self) -> Fraction:
        """Return (1 + e^E) v, rounded up; v is the draw's total variation."""
        # Rounding epsilon up to an integer dwarfs the last digit of exp.
        odds = Fraction(Decimal(math.floor(self.composed_epsilon) + 1).exp())
        return (1 + odds) * truncation_variation(self.dichotomy_count_max)


def draw(
    parameters: Parameters,
    private_value: tuple[EncodedRows, NDArray[np.int64]],
    noise: NoiseSource,
    private_weights: NDArray[np.float64] | None = None,
) -> Relabelled:
    """Return new labels of the rows, given by a hypothesis that is drawn from a public class."""
    hypothesis = exponential.draw(parameters, private_value, noise, private_weights)
    encoded, _ = private_value
    return Relabelled(hypothesis, predicted(hypothesis.predict, encoded))


def draw_from_dichotomies(
    parameters: DichotomyParameters,
    private_class: EnumeratedClass,
    private_value: tuple[EncodedRows, NDArray[np.int64]],
    noise: NoiseSource,
) -> Relabelled:
    """Return labels of the rows, drawn among all labellings that a class allows on them.

    Args:
        parameters: the public parameters of the draw.
        private_class: exactly one hypothesis for every labelling that the class allows on the rows
            in ``private_value``; secret.
        private_value: the rows in the form from which the hypotheses compute labels, and the rows'
            labels; secret.
        noise: the source of randomness.

    """
    encoded, labels = private_value
    invariant(len(labels) == parameters.row_count, "the rows are the public number of rows")
    if private_class.size > parameters.dichotomy_count_max:
        message = "the public bound of the dichotomies holds"
        raise InvariantError(message)
    hypothesis = private_class.draw(encoded, labels, parameters.mechanism_epsilon, noise)
    return Relabelled(hypothesis, predicted(hypothesis.predict, encoded))
