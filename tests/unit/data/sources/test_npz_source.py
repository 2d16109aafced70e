"""An archive of arrays is read like text, nothing is unpickled, what is broken is named."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from app.data.schema import CategoricalFeature, NumericFeature, Schema
from app.data.sources import npz_source
from app.data.sources.sources import read_rows
from app.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path


SCHEMA = Schema(
    label="y",
    classes=("0", "1"),
    features=(
        NumericFeature(name="x", lower=-10.0, upper=1e6),
        CategoricalFeature(name="c", categories=("u", "v")),
    ),
)
NUMBER_TYPES = ["f2", "<f4", ">f8", "g", "i1", ">i4", "u8", "U5", "S5"]


def write(path: Path, *, is_compressed: bool = True, **columns: Any) -> Path:
    """Write an archive of three rows, columns replaced by name, and return its path."""
    arrays = {"x": [1, 2, 3], "c": ["u", "", "v"], "y": [0.0, 1.0, 0.0], "other": [1]} | columns
    save = np.savez_compressed if is_compressed else np.savez
    save(path, allow_pickle=True, **{name: np.asarray(array) for name, array in arrays.items()})
    return path


def line_of(path: Path) -> str:
    """Return the line that an archive is refused with."""
    with pytest.raises(DataError) as refused:
        read_rows(path, SCHEMA)
    return str(refused.value)


@pytest.mark.parametrize("kind", NUMBER_TYPES)
def test_numbers_of_any_type_are_read(tmp_path: Path, kind: str) -> None:
    """A number is itself, whatever its width and the order of its bytes."""
    path = write(tmp_path / "rows.npz", x=np.array([1, 2, 3]).astype(kind))
    rows = read_rows(path, SCHEMA)
    np.testing.assert_array_equal(rows.values, [[1, 0], [2, 3], [3, 1]])
    np.testing.assert_array_equal(rows.labels, [0, 1, 0])


@pytest.mark.parametrize("is_compressed", [True, False])
def test_blocks_join_without_a_seam(tmp_path: Path, *, is_compressed: bool) -> None:
    """Arrays longer than a block are read side by side to their ends."""
    count = 2 * npz_source.ROWS_PER_READ + 5
    columns = {
        "x": np.arange(count),
        "c": np.resize(["u", "v", "w"], count),
        "y": np.resize(np.array([True, False]), count).astype(np.int8),
    }
    rows = read_rows(write(tmp_path / "r.NPZ.npz", is_compressed=is_compressed, **columns), SCHEMA)
    np.testing.assert_array_equal(rows.values[:, 0], np.arange(count))
    np.testing.assert_array_equal(rows.values[:, 1], np.resize([0, 1, 2], count))
    np.testing.assert_array_equal(rows.labels, np.resize([1, 0], count))


@pytest.mark.parametrize(
    ("column", "array", "line"),
    [
        ("c", np.array(["u", None, 1], dtype=object), 'column "c" holds Python objects; store '),
        ("x", [1j, 2, 3], 'column "x" holds complex128; store text, numbers or booleans'),
        ("x", np.zeros(3, "M8[D]"), 'column "x" holds datetime64[D]; store text'),
        ("x", [[1, 2, 3]], 'column "x" is an array of 2 dimensions'),
        ("x", 1, 'column "x" is an array of 0 dimensions'),
        ("c", ["u", "v"], 'column "c" has 2 rows, "x" has 3'),
        ("x", [True, False, True], 'column "x", row 1: is not a number'),
        ("c", np.array([b"u", b"\xff", b"v"]), 'column "c", row 2: is not UTF-8 text'),
        ("y", [0.0, 1.0, 0.5], 'column "y", row 3: is not one of data.classes'),
        ("y", ["0", "1", ""], 'column "y", row 3: is not one of data.classes'),
    ],
)
def test_what_is_no_column_is_refused(tmp_path: Path, column: str, array: Any, line: str) -> None:
    """The line names the column, and the row where it is one row's fault."""
    path = write(tmp_path / "rows.npz", **{column: array})
    assert line_of(path).startswith(f"data.source: {line}")


def test_text_of_no_width_is_missing(tmp_path: Path) -> None:
    """An array of empty texts, which takes no byte, is missing everywhere."""
    path = write(tmp_path / "rows.npz", c=np.zeros(3, dtype="S0"), x=np.zeros(3, dtype="U0"))
    rows = read_rows(path, SCHEMA)
    assert np.isnan(rows.values[:, 0]).all()
    assert rows.values[:, 1].tolist() == [3, 3, 3]


def test_a_number_beyond_any_float_is_refused(tmp_path: Path) -> None:
    """What only a wider float can hold is no finite number."""
    path = write(tmp_path / "rows.npz", x=np.array(["1", "1e400", "3"], dtype="g"))
    assert line_of(path) == 'data.source: column "x", row 2: is not a finite number'


def test_a_repeated_array_is_refused(tmp_path: Path) -> None:
    """An archive may hold two members of one name."""
    path = write(tmp_path / "rows.npz")
    with (
        zipfile.ZipFile(path, "a") as archive,
        pytest.warns(UserWarning, match="Duplicate"),
        archive.open("x.npy", "w") as file,
    ):
        file.write(b"anything")
    assert line_of(path) == 'data.source: column "x" occurs more than once in the archive'


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    """An absent file, something else under the name, and a folder are told apart."""
    path = tmp_path / "rows.npz"
    assert line_of(path) == f"data.source: no such file: {path}"
    path.write_bytes(b"private")
    assert line_of(path) == f"data.source: {path} is not a valid .npz file"
    path.unlink()
    path.mkdir()
    assert line_of(path) == f"data.source: {path} cannot be read: Is a directory"


def test_an_archive_of_a_version_that_is_not_known_is_refused(tmp_path: Path) -> None:
    """A byte of the archive's list of members may say any version; one line says so."""
    path = write(tmp_path / "rows.npz")
    body = bytearray(path.read_bytes())
    entry = body.index(b"PK\x01\x02")
    body[entry + len(b"PK\x01\x02\0\0")] = 160
    path.write_bytes(body)
    assert line_of(path) == f"data.source: {path} is not a valid .npz file"


def test_a_member_that_is_no_array_is_refused(tmp_path: Path) -> None:
    """A member with an array's name and something else in it is named."""
    path = tmp_path / "rows.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("x", "c", "y"):
            archive.writestr(f"{name}.npy", b"private")
    assert line_of(path) == 'data.source: column "x" is not a valid array'


@pytest.mark.parametrize("spoil", ["cut", "altered"])
def test_an_array_that_breaks_off_is_named(tmp_path: Path, spoil: str) -> None:
    """Fewer values than its header says, or bytes that fail their check, are refused."""
    path, numbers = tmp_path / "rows.npz", np.arange(50_000.0)
    columns = {"c": np.zeros(len(numbers)), "y": np.zeros(len(numbers))}
    write(path, is_compressed=False, x=numbers, **columns)
    if spoil == "cut":
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(path, "w") as archive:
            for name, body in members.items():
                archive.writestr(name, body[:-8] if name == "x.npy" else body)
    else:
        path.write_bytes(path.read_bytes().replace(numbers[7:9].tobytes(), bytes(16), 1))
    expected = 'data.source: column "x", row 1: the array breaks off here, or soon after'
    assert line_of(path) == expected
