"""The exponential mechanism over a finite hypothesis class.

**Algorithm.** McSherry and Talwar's exponential mechanism, with the number of errors as the quality
of a hypothesis (the private PAC learner of Kasiviswanathan, Lee, Nissim, Raskhodnikova, Smith 2008,
in the form of the lecture notes *What can we learn privately?*; Nandi and Bassily 2020, Algorithm
2, step 4, and Algorithm 7, step 6).

**Claim.** (epsilon, delta_truncation)-differentially private under replace-one, delta_truncation
being a bound on the cost of rounding the weights to integers (truncation). Here epsilon is the
whole share, which includes the cost of numerical error: if every weight is correct up to a factor
e^(+-eta), the mechanism runs at epsilon - 4 eta. In a joint privacy account with the answers
(``app.privacy.budget.account``) it runs at epsilon - 8 eta, so that the logarithms of its
likelihood ratios lie in an interval of length epsilon, and truncation costs the account at most
delta_truncation. If a column names the person of each row, replace-one replaces all rows of a
person, and n counts persons.

**Proof.** The number of errors has sensitivity 1 and the weights are exp(-epsilon errors/2):
``app/privacy/exponential/proof.md``.

**Inputs and outputs.** ``private_value``: encoded rows, in the form from which the hypotheses of
the class compute labels (for trees, the outcomes of feature tests), all at once or part by part, n
along the first axis, and labels int64 (n,), secret. ``private_weights``: the weight of each row in
the count of errors, if a column names persons (``app/data/persons.py``); the weights of one
person's rows add up to at most 1, exactly. Out: one hypothesis, which stays secret until a caller
that charged for it publishes it.

**Utility.** With probability 1 - beta the hypothesis makes at most 2 (ln |H| + ln(1/beta)) /
epsilon errors more than the best hypothesis in the class H.

**Deviations.** A factor 2 that is missing in a line of these lecture notes is put back. The draw is
exact over the finite class: by factorisation, with integer weights, or over a list of all error
counts, and never by a Markov chain.

**Raises.** ``InvariantError``: the share does not exceed the cost of numerical error, or the class
is so large that truncation exceeds ``delta_truncation``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from app.errors import InvariantError, invariant
from app.learning.encoding.encoded_rows import Tally
from app.learning.hypothesis import TalliedClass
from app.learning.trees.tree_class import TreeClass
from app.privacy.budget.composition import float_below, mechanism_epsilon

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.hypothesis import Hypothesis, HypothesisClass
    from app.learning.trees.cell_counts import CountedRows
    from app.noise.source import NoiseSource

# So that e^epsilon is a double.
EPSILON_MAX = 700


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The public parameters of one draw by the exponential mechanism.

    Attributes:
        epsilon: the share of epsilon, which the ledger charges.
        delta_truncation: the delta that is withheld for the use of integer weights.
        row_count: the public number n of rows, or of persons.
        hypotheses: the hypothesis class, fixed by public choices.
        account_epsilon: the joint epsilon of answers and draws if their cost is computed together,
            in one privacy account; None if shares of epsilon are added up.

    """

    epsilon: Fraction
    delta_truncation: Fraction
    row_count: int
    hypotheses: HypothesisClass
    account_epsilon: Fraction | None = None

    def __post_init__(self) -> None:
        """Check that the costs of numerical error and truncation are covered."""
        invariant(self.epsilon > 0, "a share that is drawn on is positive")
        invariant(self.epsilon <= self._whole, "a draw is a part of its account")
        invariant(self._whole <= EPSILON_MAX, "its weights stay within the range of doubles")
        invariant(self.row_count >= 1, "there is at least one row")
        invariant(self.mechanism_epsilon > 0.0, "the share exceeds its numerical error")
        invariant(
            self._truncation_cost() <= self.delta_truncation,
            "truncation costs no more than the delta withheld for it",
        )

    @property
    def mechanism_epsilon(self) -> float:
        """The epsilon of the draw, reduced by a bound on rounding errors of the weights."""
        eta = self.hypotheses.log_weight_error(self.row_count, float(self.epsilon))
        epsilon = mechanism_epsilon(
            share=self.epsilon,
            log_weight_error=Fraction(eta),
            is_range=self.account_epsilon is not None,
        )
        return float_below(epsilon)

    @property
    def _whole(self) -> Fraction:
        """The epsilon at which truncation is paid for."""
        return self.epsilon if self.account_epsilon is None else self.account_epsilon

    def _truncation_cost(self) -> Fraction:
        """Return (1 + e^epsilon) v, rounded up; v is the draw's total variation."""
        # Rounding epsilon up to an integer dwarfs the last digit of exp.
        odds = Fraction(Decimal(math.floor(self._whole) + 1).exp())
        return (1 + odds) * self.hypotheses.truncation_variation


def draw(
    parameters: Parameters,
    private_value: tuple[EncodedRows, NDArray[np.int64]],
    noise: NoiseSource,
    private_weights: NDArray[np.float64] | None = None,
) -> Hypothesis:
    """Return a hypothesis drawn with probability proportional to exp(-epsilon errors / 2).

    Args:
        parameters: the public parameters of the draw.
        private_value: the private rows in the form from which the hypotheses compute labels, and
            the rows' labels; secret.
        noise: the source of randomness.
        private_weights: the weight of each row in the number of errors; None for weight 1.

    """
    encoded, labels = private_value
    if private_weights is None:
        invariant(len(labels) == parameters.row_count, "the rows are the public n rows")
    else:
        invariant(len(labels) == len(private_weights), "every row has a weight")
        within = float(private_weights.sum()) <= parameters.row_count
        invariant(within, "the rows count for the public n persons at most")
    epsilon = parameters.mechanism_epsilon
    return parameters.hypotheses.draw(encoded, labels, epsilon, noise, private_weights)


def draw_counted(
    parameters: Parameters, private_counts: CountedRows | Tally, noise: NoiseSource
) -> Hypothesis:
    """Return a hypothesis as :func:`draw` does, from counts of rows by features and label."""
    invariant(private_counts.is_of(parameters.row_count), "the counts are of the public n")
    searched, epsilon = parameters.hypotheses, parameters.mechanism_epsilon
    if isinstance(private_counts, Tally):
        if isinstance(searched, TalliedClass):
            return searched.draw_tallied(private_counts, epsilon, noise)
    elif isinstance(searched, TreeClass):
        return searched.draw_counted(private_counts, epsilon, noise)
    message = "rows known by their counts alone are weighed for the class that counted them"
    raise InvariantError(message)


def excess_error(*, hypothesis_count: int, beta: float, row_count: int, epsilon: float) -> float:
    """Return a bound on how far a drawn hypothesis's error rate exceeds the best one's.

    The bound is ``2 (ln|H| + ln(1/beta)) / (n epsilon)``, H being the class of ``hypothesis_count``
    hypotheses and n the number of rows. A draw exceeds it with probability at most ``beta``.
    """
    return _errors(hypothesis_count, beta, epsilon) / row_count


def rows_for_excess_error(
    alpha: float, *, hypothesis_count: int, beta: float, epsilon: float
) -> int:
    """Return the smallest number of rows at which the excess error is at most ``alpha``.

    The excess error is how far the drawn hypothesis's error rate exceeds the best one's; it is
    larger with probability at most ``beta``.
    """
    return math.ceil(_errors(hypothesis_count, beta, epsilon) / alpha)


def _errors(hypothesis_count: int, beta: float, epsilon: float) -> float:
    return 2 * (math.log(hypothesis_count) - math.log(beta)) / epsilon
