"""Draw everything that a release draws at its opening, or read it back.

Permutation, sample, relabelling hypothesis, chunks, k learners, the answers'
calibration and its threshold's noise: drawn once, persisted together, never drawn
again.  Rows outside the sample reach none of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from app.learning.chunks import chunk_offsets
from app.learning.fit import fit_ensemble, read_ensemble_bytes
from app.privacy.budget.composition import Mechanism
from app.privacy.exponential import relabel
from app.privacy.voting import universal
from app.release.private_state import (
    ENSEMBLE,
    HYPOTHESIS,
    PERMUTATION,
    RESAMPLE,
    read_piece,
    threshold_noise_piece,
)
from app.release.sample import chunk_places, positions_bytes, sampled_rows
from app.release.terms.answer_terms import (
    PAPER,
    answering_parameters,
    calibration_piece,
    read_calibration,
)
from app.release.terms.dichotomies import private_dichotomies
from app.release.terms.pipeline import release_budget

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from app.data.rows import PrivateRows
    from app.learning.ensemble import Ensemble
    from app.ledger.ledger import Ledger
    from app.noise.source import NoiseSource
    from app.privacy.budget.calibration import Calibration
    from app.privacy.voting.universal import Parameters
    from app.release.progress import Progress
    from app.release.sample import SampledRows
    from app.release.terms.configuration import Configuration
    from app.release.terms.draw_parameters import EnsembleParameters
    from app.settings.settings import Settings

RELABELLING = "drawing the labelling hypothesis"
FITTING = "fitting learners"


@dataclass(frozen=True, slots=True)
class AnsweringParts:
    """What answers: the mechanism's public parameters and the private learners."""

    mechanism: Parameters
    private_ensemble: Ensemble | None


@dataclass(frozen=True, slots=True)
class DrawnEnsemble:
    """What was drawn, and the private pieces to persist."""

    parts: AnsweringParts
    pieces: Mapping[str, bytes]
    size: int


def draw_ensemble(
    configuration: Configuration,
    parameters: EnsembleParameters,
    *,
    rows: PrivateRows,
    secret: bytes,
    noise: NoiseSource,
    progress: Progress,
) -> DrawnEnsemble:
    """Draw and fit under charges that are committed already."""
    permutation = noise.permutation(rows.count)
    sample = sampled_rows(rows, permutation, count=parameters.sampled_row_count)
    private_hypothesis, private_labels = _relabel(
        configuration.settings, parameters, sample=sample, noise=noise, progress=progress
    )
    places = chunk_places(sample.count, with_replacement=parameters.with_replacement, noise=noise)
    private_ensemble = fit_ensemble(
        configuration.learner,
        rows.values,
        sample.in_order_of_rows(private_labels),
        permutation=sample.positions[places],
        offsets=chunk_offsets(sample.count, parameters.size),
        secret=secret,
        progress=lambda done, total: progress(FITTING, done, total),
    )
    pieces = {
        HYPOTHESIS: msgspec.json.encode(private_hypothesis),
        PERMUTATION: positions_bytes(permutation),
        ENSEMBLE: private_ensemble.to_bytes(),
    }
    if parameters.with_replacement:
        pieces[RESAMPLE] = positions_bytes(places)
    parts = _parts(configuration, parameters.calibration, private_ensemble)
    start = universal.initial_state(parts.mechanism, noise)
    pieces |= calibration_piece(parameters.calibration)
    pieces |= threshold_noise_piece(0, start.private_threshold_noise)
    return DrawnEnsemble(parts, pieces, parameters.size)


def read_ensemble(configuration: Configuration, ledger: Ledger) -> AnsweringParts:
    """Read back what an opening persisted; every piece is checked, none is drawn.

    Raises:
        LedgerCorruptError: a piece is missing or altered.
        InvariantError: the calibration is not the one of the answers' share.

    """
    settings = configuration.settings
    if not configuration.has(Mechanism.ANSWERS):
        return AnsweringParts(answering_parameters(settings, None, None, ensemble_size=0), None)
    read_piece(ledger, HYPOTHESIS)
    read_piece(ledger, PERMUTATION)
    if settings.privacy.calibration == PAPER:
        read_piece(ledger, RESAMPLE)
    calibration = read_calibration(settings, ledger)
    learner, state = configuration.learner, ledger.read_state()
    if state.halted is not None or state.classifier is not None:
        learner = replace(learner, jobs=1)  # it is checked, and asked nothing any more
    private_ensemble = read_ensemble_bytes(learner, read_piece(ledger, ENSEMBLE))
    return _parts(configuration, calibration, private_ensemble)


def _relabel(
    settings: Settings,
    parameters: EnsembleParameters,
    *,
    sample: SampledRows,
    noise: NoiseSource,
    progress: Progress,
) -> tuple[Mapping[str, object] | None, NDArray[np.int64]]:
    """Return the drawn hypothesis and its labels; without a share, none and the rows' own."""
    if parameters.relabel is None:
        return None, sample.labels
    progress(RELABELLING, 0, 1)
    if isinstance(parameters.relabel, relabel.DichotomyParameters):
        private_class = private_dichotomies(settings, sample.values)
        private_value = (private_class.encode(sample.values), sample.labels)
        relabelled = relabel.draw_from_dichotomies(
            parameters.relabel, private_class, private_value, noise
        )
    else:
        private_encoded = sample.encoded_by(parameters.relabel.hypotheses.encode)
        relabelled = relabel.draw(parameters.relabel, (private_encoded, sample.labels), noise)
    progress(RELABELLING, 1, 1)
    return relabelled.private_hypothesis.to_dict(), relabelled.private_labels


def _parts(
    configuration: Configuration, calibration: Calibration, private_ensemble: Ensemble
) -> AnsweringParts:
    settings = configuration.settings
    mechanism = answering_parameters(
        settings, release_budget(settings), calibration, ensemble_size=private_ensemble.size
    )
    return AnsweringParts(mechanism, private_ensemble)
