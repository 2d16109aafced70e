"""Draw everything that a release draws at its opening, or read it back.

Relabelling hypothesis, permutation, chunks, k learners and the stability
table: drawn once, persisted together, never drawn again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from app.accounting.composition import Mechanism
from app.accounting.profile import ProfileTable
from app.ensembles.chunking import chunk_offsets
from app.ensembles.fit import fit_ensemble, read_ensemble_bytes
from app.hypotheses.binary_tests import evaluate
from app.mechanisms import relabel
from app.service.mechanism import answering_parameters
from app.service.private_state import (
    ENSEMBLE,
    HYPOTHESIS,
    PERMUTATION,
    PROFILE_TABLE,
    read_piece,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from app.data.rows import PrivateRows
    from app.ensembles.ensemble import Ensemble
    from app.ledger.store import Ledger
    from app.mechanisms.universal import Parameters
    from app.noise.source import NoiseSource
    from app.service.configure import Configuration
    from app.service.draw_parameters import EnsembleParameters
    from app.service.progress import Progress

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
    private_hypothesis, private_labels = _relabel(parameters, rows, noise, progress)
    permutation = noise.permutation(rows.count)
    private_ensemble = fit_ensemble(
        configuration.learner,
        rows.values,
        private_labels,
        permutation=permutation,
        offsets=chunk_offsets(rows.count, parameters.size),
        secret=secret,
        progress=lambda done, total: progress(FITTING, done, total),
    )
    pieces = {
        HYPOTHESIS: msgspec.json.encode(private_hypothesis),
        PERMUTATION: permutation.astype("<u4").tobytes(),
        ENSEMBLE: private_ensemble.to_bytes(),
        PROFILE_TABLE: msgspec.json.encode(parameters.table.to_plain()),
    }
    parts = _parts(configuration, parameters.table, private_ensemble)
    return DrawnEnsemble(parts, pieces, parameters.size)


def read_ensemble(configuration: Configuration, ledger: Ledger) -> AnsweringParts:
    """Read back what an opening persisted; every piece is checked, none is drawn.

    Raises:
        LedgerCorruptError: a piece is missing or altered.
        InvariantError: the table is not the one of the answers' share.

    """
    if not configuration.has(Mechanism.ANSWERS):
        return AnsweringParts(
            answering_parameters(configuration.settings, configuration.charges, None), None
        )
    read_piece(ledger, HYPOTHESIS)
    read_piece(ledger, PERMUTATION)
    table = ProfileTable.from_plain(
        msgspec.json.decode(read_piece(ledger, PROFILE_TABLE), type=dict[str, str | list[str]])
    )
    private_ensemble = read_ensemble_bytes(configuration.learner, read_piece(ledger, ENSEMBLE))
    return _parts(configuration, table, private_ensemble)


def _relabel(
    parameters: EnsembleParameters, rows: PrivateRows, noise: NoiseSource, progress: Progress
) -> tuple[dict[str, list[int]] | None, NDArray[np.int64]]:
    """Return the drawn hypothesis and its labels; without a share, none and the rows' own."""
    if parameters.relabel is None:
        return None, rows.labels
    progress(RELABELLING, 0, 1)
    private_bits = evaluate(parameters.relabel.hypotheses.tests, rows.values)
    relabelled = relabel.draw(parameters.relabel, (private_bits, rows.labels), noise)
    progress(RELABELLING, 1, 1)
    return relabelled.private_hypothesis.to_dict(), relabelled.private_labels


def _parts(
    configuration: Configuration, table: ProfileTable, private_ensemble: Ensemble
) -> AnsweringParts:
    mechanism = answering_parameters(configuration.settings, configuration.charges, table)
    return AnsweringParts(mechanism, private_ensemble)
