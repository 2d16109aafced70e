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
from app.errors import ConfigurationError, InvariantError
from app.hypotheses.binary_tests import evaluate
from app.mechanisms import relabel
from app.planning.ensemble_size import ensemble_size_auto
from app.service.mechanism import answering_parameters, calibrate_answers
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
    from app.service.progress import Progress

CALIBRATING = "calibrating the stability test"
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
    *,
    rows: PrivateRows,
    secret: bytes,
    noise: NoiseSource,
    progress: Progress,
) -> DrawnEnsemble:
    """Draw and fit under charges that are committed already.

    Raises:
        ConfigurationError: fewer rows than chunks.

    """
    progress(CALIBRATING, 0, 1)
    table = _calibrated(configuration)
    size = ensemble_size(configuration, row_count=rows.count, table=table)
    progress(CALIBRATING, 1, 1)
    private_hypothesis, private_labels = _relabel(configuration, rows, noise, progress)
    permutation = noise.permutation(rows.count)
    private_ensemble = fit_ensemble(
        configuration.learner,
        rows.values,
        private_labels,
        permutation=permutation,
        offsets=chunk_offsets(rows.count, size),
        secret=secret,
        progress=lambda done, total: progress(FITTING, done, total),
    )
    pieces = {
        HYPOTHESIS: msgspec.json.encode(private_hypothesis),
        PERMUTATION: permutation.astype("<u4").tobytes(),
        ENSEMBLE: private_ensemble.to_bytes(),
        PROFILE_TABLE: msgspec.json.encode(table.to_plain()),
    }
    return DrawnEnsemble(_parts(configuration, table, private_ensemble), pieces, size)


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


def ensemble_size(configuration: Configuration, *, row_count: int, table: ProfileTable) -> int:
    """Return k, from the configuration and the public n only.

    Raises:
        ConfigurationError: there are fewer rows than learners.

    """
    given = configuration.settings.answers.ensemble
    if not isinstance(given, int):
        return ensemble_size_auto(
            row_count=row_count,
            table=table,
            query_count=configuration.settings.answers.queries,
            hypothesis_count=configuration.hypotheses.size,
        )
    if given > row_count:
        problem = f"{given} learners need at least as many rows; there are {row_count}"
        raise ConfigurationError("answers.ensemble", problem)
    return given


def _calibrated(configuration: Configuration) -> ProfileTable:
    table = calibrate_answers(configuration.settings, configuration.charges)
    if table is None:
        raise InvariantError("an ensemble is drawn only where answers have a share")
    return table


def _relabel(
    configuration: Configuration, rows: PrivateRows, noise: NoiseSource, progress: Progress
) -> tuple[dict[str, list[int]] | None, NDArray[np.int64]]:
    """Return the drawn hypothesis and its labels; without a share, none and the rows' own."""
    charge = configuration.charges.get(Mechanism.RELABEL)
    if charge is None:
        return None, rows.labels
    progress(RELABELLING, 0, 1)
    parameters = relabel.Parameters(
        epsilon=charge.epsilon,
        delta_truncation=charge.delta,
        row_count=rows.count,
        hypotheses=configuration.hypotheses,
    )
    private_bits = evaluate(configuration.hypotheses.tests, rows.values)
    relabelled = relabel.draw(parameters, (private_bits, rows.labels), noise)
    progress(RELABELLING, 1, 1)
    return relabelled.private_hypothesis.to_dict(), relabelled.private_labels


def _parts(
    configuration: Configuration, table: ProfileTable, private_ensemble: Ensemble
) -> AnsweringParts:
    mechanism = answering_parameters(configuration.settings, configuration.charges, table)
    return AnsweringParts(mechanism, private_ensemble)
