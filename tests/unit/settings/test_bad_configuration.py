"""Every kind of bad configuration is refused in one line that names the key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app import cli
from app.settings.settings import load_settings
from tests.builders.schema.bad_configurations import ADDED, SPOILED, SPOILED_BY_ENVIRONMENT
from tests.builders.schema.configurations import RIGHT, line_of, spoil, write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("old", "new", "line"), SPOILED)
def test_bad_configuration_is_one_line(tmp_path: Path, old: str, new: str, line: str) -> None:
    """The line names the key, and no value."""
    assert line_of(write(tmp_path, spoil(old, new))) == f"conclave: {line}"


@pytest.mark.parametrize(("added", "line"), ADDED)
def test_bad_addition_is_one_line(tmp_path: Path, added: str, line: str) -> None:
    """The line names the key, and no value."""
    assert line_of(write(tmp_path, RIGHT + added)) == f"conclave: {line}"


@pytest.mark.parametrize("kind", ["thresholds", "intervals", "rectangles", "halfspaces"])
def test_classes_of_two_sides_take_two_labels(tmp_path: Path, kind: str) -> None:
    """Each parts the rows in two, so a third class could never be the label."""
    text = spoil('">50K"', '">50K", "unknown"').replace('"trees"', f'"{kind}"')
    problem = f"hypotheses.class: {kind} is for two classes"
    assert line_of(write(tmp_path, text)) == f"conclave: {problem}"


def test_halfspaces_take_three_numbers_at_most(tmp_path: Path) -> None:
    """A fourth feature is left out by an empty list; then the configuration is right."""
    more = "".join(
        f'[[data.features]]\nname = "more{number}"\nkind = "numeric"\nbounds = [0, 1]\n'
        for number in range(3)
    )
    text = spoil("[hypotheses]", f"{more}[hypotheses]").replace('"trees"', '"halfspaces"')
    assert line_of(write(tmp_path, text)) == (
        "conclave: hypotheses.class: halfspaces takes tests of at most 3 numbers, and 4 have some: "
        "leave a feature out by an empty list in [hypotheses.tests]"
    )
    load_settings(write(tmp_path, text + "tests = { more1 = [] }\n"), {})


@pytest.mark.parametrize(("environ", "line"), SPOILED_BY_ENVIRONMENT)
def test_bad_environment_is_one_line(tmp_path: Path, environ: dict[str, str], line: str) -> None:
    """The line names the key, or the name where no key was meant."""
    assert line_of(write(tmp_path), environ) == f"conclave: {line}"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"name = ", "is not valid TOML: Invalid value (at end of document)"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"a = " + b"[" * 20_000, "is nested too deeply"),
    ],
)
def test_an_unreadable_file_is_one_line(tmp_path: Path, body: bytes, problem: str) -> None:
    """The line names the file."""
    path = tmp_path / "conclave.toml"
    path.write_bytes(body)
    assert line_of(path) == f"conclave: {path}: {problem}"


def test_an_absent_file_is_one_line(tmp_path: Path) -> None:
    """The line names the file, and a folder is no file either."""
    assert line_of(tmp_path / "none.toml") == f"conclave: {tmp_path / 'none.toml'}: no such file"
    assert line_of(tmp_path) == f"conclave: {tmp_path}: cannot be read: Is a directory"


def test_a_file_without_end_is_refused(tmp_path: Path) -> None:
    """A configuration has a named maximum of bytes."""
    path = write(tmp_path, RIGHT + "# filler\n" * 2_000_000)
    assert line_of(path).endswith("is larger than 16777216 bytes")


def test_a_command_prints_the_line_and_ends_with_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The operator reads one line on stderr, nothing on stdout, and exit code 2."""
    path = write(tmp_path, spoil("[17, 90]", "[90, 17]"))
    assert cli.run(["verify", "--config", str(path)]) == 2
    assert capsys.readouterr() == (
        "",
        'conclave: data.features[0] ("age").bounds: lower must be below upper\n',
    )
