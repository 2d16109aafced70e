"""Relabelling: the rows keep their features and take a drawn hypothesis's labels.

**Algorithm.** A_Relabel (Nandi and Bassily 2020, Algorithm 2) over a class
that is finite and fixed without the data.

**Claim.** An (epsilon_inner, delta_inner)-private algorithm run on the
relabelled rows is (epsilon + epsilon_inner, delta + delta_inner)-private in
the original rows, where (epsilon, delta) is the exponential mechanism's
charge.

**Proof.** Adaptive composition; the hypothesis itself could be released:
``docs/proofs/relabel.md``.

**Inputs and outputs.** ``private_value``: rows as the class encodes them, n
along the first axis, and labels int64 (n,), secret.  Out: ``Relabelled``,
secret: the hypothesis and labels int64 (n,).

**Utility.** The chunks become realisable by the class, so that learners on
different chunks agree more often.

**Deviations.** The class is a public grid instead of the dichotomies of the
private points: the charge is epsilon, not Lemma L's 2 ln(L - 1 + e^(epsilon/2)).

**Raises.** What ``app.mechanisms.exponential`` raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.mechanisms import exponential

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.hypotheses.hypothesis_class import Hypothesis
    from app.hypotheses.hypothesis_list import Encoded
    from app.noise.source import NoiseSource

Parameters = exponential.Parameters


@dataclass(frozen=True, slots=True)
class Relabelled:
    """Secret: the drawn hypothesis and the labels that it gives the rows."""

    private_hypothesis: Hypothesis
    private_labels: NDArray[np.int64]


def draw(
    parameters: Parameters,
    private_value: tuple[Encoded, NDArray[np.int64]],
    noise: NoiseSource,
) -> Relabelled:
    """Draw the hypothesis and label the rows by it."""
    hypothesis = exponential.draw(parameters, private_value, noise)
    encoded, _ = private_value
    return Relabelled(hypothesis, hypothesis.predict(encoded))
