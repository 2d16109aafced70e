"""The semi-private learner: it protects rows and labels, but not public points.

**Algorithm.** A_SSPP (Nandi and Bassily 2020, Algorithm 7; Alon, Bassily, Moran 2019).

**Claim.** (epsilon, delta_truncation)-differentially private in the private rows, delta_truncation
being a bound on the cost of rounding weights to integers; the public points are not protected.

**Proof.** Public data fix the hypothesis class, from which the exponential mechanism draws:
``app/privacy/exponential/semi_private_proof.md``.

**Inputs and outputs.** ``parameters.hypotheses``: a public class restricted to m public points by
its method ``restricted_to``. ``private_value``: rows, in the form from which hypotheses of this
class compute labels (for trees, the outcomes of feature tests), n along the first axis, and labels
int64 (n,), secret. ``private_weights``: the weight of each row in the count of errors, if a column
names persons; the weights of one person's rows add up to at most 1, exactly. Out: one hypothesis of
the restricted class, which a caller that charged for it may publish.

**Utility.** The excess error over the best hypothesis of the restricted class H~ is at most 2 (ln
|H~| + ln(1/beta)) / (n epsilon), with probability 1 - beta.

**Deviations.** A class that is given as a list keeps one hypothesis for every labelling of the
public points, as printed. A class of trees keeps one feature test for every distinct way in which a
test divides the public points, and the draw is from all trees over these tests. Several trees may
then label the public points in the same way; this multiplicity is public and does not change
epsilon.

**Raises.** The errors of ``app.privacy.exponential.mechanism``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.privacy.exponential import mechanism as exponential

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows, Tally
    from app.learning.hypothesis import Hypothesis
    from app.learning.trees.cell_counts import CountedRows
    from app.noise.source import NoiseSource

Parameters = exponential.Parameters


def draw(
    parameters: Parameters,
    private_value: tuple[EncodedRows, NDArray[np.int64]],
    noise: NoiseSource,
    private_weights: NDArray[np.float64] | None = None,
) -> Hypothesis:
    """Return a classifier drawn from the hypothesis class that public points determine."""
    return exponential.draw(parameters, private_value, noise, private_weights)


def draw_counted(
    parameters: Parameters, private_counts: CountedRows | Tally, noise: NoiseSource
) -> Hypothesis:
    """Return a classifier as :func:`draw` does, from counts of rows by features and label."""
    return exponential.draw_counted(parameters, private_counts, noise)
