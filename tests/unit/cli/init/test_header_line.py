"""The names of a table's columns are read, and no byte after them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from app.cli.init.header_line import LINE_BYTES_MAX, first_line, names_on, read_header
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

PRIVATE = b"41,north,SECRET\n"


class CountedFile:
    """A file that knows how many of its bytes were read."""

    def __init__(self, content: bytes) -> None:
        """Begin at the first byte."""
        self.content = content
        self.read_count = 0

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        taken = self.content[self.read_count : self.read_count + size]
        self.read_count += len(taken)
        return taken


@pytest.mark.parametrize(
    "header", [b"age,region\n", b"age,region\r\n", b"age,region\r", b"\n\r\nage,region\n"]
)
def test_no_byte_after_the_first_line_is_read(header: bytes) -> None:
    """Reading stops at the first line's end: one byte of it, and none of a row."""
    file = CountedFile(header + PRIVATE)
    assert first_line(file).strip() == b"age,region"
    assert file.read_count <= len(header)


def test_a_pipe_that_holds_a_header_alone_is_enough(tmp_path: Path) -> None:
    """A FIFO whose writer never writes a row is read: whoever asked for more would wait."""
    path = tmp_path / "records.csv"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    try:
        os.write(writer, b"age,region\n")
        assert read_header(path) == ("age", "region")
    finally:
        os.close(writer)


def test_a_line_without_an_end_is_given_up() -> None:
    """A file that is one long line is refused after as many bytes as a header may have."""
    file = CountedFile(b"x" * (LINE_BYTES_MAX + 5))
    with pytest.raises(ConfigurationError, match="more than"):
        first_line(file)
    assert file.read_count == LINE_BYTES_MAX


def test_names_are_read_as_csv() -> None:
    """A quoted name may hold a comma, and the mark at the beginning of a file is no name."""
    assert names_on('\ufeffage,"a, b",é'.encode()) == ("age", "a, b", "é")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"SECRET", "fewer than two names"),
        (b"SECRET;x", "fewer than two names"),
        (b"SECRET,41", "cell 2 of the first line is a number"),
        (b"SECRET,,x", "cell 2 of the first line is empty"),
        (b"SECRET, x", "cell 2 of the first line is empty, or has blanks"),
        (b"SECRET,SECRET", "cell 2 of the first line repeats"),
        (b'"SECRET,x', "is not well-formed CSV"),
        (b"SECRET," + b"x" * 140_000, "the first line has a cell above 131072 characters"),
        (b"SECRET\xff,x", "is not UTF-8"),
    ],
)
def test_a_line_that_may_be_a_row_is_refused_without_a_word_of_it(
    line: bytes, problem: str
) -> None:
    """What is no header may be private, so that the refusal names places only."""
    with pytest.raises(ConfigurationError, match=problem) as refused:
        names_on(line)
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize("name", ["records.parquet", "records.csv.gz", "absent.csv"])
def test_what_has_no_first_line_is_refused(tmp_path: Path, name: str) -> None:
    """A file of another kind, or none, is refused in one line that names the option."""
    with pytest.raises(ConfigurationError, match=r"^--header: "):
        read_header(tmp_path / name)
