"""The private rows of a configuration, read and validated once, at start-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.data.embedded_demo import demo_rows
from app.data.sources import read_rows

if TYPE_CHECKING:
    from app.data.rows import PrivateRows
    from app.service.progress import Progress
    from app.settings import Settings

READING = "reading rows"


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
