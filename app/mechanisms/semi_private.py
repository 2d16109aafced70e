"""The semi-private learner: private labels, public points.

**Algorithm.** A_SSPP (Nandi and Bassily 2020, Algorithm 7; Alon, Bassily,
Moran 2019).

**Claim.** (epsilon, delta_truncation)-differentially private in the private
rows; the public points are not protected.

**Proof.** The class is fixed by public data, then the exponential mechanism:
``docs/proofs/semi_private.md``.

**Inputs and outputs.** ``public_bits``: uint8 (m, t), the binary tests on the
public points.  ``private_value``: bits uint8 (n, t) and labels int64 (n,),
secret.  Out: one tree over the kept tests; whoever charged the share may
publish it.

**Utility.** Excess error at most 2 (ln |H~| + ln(1/beta)) / (n epsilon) over
the best of the restricted class.

**Deviations.** For trees one test per distinct cut of the public points is
kept and all trees of those tests compete: several may agree on the public
points, a public multiplicity that leaves epsilon as it is.

**Raises.** What ``app.mechanisms.exponential`` raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.mechanisms import exponential

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.hypotheses.trees import Tree
    from app.noise.source import NoiseSource

Parameters = exponential.Parameters


def representative_tests(public_bits: NDArray[np.uint8]) -> tuple[int, ...]:
    """Return the indices of the first test of every distinct cut of the public points.

    Two tests cut the points alike when their columns are equal or complements.
    Without public points nothing can be told apart and every test stays.
    """
    point_count, test_count = public_bits.shape
    if point_count == 0:
        return tuple(range(test_count))
    columns = np.packbits(public_bits ^ public_bits[:1], axis=0).T
    seen: dict[bytes, int] = {}
    for index in range(test_count):
        seen.setdefault(columns[index].tobytes(), index)
    return tuple(seen.values())


def draw(
    parameters: Parameters,
    private_value: tuple[NDArray[np.uint8], NDArray[np.int64]],
    noise: NoiseSource,
) -> Tree:
    """Draw the classifier from the class that the public points fixed."""
    return exponential.draw(parameters, private_value, noise)
