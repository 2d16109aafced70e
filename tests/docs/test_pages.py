"""The pages name things that are there, and name all that must be known."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

import pytest

from app import cli, errors
from app.answering.answer_query import Step
from app.http import problems
from app.http.routes import ROUTES
from app.ledger.entries.entry_kinds import EVENT_TYPES
from tests.docs import settings_page
from tests.docs.pages import PAGES, ROOT, anchors, code_names, examples, links, page_id, prose, text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDERS = ("app/", "docs/", "examples/", "migrations/", "tests/", "benchmarks/")


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_link_leads_somewhere(page: Path) -> None:
    """A relative link names a file of the repository and, if it says so, a heading in it."""
    broken = []
    for link in links(page):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(link)
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_path_that_is_named_exists(page: Path) -> None:
    """A path of the source tree between backticks is one that exists."""
    named = [name for name in code_names(page) if name.startswith(FOLDERS) and " " not in name]
    missing = [name for name in named if not list(ROOT.glob(name.rstrip("/").split("::")[0]))]
    assert not missing, "\n".join(missing)


COLUMNS_MAX: Final = 100
WRITTEN: Final = re.compile(r"<!-- .* from here -->.*?to here -->", re.DOTALL)


@pytest.mark.parametrize(
    "page", [each for each in PAGES if each.name != "CHANGELOG.md"], ids=page_id
)
def test_lines_of_prose_are_short(page: Path) -> None:
    """They have 100 columns, but for tables, pictures, printed sections and one long word."""
    own = WRITTEN.sub("", prose(page)).splitlines()
    wrapped = [line for line in own if not line.lstrip().startswith(("|", "!["))]
    long = [line for line in wrapped if len(line) > COLUMNS_MAX and " " in line.strip()]
    assert not long, "\n".join(long)


def test_the_settings_page_is_what_the_settings_print() -> None:
    """``docs/settings.md`` is the page that ``make docs`` writes from the settings."""
    assert text(ROOT / "docs" / "settings.md") == settings_page.page()


def test_every_step_is_explained_in_its_order() -> None:
    """The life of a query names every step of the code, in its order."""
    page = text(ROOT / "docs" / "life-of-a-query.md")
    table = [line for line in page.splitlines() if line.startswith("| `")]
    named = [re.split(r"`", line)[1] for line in table]
    assert named == [step.name for step in Step]


def test_the_picture_shows_every_step_in_its_order() -> None:
    """The diagram is well-formed, has words for who cannot see it, and names every step."""
    path = ROOT / "docs" / "pictures" / "life-of-a-query.svg"
    picture = ET.parse(path)  # noqa: S314 -- the project's own file
    shown = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    steps = [step.name for step in Step]
    assert [each for each in shown if each in steps] == steps
    described = picture.findtext("{http://www.w3.org/2000/svg}desc")
    assert described is not None
    assert all(step in described for step in steps)


def test_every_page_is_in_the_index() -> None:
    """Whoever reads docs/README.md finds every page beside it."""
    index = ROOT / "docs" / "README.md"
    listed = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    pages = {path for path in (ROOT / "docs").glob("*.md") if path != index}
    absent = sorted(path.name for path in pages - listed)
    assert not absent, "\n".join(absent)


def test_every_entry_kind_is_explained() -> None:
    """The ledger's page names every kind of entry, and every field of it."""
    page = text(ROOT / "docs" / "ledger-format.md")
    for event_type in EVENT_TYPES:
        assert f"`{event_type.KIND}`" in page
        for field in event_type.__struct_fields__:
            assert f"`{field}`" in page, f"{event_type.KIND}.{field}"


def test_every_route_is_explained() -> None:
    """The page on HTTP names every route with its method."""
    page = text(ROOT / "docs" / "http.md")
    absent = [f"{route.method} {route.path}" for route in ROUTES]
    absent = [route for route in absent if f"`{route}`" not in page]
    assert not absent, "\n".join(absent)


def test_every_problem_is_explained() -> None:
    """The page on errors names every problem that a client can get."""
    page = text(ROOT / "docs" / "errors.md")
    absent = sorted(slug for slug in slugs() if f"`{slug}`" not in page)
    assert not absent, "\n".join(absent)


def test_every_command_is_in_the_readme() -> None:
    """The README names every command, and none that is not there."""
    page = text(ROOT / "README.md")
    named = set(re.findall(r"^\| `conclave (\w+)` \|", page, re.MULTILINE))
    modules = [command.__name__.removesuffix(".command") for command in cli.COMMANDS]
    assert named == {module.rpartition(".")[2] for module in modules}


def test_every_target_of_make_that_is_named_exists() -> None:
    """A target that a page tells to make is in the Makefile."""
    makefile = text(ROOT / "Makefile")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    for page in PAGES:
        told = re.findall(r"(?:^\$ |`)make ([a-z-]+)", text(page), re.MULTILINE)
        assert set(told) <= targets, page


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_option_in_an_example_exists(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The options of ``conclave`` in an example are options of that command."""
    for line in _command_lines(page):
        words = line.split()
        command = words[1 : 3 if words[1] in {"keys", "ledger"} else 2]
        assert cli.run([*command, "--help"]) == 0, line
        known = capsys.readouterr().out
        for option in re.findall(r" (--[a-z-]+)", line):
            assert option in known, line


def _command_lines(page: Path) -> Iterator[str]:
    """Yield the calls of ``conclave`` in a page's console examples."""
    for example in examples(page, "console"):
        for line in example.replace("\\\n", " ").splitlines():
            words = line.removeprefix("$ ").split()
            if words and words[0].rpartition("/")[2] == "conclave":
                yield " ".join(["conclave", *words[1:]]).split(" > ")[0]


def slugs() -> set[str]:
    """Return the last part of every problem type that the code can send."""
    bases = {errors.RequestError, errors.UnavailableError}
    classes = [
        value
        for module in (errors, problems)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, errors.ConclaveError)
    ]
    return {value.slug for value in classes if hasattr(value, "slug") and value not in bases}
