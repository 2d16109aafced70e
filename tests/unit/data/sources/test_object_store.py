"""Rows in an object store, read from a real server of S3's protocol."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import compute, csv, parquet

from app.data.rows import fingerprint
from app.data.sources.column_values import source_columns
from app.data.sources.encoded_parts import list_files, list_parts, read_part
from app.data.sources.sources import open_source, read_rows
from app.data.sources.stored_files import object_storage
from app.errors import DataError
from tests.builders.schema.schemas import PEOPLE
from tests.builders.server.nursery import run_forked
from tests.builders.server.s3_server import BUCKET, S3Server, s3_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROOT = f"s3://{BUCKET}"
KEY = b"key"
PIECE_BYTES = 10_000


@pytest.fixture(scope="module")
def running() -> Iterator[S3Server]:
    """Run a server with a source of each kind."""
    object_storage.cache_clear()
    with s3_server() as server:
        table = people(9_000)
        halves = (table.slice(0, 5_000), table.slice(5_000))
        for name, half in zip(("a", "b"), halves, strict=True):
            server.put(f"parts/{name}.parquet", packed(half))
            server.put(f"lines/{name}.csv", csv_of(half))
            for sex in ("F", "M"):
                of_sex = half.filter(compute.equal(half["sex"], sex)).drop_columns("sex")
                server.put(f"hive/sex={sex}/{name}.parquet", packed(of_sex))
        server.put("parts/_SUCCESS", b"")
        server.put("people.csv", csv_of(table))
        server.put("people.csv.gz", gzip.compress(csv_of(table)))
        assert server.put_in_pieces("people.parquet", packed(table), PIECE_BYTES) > 5
        yield server
    object_storage.cache_clear()


@pytest.fixture
def server(running: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """Name the server and its user in the environment."""
    for name, value in running.environment.items():
        monkeypatch.setenv(name, value)
    return running


def people(count: int) -> pa.Table:
    """Return rows of the schema's columns."""
    random = np.random.default_rng(3)
    return pa.table(
        {
            "age": random.random(count) * 90,
            "hours": random.integers(0, 100, count),
            "work": random.choice(["Private", "State", "other"], count),
            "sex": random.choice(["F", "M"], count),
            "income": random.choice(["low", "high"], count),
        }
    )


def packed(table: pa.Table) -> bytes:
    """Return a table as Parquet of several row groups."""
    body = io.BytesIO()
    parquet.write_table(table, body, row_group_size=2_000)
    return body.getvalue()


def csv_of(table: pa.Table) -> bytes:
    """Return a table as CSV."""
    body = io.BytesIO()
    csv.write_csv(table, body)
    return body.getvalue()


LONG = pytest.mark.long


@pytest.mark.parametrize(
    "source",
    [
        *("people.parquet", "lines/*.csv", "hive"),
        *(
            pytest.param(source, marks=LONG)
            for source in ("parts", "parts/", "parts/*.parquet", "people.csv", "people.csv.gz")
        ),
        *(pytest.param(source, marks=LONG) for source in ("hive/*/*.parquet", "hive/**/*.parquet")),
    ],
)
def test_rows_of_a_store_are_those_of_a_disk(server: S3Server, tmp_path: Path, source: str) -> None:
    """Folders, patterns, partitions and single objects, of several pieces too."""
    del server
    local = tmp_path / "people.parquet"
    local.write_bytes(packed(people(9_000)))
    expected, rows = read_rows(local, PEOPLE), read_rows(f"{ROOT}/{source}", PEOPLE)
    assert fingerprint(rows, KEY) == fingerprint(expected, KEY)
    if not source.startswith("hive"):
        assert rows.values.tobytes() == expected.values.tobytes()


def test_parts_are_read_one_by_one(server: S3Server) -> None:
    """Row groups are listed with their rows, and give the rows of the whole."""
    del server
    source = f"{ROOT}/parts"
    parts = list_parts(source, PEOPLE)
    assert [part.row_count for part in parts] == [2_000, 2_000, 1_000, 2_000, 2_000]
    assert [part.rows_before for part in parts] == [0, 2_000, 4_000, 5_000, 7_000]
    assert len({(part.file.path, part.file.version) for part in parts}) == 2
    assert {part.file for part in parts} == {part.file for part in list_files(source)}
    found = [rows for part in parts for rows in read_part(part, source, PEOPLE)]
    expected = read_rows(source, PEOPLE)
    values = np.concatenate([rows.values for rows in found])
    assert values.tobytes() == expected.values.tobytes()


WRONG: list[tuple[dict[str, str], str]] = [
    ({"AWS_ACCESS_KEY_ID": "AKIAMARKER"}, "the store refuses access: check the credentials"),
    ({"AWS_SECRET_ACCESS_KEY": "marker"}, "the store refuses access: check the credentials"),
    ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "the store does not answer, or breaks off ("),
]


@pytest.mark.parametrize(
    ("changes", "problem"), [WRONG[0], *(pytest.param(*each, marks=LONG) for each in WRONG[1:])]
)
def test_a_wrong_credential_is_one_line(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], problem: str
) -> None:
    """It says where credentials come from, and repeats none."""
    del server
    for name, value in changes.items():
        monkeypatch.setenv(name, value)
    line = line_of(f"{ROOT}/parts")
    assert line.startswith(f"data.source: {ROOT}/parts: {problem}")
    assert "marker" not in line.lower()


@LONG
def test_no_credential_is_one_line(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the environment is said as that."""
    del server
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    expected = f"data.source: {ROOT}/parts: no credentials were found in the environment"
    assert line_of(f"{ROOT}/parts") == expected


@LONG
@pytest.mark.parametrize("source", ["none", "none.csv", "none.parquet"])
def test_what_is_not_there_is_one_line(server: S3Server, source: str) -> None:
    """As of a file on a disk."""
    del server
    assert line_of(f"{ROOT}/{source}") == f"data.source: no such file: {ROOT}/{source}"
    assert line_of(f"{ROOT}/none/*.parquet").startswith("data.source: no file matches ")


@pytest.mark.parametrize(
    ("change", "problem"),
    [("deleted", "is gone since the parts were listed"), ("other", "has changed since")],
)
@pytest.mark.parametrize("form", ["parquet", pytest.param("csv", marks=LONG)])
def test_a_part_that_is_another_than_it_was_listed_as_is_one_line(
    server: S3Server, form: str, change: str, problem: str
) -> None:
    """A part deleted, or written anew, between listing and reading is named."""
    body: Any = packed if form == "parquet" else csv_of
    for name in ("a", "b"):
        server.put(f"lost/{name}.{form}", body(people(10)))
    source = f"{ROOT}/lost/*.{form}"
    parts = list_files(source)
    opened = open_source(source, None, source_columns(PEOPLE))
    with opened as blocks:
        if change == "deleted":
            server.delete(f"lost/b.{form}")
        else:
            server.put(f"lost/b.{form}", body(people(11)))
        with pytest.raises(DataError) as refused:
            list(blocks.stream)
    assert str(refused.value).startswith(f"data.source: b.{form} {problem}")
    with pytest.raises(DataError, match=problem):
        list(read_part(parts[1], source, PEOPLE))


@LONG
def test_a_store_that_is_lost_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that ends between listing and reading is named by what it does no more."""
    with s3_server() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        object_storage.cache_clear()
        server.put("a.parquet", packed(people(10)))
        source = f"{ROOT}/a.parquet"
        (part,) = list_files(source)
        server.process.kill()
        server.process.wait()
        with pytest.raises(DataError, match=r"the store does not answer, or breaks off \("):
            list(read_part(part, source, PEOPLE))
    object_storage.cache_clear()


CONFIGURATION = """
[release]
name = "people"
[data]
source = "{source}"
label = "income"
classes = ["low", "high"]
[[data.features]]
name = "age"
kind = "numeric"
bounds = [17, 90]
[hypotheses]
class = "stumps"
[answers]
ensemble = 1
[server]
port = 0
"""


@LONG
def test_nothing_is_charged_where_the_store_refuses(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends with one line and two, and there is no ledger."""
    del server
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "marker")
    path = tmp_path / "conclave.toml"
    path.write_text(CONFIGURATION.format(source=f"{ROOT}/parts"), encoding="utf-8")
    ended = run_forked(("-m", "app", "serve", "--config", str(path)))
    line = "the store refuses access: check the credentials in the environment"
    last = ended.stderr.decode().splitlines()[-1]
    assert (ended.returncode, last) == (2, f"conclave: data.source: {ROOT}/parts: {line}")
    assert b"marker" not in ended.stderr + ended.stdout
    assert [each.name for each in tmp_path.iterdir()] == ["conclave.toml"]


def line_of(source: str) -> str:
    """Return the line that a source is refused with."""
    object_storage.cache_clear()
    with pytest.raises(DataError) as refused:
        read_rows(source, PEOPLE)
    object_storage.cache_clear()
    return str(refused.value)
