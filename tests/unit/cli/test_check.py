"""``conclave check``: what does not fit, on the terminal, with nothing charged or opened."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from app.cli import run
from app.cli.check import NAMES_SHOWN_MAX, PRIVATE

if TYPE_CHECKING:
    from pathlib import Path

CONFIGURATION = """\
[release]
name = "flows"
[data]
source = "records.csv"
label = "attack"
classes = ["no", "yes"]
[[data.features]]
name = "bytes"
kind = "numeric"
bounds = [0, 1000]
[[data.features]]
name = "protocol"
kind = "categorical"
categories = ["TCP", "UDP"]
[hypotheses]
class = "trees"
"""
ROWS = "bytes,protocol,attack\n1,tcp,no\n2,udp,yes\n3,tcp,no\n"
FITS = ROWS.replace("tcp", "TCP")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a configuration and rows whose protocols are spelled otherwise."""
    (tmp_path / "conclave.toml").write_text(CONFIGURATION, encoding="utf-8")
    (tmp_path / "records.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path


def check(folder: Path, *options: str) -> int:
    """Run the command, and see that it opens no ledger."""
    code = run(["check", "--config", str(folder / "conclave.toml"), *options])
    assert not list(folder.glob("*.db*"))
    return code


def test_what_does_not_fit_is_told_and_that_it_is_private(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1, a line a finding, and before them what the lines are and cost."""
    assert check(folder) == 1
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == PRIVATE
    assert lines == [
        'column "protocol": none of its categories occurs',
        (
            'column "protocol": 3 rows, the first is row 1: differs from a public name only in '
            "blanks, capitals, dashes, points or how a number is written; public names near it: "
            '"TCP", "UDP"'
        ),
    ]


def test_rows_that_fit_are_told_by_their_number(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The number of rows and the share of public points are told, and what comes next."""
    (folder / "records.csv").write_text(FITS.replace("udp", "ICMP"), encoding="utf-8")
    (folder / "public.csv").write_text("bytes,protocol\n1,TCP\n1,UDP\n", encoding="utf-8")
    assert check(folder, "--public", str(folder / "public.csv")) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        PRIVATE,
        "public points: 50.0% of them equal a record",
        "all columns of 3 rows fit the schema",
    ]
    assert printed.err == f"next: conclave serve --config {folder / 'conclave.toml'}\n"


def test_one_json_document_has_it_all(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--json`` prints the findings and that they are private, and nothing else."""
    assert check(folder, "--json") == 1
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert printed.err == ""
    assert (document["rows"], document["fits"]) == (3, False)
    assert document["private"] == PRIVATE
    assert document["public_points_equal_share"] is None
    assert document["findings"] == [
        {
            "kind": "dead-feature",
            "problem": "none of its categories occurs",
            "column": "protocol",
            "row_count": None,
            "first_row": None,
            "names": [],
        },
        {
            "kind": "near-name",
            "problem": "differs from a public name only in blanks, capitals, dashes, points or "
            "how a number is written",
            "column": "protocol",
            "row_count": 3,
            "first_row": 1,
            "names": ["TCP", "UDP"],
        },
    ]


def test_many_names_are_told_in_part(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line names a few public names and how many more there are."""
    names = [f"kind-{index}" for index in range(NAMES_SHOWN_MAX + 2)]
    text = CONFIGURATION.replace('["TCP", "UDP"]', json.dumps(names))
    (folder / "conclave.toml").write_text(text, encoding="utf-8")
    rows = [f"{index},{name.upper()},no" for index, name in enumerate(names)]
    (folder / "records.csv").write_text("\n".join(["bytes,protocol,attack", *rows]))
    assert check(folder) == 1
    assert capsys.readouterr().out.splitlines()[-1].endswith('"kind-4" and 2 more')


def test_what_cannot_be_read_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A source or a configuration that is not there is one line on stderr."""
    (folder / "records.csv").unlink()
    assert check(folder) == 2
    assert capsys.readouterr().err.startswith("conclave: data.source: no such file: ")
    (folder / "conclave.toml").unlink()
    assert check(folder) == 2
    assert "no such file" in capsys.readouterr().err
