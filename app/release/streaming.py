"""The choice between streaming private rows and loading them into memory.

An opening streams its rows if the models can be trained on packed rows and each row or person is in
exactly one chunk, or if no models are trained. Rows are then packed into one byte per feature as
they are read, and never held in memory as numbers; the draws use counts of the rows that are added
up over all parts. The order of the rows follows from a keyed permutation of rows or persons. The
fingerprint of the data (a keyed hash by which the rows are recognised at a restart) is computed
from the sum of the rows' keyed hashes, so the order of reading does not matter. The first ledger
entry says that the opening streamed. A release that an earlier version of the program opened
continues by the rules of that version.

The choice to stream is public, so it depends on public facts only: on the configuration, and on the
public number of rows, or of persons if a column names them. It does not depend on the size of the
source in bytes, which depends on the private rows.

Streamed rows are read in parts and are never in memory all at once.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from app.data.checks.public_overlap import PublicRuns, refuse_source_rows
from app.data.sources.encoded_parts import list_files
from app.data.sources.parts import is_csv, is_parquet
from app.data.streaming.local_engine import LocalEngine
from app.data.streaming.part_counts import draw_counting
from app.data.streaming.part_summaries import Reading
from app.data.streaming.streamed_rows import ROW_SUMS, SORTED, StreamedRows, tag_of_files
from app.errors import DataError, InvariantError
from app.learning.encoding.row_codes import NO_CODES
from app.learning.trees.cell_counts import SETS_MAX, feature_sets
from app.ledger.entries.chain import FIRST_RELEASE
from app.privacy.budget.composition import Mechanism
from app.release.drawing import READING, read_private_rows, reading_refusals
from app.release.private_state import PARTS, read_piece
from app.release.streamed_drawing import relabelling_codes, streamed_learner
from app.release.terms.answer_terms import release_budget
from app.release.terms.privacy_unit import COUNTS, opened_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from app.data.rows import PrivateRows
    from app.data.streaming.engine import Engine
    from app.learning.encoding.row_codes import RowCodes
    from app.ledger.entries.digests import Digests
    from app.ledger.entries.entry_kinds import ReleaseOpened
    from app.ledger.ledger import Ledger
    from app.release.progress import Progress
    from app.release.terms.configuration import Configuration
    from app.settings.settings import Settings

FINGERPRINT: Final = "data.fingerprint"
"""Parameter of the first entry: the rule of its fingerprint; of its slots too, where it streams."""
BYTES_MIN: Final = 1 << 20
"""Bytes of a source below which its rows are likely few, and are read into memory first."""
ROWS_MIN: Final = 1 << 16
"""Rows, or persons, of a keyed permutation: of fewer, a uniform one is drawn."""


def fingerprint_rule(opened: ReleaseOpened) -> str:
    """Return the name of the rule by which a release's fingerprint of its rows is computed."""
    return opened.parameters.get(FINGERPRINT, SORTED)


def fingerprint_parameter(rows: PrivateRows | StreamedRows) -> dict[str, str]:
    """Return the first ledger entry's parameter that names the rule for the rows' fingerprint.

    The result is empty for rows in memory.
    """
    return {FINGERPRINT: ROW_SUMS} if isinstance(rows, StreamedRows) else {}


def parts_piece(rows: PrivateRows | StreamedRows) -> dict[str, bytes]:
    """Return bytes that later show whether source files changed; empty for rows in memory."""
    if not isinstance(rows, StreamedRows):
        return {}
    return {PARTS: tag_of_files(rows.reading.source).encode()}


def streams(opened: ReleaseOpened) -> bool:
    """Return whether a release was opened by streaming its rows."""
    return fingerprint_rule(opened) == ROW_SUMS


def row_codes(configuration: Configuration) -> RowCodes | None:
    """Return the packed encoding in which the rows can be streamed; None if they cannot be.

    The result depends on the configuration only. If no models are trained, or if models are trained
    on a sample of each chunk, the encoding is an empty one: packed rows are not kept, and each draw
    reads the rows again.
    """
    if not _takes_each_unit_once(configuration):
        return None
    if not configuration.has(Mechanism.ANSWERS):
        return NO_CODES if configuration.settings.data.unit == "row" else None
    learner = configuration.learner
    if learner.rows_max is not None:
        may_stream = _relabels_from_counts(configuration, relabelling_codes(learner))
        return NO_CODES if may_stream else None
    streamed = streamed_learner(learner)
    if streamed is None or not _relabels_from_counts(configuration, streamed.coding):
        return None
    trees = streamed.trees
    is_slow = trees is not None and len(feature_sets(trees.coding, trees.depth)) > SETS_MAX
    return None if is_slow else streamed.coding


def _relabels_from_counts(configuration: Configuration, coding: RowCodes | None) -> bool:
    """Return whether no rows are drawn twice, and counts of them are enough to relabel them."""
    budget = release_budget(configuration.settings)
    if budget is None or budget.is_with_replacement:
        return False
    if budget.relabel_epsilon is None:
        return True
    if budget.relabel_is_private or coding is None:
        return False
    return draw_counting(configuration.hypotheses, coding) is not None


def _takes_each_unit_once(configuration: Configuration) -> bool:
    """Return whether each row, or each person with all rows, is used once by all draws."""
    settings = configuration.settings
    if settings.privacy.sampling != 1:
        return False
    return settings.generations is None and settings.data.id is None


def rows_of(
    configuration: Configuration, progress: Progress, *, ledger: Ledger
) -> PrivateRows | StreamedRows:
    """Return the private rows for opening a release, streamed or in memory.

    Args:
        configuration: the release's public parameters.
        progress: the display of the progress of reading.
        ledger: the release's ledger, or an empty one for a new release.

    Raises:
        DataError: a value does not fit; the error names its column and row number.

    """
    opened, digests = ledger.read_state().release, ledger.digests
    if opened is None:
        number = ledger.release_number
        return new_rows(configuration, progress, digests=digests, release_number=number)
    if streams(opened):
        return _continued(configuration, progress, ledger, opened)
    return read_private_rows(configuration.settings, progress, person_key=digests.person_key())


def new_rows(
    configuration: Configuration,
    progress: Progress,
    *,
    digests: Digests,
    release_number: int = FIRST_RELEASE,
) -> PrivateRows | StreamedRows:
    """Return the private rows of a release that is about to open.

    Args:
        configuration: the release's public parameters.
        progress: the display of the progress of reading.
        digests: the functions that compute digests with the database's secret key.
        release_number: the number of the release in the database.

    Raises:
        DataError: a value does not fit; the error names its column and row number.

    """
    settings, coding = configuration.settings, row_codes(configuration)
    if coding is None or not _has_parts(settings):
        return read_private_rows(settings, progress, person_key=digests.person_key())
    are_few = _source_bytes(settings) < BYTES_MIN
    if are_few or _states_few(settings):
        held = read_private_rows(settings, progress, person_key=digests.person_key())
        if held.count < ROWS_MIN:
            return held
    key = digests.fingerprint_key(release_number)
    rows = _streamed(configuration, coding, progress, key, digests.person_key())
    with reading_refusals(settings), closing_where_it_fails(rows):
        _check_count(settings, rows.count)
    if rows.count >= ROWS_MIN:
        return rows
    rows.close()
    return read_private_rows(settings, progress, person_key=digests.person_key())


def rows_beside(
    points: NDArray[np.float64], rows: PrivateRows | StreamedRows, warn: Callable[[str], None]
) -> PrivateRows | StreamedRows:
    """Return the private rows; raise an error if the public points are the same rows.

    Args:
        points: the public points, encoded, float64 (m, d); m may be 0.
        rows: the private rows; streamed rows are read once more if there are points.
        warn: a function that is given a text on how many public points equal a private row, for the
            operator's terminal only.

    Raises:
        ConfigurationError: the order of the public points shows that they are private rows.
        DataError: the source changed meanwhile.

    """
    with closing_where_it_fails(rows):
        if not isinstance(rows, StreamedRows):
            refuse_source_rows(points, rows.values, warn)
        elif len(points):
            runs = PublicRuns.of(points)
            row_count, overlap = rows.overlap(runs)
            runs.refuse(overlap, row_count=row_count, warn=warn)
    return rows


def held_in_memory(rows: PrivateRows | StreamedRows) -> PrivateRows:
    """Return rows that are in memory; streamed rows raise an error.

    Raises:
        InvariantError: the rows are streamed.

    """
    if isinstance(rows, StreamedRows):
        raise InvariantError("rows of a release that takes generations are held in memory")
    return rows


def _has_parts(settings: Settings) -> bool:
    """Return whether rows come in parts."""
    source = settings.source
    return not settings.is_embedded_demo and (is_csv(source) or is_parquet(source))


def _source_bytes(settings: Settings) -> int:
    """Return the size of all files of a source that has parts."""
    return sum(part.file.size for part in list_files(settings.source))


def _states_few(settings: Settings) -> bool:
    """Return whether the configuration says that persons are too few for a keyed permutation."""
    persons = settings.data.persons
    return persons is not None and persons < ROWS_MIN


@contextmanager
def closing_where_it_fails(rows: PrivateRows | StreamedRows) -> Iterator[None]:
    """Release the resources of streamed rows if the ``with`` block fails."""
    try:
        yield
    except BaseException:
        if isinstance(rows, StreamedRows):
            rows.close()
        raise


def _check_count(settings: Settings, count: int) -> None:
    """Refuse another number of rows, or of persons, than is expected.

    Raises:
        DataError: names the setting.

    """
    expected, unit = settings.data.unit_count, settings.data.unit
    if expected is not None and count != expected:
        problem = f"says {expected}, but the source has {count} {unit}s"
        raise DataError(COUNTS[unit], problem)


def _continued(
    configuration: Configuration, progress: Progress, ledger: Ledger, opened: ReleaseOpened
) -> StreamedRows:
    """Return the rows of a release that was opened by counts; unread where its parts are as then.

    What is still to be drawn reads them, and compares them with the fingerprint.
    """
    settings, coding, count = (
        configuration.settings,
        row_codes(configuration),
        opened_count(opened),
    )
    if coding is None or count is None:
        raise InvariantError("a release goes on by the rules that it was opened with")
    fits_none = not configuration.has(Mechanism.ANSWERS)
    is_drawn = fits_none or ledger.read_state().ensemble is not None
    with reading_refusals(settings):
        is_same = is_drawn and read_piece(ledger, PARTS) == tag_of_files(settings.source).encode()
        rows = _streamed(
            configuration,
            coding,
            progress,
            ledger.digests.fingerprint_key(ledger.release_number),
            ledger.digests.person_key(),
            opened=(count, opened.fingerprint) if is_same else None,
        )
        with closing_where_it_fails(rows):
            _check_count(settings, rows.count)
    return rows


def _streamed(
    configuration: Configuration,
    coding: RowCodes,
    progress: Progress,
    key: bytes,
    person_key: bytes,
    opened: tuple[int, str] | None = None,
) -> StreamedRows:
    """Return rows that nothing is read of yet."""
    settings = configuration.settings
    reading = Reading(
        source=settings.source,
        schema=configuration.schema,
        dialect=settings.data.dialect,
        coding=coding,
        key=key,
        person=settings.data.person_column(person_key),
    )
    return StreamedRows(
        reading,
        lambda: engine_of(settings),
        load=lambda: read_private_rows(settings, progress, person_key=person_key),
        told=lambda done, total: progress(READING, done, total or settings.data.rows),
        opened=opened,
    )


def engine_of(settings: Settings) -> Engine:
    """Return the threads or the cluster that read the rows, as ``[engine]`` configures."""
    chosen = settings.engine
    if chosen.address is None:
        return LocalEngine(chosen.workers)
    from app.data.streaming.dask_engine import DaskEngine  # noqa: PLC0415 -- an extra's

    return DaskEngine(chosen.address, chosen.workers)
