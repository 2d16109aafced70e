"""The private rows of a configuration, read and validated once, at start-up, or only checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.data.checks.dead_features import dead_features
from app.data.checks.public_overlap import refuse_source_file, refuse_source_rows
from app.data.checks.source_check import check_source
from app.data.embedded_demo import demo_rows
from app.data.public_points import no_points, read_public_points
from app.data.sources.sources import read_rows
from app.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from app.data.checks.source_check import SourceReport
    from app.data.rows import PrivateRows
    from app.release.progress import Progress
    from app.settings.settings import Settings

READING = "reading rows"
DEAD_FEATURES = "data.dead_features"


def read_private_rows(settings: Settings, progress: Progress) -> PrivateRows:
    """Read every private row; a cell that does not fit the schema ends the opening.

    Raises:
        DataError: names the column and the row number, never the value.

    """
    if settings.is_embedded_demo:
        return demo_rows()
    return read_rows(
        settings.source,
        settings.data.public_schema(),
        query=settings.data.query,
        rows_expected=settings.data.rows,
        progress=lambda count: progress(READING, count, settings.data.rows),
    )


def read_points(settings: Settings, public: Path | None) -> NDArray[np.float64]:
    """Read public points, float64 (m, d); none where there is no file of them.

    Raises:
        ConfigurationError: the file is the private one, or holds what no query could.

    """
    schema = settings.data.public_schema()
    if public is None:
        return no_points(schema)
    refuse_source_file(public, settings.source)
    return read_public_points(public, schema)


def read_rows_beside(
    points: NDArray[np.float64],
    settings: Settings,
    progress: Progress,
    warn: Callable[[str], None],
) -> PrivateRows:
    """Read every private row, and refuse public points that are these rows.

    Args:
        points: encoded public points, float64 (m, d); m may be 0.
        settings: the whole configuration.
        progress: shows how far it has come.
        warn: told how many of the points equal a row, on the operator's terminal alone.

    Raises:
        ConfigurationError: points are rows, by their order; or a cell does not fit.

    """
    rows = read_private_rows(settings, progress)
    refuse_source_rows(points, rows.values, warn)
    return rows


def refuse_dead_features(settings: Settings, rows: PrivateRows) -> None:
    """Refuse an opening on rows that a feature says nothing of, unless the settings allow it.

    Raises:
        DataError: names every such feature, and says why it is one.

    """
    if settings.data.dead_features == "allow":
        return
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
    """Return what of the private rows does not fit the schema, for the operator's terminal.

    Args:
        settings: the whole configuration.
        points: encoded public points to be compared with the rows, shape (m, d).
        progress: shows how far it has come.

    Raises:
        DataError: the source cannot be opened.
        ConfigurationError: the query is not row-wise.

    """
    return check_source(
        settings.source,
        settings.data.public_schema(),
        query=settings.data.query,
        rows_expected=settings.data.rows,
        points=points,
        progress=lambda count: progress(READING, count, settings.data.rows),
    )
