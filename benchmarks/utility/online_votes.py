"""Releases of benchmark B, drawn as the app draws them, and their votes on the test vectors.

The draw is the app's own, from configured settings to fitted learners; only the source
of randomness is seeded, so that figures can be had again.  Votes are what no release
gives out: these data are public.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.errors import invariant
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.budget.composition import Mechanism
from app.privacy.voting.votes import aggregate
from app.release.drawing import draw_ensemble
from app.release.progress import no_progress
from app.release.terms.configuration import configure
from app.release.terms.draw_parameters import ensemble_parameters
from benchmarks.utility.online_data import loaded, private_rows, test_set

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.privacy.budget.composition import Charge
    from app.release.terms.configuration import Configuration
    from benchmarks.utility.online_settings import Setting

SECRET = b"benchmarks of utility, not kept "
SEEDS_APART = 1000


@dataclass(frozen=True, slots=True)
class Votes:
    """Votes of one release on every distinct test vector.

    Attributes:
        plurality: class index of each, shape ``(V,)``.
        distance: to instability, shape ``(V,)``.
        ensemble_size: k.
        answers: what the answers are charged.

    """

    plurality: NDArray[np.int64]
    distance: NDArray[np.int64]
    ensemble_size: int
    answers: Charge


def draw_votes(setting: Setting, *, release: int) -> Votes:
    """Draw a release, relabelling, chunks and learners, and ask its learners every vector.

    Args:
        setting: public choices.
        release: its number, which seeds the draws.

    """
    configuration = configure(loaded(setting.data, setting.changes))
    rows = private_rows(setting.data)
    parameters = ensemble_parameters(configuration, row_count=rows.count, progress=no_progress)
    invariant(parameters is not None, "the answers have a share")
    if parameters is None:
        raise SystemExit
    drawn = draw_ensemble(
        configuration,
        parameters,
        rows=rows,
        secret=SECRET,
        noise=ScriptedNoise(seeded_words(SEEDS_APART + release)),
        progress=no_progress,
    )
    ensemble = drawn.parts.private_ensemble
    invariant(ensemble is not None, "the learners are fitted")
    if ensemble is None:
        raise SystemExit
    plurality, distance = aggregate(ensemble.vote_counts(test_set(setting.data).values))
    return Votes(plurality, distance, drawn.size, _charge(configuration))


def _charge(configuration: Configuration) -> Charge:
    return configuration.charges[Mechanism.ANSWERS]
