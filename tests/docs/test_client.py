"""The page of the client: its programs run against a real release, and its table is the code's."""

from __future__ import annotations

import re
from inspect import getmembers, isfunction
from typing import TYPE_CHECKING

import pytest

from conclave_client import AsyncClient, Client, ConclaveError, Retries
from conclave_client.errors import FAMILIES
from conclave_client.requests import ROWS_A_REQUEST, TIMEOUT_SECONDS
from tests.docs.pages import ROOT, examples, text
from tests.docs.reader import PRINTED_ADDRESS, Reader
from tests.docs.readers_release import write_release

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = ROOT / "docs" / "client.md"
LABELS = {"<=50K", ">50K"}
FAMILY = re.compile(r"^\| `(\w+Error)` \| (.*) \|$", re.MULTILINE)


@pytest.fixture(name="reader")
def reader_beside_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Reader]:
    """Return a reader in the folder of the pages' release."""
    monkeypatch.chdir(tmp_path)
    write_release(tmp_path)
    reader = Reader(tmp_path, capsys.readouterr)
    yield reader
    reader.leave()


def printed(program: str) -> list[str]:
    """Run a program of the page, and return the lines that it prints."""
    said: list[str] = []
    names = {"print": lambda *each: said.append(" ".join(map(str, each)))}
    exec(program, names)  # noqa: S102 -- the page's own program is what is tested
    return said


def test_the_programs_that_ask_are_answered(reader: Reader) -> None:
    """The first asks one vector and thirty, and the second asks again on an event loop."""
    address = reader.serve("conclave.toml")
    asks, on_a_loop, _ = (
        each.replace(PRINTED_ADDRESS, address) for each in examples(PAGE, "python")
    )
    one, *many, left = printed(asks)
    assert {one, *(line.split(maxsplit=1)[1] for line in many)} <= {*LABELS, "None"} | {
        "too close to call"
    }
    assert [line.split()[0] for line in many] == [str(number) for number in range(30)]
    assert left == "169 answers are left"
    assert printed(on_a_loop) == [one if one in LABELS else "None"]


def test_the_program_without_a_server_predicts(reader: Reader) -> None:
    """A classifier that was learned and exported labels three rows."""
    reader.follow("conclave learn --config conclave.toml --public public.csv")
    reader.follow("conclave export --config conclave.toml --format json -o classifier.json")
    (said,) = printed(examples(PAGE, "python")[2])
    assert re.fullmatch(r"\('age', 'workclass'\) \['[<>=50K]+'(, '[<>=50K]+'){2}\]", said)


def test_the_table_has_every_family() -> None:
    """Each class of errors is on the page with the slugs that it has, and no others."""
    told = {
        name: set(re.findall(r"`([a-z-]+)`", slugs)) for name, slugs in FAMILY.findall(text(PAGE))
    }
    families = {each.__name__: set[str]() for each in ConclaveError.__subclasses__()}
    for slug, family in FAMILIES.items():
        families[family.__name__].add(slug)
    assert told == families


def test_every_method_is_on_the_page() -> None:
    """Both clients have the methods of the page, and no others but closing and raw lines."""
    named = set(re.findall(r"`(\w+)\([^`]*\)`", text(PAGE).partition("## Errors")[0]))
    for client in (Client, AsyncClient):
        methods = {name for name, _ in getmembers(client, isfunction) if not name.startswith("_")}
        assert methods - {"close", "replies"} <= named


def test_the_figures_are_those_of_the_code() -> None:
    """Attempts, pauses, the timeout and the rows of a request are as said."""
    page, retries = " ".join(text(PAGE).split()), Retries()
    assert f"After {retries.attempts_max} failed attempts" in page
    assert f"waits {retries.pause_after(1, None)} s" in page
    assert f"up to {retries.pause_after(99, None):g} s" in page
    assert retries.pause_after(1, 3600) == 60
    assert f"`timeout_seconds`, by default {TIMEOUT_SECONDS:g}," in page
    assert f"{ROWS_A_REQUEST} for each request" in page
