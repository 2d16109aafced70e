"""``conclave init``: what it writes is loaded, planned, checked and opened."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from app.cli import run
from app.settings.settings import load_settings

HEADER = "age,region,smoker,note,outcome\n"
ROWS = [
    f"{18 + 7 * index % 73},{'north' if index % 3 else 'south'},{index % 2},"
    f"{'?' if index % 9 else 5},{'yes' if index % 5 else 'no'}\n"
    for index in range(60)
]
SKIP_ALL = tuple(f"--skip={name}" for name in ("age", "region", "smoker", "note"))
DICTIONARY = """\
name,kind,low,high,values
age,number,18,90,
region,category,,,north|south|east
smoker,boolean,,,
note,skip,,,
outcome,label,,,no|yes
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder that has records, a public sample and a dictionary."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "records.csv").write_text(HEADER + "41,north,1,PRIVATE,yes\n")
    (tmp_path / "public.csv").write_text(HEADER + "".join(ROWS))
    (tmp_path / "dictionary.csv").write_text(DICTIONARY)
    return tmp_path


def init(*options: str) -> int:
    """Run the command."""
    return run(["init", *options])


@pytest.mark.parametrize("way", ["--publish", "--online"])
@pytest.mark.parametrize(
    "facts",
    [
        ("--public", "public.csv", "--label", "outcome"),
        ("--dictionary", "dictionary.csv"),
        ("--header", "records.csv", "--public", "public.csv", "--dictionary", "dictionary.csv"),
    ],
)
def test_what_is_written_loads_and_plans(
    way: str, facts: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Settings read it, a plan works on it, and the plan is the step that is printed."""
    assert init(*facts, way, "--rows", "30000") == 0
    printed = capsys.readouterr().out.splitlines()
    points = "--public public.csv " if "public.csv" in facts else ""
    assert printed[-1] == f"next: conclave plan --config conclave.toml {points}".rstrip()
    settings = load_settings(Path("conclave.toml"), {})
    assert settings.data.classes == ("no", "yes")
    assert (settings.privacy.shares.answers > 0) == (way == "--online")
    assert "thresholds = []" not in Path("conclave.toml").read_text()
    assert run(["plan", "--config", "conclave.toml", "--populations", "0"]) == 0
    assert capsys.readouterr().err == "next: conclave check --config conclave.toml\n"


def test_a_dictionary_and_a_sample_complete_each_other() -> None:
    """Bounds and categories are the dictionary's, cuts and shares the sample's."""
    assert init("--public", "public.csv", "--dictionary", "dictionary.csv", "--missing", "?") == 0
    data = load_settings(Path("conclave.toml"), {}).data
    by_name = {feature.name: feature for feature in data.features}
    assert list(by_name) == ["age", "region", "smoker"]
    age, region = by_name["age"].model_dump(), by_name["region"].model_dump()
    assert age["bounds"] == (18, 90)
    assert len(age["thresholds"]) == len(age["threshold_shares"]) == 4
    assert region["categories"] == ("north", "south", "east")
    assert region["category_shares"][2] == 0
    assert data.missing == ("?",)


def test_bounds_of_a_sample_are_said_to_be_its_own() -> None:
    """Those of a dictionary are not: somebody knows them."""
    note = "   # the range of the sample; widen it to all possible values"
    for facts, count in ((["--label", "outcome"], 2), (["--dictionary", "dictionary.csv"], 0)):
        assert init("--public", "public.csv", *facts, "--force") == 0
        lines = Path("conclave.toml").read_text().splitlines()
        assert sum(line.endswith(note) for line in lines) == count
    load_settings(Path("conclave.toml"), {})


def test_names_that_toml_must_quote_are_written_so(folder: Path) -> None:
    """Blanks, quotes, points and other scripts survive the file."""
    names = ['srv rate %"', "a.b", "größe"]
    lines = ["name,kind,low,high,values", "y,label,,,no|yes"]
    lines += [f'"{name.replace(chr(34), chr(34) * 2)}",category,,,x y|\\z' for name in names]
    (folder / "dictionary.csv").write_text("\n".join(lines), encoding="utf-8")
    assert init("--dictionary", "dictionary.csv", "--online") == 0
    features = load_settings(Path("conclave.toml"), {}).data.features
    assert [feature.name for feature in features] == names
    assert features[0].model_dump()["categories"] == ("x y", "\\z")


def test_no_row_of_the_records_is_read(folder: Path) -> None:
    """Of a pipe into which a header was written and no row, all is read that is wanted."""
    (folder / "records.csv").unlink()
    os.mkfifo(folder / "records.csv")
    writer = os.open(folder / "records.csv", os.O_RDWR)
    try:
        os.write(writer, HEADER.encode())
        assert init("--header", "records.csv", "--dictionary", "dictionary.csv") == 0
    finally:
        os.close(writer)
    assert load_settings(Path("conclave.toml"), {}).source == str(folder / "records.csv")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ((), "init: there is no terminal to ask in: give --header, --public or --dictionary"),
        (
            ("--header", "records.csv"),
            (
                "init: there is no terminal to ask in: give --label NAME; --classes A,B; for "
                '"age", "region", "smoker", "note", "outcome" a --dictionary or a --public sample, '
                "or --skip NAME"
            ),
        ),
        (
            ("--public", "public.csv"),
            "init: there is no terminal to ask in: give --label NAME; --classes A,B",
        ),
        (
            ("--public", "public.csv", "--label", "Outcome"),
            '--label: no column is named "Outcome"; there is "outcome"',
        ),
        (
            ("--public", "public.csv", "--label", "outcom", "--header", "records.csv"),
            '--label: no column is named "outcom"; there is "outcome"',
        ),
        (
            ("--public", "public.csv", "--label", "outcome", "--classes", "no,maybe"),
            '--classes: the sample has "yes", which they lack',
        ),
        (("--header", "records.csv", "--label", "x"), '--label: no column is named "x"'),
        (
            ("--public", "public.csv", "--label", "age", "--skip", "x"),
            '--skip: no column is named "x", or it is the label',
        ),
        (
            ("--header", "records.csv", "--public", "records.csv"),
            "--public: records.csv is the file of the private records",
        ),
        (("--twin", "0"), "--twin: must be a whole number of at least 1"),
        (("--config", "x.toml"), "--config: is for --twin; -o names the file to write"),
        (("-o", "absent/x.toml"), "--output: there is no folder absent"),
        (
            ("--dictionary", "dictionary.csv", "--label", "outcome", "--classes", "no"),
            "data.classes: must have at least 2 items",
        ),
        (
            ("--dictionary", "dictionary.csv", *SKIP_ALL),
            "init: every column is left out; a release needs a feature",
        ),
    ],
)
def test_what_is_not_known_is_said_in_one_line(
    options: tuple[str, ...], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, one line that names all that is missing, and no file."""
    assert init(*options) == 2
    assert capsys.readouterr().err == f"conclave: {line}\n"
    assert not Path("conclave.toml").exists()


def test_a_dash_writes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """The configuration alone is there, and what is told goes to standard error."""
    options = ("--public", "public.csv", "--label", "outcome")
    assert init(*options) == 0
    capsys.readouterr()
    assert init(*options, "-o", "-") == 0
    printed = capsys.readouterr()
    assert printed.out == Path("conclave.toml").read_text("utf-8")
    assert printed.err.splitlines()[-1].startswith("next: conclave plan --config conclave.toml")
    assert init(*options, "-o", "-", "--twin", "5") == 2
    assert "--twin: needs a configuration in a file" in capsys.readouterr().err


def test_a_file_is_written_over_only_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """What is there stays without ``--force``, and the records stay with it."""
    Path("conclave.toml").write_text("mine")
    assert init("--dictionary", "dictionary.csv") == 2
    assert capsys.readouterr().err.endswith("is there already; --force writes over it\n")
    assert Path("conclave.toml").read_text() == "mine"
    options = ("--header", "records.csv", "--dictionary", "dictionary.csv", "--force")
    assert init(*options, "-o", "records.csv") == 2
    assert "PRIVATE" in Path("records.csv").read_text()
    assert init(*options) == 0


@pytest.mark.parametrize("way", ["--publish", "--online"])
def test_a_release_opens_on_made_up_rows(
    way: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They fit their configuration, and a release on them publishes a classifier."""
    options = ("--dictionary", "dictionary.csv", "--rows", "9", way)
    assert init(*options, "--twin", "4000") == 0
    monkeypatch.setenv("CONCLAVE_DATA__SOURCE", "twin.csv")
    monkeypatch.setenv("CONCLAVE_DATA__ROWS", "4000")
    monkeypatch.setenv("CONCLAVE_LEDGER__URL", "sqlite:///twin.db")
    *_, last = capsys.readouterr().out.splitlines()
    assert last == (
        "at no charge: CONCLAVE_DATA__SOURCE=twin.csv CONCLAVE_DATA__ROWS=4000 "
        "CONCLAVE_LEDGER__URL=sqlite:///twin.db conclave serve --config conclave.toml"
    )
    assert run(["check", "--config", "conclave.toml"]) == 0
    following = "learn --config conclave.toml -o classifier.json"
    following = following if way == "--publish" else "serve --config conclave.toml"
    assert capsys.readouterr().err.endswith(f"next: conclave {following}\n")
    monkeypatch.setenv("CONCLAVE_PRIVACY__EPSILON", "10")
    assert run(["learn", "--config", "conclave.toml", "-o", "classifier.json"]) == 0
    assert capsys.readouterr().err.endswith("next: conclave serve --config conclave.toml\n")


def test_made_up_rows_are_made_for_a_file_that_is_there() -> None:
    """With ``--config`` nothing but the rows is written, the same for the same seed."""
    assert init("--dictionary", "dictionary.csv") == 0
    before = Path("conclave.toml").read_bytes()
    twin = ("--config", "conclave.toml", "--twin", "20")
    assert init(*twin) == 0
    assert init(*twin, "--seed", "1", "-o", "other.csv") == 0
    assert init(*twin, "-o", "same.csv") == 0
    assert Path("twin.csv").read_bytes() == Path("same.csv").read_bytes()
    assert Path("twin.csv").read_bytes() != Path("other.csv").read_bytes()
    assert Path("conclave.toml").read_bytes() == before


class Typed(io.StringIO):
    """A terminal in which the answers are typed already; after them it is closed."""

    def isatty(self) -> bool:
        """Answer as a terminal does."""
        return True


def test_a_terminal_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a terminal every fact may be typed; what comes out loads."""
    answers = ["online", "", "outcome", "no,yes", "18..90", "north|south", "", "", "30000"]
    monkeypatch.setattr(sys, "stdin", Typed("\n".join([*answers, ""])))
    assert init() == 0
    settings = load_settings(Path("conclave.toml"), {})
    assert [feature.name for feature in settings.data.features] == ["age", "region"]
    assert (settings.data.rows, settings.data.classes) == (30_000, ("no", "yes"))
    assert settings.privacy.shares.answers > 0


def test_a_terminal_that_is_closed_ends_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The end of typing is exit code 2, one line, and no file."""
    monkeypatch.setattr(sys, "stdin", Typed("publish\n"))
    assert init() == 2
    said = capsys.readouterr().err
    assert said.endswith("conclave: init: ended before the last question; nothing was written\n")
    assert not Path("conclave.toml").exists()


def test_made_up_rows_are_no_part_of_the_records(capsys: pytest.CaptureFixture[str]) -> None:
    """A source may be every file of a folder: they would be read as records, or replace some."""
    assert init("--dictionary", "dictionary.csv") == 0
    text = Path("conclave.toml").read_text("utf-8")
    Path("conclave.toml").write_text(text.replace('"records.csv"', '"r*/*.csv"'), "utf-8")
    for name in ("r1", "other"):
        Path(name).mkdir()
    Path("r1/a.csv").write_text("PRIVATE")
    twin = ("--config", "conclave.toml", "--twin", "20", "--force")
    for place in ("r1/a.csv", "r1/twin.csv"):
        assert init(*twin, "-o", place) == 2
        assert "would be one of the files of data.source" in capsys.readouterr().err
    assert [(each.name, each.read_text()) for each in Path("r1").iterdir()] == [
        ("a.csv", "PRIVATE")
    ]
    assert init(*twin, "-o", "other/twin.csv") == 0


def test_made_up_rows_are_in_the_dialect_of_the_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With its separator, decimal mark and encoding they are read as the records would be."""
    assert init("--dictionary", "dictionary.csv") == 0
    text = Path("conclave.toml").read_text("utf-8")
    dialect = '[data]\nseparator = ";"\ndecimal = ","\nencoding = "utf-16"\n'
    text = text.replace("[data]\n", dialect).replace('"east"', '"est;\u00e9"')
    Path("conclave.toml").write_text(text.replace("90.0]", "18.5]"), "utf-8")
    assert init("--config", "conclave.toml", "--twin", "400") == 0
    monkeypatch.setenv("CONCLAVE_DATA__SOURCE", "twin.csv")
    assert run(["check", "--config", "conclave.toml"]) == 0
