"""The semi-private learner: it protects rows and labels, but not public points.

**Algorithm.** A_SSPP (Nandi and Bassily 2020, Algorithm 7; Alon, Bassily,
Moran 2019).

**Claim.** (epsilon, delta_truncation)-differentially private in the private
rows; the public points are not protected.

**Proof.** The class is fixed by public data, then the exponential mechanism:
``app/privacy/exponential/semi_private_proof.md``.

**Inputs and outputs.** ``parameters.hypotheses``: a public class restricted
to m public points by its ``restricted_to``.  ``private_value``: rows as that
class encodes them (n along the first axis) and labels int64 (n,), secret;
``private_weights`` as in ``app.privacy.exponential.mechanism``.
Out: one hypothesis of it; whoever charged the share may publish it.

**Utility.** Excess error at most 2 (ln |H~| + ln(1/beta)) / (n epsilon) over
the best of the restricted class.

**Deviations.** A class that is listed keeps one hypothesis for every dichotomy
of the public points, as printed.  For trees one test per distinct cut of the public points is
kept and all trees of those tests compete: several may agree on the public
points, a public multiplicity that leaves epsilon as it is.

**Raises.** What ``app.privacy.exponential.mechanism`` raises.
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
    """Return a classifier drawn as :func:`draw` does, from counts in place of rows."""
    return exponential.draw_counted(parameters, private_counts, noise)
