"""A release that was opened from one source continues from another with the same rows."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from app.errors import ReleaseMismatchError
from tests.builders.schema.tables import QUERY, write_table
from tests.builders.server.http_release import agreed, agreed_label
from tests.builders.server.serving import Served

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builders.schema.tables import Table
    from tests.builders.server.http_release import SmallRelease
    from tests.http.end_to_end.conftest import OpenedRelease


@pytest.mark.parametrize("format_name", ["parquet", "parts", "npz", "sqlite"])
def test_a_release_continues_from_another_source(
    opened: OpenedRelease, tmp_path: Path, format_name: str
) -> None:
    """Answers given from a CSV replay from the same rows in another order and another form."""
    release = opened()
    with Served(release.settings()) as served:
        before = served.answer(agreed(0))
    source, query = write_table(tmp_path, _table(release), format_name)
    environ = {"CONCLAVE_DATA__SOURCE": source, "CONCLAVE_DATA__QUERY": QUERY if query else ""}
    environ = {name: value for name, value in environ.items() if value}
    with Served(release.settings(environ)) as served:
        assert served.answer(agreed(0)) == before | {"replayed": True}
        assert served.answer(agreed(1))["label"] == agreed_label(1)


def test_other_rows_of_another_source_are_refused(opened: OpenedRelease, tmp_path: Path) -> None:
    """One row less, and the release is not theirs."""
    release = opened()
    table = {name: values[:-1] for name, values in _table(release).items()}
    source, _ = write_table(tmp_path, table, "parquet")
    settings = release.settings({"CONCLAVE_DATA__SOURCE": source})
    with pytest.raises(ReleaseMismatchError), Served(settings):
        pass


def _table(release: SmallRelease) -> Table:
    """Return the rows of a release, reversed, with typed ages."""
    with release.source.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))[::-1]
    missing = {"?": None, "": None}
    table: dict[str, list[object]] = {
        name: [missing.get(row[name], row[name]) for row in rows] for name in rows[0]
    }
    table["age"] = [float(str(age)) if age is not None else None for age in table["age"]]
    return table
