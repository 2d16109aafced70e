"""The parts of a source: folders of partitions, patterns, and one part read alone."""

from __future__ import annotations

import math
import os
import pickle
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from app.data.checks.public_overlap import refuse_source_file
from app.data.persons import PersonColumn
from app.data.rows import fingerprint
from app.data.schema import CategoricalFeature, NumericFeature, Schema
from app.data.sources.encoded_parts import list_files, list_parts, read_part
from app.data.sources.sources import read_rows
from app.data.sources.stored_files import STORES, StoreKind, check_address, object_storage
from app.errors import ConfigurationError, DataError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SCHEMA = Schema(
    label="y",
    classes=("a", "b"),
    features=(
        NumericFeature(name="x", lower=-10.0, upper=100.0),
        CategoricalFeature(name="c", categories=("u", "v w")),
    ),
    missing=("99",),
)
WHO = PersonColumn(name="who", key=b"k" * 32, missing=frozenset({""}))


def write(path: Path, **columns: Sequence[object]) -> None:
    """Write a part; its folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        parquet.write_table(pa.table(columns), path, row_group_size=2)
    else:
        lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
        path.write_text("\n".join([",".join(columns), *lines, ""]), encoding="utf-8")


def line_of(source: Path | str, person: PersonColumn | None = None) -> str:
    """Return the line that a source is refused with."""
    with pytest.raises(DataError) as refused:
        read_rows(source, SCHEMA, person=person)
    return str(refused.value)


def test_partitions_are_columns_of_text(tmp_path: Path) -> None:
    """A folder's value is read as a text is in a CSV: parsed for a number, spelled for a name."""
    write(tmp_path / "c=v%20w" / "x=1.50" / "p.parquet", y=["a", "b"], other=[1, 2])
    write(tmp_path / "c=__HIVE_DEFAULT_PARTITION__" / "x=99.0" / "p.parquet", y=["b"])
    write(tmp_path / "c=z" / "x=-0.0" / "p.parquet", y=["b"])
    rows = read_rows(tmp_path, SCHEMA)
    np.testing.assert_array_equal(rows.values, [[math.nan, 3], [1.5, 1], [1.5, 1], [0, 2]])
    np.testing.assert_array_equal(rows.labels, [1, 0, 1, 1])


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_partition_may_be_the_label_or_the_person(tmp_path: Path, suffix: str) -> None:
    """The same rows in folders and in one file are the same release."""
    for who, label in (("ann", "a"), ("bob", "b"), ("ann", "b")):
        write(tmp_path / f"who={who}" / f"y={label}" / f"p.{suffix}", x=[1, 2], c=["u", "u"])
    source = f"{tmp_path}/*/*/*.{suffix}"
    rows = read_rows(source, SCHEMA, person=WHO)
    write(
        tmp_path / "whole" / "p.parquet",
        x=[1, 2] * 3,
        c=["u"] * 6,
        y=["a", "a", "b", "b", "b", "b"],
        who=["ann", "ann", "bob", "bob", "ann", "ann"],
    )
    whole = read_rows(tmp_path / "whole", SCHEMA, person=WHO)
    assert rows.count == 2
    assert fingerprint(rows, b"key") == fingerprint(whole, b"key")


def test_no_line_has_the_value_of_a_partition(tmp_path: Path) -> None:
    """A folder may be named by a person: the part is called by its number and its file."""
    write(tmp_path / "who=ann" / "p.parquet", x=[1], c=["u"], y=["a"])
    write(tmp_path / "who=marker" / "p.parquet", x=[1, 2], c=["u", "u"], y=["a", "z"])
    expected = 'column "y", row 3 (row 2 of part 2, who=*/p.parquet): is not one of data.classes'
    assert line_of(tmp_path, WHO) == f"data.source: {expected}"
    (tmp_path / "who=marker" / "p.parquet").write_bytes(b"none")
    assert line_of(tmp_path, WHO) == "data.source: part 2, who=*/p.parquet is not valid Parquet"
    assert "marker" not in repr(list_files(str(tmp_path)))


def test_a_column_in_a_part_and_in_its_folder_is_refused(tmp_path: Path) -> None:
    """Which of the two is meant is not guessed; of a column that is not read it is no matter."""
    write(tmp_path / "other=1" / "p.parquet", x=[1], c=["u"], y=["a"], other=[3])
    assert read_rows(tmp_path, SCHEMA).count == 1
    write(tmp_path / "c=u" / "p.parquet", x=[1], c=["u"], y=["a"])
    expected = 'column "c" occurs more than once in part 1, c=*/p.parquet'
    assert line_of(tmp_path) == f"data.source: {expected}"


def test_a_folder_has_partitions_and_parts_only(tmp_path: Path) -> None:
    """Another folder with a file in it is refused by its name, unless it is left out."""
    write(tmp_path / "c=u" / "p.parquet", x=[1], y=["a"])
    write(tmp_path / "_temporary" / "p.parquet", x=[1], y=["a"])
    write(tmp_path / "c=u" / ".hidden" / "p.parquet", x=[1], y=["a"])
    (tmp_path / "c=u" / "_SUCCESS").touch()
    assert read_rows(tmp_path, SCHEMA).count == 1
    write(tmp_path / "stray" / "p.parquet", x=[1], y=["a"])
    assert line_of(tmp_path).startswith('data.source: "stray" in the folder is not a .parquet file')


def test_patterns_are_read_in_the_order_of_names(tmp_path: Path) -> None:
    """Several CSV files, each with a header, are one source; row numbers count over all."""
    for number, name in enumerate(["10", "2", "1"]):
        write(tmp_path / f"{name}.csv", x=[number], c=["u"], y=["a"])
    rows = read_rows(f"{tmp_path}/*.csv", SCHEMA)
    np.testing.assert_array_equal(rows.values[:, 0], [2, 0, 1])
    write(tmp_path / "3.csv", x=[1, "old"], c=["u", "u"], y=["a", "a"])
    expected = 'column "x", row 5 (row 2 of 3.csv): is not a number'
    assert line_of(f"{tmp_path}/*.csv") == f"data.source: {expected}"
    write(tmp_path / "4.csv", x=[1], y=["a"])
    write(tmp_path / "3.csv", x=[1], c=["u"], y=["a"])
    expected = 'column "c" is missing in the header of 4.csv'
    assert line_of(f"{tmp_path}/*.csv") == f"data.source: {expected}"
    assert line_of(f"{tmp_path}/*.gz.parquet").startswith("data.source: no file matches ")


def test_a_name_with_a_wildcard_that_is_there_is_a_file(tmp_path: Path) -> None:
    """A file called like a pattern is itself."""
    write(tmp_path / "rows[1].csv", x=[1], c=["u"], y=["a"])
    write(tmp_path / "rows1.csv", x=[1, 2], c=["u", "u"], y=["a", "a"])
    assert read_rows(tmp_path / "rows[1].csv", SCHEMA).count == 1


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_parts_read_alone_are_the_whole(tmp_path: Path, suffix: str) -> None:
    """In any order, in another process's hands: values, labels and digests are those of all."""
    names = ["ann", "bob", "ann", "cleo", "bob"]
    for number in (1, 2):
        write(
            tmp_path / f"{number}.{suffix}",
            x=[number, 99, 2, 3, 4],
            c=["u"] * 5,
            y=["a"] * 5,
            who=names,
        )
    source = f"{tmp_path}/*.{suffix}"
    parts = list_parts(source, SCHEMA, person=WHO)
    assert len(parts) == (6 if suffix == "parquet" else 2)
    sent = pickle.loads(pickle.dumps(parts))  # noqa: S301 -- as to another process
    read = {part: list(read_part(part, source, SCHEMA, person=WHO)) for part in reversed(sent)}
    rows = [each for part in parts for each in read[part]]
    whole = read_rows(source, SCHEMA, person=WHO)
    assert whole.persons is not None
    values = np.concatenate([each.values for each in rows])
    assert values.tobytes() == whole.values.tobytes()
    digests = np.concatenate([each.digests for each in rows if each.digests is not None])
    assert whole.persons.digests is not None
    np.testing.assert_array_equal(digests, whole.persons.digests[whole.persons.numbers])
    assert repr(rows[0]) == "EncodedRows()"


def test_a_part_read_alone_names_the_row_of_the_whole(tmp_path: Path) -> None:
    """Of Parquet, whose parts' rows are counted without reading them."""
    write(tmp_path / "1.parquet", x=[1, 2, 3], c=["u"] * 3, y=["a"] * 3)
    write(tmp_path / "2.parquet", x=[1, 2, 3], c=["u"] * 3, y=["a", "a", "z"])
    parts = list_parts(str(tmp_path), SCHEMA)
    expected = r'column "y", row 6 \(row 3 of 2.parquet\): is not one of data.classes'
    with pytest.raises(DataError, match=expected):
        list(read_part(parts[-1], str(tmp_path), SCHEMA))


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_part_that_was_written_anew_is_refused(tmp_path: Path, suffix: str) -> None:
    """Its size or its time is another one; one that is gone is called so."""
    path = tmp_path / f"1.{suffix}"
    write(path, x=[1], c=["u"], y=["a"])
    source = f"{tmp_path}/*.{suffix}"
    (part,) = list_files(source)
    assert list_files(source) == (part,)
    os.utime(path, ns=(1, 1))
    with pytest.raises(DataError, match=r"1\.\w+ has changed since the parts were listed"):
        list(read_part(part, source, SCHEMA))
    path.unlink()
    with pytest.raises(DataError, match=r"1\.\w+ is gone since the parts were listed"):
        list(read_part(part, source, SCHEMA))


def test_a_part_is_no_public_file(tmp_path: Path) -> None:
    """One of several private files is private too, by a link as well."""
    write(tmp_path / "1.csv", x=[1], c=["u"], y=["a"])
    write(tmp_path / "2.csv", x=[1], c=["u"], y=["a"])
    link = tmp_path / "public"
    link.symlink_to(tmp_path / "2.csv")
    with pytest.raises(ConfigurationError, match=r"is data\.source itself"):
        refuse_source_file(link, f"{tmp_path}/*.csv")
    refuse_source_file(link, f"{tmp_path}/1.csv")
    refuse_source_file(link, f"{tmp_path}/none.npz")


def test_other_sources_have_no_parts(tmp_path: Path) -> None:
    """An archive and a database are read as a whole."""
    with pytest.raises(DataError, match="has no parts"):
        list_files(str(tmp_path / "rows.npz"))


@pytest.mark.parametrize(
    ("address", "is_refused"),
    [
        ("s3://key:secret@records/a", True),
        ("s3://key@records/a", True),
        ("gs://key:secret@records/a", True),
        ("abfs://container:secret@account.dfs.core.windows.net/a", True),
        ("abfs://container@account.dfs.core.windows.net/a", False),
        ("s3://records/a@b", False),
        ("postgresql+psycopg://user:secret@host/a", False),
    ],
)
def test_an_address_holds_no_credentials(address: str, *, is_refused: bool) -> None:
    """They come from the environment; a database's address is another matter."""
    if not is_refused:
        check_address(address)
        return
    with pytest.raises(ConfigurationError, match="give credentials in the environment") as refused:
        check_address(address)
    assert "secret" not in str(refused.value)


def test_a_store_without_its_library_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the extra."""
    absent = StoreKind("a_library_that_is_not_there", "gs", ())
    monkeypatch.setitem(STORES, "gs", absent)
    object_storage.cache_clear()
    expected = r"gs:// needs a_library_that_is_not_there: pip install 'conclave\[gs\]'"
    with pytest.raises(DataError, match=expected):
        read_rows("gs://records/a", SCHEMA)
