"""The random draws at a release's opening (sample, chunks, models), made newly or read again.

The order of the rows, the sample, the hypothesis that relabels, the chunks, the k models, the noise
parameters of the answers and the noise of a threshold (if distances are compared with one) are
drawn once and stored together, and are never drawn again. Rows outside the sample have no effect on
any of them.

The sample is the beginning of a uniform permutation of all rows, in the order of the permutation: a
uniformly random subset in uniformly random order, for which the amplification by sampling is
proved. If a column names persons, the persons are permuted, sampled and divided into chunks, each
person with all rows. Replacing a person then changes one place in the permutation, and so one
chunk, in whatever order the persons were numbered before (``app/privacy/voting/votes_proof.md``).

The module also reads and validates the private rows, or only reports the problems in them.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from app.data.checks.dead_features import dead_features
from app.data.checks.public_overlap import refuse_source_file
from app.data.checks.source_check import check_source, further_complaints
from app.data.demo_data import demo_rows
from app.data.public_points import no_points, read_public_points
from app.data.rows import named_rows
from app.data.sources.sources import read_rows
from app.data.streaming.streamed_rows import StreamedRows
from app.errors import ConfigurationError, DataError, InvariantError, invariant
from app.learning.chunks import chunk_offsets, first_of_chunks
from app.learning.encoding.encoded_rows import RowsByPart
from app.learning.ensemble import fit_ensemble, read_ensemble_bytes
from app.learning.trees.tree_class import telling
from app.privacy.budget.composition import Mechanism
from app.privacy.exponential import relabel
from app.privacy.voting import query_decision
from app.release.private_state import (
    ENSEMBLE,
    HYPOTHESIS,
    PERMUTATION,
    RESAMPLE,
    read_piece,
    threshold_noise_piece,
)
from app.release.progress import no_progress
from app.release.streamed_drawing import (
    drawn_hypothesis,
    fitted_from_parts,
    fitted_on_samples,
    relabelling_codes,
    slots_key,
    streamed_learner,
)
from app.release.terms.answer_terms import (
    answering_parameters,
    answering_registration,
    calibration_piece,
    checked_piece,
    is_as_checked,
    read_calibration,
    release_budget,
)
from app.release.terms.draw_parameters import private_dichotomies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from app.data.checks.source_check import SourceReport
    from app.data.rows import PrivateRows
    from app.learning.enumerated.hypothesis_list import Encoded
    from app.learning.hypothesis import Ensemble, Hypothesis
    from app.ledger.ledger import Ledger
    from app.noise.source import NoiseSource
    from app.privacy.mechanism_registration import Calibration
    from app.privacy.voting.query_decision import Parameters
    from app.release.progress import Progress
    from app.release.terms.configuration import Configuration
    from app.release.terms.draw_parameters import EnsembleParameters
    from app.settings.settings import Settings


@dataclass(frozen=True, eq=False, slots=True)
class SampledRows:
    """The random sample of rows on which the models are trained, as indices; secret.

    Attributes:
        rows: all private rows.
        units: the indices of the n' sampled rows, or of the n' sampled persons if a column names
            persons, in random order, shape ``(n',)``.
        positions: the indices of the m sampled rows, in the order of ``units``, shape ``(m,)``.

    """

    rows: PrivateRows = field(repr=False)
    units: NDArray[np.int64] = field(repr=False)
    positions: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Find the rows of the sampled units (rows or persons)."""
        object.__setattr__(self, "positions", self.rows.positions(self.units)[0])

    @property
    def count(self) -> int:
        """Return the public number of rows (or persons) in the sample."""
        return len(self.units)

    @property
    def values(self) -> NDArray[np.float64]:
        """Return a copy of the sampled rows' encoded values, shape (rows, features)."""
        return self.rows.values[self.positions]

    @property
    def labels(self) -> NDArray[np.int64]:
        """Return a copy of the sampled rows' labels, one per row."""
        return self.rows.labels[self.positions]

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """Return the weight of each sampled row; None if all are 1."""
        weights = self.rows.weights
        return None if weights is None else weights[self.positions]

    def cut(
        self, places: NDArray[np.int64], *, size: int, count_max: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the indices of each chunk's rows, and where each chunk's indices begin.

        Args:
            places: indices of sampled rows (or persons), in the order in which these are divided
                into chunks.
            size: the number k of chunks.
            count_max: the largest number of rows (or persons) that are kept of a chunk, which are
                the first ones; None for all.

        """
        offsets = chunk_offsets(len(places), size)
        if count_max is not None:
            kept, offsets = first_of_chunks(offsets, count_max)
            places = places[kept]
        positions, starts = self.rows.positions(self.units[places])
        return positions, starts[offsets]

    def encoded_by(self, encode: Callable[[NDArray[np.float64]], Encoded]) -> RowsByPart:
        """Return the sampled rows, each block of which is encoded only when it is needed.

        Args:
            encode: the function by which a hypothesis class encodes rows.

        """
        return RowsByPart(encode, self.rows.values, self.positions)

    def in_order_of_rows(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return labels of the sampled rows by row index; rows outside the sample get class 0."""
        placed = np.zeros(len(self.rows.labels), dtype=np.int64)
        placed[self.positions] = labels
        return placed


def sampled_rows(rows: PrivateRows, permutation: NDArray[np.int64], *, count: int) -> SampledRows:
    """Return the first ``count`` rows (or persons) of a random order of all of them.

    Args:
        rows: the private rows.
        permutation: a uniform permutation of the indices of all rows, or of all persons; secret.
        count: n', a public number up to n.

    """
    invariant(len(permutation) == rows.count, "the permutation is of all the rows")
    invariant(1 <= count <= rows.count, "a sample has a row, and no more than there are")
    return SampledRows(rows, permutation[:count])


def chunk_places(count: int, *, with_replacement: bool, noise: NoiseSource) -> NDArray[np.int64]:
    """Return the order in which sampled rows (or persons) are cut into chunks, as indices; secret.

    Without replacement the sample is in uniformly random order already. With replacement (Nandi and
    Bassily 2020, Algorithm 3, step 4), each index is drawn uniformly from the whole sample.
    """
    if not with_replacement:
        return np.arange(count, dtype=np.int64)
    return np.array([noise.below(count) for _ in range(count)], dtype=np.int64)


def positions_bytes(positions: NDArray[np.int64]) -> bytes:
    """Return row indices as bytes, for the private state."""
    return positions.astype("<u4").tobytes()


RELABELLING = "drawing the labelling hypothesis"
FITTING = "fitting learners"


@dataclass(frozen=True, slots=True)
class AnsweringParts:
    """The mechanism's public parameters and the private models, which answer queries together."""

    mechanism: Parameters
    private_ensemble: Ensemble | None


@dataclass(frozen=True, slots=True)
class DrawnEnsemble:
    """The trained models of a release, and the private values stored with them."""

    parts: AnsweringParts
    pieces: Mapping[str, bytes]
    size: int


def draw_ensemble(
    configuration: Configuration,
    parameters: EnsembleParameters,
    *,
    rows: PrivateRows | StreamedRows,
    secret: bytes,
    noise: NoiseSource,
    progress: Progress,
) -> DrawnEnsemble:
    """Return the trained models of a new release, whose budget was charged before."""
    if isinstance(rows, StreamedRows):
        return _draw_streamed(
            configuration, parameters, rows=rows, secret=secret, noise=noise, progress=progress
        )
    permutation = noise.permutation(rows.count)
    sample = sampled_rows(rows, permutation, count=parameters.sampled_row_count)
    private_hypothesis, private_labels = _relabel(
        configuration.settings, parameters, sample=sample, noise=noise, progress=progress
    )
    places = chunk_places(sample.count, with_replacement=parameters.with_replacement, noise=noise)
    rows_max = configuration.learner.rows_max
    positions, offsets = sample.cut(places, size=parameters.size, count_max=rows_max)
    private_ensemble = fit_ensemble(
        configuration.learner,
        rows.values,
        sample.in_order_of_rows(private_labels),
        permutation=positions,
        offsets=offsets,
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
    return _drawn(configuration, parameters, private_ensemble, pieces, noise)


def _draw_streamed(
    configuration: Configuration,
    parameters: EnsembleParameters,
    *,
    rows: StreamedRows,
    secret: bytes,
    noise: NoiseSource,
    progress: Progress,
) -> DrawnEnsemble:
    """Draw and fit from parts; the key of the slots stands for the permutation."""
    learner = configuration.learner
    if learner.rows_max is not None:
        return _draw_sampled(
            configuration, parameters, rows=rows, secret=secret, noise=noise, progress=progress
        )
    streamed = streamed_learner(learner)
    if streamed is None:
        raise InvariantError("what streams is fitted from parts")
    private_key, held = slots_key(noise), rows.held
    progress(RELABELLING, 0, 1)
    private_hypothesis = drawn_hypothesis(parameters, streamed.coding, rows, held, noise)
    progress(RELABELLING, 1, 1)
    private_ensemble = fitted_from_parts(
        streamed,
        rows,
        held,
        slots_key=private_key,
        size=parameters.size,
        hypothesis=private_hypothesis,
        secret=secret,
        progress=lambda done, total: progress(FITTING, done, total),
    )
    pieces = _streamed_pieces(private_hypothesis, private_key, private_ensemble.to_bytes())
    return _drawn(configuration, parameters, private_ensemble, pieces, noise)


def _draw_sampled(
    configuration: Configuration,
    parameters: EnsembleParameters,
    *,
    rows: StreamedRows,
    secret: bytes,
    noise: NoiseSource,
    progress: Progress,
) -> DrawnEnsemble:
    """Draw from counts, and fit on a sample of each chunk; each reads the source again."""
    learner, private_key = configuration.learner, slots_key(noise)
    progress(RELABELLING, 0, 1)
    coding = relabelling_codes(learner)
    private_hypothesis = drawn_hypothesis(parameters, coding, rows, None, noise)
    progress(RELABELLING, 1, 1)
    body = fitted_on_samples(
        learner,
        rows,
        slots_key=private_key,
        size=parameters.size,
        hypothesis=private_hypothesis,
        secret=secret,
        progress=lambda done, total: progress(FITTING, done, total),
    )
    private_ensemble = read_ensemble_bytes(learner, body)
    pieces = _streamed_pieces(private_hypothesis, private_key, body)
    return _drawn(configuration, parameters, private_ensemble, pieces, noise)


def _streamed_pieces(
    private_hypothesis: Hypothesis | None, private_key: bytes, body: bytes
) -> dict[str, bytes]:
    """Return what is stored of a draw from parts; the slots' key stands for the permutation."""
    written = None if private_hypothesis is None else private_hypothesis.to_dict()
    return {
        HYPOTHESIS: msgspec.json.encode(written),
        PERMUTATION: private_key,
        ENSEMBLE: body,
    }


def _drawn(
    configuration: Configuration,
    parameters: EnsembleParameters,
    private_ensemble: Ensemble,
    private_pieces: Mapping[str, bytes],
    noise: NoiseSource,
) -> DrawnEnsemble:
    """Return what is drawn with the mechanism's own pieces, of which the threshold is drawn."""
    parts = _parts(configuration, parameters.calibration, private_ensemble)
    start = query_decision.initial_state(parts.mechanism, noise)
    pieces = {
        **private_pieces,
        **calibration_piece(parameters.calibration),
        **checked_piece(parameters.calibration),
        **threshold_noise_piece(0, start.private_threshold_noise),
    }
    return DrawnEnsemble(parts, pieces, parameters.size)


def read_ensemble(configuration: Configuration, ledger: Ledger) -> AnsweringParts:
    """Return the stored models of a release, after checking every private value.

    Raises:
        LedgerCorruptError: a private value is missing or altered.
        InvariantError: the stored noise parameters do not belong to the answers' budget.

    """
    settings = configuration.settings
    if not configuration.has(Mechanism.ANSWERS):
        return AnsweringParts(answering_parameters(settings, None, None, ensemble_size=0), None)
    read_piece(ledger, HYPOTHESIS)
    read_piece(ledger, PERMUTATION)
    if answering_registration(settings).is_printed:
        read_piece(ledger, RESAMPLE)
    calibration = read_calibration(settings, ledger)
    private_ensemble = read_ensemble_bytes(configuration.learner, read_piece(ledger, ENSEMBLE))
    return _parts(
        configuration, calibration, private_ensemble, is_checked=is_as_checked(settings, ledger)
    )


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
        private_points = (private_class.encode(sample.values), sample.labels)
        relabelled = relabel.draw_from_dichotomies(
            parameters.relabel, private_class, private_points, noise
        )
    else:
        hypotheses = telling(
            parameters.relabel.hypotheses, lambda done, total: progress(RELABELLING, done, total)
        )
        private_value = (sample.encoded_by(hypotheses.encode), sample.labels)
        drawn_from = replace(parameters.relabel, hypotheses=hypotheses)
        relabelled = relabel.draw(drawn_from, private_value, noise, sample.weights)
    progress(RELABELLING, 1, 1)
    return relabelled.private_hypothesis.to_dict(), relabelled.private_labels


def _parts(
    configuration: Configuration,
    calibration: Calibration,
    private_ensemble: Ensemble,
    *,
    is_checked: bool = False,
) -> AnsweringParts:
    settings = configuration.settings
    mechanism = answering_parameters(
        settings,
        release_budget(settings),
        calibration,
        ensemble_size=private_ensemble.size,
        is_checked=is_checked,
    )
    return AnsweringParts(mechanism, private_ensemble)


READING = "reading rows"
UNKEPT: Final = b""
"""Key of persons of whom nothing is kept once the process ends."""
DEAD_FEATURES = "data.dead_features"


def read_private_rows(
    settings: Settings, progress: Progress, *, person_key: bytes = UNKEPT
) -> PrivateRows:
    """Return every private row; a value that does not fit the schema raises an error.

    Args:
        settings: the whole configuration.
        progress: the display of the progress of reading.
        person_key: the secret key of the digests by which the ledger's database identifies persons.

    Raises:
        DataError: a value does not fit; the error names the column and the row number, never the
            value, and its ``others`` name the other columns with such values.

    """
    if settings.is_embedded_demo:
        return demo_rows()
    named = settings.data.id_column(person_key)
    with reading_refusals(settings):
        rows = read_rows(
            settings.source,
            settings.data.public_schema(),
            query=settings.data.query,
            dialect=settings.data.dialect,
            rows_expected=settings.data.rows,
            person=named or settings.data.person_column(person_key),
            progress=lambda count: progress(READING, count, settings.data.rows),
        )
        return rows if named is None else named_rows(rows, settings.data.rows)


@contextmanager
def reading_refusals(settings: Settings) -> Iterator[None]:
    """Let an error of reading the private rows also name the problems of all other columns.

    Raises:
        DataError: the error of the ``with`` block; its ``others`` name these problems.

    """
    try:
        yield
    except DataError as error:
        with suppress(ConfigurationError):
            report = check_private_rows(settings, None, no_progress)
            error.others = further_complaints(report, str(error))
        raise


def read_points(settings: Settings, public: Path | None) -> NDArray[np.float64]:
    """Return the public points, float64 (points, features); none if no file is configured.

    Raises:
        ConfigurationError: the file is the one with the private rows, or contains a value that no
            query could have.

    """
    schema = settings.data.public_schema()
    if public is None:
        return no_points(schema)
    refuse_source_file(public, settings.source)
    return read_public_points(public, schema, settings.data.dialect)


def refuse_dead_features(settings: Settings, rows: PrivateRows | StreamedRows) -> None:
    """Raise an error if a feature says nothing about any row, unless the settings allow it.

    A feature says nothing if every value is missing, lies on or beyond one bound, or is none of the
    listed categories.

    Raises:
        DataError: the error names every such feature, with the reason.

    """
    if settings.data.dead_features == "allow":
        return
    if isinstance(rows, StreamedRows):
        dead = rows.dead_features()
    else:
        dead = dead_features(settings.data.public_schema(), rows.values)
    if dead:
        named = ", ".join(f'"{name}" ({reason})' for name, reason in dead.items())
        problem = (
            f"learners get nothing from {named}, and nothing is charged; `conclave check` says"
            ' more of the rows, and "allow" opens the release all the same'
        )
        raise DataError(DEAD_FEATURES, problem)


def check_private_rows(
    settings: Settings, points: NDArray[np.float64] | None, progress: Progress
) -> SourceReport:
    """Return the problems in the private rows, for the operator's terminal only.

    Args:
        settings: the whole configuration.
        points: the public points, encoded, shape (m, d), to be compared with the rows; None for no
            comparison.
        progress: the display of the progress of reading.

    Raises:
        DataError: the source cannot be opened.
        ConfigurationError: the SQL query that reads the rows does not compute each of them from one
            row of the source.

    """
    return check_source(
        settings.source,
        settings.data.public_schema(),
        query=settings.data.query,
        dialect=settings.data.dialect,
        rows_expected=settings.data.rows,
        person=settings.data.person_column(UNKEPT),
        points=points,
        progress=lambda count: progress(READING, count, settings.data.rows),
    )
