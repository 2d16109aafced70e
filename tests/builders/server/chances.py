"""How often chance alone makes an agreed query unstable, or lets a split one be answered.

On a query of ``small_release`` on which the learners agree, the distance is at least
``AGREED_PART`` of half their number: of a chunk's eight rows none is a young common
one with probability 0.7%, and none an old one with 0.5%, and only such a learner errs.

On a split query a chunk errs where it holds none of the rare young.  With ``k`` chunks
of ``n`` rows, dealt out at random, and a share ``s`` of rare young rows with
``(1 - s)^n = 1/2``, the number of such chunks is about normal with mean ``k / 2`` and
variance ``k (1/4 - n s / (4 (1 - s)))``; its distance from ``k / 2`` is the query's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import erf, sqrt
from typing import TYPE_CHECKING

from app.privacy.sparse_vector.calibration import SvtCalibration
from app.privacy.stability.hit_table import ProfileTable
from app.release.terms.answer_terms import calibrate_answers, release_budget

if TYPE_CHECKING:
    from app.settings.settings import Settings

CHUNK_ROWS = 8
AGREED_PART = 0.97
DEVIATIONS_MAX = 9
# Of all tests of one release together; with some 60 releases 6e-5 a run of the suite.
FAILURE_MAX = 1e-6
# No test relies on more answers of each kind, unless it says so.
AGREED_MAX, SPLIT_MAX = 60, 6


@dataclass(frozen=True)
class Asked:
    """New queries of a release whose answers its tests rely on.

    Attributes:
        agreed: on which all learners agree, and which must be answered.
        split: about which they are split, and which must be unstable.

    """

    agreed: int
    split: int


@dataclass(frozen=True)
class Chances:
    """Probabilities that one query is not what it was asked for.

    Attributes:
        agreed_unstable: an agreed query is unstable.
        split_answered: a split query is answered.

    """

    agreed_unstable: float
    split_answered: float

    def failure(self, asked: Asked) -> float:
        """Bound the probability that any of so many queries is not what it should be."""
        return asked.agreed * self.agreed_unstable + asked.split * self.split_answered


def chances(settings: Settings) -> Chances | None:
    """Work the chances out; None of a release that has no unstable answers.

    Args:
        settings: of a release on rows of ``small_release``.

    """
    calibration = calibrate_answers(settings, release_budget(settings))
    if not isinstance(calibration, ProfileTable | SvtCalibration):
        return None
    size = settings.answers.ensemble
    assert isinstance(size, int)
    answered = sum(
        share * (1 - calibration.hit_probability(distance))
        for distance, share in enumerate(split_distances(size))
    )
    agreed = calibration.hit_probability(int(AGREED_PART * size / 2) - 1)
    return Chances(agreed_unstable=agreed, split_answered=answered)


def check_chances(settings: Settings, asked: Asked | None = None) -> None:
    """Refuse a release on which a test would fail by chance too often.

    Args:
        settings: of the release.
        asked: what its tests rely on; at most the limits, and ``AGREED_MAX`` and
            ``SPLIT_MAX``, where it is absent.

    Raises:
        AssertionError: by chance more than ``FAILURE_MAX`` of its runs fail.

    """
    of_one = chances(settings)
    if of_one is None:
        return
    answers = settings.answers
    wanted = asked or Asked(
        agreed=min(answers.queries, AGREED_MAX), split=min(answers.cutoff, SPLIT_MAX)
    )
    failure = of_one.failure(wanted)
    assert failure <= FAILURE_MAX, f"{of_one} of {wanted} come to {failure:.1e}"


def split_distances(size: int) -> list[float]:
    """Return how probable each distance of a split query is, from 0 up, and rather more than less.

    The label ahead needs one chunk less than its lead to stay ahead: that is left out.
    """
    rare = 1 - 0.5 ** (1 / CHUNK_ROWS)
    deviation = sqrt(size * (1 - CHUNK_ROWS * rare / (1 - rare))) / 2
    scale = deviation * sqrt(2)
    count = int(DEVIATIONS_MAX * deviation) + 2
    below = [0.0, *(erf((distance + 0.5) / scale) for distance in range(count))]
    return [after - before for before, after in pairwise(below)]
