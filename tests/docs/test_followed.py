"""Pages that a reader can follow are followed, command by command, on real releases."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.cli.init.next_command import after_serve
from app.settings.settings import load_settings
from tests.docs.pages import ROOT, commands, examples, section_commands
from tests.docs.reader import PRINTED_ADDRESS, Reader
from tests.docs.readers_release import write_release

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = ROOT / "docs"
# What installs or starts more than a test may; each is run by what stands beside it.
RUN_ELSEWHERE = {
    "make demo": "tests/http/end_to_end/test_demo.py runs what it runs",
    "make test": "this is it",
    "make install": "tests/tidy/test_install.py",
    'export PATH="$PWD/.venv/bin:$PATH"': "the reader here has conclave on the path",
}
ROWS = 20_000
SERVED = "conclave serve --config conclave.toml"
VALUES = {"N": "30000", "M": "10", "D": "0.001", "E": "1", "A": "0.1", "B": "0.05", "G": "0.01"}
VALUES |= {"P": "4", "SIZE": "5000", "H": "2"}


@pytest.fixture(name="reader")
def reader_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Reader]:
    """Return a reader, whose servers end with the test."""
    if shutil.which("curl") is None:
        pytest.skip("the pages ask with curl, which is not installed")
    monkeypatch.chdir(tmp_path)
    reader = Reader(tmp_path, capsys.readouterr)
    yield reader
    reader.leave()


def followed(reader: Reader, page: Path) -> dict[str, str]:
    """Follow every command of a page, and return what each printed."""
    typed = [command for command in commands(page) if command not in RUN_ELSEWHERE]
    return {command: reader.follow(command) for command in typed}


@pytest.fixture(name="records")
def records_and_questions(tmp_path: Path) -> None:
    """Write records, public rows and questions about people, all made up."""
    generator = np.random.default_rng(7)
    ages = generator.integers(18, 91, ROWS)
    regions = generator.choice(["north", "south", "east", "west"], ROWS)
    people = list(zip(ages, regions, strict=True))
    rows = [f"{age},{region},{'yes' if age > 54 else 'no'}" for age, region in people]
    (tmp_path / "records.csv").write_text("\n".join(["age,region,outcome", *rows]) + "\n")
    others = [f"{age},{region}" for age in range(18, 91) for region in sorted(set(regions))]
    (tmp_path / "public.csv").write_text("\n".join(["age,region", *others]) + "\n")
    asked = [f"{age},{region}" for age in range(18, 91) for region in ("north", "west")]
    (tmp_path / "questions.csv").write_text("\n".join(["age,region", *asked]) + "\n")


def of_command(said: dict[str, str], start: str) -> str:
    """Return what the one command that begins so printed."""
    (found,) = [text for command, text in said.items() if command.startswith(start)]
    return found


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize("way", ["Publish a classifier", "Answer online"])
def test_the_five_minutes_of_somebody_new(reader: Reader, tmp_path: Path, way: str) -> None:
    """From the records' header to answers and a verified ledger, as the page says, both ways."""
    typed = section_commands(DOCS / "start.md", way)
    said = {command: reader.follow(command) for command in typed}
    for command, following in pairwise(typed[: typed.index(SERVED) + 1]):
        told = f"{said[command]}{reader.told[command]}"
        assert told.splitlines()[-1].endswith(f"next: {following}")
    settings = load_settings(tmp_path / "conclave.toml", {})
    path = Path("conclave.toml")
    shown = after_serve(path, settings, PRINTED_ADDRESS, is_terminal=True)
    assert after_serve(path, settings, PRINTED_ADDRESS, is_terminal=False) == shown[:1]
    last = typed.index(SERVED) + 1
    assert shown == [f"next: {command}" for command in typed[last : last + 3]]
    assert of_command(said, "conclave plan").startswith("Answers: ")
    assert json.loads(said[typed[last]])["label"] in {"no", "yes", None}
    assert (tmp_path / "answered.csv").read_text().startswith("age,region,query_id,label")
    assert "verified" in of_command(said, "conclave verify")
    if way == "Answer online":
        assert json.loads(said[typed[-1]])["queries"]["answered"] > 100


@pytest.mark.usefixtures("records")
def test_the_classifier_of_the_first_way_is_right(reader: Reader, tmp_path: Path) -> None:
    """The example to copy is followed as its own comment says, and what it publishes is good."""
    shutil.copy(ROOT / "examples" / "publish.toml", tmp_path / "conclave.toml")
    for line in re.findall(r"^#     (.*)$", (tmp_path / "conclave.toml").read_text(), re.MULTILINE):
        reader.follow(line.partition("  #")[0].rstrip())
    reader.follow(f"conclave query --url {PRINTED_ADDRESS} questions.csv > answered.csv")
    with (tmp_path / "answered.csv").open() as file:
        answered = list(csv.DictReader(file))
    right = [(int(row["age"]) > 54) == (row["label"] == "yes") for row in answered]
    # A cut of the public points lies within some years of 54; seven in eight is far from chance.
    assert sum(right) > 7 * len(right) / 8


def test_keys_are_made_as_the_page_for_beginners_says(reader: Reader, tmp_path: Path) -> None:
    """The rest of the page makes a file of keys."""
    ways = [*section_commands(DOCS / "start.md", "Publish a classifier")]
    ways += section_commands(DOCS / "start.md", "Answer online")
    rest = [command for command in commands(DOCS / "start.md") if command not in ways]
    for command in rest:
        if command not in RUN_ELSEWHERE:
            reader.follow(command)
    assert re.search(r"^\[\[?keys", (tmp_path / "keys.toml").read_text(), re.MULTILINE)


@pytest.mark.usefixtures("records")
def test_a_configuration_is_written_as_its_page_says(reader: Reader, tmp_path: Path) -> None:
    """By the page's own dictionary, by a sample, and made-up rows that are served."""
    (dictionary,) = examples(DOCS / "init.md", "text")
    (tmp_path / "dictionary.csv").write_text(dictionary)
    followed(reader, DOCS / "init.md")
    written = load_settings(tmp_path / "conclave.toml", {})
    assert written.privacy.shares.answers == 0
    assert load_settings(tmp_path / "online.toml", {}).privacy.shares.answers > 0
    assert len((tmp_path / "twin.csv").read_text().splitlines()) == 501


def test_the_readme_goes_the_first_way() -> None:
    """Its commands on one's own records are those of the page for beginners, in that order."""
    first = section_commands(DOCS / "start.md", "Publish a classifier")
    own = section_commands(ROOT / "README.md", "Your own records")
    assert [command for command in own if command not in RUN_ELSEWHERE] == [*first[:5], first[6]]


def test_the_readme_asks_the_demo(reader: Reader, tmp_path: Path) -> None:
    """The front door's two requests are answered by the embedded demo."""
    # Its own settings, with fewer learners and rows fewer to fit: the requests are the same.
    from app.settings.settings import demo_tables

    demo = demo_tables()["data"]
    assert isinstance(demo, dict)
    features = demo["features"]
    lines = ["[release]", 'name = "demo"', "[data]", 'source = "records.csv"', 'label = "label"']
    lines += ['classes = ["no", "yes"]']
    for feature in features:
        lines += ["[[data.features]]", f'name = "{feature["name"]}"', 'kind = "numeric"']
        lines += ["bounds = [0, 1]"]
    lines += [
        "[hypotheses]",
        'class = "trees"',
        "depth = 1",
        "bins = 4",
        "[privacy]",
        "epsilon = 9",
    ]
    (tmp_path / "demo.toml").write_text("\n".join(lines))
    generator = np.random.default_rng(1)
    rows = generator.random((2000, 8)).round(3)
    shown = [",".join(map(str, row)) + (",yes" if row[0] > 0.5 else ",no") for row in rows]
    header = ",".join([feature["name"] for feature in features] + ["label"])
    (tmp_path / "records.csv").write_text("\n".join([header, *shown]) + "\n")
    reader.serve("demo.toml")
    asked = section_commands(ROOT / "README.md", "A demonstration")
    query, budget = (reader.follow(each) for each in asked if each not in RUN_ELSEWHERE)
    assert set(json.loads(query)) == {"query_id", "label", "stable", "phase", "replayed"}
    assert json.loads(budget)["queries"]["answered"] == 1


def test_http_is_asked_as_its_page_says(reader: Reader, tmp_path: Path) -> None:
    """A query, a stream of two and both forms of the classifier, by curl."""
    write_release(tmp_path, answers='on_cutoff = "classifier"')
    reader.follow("conclave learn --config conclave.toml --public public.csv -o drawn.json")
    reader.serve("conclave.toml")
    one, stream, document, _ = followed(reader, DOCS / "http.md").values()
    assert json.loads(one)["query_id"] == 1
    first, second = (json.loads(line) for line in stream.splitlines())
    assert (first["replayed"], second["query_id"]) == (True, 2)
    assert document == (tmp_path / "drawn.json").read_text().rstrip("\n")
    assert (tmp_path / "classifier.onnx").stat().st_size > 100


def test_scores_are_asked_as_their_page_says(reader: Reader, tmp_path: Path) -> None:
    """The reply has the members that the page shows, in their order."""
    write_release(tmp_path, relabel=0, answers='output = "score"')
    reader.serve("conclave.toml")
    (reply,) = followed(reader, DOCS / "scores.md").values()
    (shown,) = examples(DOCS / "scores.md", "json")
    assert list(json.loads(reply)) == list(json.loads(shown))


def test_a_classifier_is_learned_as_its_page_says(reader: Reader, tmp_path: Path) -> None:
    """Plan, learn and serve; the lines about Adult are benchmarks/learn_adult.py's own."""
    write_release(tmp_path)
    typed = commands(DOCS / "learn.md")
    rest = [command for command in typed if "export CONCLAVE_" in command or "adult" in command]
    for command in [command for command in typed if command not in rest]:
        reader.follow(command)
    assert len(rest) == 5
    assert json.loads((tmp_path / "classifier.json").read_text())["format"]


def test_statistics_are_asked_as_their_page_says(reader: Reader, tmp_path: Path) -> None:
    """The command prints what the page shows, by its members; the server answers as well."""
    write_release(tmp_path)
    command, request = commands(DOCS / "statistics.md")
    printed = json.loads(reader.follow(command))
    (shown,) = re.findall(
        r"^\{.*\}$", "".join(examples(DOCS / "statistics.md", "console")), re.MULTILINE
    )
    assert list(printed) == list(json.loads(shown))
    reader.serve("conclave.toml")
    assert len(json.loads(reader.follow(request))["values"]) == 1


def test_a_plan_is_made_as_its_page_says(reader: Reader, tmp_path: Path) -> None:
    """Both synopses hold with every option that they name."""
    write_release(tmp_path)
    for synopsis in commands(DOCS / "planning.md"):
        words = re.sub(r"[\[\]]|\\?\n", " ", synopsis.replace("--vc D", "--vc 3")).split()
        command = " ".join(VALUES.get(word, word) for word in words)
        assert json.loads(reader.follow(command))
    assert (tmp_path / "plan.png").exists()


def test_an_exported_ledger_is_verified_as_its_page_says(reader: Reader, tmp_path: Path) -> None:
    """Both pages are fetched with a key and added up by the page's program."""
    write_release(tmp_path)
    shutil.copy(ROOT / "tests" / "docs" / "verify_exported_ledger.py", tmp_path)
    key = reader.follow("conclave keys add --role admin --name watcher --keys-file keys.toml")
    reader.variables["KEY"] = key.strip().splitlines()[-1].split()[-1]
    address = reader.serve("conclave.toml", CONCLAVE_SERVER__KEYS_FILE=str(tmp_path / "keys.toml"))
    reader.variables |= {
        "URL": address,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    *_, verified = followed(reader, DOCS / "ledger-format.md").values()
    assert re.fullmatch(r"\d+ entries, head [0-9a-f]{64}, answered 0, unstable 0\n", verified)


def test_keys_are_made_as_their_page_says(reader: Reader, tmp_path: Path) -> None:
    """A key is made and listed, and its use is told of a release that is open."""
    write_release(tmp_path)
    config = tmp_path / "conclave.toml"
    reader.serve("conclave.toml")
    config.write_text(config.read_text() + '\n[server]\nkeys_file = "keys.toml"\n')
    said = list(followed(reader, DOCS / "keys.md").values())
    assert said[1].startswith("web\tquery\t1000\t2\t")
