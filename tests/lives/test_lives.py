"""The guard of moves: two recordings of one commit are equal, and a byte more is found.

Nothing is held against a file of the repository: floats may differ in their last bits from
one processor to another, so a recording is compared on the machine that made it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lives import __main__ as command
from tests.lives import claims, records
from tests.lives.catalogue import Life, lives
from tests.lives.living import UNEXPECTED, live
from tests.lives.masks import masked
from tests.lives.script import scripted

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = "profile, cut off, then a halt, coin"
SHORT = ("commands, key_commands", WHOLE)
FEW = 200


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recording of a few lives."""
    path = tmp_path_factory.mktemp("lives") / "lives.xz"
    with records.writing(path) as writer:
        for name in SHORT:
            writer.add(live(name))
    return path


def compare(recorded: Path, only: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return the exit code of a comparison in this process, and what it printed."""
    code = command.main(["compare", str(recorded), "--jobs", "1", "--only", only])
    return code, capsys.readouterr().out


def test_there_are_lives_of_everything() -> None:
    """Two hundred lives and more, on both kinds of database, each by a name of its own."""
    found: list[Life] = [*lives().values()]
    assert len(found) >= FEW
    assert sum(life.database == "postgresql" for life in found) >= FEW // 5


@pytest.mark.parametrize("name", SHORT)
def test_a_second_recording_is_the_same(
    recorded: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A life that is lived again gives the same bytes, and ends as it should."""
    code, said = compare(recorded, name, capsys)
    assert (code, said.splitlines()[-1].partition(": ")[2]) == (0, "0 lives differ")
    items = dict(records.read(recorded).lives[name])
    assert UNEXPECTED not in items


def test_an_hour_that_ends_in_a_life_changes_nothing() -> None:
    """The requests of two hours are compared by their sum, and one request more is found."""
    first, second = b'{"time":3600,"fresh":4,"unstable":1}', b'{"time":7200,"fresh":2,"unstable":0}'
    both = masked(b'content-length: 85\n{"hours":[' + first + b"," + second + b"]}", {})
    one = b'content-length: 48\n{"hours":[{"time":3600,"fresh":6,"unstable":1}]}'
    assert both == masked(one, {})
    assert both != masked(one.replace(b"6", b"7"), {})


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ('"replayed":false}', '"replayed":false }'),
        ('"event": "answers_committed"', '"event": "answers_kommitted"'),
        ("content-type: application/json\ncontent-l", "content-l\ncontent-type: application/json"),
        ('{"cutoff":3,"delta"', '{"delta":3,"cutoff"'),
        ("verified: sequence", "verified sequence"),
    ],
    ids=["reply", "log", "headers", "entry", "command"],
)
def test_one_different_byte_is_shown(recorded: Path, text: str, other: str) -> None:
    """A byte in a reply, a header, an entry, a log line or a command's output is found."""
    items = records.read(recorded).lives[WHOLE]
    place = next(place for place, (_, said) in enumerate(items) if text.encode() in said)
    name, said = items[place]
    altered = [*items]
    altered[place] = (name, said.replace(text.encode(), other.encode(), 1))
    told = records.first_difference(items, altered)
    assert told is not None
    assert told.startswith(f"item {place}, {name}")
    assert records.first_difference(items, items) is None
    assert records.first_difference(items, items[:-1]) is not None


def test_noise_of_another_script_is_found(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Noise decides much of what is recorded: from another seed the comparison ends with 1."""
    monkeypatch.setattr("tests.lives.living.scripted", lambda seed: scripted(f"{seed} anew"))
    code, said = compare(recorded, WHOLE, capsys)
    assert code == 1
    assert said.endswith("1 lives differ\n")
    assert "at byte" in said


def test_claims_are_found_wherever_they_are() -> None:
    """A test in another file is no loss; one that is gone is named, and so are fewer lines."""
    before = [
        "test\ttest_this_holds_always\ta.py::test_this_holds_always",
        "test\ttest_that_holds_always\ta.py::test_that_holds_always",
        "lines\tpure contract\t10",
    ]
    moved = [line.replace("a.py", "b.py") for line in before]
    assert claims.lacking(before, moved) == []
    assert claims.lacking(before, [moved[0], "lines\tpure contract\t9"]) == [
        before[1],
        "lines\tpure contract\t10 before, 9 now",
    ]


def test_every_planted_fault_is_listed() -> None:
    """Tests, faults and guarded lines of this commit are all in the list."""
    found = claims.listed()
    assert {line.split("\t")[0] for line in found} == {"test", "fault", "lines"}
    assert any("fault\trecord_in_two_chunks\t" in line for line in found)
